"""Whether a few clusters carry a value: tails of what they earn, unequal sizes, and what that does to its interval.

A heavy tail is most dangerous where its largest members happen not to have been drawn: then nothing in the spread shows
them. So it is judged by the slope of the upper part of what was seen, which hardly depends on the very largest.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.messages import Message, caution, warning
from truerank.core.terms import Smooth
from truerank.uncertainty.intervals import influences

UPPER = 0.2  # the part of clusters that the tail is judged by
LEAST = 10  # members of it
HEAVY = 0.7  # a tail of index 1/2 has no variance; sums of exponential numbers seem to have .4 to .6
MANY = 50
LARGE = 0.1
FEW_EFFECTIVE = 10.0
FEW_DEGREES = 10.0


def tail_index(values: Floats) -> float:
    """The mean of log(x / x0) over the upper fifth of the numbers above 0, x0 the next smaller one (Hill 1975).

    Numbers with P(X > x) ~ x^(-1/k) have the index k; NaN where there are fewer than ten in the fifth.

    >>> round(tail_index((np.arange(1000, 0, -1) / 1000.0) ** -0.8), 1), round(tail_index(np.linspace(1, 2, 1000)), 2)
    (0.8, 0.05)
    """
    above = values[values > 0]
    n = int(UPPER * len(above))
    if n < LEAST:
        return math.nan
    upper = np.partition(above, len(above) - n - 1)[-n - 1 :]
    return float(np.log(upper[1:] / upper[0]).mean())


def about_tails(terms: Smooth, *, cluster: str) -> list[Message]:
    """What to know of a value of which few clusters have much: of rewards, of sizes, or of its error."""
    used = terms.clusters.has(terms.defined)
    earned = np.abs(terms.clusters.sums(terms.sums[:, 0]))[used]
    return [*_about_rewards(earned, cluster), *about_unequal(terms, cluster=cluster)]


def _about_rewards(earned: Floats, cluster: str) -> list[Message]:
    total = float(earned.sum())
    if not total > 0:
        return []
    share = earned / total
    index, effective = tail_index(earned), 1 / float((share**2).sum())
    messages: list[Message] = []
    if index > HEAVY:
        messages.append(
            warning(
                "heavy-rewards",
                f"what {cluster}s add to the value has a tail index of {index:.2f} (above {HEAVY}): a few add most, "
                "and larger ones may not be in the data; then the interval is too short",
                numbers={"tail": index},
            )
        )
    if effective < FEW_EFFECTIVE and np.count_nonzero(earned) > 2 * FEW_EFFECTIVE:  # fewer: by number
        messages.append(
            warning(
                "few-carry",
                f"what {cluster}s add to the value is worth {effective:.1f} equal ones (below {FEW_EFFECTIVE:.0f}): "
                "few carry it",
                numbers={"effective": effective},
            )
        )
    return messages


def about_unequal(terms: Smooth, *, cluster: str) -> list[Message]:
    """Of at least 50 clusters: whether one has much of the error, few decide how large it is, or sizes differ much."""
    of = influences(terms)
    effect = np.abs(of.effect)
    n, total = int(np.count_nonzero(effect)), float(effect.sum())
    moments = of.moments()
    if n < MANY or moments is None:
        return []
    largest, sizes = float(effect.max()) / total, tail_index(of.leverage)
    if not (largest > LARGE or moments.df < FEW_DEGREES or sizes > HEAVY):
        return []
    return [
        caution(
            "unequal-clusters",
            f"{cluster}s are very unequal: {n:,} of them tell as much about the error as {moments.df + 1:.0f} equal "
            f"ones, and one has {largest:.0%} of it; the interval is rough",
            numbers={"df": moments.df, "largest": largest, "tail": sizes},
        )
    ]
