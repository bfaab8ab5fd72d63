"""How far a number can be trusted: what a reader should know before relying on it, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import equal_parts, exact_sum
from truerank.core.counted import CountedItems
from truerank.core.estimator import Clipping, Estimator
from truerank.core.messages import Message, caution, warning
from truerank.core.metric import Metric
from truerank.core.ranking import Pool
from truerank.core.rows import Weighting
from truerank.core.terms import Ratio, Smooth, Terms
from truerank.metrics.worth import Pairwise, bounds_of
from truerank.uncertainty.spreads import Spread
from truerank.uncertainty.tails import about_unequal
from truerank.uncertainty.verdicts import MUCH_LOST

FEW_UNITS = 10  # below which intervals of labelled users are rough; between 10 and 30 they covered 97 % of truths
FEW_HITS = 10
MANY_LEFT_OUT = 0.01
FEW_EFFECTIVE = 100
LARGE_SHARE = 0.05
BEYOND = 1e-9  # rounding


@dataclass(frozen=True, slots=True)
class Listed:
    """What was counted of one model's lists: users without scores, users whose list is shorter than the cut-off, and
    users of whom equal scores were parted by the end of the list."""

    unscored: int
    short: int
    cut: int = 0


def judged_spread(spread: Spread, terms: Sequence[Terms]) -> Spread:
    """The spread of a value or a difference from judged rows; unknown where weighted rows show none."""
    parts = [part.whole for part in terms]
    if len(parts) > 1 and not any(part.weighting for part in parts):
        return spread
    blind = [shows_no_spread(part) and (len(parts) == 1 or part.weighting is not None) for part in parts]
    return spread.without_interval() if any(blind) else spread


def equally_weighted(terms: Smooth) -> float:
    """How many equally weighted clusters the denominator is worth, B² / Σ b²; 0 for means.

    A mean divides by all clusters, whether or not anything of their lists was judged: it does not tell.
    """
    below = terms.clusters.sums(np.where(terms.defined, terms.sums[:, 1], 0.0))
    return 0.0 if (below[below != 0] == 1).all() else equal_parts(below)


def warnings_of(
    estimator: Estimator, metric: Metric, terms: Terms, listed: Listed, *, clip: float, exactly_these: bool
) -> tuple[Message, ...]:
    """The warnings of one estimate; `exactly_these` units are meant, or the population they come from."""
    sums, about = terms.whole, estimator.about
    n = len(sums.defined)
    messages: list[Message] = []
    if listed.unscored:
        messages.append(
            caution("no-scores", f"{_of(listed.unscored, n)} have no scores from this model and are left out")
        )
    left_out = n - listed.unscored - sums.n_defined
    if left_out > MANY_LEFT_OUT * n and about.left_out:
        messages.append(caution("left-out", f"{_of(left_out, n)} are left out: they {about.left_out}"))
    if about.pool is Pool.JUDGED:
        messages += _about_judged_only(metric, left_out, n)
    if about.caution:
        messages.append(warning("for-comparison", about.caution))
    clips = estimator.about.clipping is not Clipping.NONE
    messages += _about_weights(sums.weighting, clip, clips=clips)
    messages += _about_bounds(sums.value(), metric)
    messages += _about_counts(terms) if isinstance(terms, CountedItems) and not exactly_these else []
    single = not isinstance(terms, CountedItems)
    messages += _about_the_interval(sums, exactly_these=exactly_these, single=single)
    messages += [] if exactly_these or sums.exact else about_unequal(sums, cluster="user")
    if listed.cut:
        messages.append(
            caution(
                "tie-cut",
                f"{_of(listed.cut, n)} have equal scores at the end of their list: which of these items are in it was "
                "drawn, by seed, user and item",
                numbers={"users": listed.cut},
            )
        )
    if listed.short:
        empty = "what they have is their list" if about.of_lists else "the empty places count as misses"
        messages.append(
            caution(
                "short-lists",
                f"{_of(listed.short, n)} are recommended fewer than {metric.cutoff} items, and {empty}; "
                "if exclusions have shortened top lists, give longer ones",
            )
        )
    return tuple(messages)


def _about_counts(terms: CountedItems) -> list[Message]:
    """That no user alone changes a value that is a function of all lists."""
    if terms.n_independent() < 2 or np.any(terms.influence()):
        return []
    sentence = (
        "no list holds an item that is in no other: the interval rests on what users unlike all of these could add"
    )
    return [caution("no-single-item", sentence)]


def shows_no_spread(terms: Smooth) -> bool:
    """Whether weighted rows are all hits or all misses, so that an interval of no width would be a lie."""
    if terms.exact:
        return False
    if not np.any(terms.sums[:, 0]):
        return True
    if terms.weighting is None or terms.n_defined < 2:
        return False
    totals = terms.totals()
    effect = Ratio().influence(terms.sums[:, :2], totals[:2])
    return bool(np.abs(effect).max() <= 1e-12 * abs(terms.value()))


def _about_weights(weights: Weighting | None, clip: float, *, clips: bool) -> list[Message]:
    """What unequal weights do to trust: a few heavy rows decide, and cut ones bias."""
    messages: list[Message] = []
    if weights is None or weights.rows == 0:
        return []
    if weights.effective < FEW_EFFECTIVE:
        messages.append(
            caution(
                "few-effective-rows",
                f"the weights make {weights.rows:,} rows worth {weights.effective:,.0f} equal ones: the interval is "
                "rough",
            )
        )
    if weights.largest > LARGE_SHARE:
        other = ", or clip" if clips else ""
        messages.append(
            caution(
                "heavy-row",
                f"one row carries {weights.largest:.0%} of all weight: see that its propensity is right{other}",
            )
        )
    if weights.lost > MUCH_LOST:
        messages.append(
            warning(
                "much-clipped",
                f"clipping at {clip:g} takes {weights.lost:.0%} of the weight away (above {MUCH_LOST:.0%}): the value "
                "is biased by up to about that share, and the interval does not say so",
                numbers={"lost": weights.lost, "clip": clip},
            )
        )
    elif weights.lost > 0:
        messages.append(
            caution(
                "clipped",
                f"clipping at {clip:g} takes {weights.lost:.1%} of the weight away, so the value leans towards what "
                "was shown often",
                numbers={"lost": weights.lost, "clip": clip},
            )
        )
    return messages


def _about_bounds(value: float, metric: Metric) -> list[Message]:
    """That a value is none that the metric can have, as sums and ratios of few expanded rows may be."""
    low, high = bounds_of(metric)
    if not (value < low - BEYOND or value > high + BEYOND):
        return []
    return [
        warning(
            "outside-bounds",
            f"the value lies outside {low:g} to {high:g}, where {metric} must be, as sums and ratios of few expanded "
            "rows may: use an estimator that divides by the weights (hajek, snips), or more data",
            numbers={"value": value, "low": low, "high": high},
        )
    ]


def _about_the_interval(terms: Smooth, *, exactly_these: bool, single: bool) -> list[Message]:
    """What an interval rests on; `single` says that a user alone has a value."""
    numerator, denominator = terms.sums[:, 0], terms.sums[:, 1]
    if terms.n_defined == 0:
        return [warning("nothing-defined", "no user has a defined value")]
    if exact_sum(np.ascontiguousarray(denominator)) <= 0:
        return [
            warning(
                "nothing-to-divide-by",
                "no judged item is relevant, or their estimated number is not above 0: there is nothing to divide by",
            )
        ]
    if not np.any(numerator) and not terms.exact:
        return [
            warning(
                "no-hit",
                "no judged relevant item is in any list: the value may be above 0, but nothing tells how far",
            )
        ]
    if exactly_these:
        return []
    if terms.n_defined == 1:
        return [warning("single-user", "a single user: no interval for a population can be given")]
    messages = []
    if terms.n_defined < FEW_UNITS:
        messages.append(caution("few-users", f"only {terms.n_defined} users: the interval is rough"))
    contributing = numerator[terms.defined & (denominator != 0)]
    if shows_no_spread(terms):
        messages.append(
            warning(
                "no-spread",
                "all shown items in the lists have the same label: nothing tells how far off the value may be",
            )
        )
    elif single and (contributing == contributing[0]).all():
        messages.append(
            caution("same-value", "all users have the same value: an interval cannot show how others would differ")
        )
    hits = int(np.count_nonzero(numerator))
    if terms.n_defined >= FEW_UNITS and hits < FEW_HITS and not terms.exact:
        messages.append(
            caution("few-hits", f"rests on {hits} users with a judged relevant item in the list: the interval is rough")
        )
    return messages


def _about_judged_only(metric: Metric, left_out: int, n: int) -> list[Message]:
    if not isinstance(metric, Pairwise):
        return [
            warning(
                "judged-only",
                f"ranks only the judged items: this is not {metric} over the catalogue and changes with the number "
                "judged",
            )
        ]
    if left_out <= MANY_LEFT_OUT * n:
        return []
    return [
        caution(
            "lacking-classes",
            f"{_of(left_out, n)} lack a judged relevant item or a judged other one and are left out, "
            "so this mean leans towards users who have many of both",
        )
    ]


def _of(part: int, whole_number: int) -> str:
    return f"{part:,} of {whole_number:,} users ({part / whole_number:.0%})"
