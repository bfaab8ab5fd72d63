"""What a reader should know before trusting a number, in plain words."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import exact_sum
from truerank.core.estimator import Estimator
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Pool, Ranks
from truerank.core.terms import Terms
from truerank.metrics.worth import Pairwise

FEW_UNITS = 30
FEW_HITS = 20
MANY_LEFT_OUT = 0.01
FEW_EFFECTIVE = 100
LARGE_SHARE = 0.05


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
    if estimator.pool is Pool.JUDGED:
        found += _about_judged_only(metric, left_out, n)
    if estimator.biased and terms.weighting is None:
        found.append("takes the log for a random sample: shown to compare with, not to decide by")
    found += _about_weights(terms, metric)
    found += _about_the_interval(terms, exactly_these=exactly_these)
    if metric.cutoff is not None:
        # the number of candidates may be unknown
        short = ranks.scored & (ranks.n_recommended < metric.cutoff) & ~(ranks.n_recommended >= ranks.n_candidates)
        if short.any():
            found.append(
                f"{_of(int(short.sum()), n)} are recommended fewer than {metric.cutoff} items, and the empty places "
                "count as misses; if exclusions have shortened top lists, give longer ones"
            )
    return tuple(found)


def shows_no_spread(terms: Terms) -> bool:
    """Whether weighted rows are all hits or all misses, so that an interval of no width would be a lie."""
    if terms.exact:
        return False
    if not np.any(terms.num):
        return True
    if terms.weighting is None or terms.n_defined < 2:
        return False
    effect = terms.influence() if terms.total is None else Terms.ratio(terms.num, terms.den).influence()
    return bool(np.abs(effect).max() <= 1e-12 * abs(terms.value()))


def _about_weights(terms: Terms, metric: Metric) -> list[str]:
    """What unequal weights do to trust: a few heavy rows decide, and cut ones bias."""
    known, found = terms.weighting, []
    if known is None or known.rows == 0:
        return []
    if known.effective < FEW_EFFECTIVE:
        found.append(
            f"the weights make {known.rows:,} rows worth {known.effective:,.0f} equal ones: the interval is rough"
        )
    if known.largest > LARGE_SHARE:
        found.append(f"one row carries {known.largest:.0%} of all weight: see that its propensity is right, or clip")
    if isinstance(metric, Additive) and metric.denominator is Denominator.POSITIVES and not 0 <= terms.value() <= 1:
        found.append("the value lies outside 0 to 1, as ratios of few corrected rows may: use snips, or more data")
    if known.clipped:
        found.append(
            f"{known.clipped / known.rows:.1%} of the weights were clipped, "
            "so the value leans towards what was shown often"
        )
    return found


def _about_the_interval(terms: Terms, *, exactly_these: bool) -> list[str]:
    if terms.n_defined == 0:
        return ["no user has a defined value"]
    if exact_sum(terms.den) <= 0:
        return ["no judged item is relevant, or their estimated number is not above 0: there is nothing to divide by"]
    if not np.any(terms.num) and not terms.exact:
        return ["no judged relevant item is in any list: the value may be above 0, but nothing tells how far"]
    if exactly_these:
        return []
    if terms.n_defined == 1:
        return ["a single user: no interval for a population can be given"]
    found = []
    if terms.n_defined < FEW_UNITS:
        found.append(f"only {terms.n_defined} users: the interval is rough")
    contributing = terms.num[terms.defined & (terms.den != 0)]
    if shows_no_spread(terms):
        found.append("all shown items in the lists have the same label: nothing tells how far off the value may be")
    elif (contributing == contributing[0]).all():
        found.append("all users have the same value: an interval cannot show how others would differ")
    hits = int(np.count_nonzero(terms.num))
    if terms.n_defined >= FEW_UNITS and hits < FEW_HITS and not terms.exact:
        found.append(f"rests on {hits} users with a judged relevant item in the list: the interval is rough")
    return found


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
