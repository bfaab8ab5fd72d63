"""What a log cannot show of a target: how much of its exposure that is, and how far it may move a value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Beyond
from truerank.core.log import Pairs
from truerank.core.messages import Message, message
from truerank.estimators.ranked.exposures import Exposures, total_known, total_of
from truerank.estimators.ranked.normalisers import Per
from truerank.exposure.policies.policies import WholeList
from truerank.inference.linearization import Bounds
from truerank.inference.verdicts import MUCH_LOST, UnseenExposure
from truerank.inference.weights import WeightDiagnostics


@dataclass(frozen=True, slots=True, eq=False)
class SupportTally:
    """What tells the share of a target's exposure on what the log cannot show.

    `exact` says that it is known where the log lists its candidates or all that was displayed: `outside` of `exposed`.
    What is displayed where nobody looks (ε0 = 0) is not shown: `vain` rows. Else it is estimated from viewed rows:
    E[Σ w] = Σ_a ε(x, a) over what is supported, so 1 - Σ w / Σ ε estimates it. `moments` are the number of clusters and
    the sums of w, ε, w², w ε, ε² over them, with w and ε summed in each cluster; None where they are not known.
    """

    exact: bool
    listed: bool
    outside: float
    exposed: float
    vain: int
    moments: Floats | None

    @classmethod
    def of(cls, view: Exposures) -> SupportTally:
        whole, log = view.target.whole, view.log
        displayed = not view.views_known or log.viewed is not None
        vain = np.flatnonzero(view.logging.exposure() == 0) if displayed else np.zeros(0, dtype=np.int64)
        exact = whole is not None and (log.candidates is not None or (displayed and view.logging.rank is not None))
        outside = exposed = 0.0
        if exact and whole is not None:
            # with a deterministic list, what was not displayed cannot be
            shown = log.candidates or Pairs.of(log.unit, log.item, n_units=log.n_units)
            outside, exposed = _outside(view, whole, shown, vain)
        elif whole is None and displayed:
            exposed = float(view.target.exposure().sum())
            outside = float(view.target.exposure(vain).sum())
        known = total_known(view.target) and view.views_known and not exact
        return cls(exact, whole is not None, outside, exposed, len(vain), _moments(view) if known else None)

    def __add__(self, other: SupportTally) -> SupportTally:
        return SupportTally(
            self.exact,
            self.listed,
            self.outside + other.outside,
            self.exposed + other.exposed,
            self.vain + other.vain,
            None if self.moments is None or other.moments is None else self.moments + other.moments,
        )

    @property
    def total(self) -> float | None:
        """Σ_a ε(x, a) over all units, None where it is not known."""
        if self.exact or (not self.listed and self.vain):
            return self.exposed
        return None if self.moments is None else float(self.moments[2])

    def share(self) -> tuple[float | None, float]:
        """The share that is not supported, and its standard error where it is estimated; None where nothing tells."""
        if self.exact or (not self.listed and self.vain):
            return (self.outside / self.exposed if self.exposed else 0.0), 0.0
        if self.moments is None:
            return None, 0.0
        n, weight, exposed, weight_squares, products, exposed_squares = self.moments.tolist()
        if not exposed:
            return None, 0.0
        ratio = weight / exposed
        squares = max(weight_squares - 2 * ratio * products + ratio**2 * exposed_squares, 0.0)
        return 1.0 - ratio, math.sqrt(squares * n / max(n - 1, 1)) / exposed


def _moments(view: Exposures) -> Floats:
    rows, kept = view.viewed_rows(), view.target.defined()
    seen = view.by_unit(view.weights(rows=rows), rows)
    weight, exposed = (view.clusters.sums(np.where(kept, each, 0.0)) for each in (seen, total_of(view)))
    n = np.count_nonzero(view.clusters.has(kept))
    return np.array([n, weight.sum(), exposed.sum(), (weight**2).sum(), (weight * exposed).sum(), (exposed**2).sum()])


def _outside(view: Exposures, whole: WholeList, shown: Pairs, vain: Ints) -> tuple[float, float]:
    """Exposure on items that are not among those shown, or in vain, and all of it; items without an id are not."""
    log, exposure = view.log, view.target.listed()
    width = len(log.items) + 2
    inside = np.repeat(np.arange(len(shown.start) - 1), shown.count) * width + shown.item
    inside = np.setdiff1d(inside, log.unit[vain] * width + log.item[vain]) if len(vain) else inside
    listed = np.isin(whole.unit * width + np.where(whole.item < 0, width - 1, whole.item), inside)
    return float(exposure[~listed].sum()), float(exposure.sum())


# ------------------------------------------------------------------------------------------------------ what is unseen


@dataclass(frozen=True, slots=True)
class TargetSums:
    """Sums of one target at one clip, over all units: n units, n viewed rows, Σ w without the clip.

    `total` is Σ_a ε(x, a), None where it is not known; `diagnosed` are the shares of it, and of the weight, that are
    not seen.
    """

    n_units: int
    n_viewed: int
    weight: float
    total: float | None
    diagnosed: WeightDiagnostics

    @property
    def share(self) -> float:
        """The larger of the share that the log never shows and the share of weight that the clip takes away.

        Where nothing that the target shows was ever logged, all of it is unseen, however much that is.
        """
        if self.nothing:
            return 1.0
        return max(self.diagnosed.surely_unsupported, self.diagnosed.lost)

    @property
    def nothing(self) -> bool:
        return self.diagnosed.unsupported is None and self.n_units > 0 and not self.weight > 0

    @property
    def unseen(self) -> float:
        """Σ of the exposure that the log never shows, and of the weight that the clip takes away."""
        outside = self.diagnosed.surely_unsupported * (self.total or 0.0)
        return math.inf if self.nothing else outside + self.diagnosed.lost * self.weight


def unseen_of(sums: TargetSums, *, value: float, beyond: Beyond, per: Per, rewards: Bounds | None) -> UnseenExposure:
    """What is not seen of a value, and how far it can move it where every reward lies between two numbers.

    With e the unseen exposure per unit (or viewed row), what is earned there lies between e·low and e·high. In its
    place the value has 0 (`Beyond.MISSING`), its own share of the value (AVERAGE) or anything between (PREDICTED).

    >>> half = WeightDiagnostics(100, 90.0, 2.0, 0.01, 0.1, 0.0, 0.0, 0.5)
    >>> sums = TargetSums(100, 100, 100.0, 200.0, half)
    >>> unseen_of(sums, value=0.3, beyond=Beyond.MISSING, per=Per.UNIT, rewards=(0.0, 1.0))
    UnseenExposure(share=0.5, reach=1.0, fall=0.0)
    >>> unseen_of(sums, value=0.6, beyond=Beyond.AVERAGE, per=Per.UNIT, rewards=(0.0, 1.0))
    UnseenExposure(share=0.5, reach=0.7, fall=0.3)
    """
    share = sums.share
    if not share > 0:
        return UnseenExposure()
    if rewards is None or per is Per.NOTHING or math.isinf(sums.unseen) or math.isnan(value):
        return UnseenExposure(share, math.inf, math.inf)
    low, high = rewards
    whole = sums.weight if sums.total is None else sums.total
    viewed = float(sums.n_viewed) if beyond is Beyond.MISSING else whole
    each = sums.unseen / (float(sums.n_units) if per is Per.UNIT else viewed)
    filled = {
        Beyond.MISSING: (0.0, 0.0),
        Beyond.AVERAGE: (value * sums.unseen / whole,) * 2,
        Beyond.PREDICTED: (each * low, each * high),
    }[beyond]
    return UnseenExposure(share, each * high - filled[0], filled[1] - each * low)


def check_unseen(value: float, unseen: UnseenExposure, rewards: Bounds | None) -> Iterator[Message]:
    """What a value lies between whatever is earned on what is not seen; nothing where little is unseen."""
    if rewards is not None and unseen.share > MUCH_LOST and math.isfinite(unseen.reach + unseen.fall + value):
        low, high = value - unseen.fall, value + unseen.reach
        yield message("unseen-bounds", low=low, high=high, least=rewards[0], most=rewards[1])
