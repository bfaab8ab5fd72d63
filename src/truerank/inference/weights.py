"""How far importance weights can be trusted: effective size, largest weights, tail, support, clipping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Beyond
from truerank.core.log import Pairs
from truerank.core.messages import Message, message
from truerank.core.record import record
from truerank.estimators.impressions import Exposures, Limited, Per, blocks, total_known, total_of
from truerank.exposure.policies import WholeList
from truerank.inference.linearization import Bounds
from truerank.inference.tails import Largest
from truerank.inference.verdicts import MUCH_LOST, UnseenExposure

FEW_EFFECTIVE = 100.0
SMALL_EFFECTIVE_SHARE = 0.01
LARGE_SHARE = 0.05
HEAVY_TAIL = 0.7
UNSUPPORTED = 0.05
MUCH_CLIPPED = 0.05
TAIL_LEAST = 5


@record
class WeightDiagnostics:
    """What the weights of one target look like at one clip.

    `ess` is (Σw)² / Σw² over the viewed rows (Kish), `largest` the largest weight before clipping and `largest_share`
    its share of their sum, `tail` the index k of a generalised Pareto distribution of the largest ones (above 1/2 the
    variance is infinite), `clipped` the share of rows whose weight the clip lowers, `lost` the share of weight it takes
    away. `unsupported` is the share of the target's exposure on what the log cannot show (None where the target's whole
    list is unknown), with `unsupported_error` where it is estimated: E[Σ_viewed w] = Σ_a ε(x, a) if all is supported.
    """

    n: int
    ess: float
    largest: float
    largest_share: float
    tail: float
    clipped: float
    lost: float
    unsupported: float | None = None
    unsupported_error: float = 0.0

    @property
    def surely_unsupported(self) -> float:
        """The share that is not supported, 0 where it may be chance or is not known."""
        share = self.unsupported
        return share if share is not None and share - 2 * self.unsupported_error > 0 else 0.0

    def check(self, clip: float, *, kind: str, beyond: Beyond) -> Iterator[Message]:
        """Weights that make the value of an estimator unreliable; `kind` of rows are weighted."""
        if self.n and (self.ess < FEW_EFFECTIVE or self.ess < SMALL_EFFECTIVE_SHARE * self.n):
            yield message(
                "few-effective-rows.weights",
                rows=self.n,
                kind=kind,
                effective=self.ess,
                fewest=FEW_EFFECTIVE,
                smallest=SMALL_EFFECTIVE_SHARE,
            )
        if math.isinf(clip) and self.largest_share > LARGE_SHARE:
            yield message("heavy-row.weights", share=self.largest_share, weight=self.largest, large=LARGE_SHARE)
        if math.isinf(clip) and self.tail > HEAVY_TAIL:
            yield message("heavy-tail", tail=self.tail, heavy=HEAVY_TAIL)
        if self.lost > MUCH_CLIPPED:
            yield message("much-clipped", lost=self.lost, clip=clip, much=MUCH_CLIPPED)
        share = self.unsupported
        if self.surely_unsupported > UNSUPPORTED:
            key = "unsupported.estimated" if self.unsupported_error else "unsupported"
            yield message(key, share=share, most=UNSUPPORTED, consequence=beyond.words)
        elif share is not None and share + 2 * self.unsupported_error < -UNSUPPORTED:
            yield message("too-much-weight", share=1 - share)


@dataclass(frozen=True, eq=False)
class WeightTally:
    """Sums of the weights of viewed rows by the bin of what clips limit among these, and the largest before clipping.

    A weight is a scale times what is limited: 1 and ε/ε0, or ε and 1/ε0 (`Limited`). A row's bin says for which clips
    it is lowered, so that the work per row does not grow with their number; clips ascend. Row 0 of `sums` [5 x bins]
    counts weights above 0, rows 1 and 2 have Σ and Σ² of the scale, rows 3 and 4 of the weight.
    """

    clips: Floats
    sums: Floats
    largest: Largest

    @classmethod
    def count(cls, view: Exposures, clips: Floats, *, most: int, limits: Limited = Limited.RATIO) -> WeightTally:
        """The weights of one chunk; units without a known ranking do not count."""
        from truerank.estimators.fast import add_bins

        ranked, used = view.target.ranked_units, view.log.viewed
        if ranked is not None and not ranked.all():
            used = ranked[view.log.unit] if used is None else used & ranked[view.log.unit]
        sums, largest, n = np.zeros((5, len(clips) + 1)), np.zeros(0), 0
        for rows in blocks(len(view.log), None if used is None else np.flatnonzero(used)):
            target, inverse = view.parts(rows)
            n += len(target)
            limited = limits.limited(target, inverse)
            scale, weight = (None, limited) if limits is Limited.RATIO else (target, target * inverse)
            add_bins(scale, limited, clips, sums)
            bound = largest.min() if len(largest) == most else -math.inf
            largest = np.concatenate([largest, weight[weight > bound]])
            largest = np.partition(largest, len(largest) - most)[-most:] if len(largest) > most else largest
        return cls(clips, sums, Largest(n, np.sort(largest), most))

    def __add__(self, more: WeightTally) -> WeightTally:
        return WeightTally(self.clips, self.sums + more.sums, self.largest + more.largest)

    @property
    def total(self) -> float:
        """Σ ε/ε0."""
        return float(self.sums[3].sum())

    @cached_property
    def tail(self) -> float:
        """The tail index of weights before clipping."""
        return pareto_tail(self.largest.tail)

    def diagnostics(self, clip: float, *, unsupported: float | None = None, error: float = 0.0) -> WeightDiagnostics:
        """What the weights look like at one of the clips."""
        k = int(np.searchsorted(self.clips, clip))
        # the clip lowers the rows of all bins behind it; there w = m · scale
        low = self.sums[:, : k + 1].sum(axis=1)
        behind = self.sums[:, k + 1 :].sum(axis=1)
        limit = 0.0 if math.isinf(clip) else clip
        total, square = float(low[3] + limit * behind[1]), float(low[4] + limit**2 * behind[2])
        largest, n = float(self.largest.values.max(initial=0.0)), self.largest.n
        return WeightDiagnostics(
            n=n,
            ess=total**2 / square if square else 0.0,
            largest=largest,
            largest_share=largest / self.total if self.total else 0.0,
            tail=self.tail,
            clipped=float(behind[0]) / n if n else 0.0,
            lost=1 - total / self.total if self.total else 0.0,
            unsupported=unsupported,
            unsupported_error=error,
        )


def pareto_tail(largest: Sequence[float] | Floats) -> float:
    """The index k of a generalised Pareto distribution of the largest weights (Zhang and Stephens 2009; PSIS).

    The smallest of them is the threshold. k is drawn a little towards 1/2, as in PSIS; NaN where fewer than five
    different weights lie above it, as with few positions: bounded weights have no tail.

    >>> quantiles = (np.arange(2000) + 0.5) / 2000
    >>> abs(pareto_tail(((1 - quantiles) ** -0.6)[::-1]) - 0.6) < 0.05
    True
    """
    ordered = np.sort(np.asarray(largest, dtype=np.float64))
    if len(ordered) < TAIL_LEAST + 1:
        return math.nan
    excess = ordered - ordered[0]
    excess = excess[excess > 1e-12 * ordered[-1]]
    if len(np.unique(excess)) < TAIL_LEAST:
        return math.nan
    n = len(excess)
    m = 30 + int(math.sqrt(n))
    b = 1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    b = b / (3 * excess[int(n / 4 + 0.5) - 1]) + 1 / excess[-1]
    b = b[b != 0]  # k = 0 there, an exponential tail, whose likelihood has no such form
    k = np.array([float(np.mean(np.log1p(-rate * excess))) for rate in b])
    fit = n * (np.log(-b / k) - k - 1)
    weight = np.exp(fit - fit.max())
    centre = float(np.sum(b * weight) / np.sum(weight))
    index = float(np.mean(np.log1p(-centre * excess)))
    return (n * index + 10 * 0.5) / (n + 10)


# ------------------------------------------------------------------------------------------------------------- support


@record(eq=False)
class SupportTally:
    """What tells the share of a target's exposure on what the log cannot show.

    It is `exact` where the log lists its candidates or all that was displayed: `outside` of `exposed`. What is
    displayed where nobody looks (ε0 = 0) is not viewed: `vain` rows. Else it is estimated from viewed rows:
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
    def count(cls, view: Exposures) -> SupportTally:
        whole, log, target = view.target.whole, view.log, view.target
        displayed = not view.views_known or log.viewed is not None
        vain = np.flatnonzero(view.logging.exposure() == 0) if displayed else np.zeros(0, dtype=np.int64)
        exact = whole is not None and (log.candidates is not None or (displayed and view.logging.rank is not None))
        outside = exposed = 0.0
        if exact and whole is not None:
            outside, exposed = _outside(view, whole, vain)
        elif whole is None and displayed:
            exposed, outside = float(target.exposure().sum()), float(target.exposure(vain).sum())
        moments = None
        if total_known(target) and view.views_known and not exact:
            rows, defined = view.viewed_rows(), target.defined()
            sums = (view.by_unit(view.weights(rows=rows), rows), total_of(view))
            w, e = (view.clusters.sums(np.where(defined, values, 0.0)) for values in sums)
            n = np.count_nonzero(view.clusters.has(defined))
            moments = np.array([n, w.sum(), e.sum(), (w**2).sum(), (w * e).sum(), (e**2).sum()])
        return cls(exact, whole is not None, outside, exposed, len(vain), moments)

    def __add__(self, more: SupportTally) -> SupportTally:
        return SupportTally(
            self.exact,
            self.listed,
            self.outside + more.outside,
            self.exposed + more.exposed,
            self.vain + more.vain,
            None if self.moments is None or more.moments is None else self.moments + more.moments,
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
        if self.moments is None or not self.moments[2]:
            return None, 0.0
        n, weight, exposed, weight_squares, products, exposed_squares = self.moments.tolist()
        ratio = weight / exposed
        squares = max(weight_squares - 2 * ratio * products + ratio**2 * exposed_squares, 0.0)
        return 1.0 - ratio, math.sqrt(squares * n / max(n - 1, 1)) / exposed


def _outside(view: Exposures, whole: WholeList, vain: Ints) -> tuple[float, float]:
    """Exposure on items that cannot be displayed, or in vain, and all of it; items without an id cannot be.

    With a deterministic list, what was not displayed cannot be.
    """
    log, exposure = view.log, view.target.listed()
    possible = log.candidates or Pairs.of(log.unit, log.item, n_units=log.n_units)
    width = len(log.items) + 2
    inside = np.repeat(np.arange(len(possible.start) - 1), possible.count) * width + possible.item
    inside = np.setdiff1d(inside, log.unit[vain] * width + log.item[vain]) if len(vain) else inside
    listed = np.isin(whole.unit * width + np.where(whole.item < 0, width - 1, whole.item), inside)
    return float(exposure[~listed].sum()), float(exposure.sum())


def unseen_of(
    diagnostics: WeightDiagnostics,
    *,
    n_units: int,
    weight: float,
    total: float | None,
    value: float,
    beyond: Beyond,
    per: Per,
    rewards: Bounds | None,
) -> UnseenExposure:
    """What is not seen of a value, and how far it can move it where every reward lies between two numbers.

    `weight` is Σ w without the clip, `total` Σ_a ε(x, a) over all units, None where it is not known. With e the unseen
    exposure per unit (or viewed row), what is earned there lies between e·low and e·high. In its place the value has 0
    (`Beyond.MISSING`), its own share of the value (AVERAGE) or anything between (PREDICTED). Where nothing that the
    target shows was ever logged, all of it is unseen, however much that is.

    >>> half = WeightDiagnostics(100, 90.0, 2.0, 0.01, 0.1, 0.0, 0.0, 0.5)
    >>> sums = {"n_units": 100, "weight": 100.0, "total": 200.0, "per": Per.UNIT, "rewards": (0.0, 1.0)}
    >>> unseen_of(half, value=0.3, beyond=Beyond.MISSING, **sums)
    UnseenExposure(share=0.5, reach=1.0, fall=0.0)
    >>> unseen_of(half, value=0.6, beyond=Beyond.AVERAGE, **sums)
    UnseenExposure(share=0.5, reach=0.7, fall=0.3)
    """
    nothing = diagnostics.unsupported is None and n_units > 0 and not weight > 0
    outside, lost = diagnostics.surely_unsupported, diagnostics.lost
    share = 1.0 if nothing else max(outside, lost)
    if not share > 0:
        return UnseenExposure()
    if nothing or rewards is None or per is Per.NOTHING or math.isnan(value):
        return UnseenExposure(share, math.inf, math.inf)
    unseen = outside * (total or 0.0) + lost * weight
    whole = weight if total is None else total
    viewed = float(diagnostics.n) if beyond is Beyond.MISSING else whole
    low, high = (unseen / (float(n_units) if per is Per.UNIT else viewed) * reward for reward in rewards)
    in_place = {
        Beyond.MISSING: (0.0, 0.0),
        Beyond.AVERAGE: (value * unseen / whole,) * 2,
        Beyond.PREDICTED: (low, high),
    }[beyond]
    return UnseenExposure(share, high - in_place[0], in_place[1] - low)


def check_unseen(value: float, unseen: UnseenExposure, rewards: Bounds | None) -> Iterator[Message]:
    """What a value lies between whatever is earned on what is not seen; nothing where little is unseen."""
    if rewards is not None and unseen.share > MUCH_LOST and math.isfinite(unseen.reach + unseen.fall + value):
        low, high = value - unseen.fall, value + unseen.reach
        yield message("unseen-bounds", low=low, high=high, least=rewards[0], most=rewards[1])
