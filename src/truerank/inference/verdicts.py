"""When a difference is called better, worse, not shown, or when the evidence carries no verdict at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from truerank.core.messages import Message, message
from truerank.core.record import record
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW
from truerank.core.terms import Terms
from truerank.inference.linearization import Spread, difference_of

FEWEST = 6  # five clusters of one sign have p = .0625
HALF = 0.5
MUCH_LOST = 0.05


@record
class UnseenExposure:
    """What the data cannot show of a value: the share of the target's exposure, and how much reward it could add.

    `reach` is how much more the value could be with the largest reward there, `fall` how much less with the smallest;
    infinite where these are not known.
    """

    share: float = 0.0
    reach: float = 0.0
    fall: float = 0.0


def doubts(
    first: Terms,
    second: Terms,
    spread: Spread,
    *,
    reasons: Sequence[Message] = (),
    unseen: tuple[UnseenExposure, UnseenExposure] = (UnseenExposure(), UnseenExposure()),
    cluster: str = "user",
    level: float,
) -> tuple[Message, ...]:
    """Why the difference of two values carries no verdict; nothing where it does.

    `reasons` are what takes verdicts away from one of the values, such as rows that do not represent its list. What is
    unseen is no reason where the sign of the interval would stay with the worst that it could be.
    """
    messages = list(reasons)
    if spread.informative < FEWEST:
        messages.append(message("few-informative", informative=spread.informative, cluster=cluster, fewest=FEWEST))
    elif math.isnan(spread.stderr):
        messages.append(message("no-spread.difference"))
    elif spread.largest > HALF and _hangs_on_one(first, second, spread, level=level):
        messages.append(message("one-cluster", cluster=cluster, share=spread.largest))
    share = max(part.share for part in unseen)
    low, high = spread.low - unseen[0].fall - unseen[1].reach, spread.high + unseen[0].reach + unseen[1].fall
    if not math.isnan(spread.value) and share > MUCH_LOST and not (low > 0 or high < 0):
        messages.append(message("unseen-exposure", share=share, much=MUCH_LOST, numbers={"low": low, "high": high}))
    return tuple(messages)


def _hangs_on_one(first: Terms, second: Terms, spread: Spread, *, level: float) -> bool:
    """Whether the difference loses its sign or its significance without the cluster that adds most to its variance."""
    largest = int(np.abs(difference_of(first, second).effect).argmax())
    refitted = [part.values_without() for part in (first, second)]
    if len(refitted[0]):
        return not float(refitted[0][largest] - refitted[1][largest]) * spread.value > 0
    others = first.clusters.of_row != largest
    rest = difference_of(first.restrict(others), second.restrict(others)).spread(level=level, difference=True)
    return not rest.value * spread.value > 0 or (spread.p < 1 - level and not rest.p < 1 - level)


def is_significant(p_adjusted: float, *, level: float) -> bool:
    """Whether a p-value is below 1 - level.

    >>> is_significant(0.05, level=0.95), is_significant(0.049, level=0.95)
    (False, True)
    """
    return p_adjusted < round(1 - level, 12)  # 1 - 0.95 is a little above 0.05


def verdict_of(
    difference: float, p_adjusted: float, *, level: float, reasons: Sequence[Message], directed: bool = True
) -> str:
    """`insufficient` where there are reasons, else what the adjusted p shows; `directed` says that more is better.

    >>> verdict_of(0.5, 0.01, level=0.95, reasons=()), verdict_of(0.5, 0.2, level=0.95, reasons=())
    ('better', 'not shown')
    >>> verdict_of(-0.5, 0.01, level=0.95, reasons=(), directed=False)
    'lower'
    """
    if reasons:
        return INSUFFICIENT
    if not is_significant(p_adjusted, level=level) or difference == 0:
        return NOT_SHOWN
    return (SHOWN_ABOVE if difference > 0 else SHOWN_BELOW)[0 if directed else 1]
