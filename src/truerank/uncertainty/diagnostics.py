"""What a reader should know before trusting a number, in plain words."""

from __future__ import annotations

import numpy as np

from truerank.core import Estimator, Metric, Ranks, Terms
from truerank.metrics.worth import Pairwise

FEW_UNITS = 30
FEW_HITS = 20
MANY_LEFT_OUT = 0.05


def warnings_of(
    estimator: Estimator, metric: Metric, terms: Terms, ranks: Ranks, *, exactly_these: bool
) -> tuple[str, ...]:
    """The warnings of one estimate; `exactly_these` units are meant, or the population they come from."""
    n = len(terms.num)
    found: list[str] = []
    unscored = int(np.count_nonzero(~ranks.scored))
    if unscored:
        found.append(f"{_of(unscored, n)} have no scores from this model and are left out")
    left_out = n - unscored - terms.n_defined
    if estimator.name == "published" and left_out > MANY_LEFT_OUT * n:
        found.append(
            f"{_of(left_out, n)} have no judged relevant item and are left out; they tend to have few relevant items, "
            "so this mean leans towards users with many (compare pooled)"
        )
    elif left_out and not estimator.complete and estimator.name not in ("published", "traditional"):
        found.append(f"{_of(left_out, n)} have no judged item and are left out")
    if estimator.name == "traditional":
        found += _about_judged_only(metric, left_out, n)
    if terms.n_defined == 0:
        found.append("no user has a defined value")
    elif not np.any(terms.den):
        found.append("no judged item is relevant: there is nothing to divide by")
    elif exactly_these:
        pass
    elif terms.n_defined == 1:
        found.append("a single user: no interval for a population can be given")
    elif terms.n_defined < FEW_UNITS:
        found.append(f"only {terms.n_defined} users: the interval is rough")
    hits = int(np.count_nonzero(terms.num))
    if terms.n_defined >= FEW_UNITS and hits < FEW_HITS and not terms.exact:
        found.append(f"rests on {hits} users with a judged relevant item in the list: the interval is rough")
    if metric.cutoff is not None:
        short = ranks.scored & (ranks.n_recommended < metric.cutoff) & (ranks.n_recommended < ranks.n_candidates)
        if short.any():
            found.append(
                f"{_of(int(short.sum()), n)} are recommended fewer than {metric.cutoff} items; "
                "the empty places count as misses"
            )
    return tuple(found)


def _about_judged_only(metric: Metric, left_out: int, n: int) -> list[str]:
    if not isinstance(metric, Pairwise):
        return [
            f"ranks only the judged items: this is not {metric} over the catalogue and changes with the number judged"
        ]
    if left_out <= MANY_LEFT_OUT * n:
        return []
    return [
        f"{_of(left_out, n)} lack a judged relevant item or a judged other one and are left out, "
        "so this mean leans towards users who have many of both"
    ]


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} users ({part / whole:.0%})"
