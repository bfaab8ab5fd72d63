"""What a reader should know before trusting a number, in plain words."""

from __future__ import annotations

import numpy as np

from truerank.core import Estimator, Metric, Ranks, Terms

FEW_UNITS = 30
FEW_HITS = 20
MANY_LEFT_OUT = 0.01


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
    if left_out > MANY_LEFT_OUT * n and estimator.left_out:
        found.append(f"{_of(left_out, n)} are left out: they {estimator.left_out}")
    if estimator.caution:
        found.append(estimator.caution)
    if terms.n_defined == 0:
        found.append("no user has a defined value")
    elif not np.any(terms.den):
        found.append("no judged item is relevant: there is nothing to divide by")
    elif not np.any(terms.num) and not terms.exact:
        found.append("no judged relevant item is in any list: the value may be above 0, but nothing tells how far")
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
        # the number of candidates may be unknown
        short = ranks.scored & (ranks.n_recommended < metric.cutoff) & ~(ranks.n_recommended >= ranks.n_candidates)
        if short.any():
            found.append(
                f"{_of(int(short.sum()), n)} are recommended fewer than {metric.cutoff} items, and the empty places "
                "count as misses; if exclusions have shortened top lists, give longer ones"
            )
    return tuple(found)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} users ({part / whole:.0%})"
