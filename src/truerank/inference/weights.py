"""How far importance weights can be trusted: effective size, largest weights, tail, support, clipping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Beyond
from truerank.core.messages import Message, message
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import BLOCK, Exposures, blocks
from truerank.inference.tails import tail_length

FEW_EFFECTIVE = 100.0
SMALL_EFFECTIVE_SHARE = 0.01
LARGE_SHARE = 0.05
HEAVY_TAIL = 0.7
UNSUPPORTED = 0.05
MUCH_CLIPPED = 0.05
TAIL_LEAST = 5


@dataclass(frozen=True, slots=True)
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
        if share is not None and self.surely_unsupported > UNSUPPORTED:
            key = "unsupported.estimated" if self.unsupported_error else "unsupported"
            yield message(key, share=share, most=UNSUPPORTED, consequence=beyond.words)
        elif share is not None and share + 2 * self.unsupported_error < -UNSUPPORTED:
            yield message("too-much-weight", share=1 - share)


@dataclass(frozen=True, slots=True, eq=False)
class WeightTally:
    """Sums of the weights of viewed rows by the bin of what clips limit among these, and the largest before clipping.

    A weight is a scale times what is limited: 1 and ε/ε0, or ε and 1/ε0 (`Limited`). A row's bin says for which clips
    it is lowered, so that the work per row does not grow with their number; clips ascend. Row 0 of `sums` [5 x bins]
    counts weights above 0, rows 1 and 2 have Σ and Σ² of the scale, rows 3 and 4 of the weight. Of the largest at most
    `most` are kept.
    """

    clips: Floats
    n: int
    sums: Floats
    largest: Floats  # descending
    most: int
    known: dict[str, float] = field(default_factory=dict, init=False, repr=False)  # the tail, once it was fitted

    @classmethod
    def of(cls, view: Exposures, clips: Floats, *, most: int, limits: Limited = Limited.RATIO) -> WeightTally:
        """The weights of one chunk; units without a known ranking do not count."""
        sums = np.zeros((5, len(clips) + 1))
        n, bound, largest = 0, -math.inf, np.zeros(0)
        for rows in _weighed(view):
            target, inverse = view.parts(rows)
            n += len(target)
            limited = limits.limited(target, inverse)
            scale, weight = (None, limited) if limits is Limited.RATIO else (target, target * inverse)
            _add_bins(scale, limited, clips, sums)
            high = weight[weight > bound]
            if len(high):
                largest = np.concatenate([largest, high])
                if len(largest) > 4 * most + BLOCK // 8:
                    largest = np.partition(largest, len(largest) - most)[-most:]
                    bound = float(largest.min())
        return cls(clips, n, sums, np.sort(largest)[::-1][:most], most)

    def __add__(self, other: WeightTally) -> WeightTally:
        largest = np.sort(np.concatenate([self.largest, other.largest]))[::-1][: self.most]
        return WeightTally(self.clips, self.n + other.n, self.sums + other.sums, largest, self.most)

    @property
    def total(self) -> float:
        """Σ ε/ε0."""
        return float(self.sums[3].sum())

    def at(self, clip: float, *, unsupported: float | None = None, error: float = 0.0) -> WeightDiagnostics:
        """What the weights look like at one of the clips."""
        k = int(np.searchsorted(self.clips, clip))
        # the clip lowers the rows of all bins behind it; there w = m · scale
        low = self.sums[:, : k + 1].sum(axis=1)
        behind = self.sums[:, k + 1 :].sum(axis=1)
        limit = 0.0 if math.isinf(clip) else clip
        total, square = float(low[3] + limit * behind[1]), float(low[4] + limit**2 * behind[2])
        unclipped = self.total
        largest = self.largest[: tail_length(self.n)]
        first = float(largest[0]) if len(largest) else 0.0
        return WeightDiagnostics(
            n=self.n,
            ess=total**2 / square if square else 0.0,
            largest=first,
            largest_share=first / unclipped if unclipped else 0.0,
            tail=self._tail(largest),
            clipped=float(behind[0]) / self.n if self.n else 0.0,
            lost=1 - total / unclipped if unclipped else 0.0,
            unsupported=unsupported,
            unsupported_error=error,
        )

    def _tail(self, largest: Floats) -> float:
        """The tail of weights before clipping, which is that of every clip."""
        if "tail" not in self.known:
            self.known["tail"] = pareto_tail(largest)
        return self.known["tail"]


def _weighed(view: Exposures) -> Iterator[Any]:
    """The viewed rows of units with a known ranking, in blocks."""
    known, keep = view.target.ranked_units, view.log.viewed
    if known is not None and not known.all():
        of_row = known[view.log.unit]
        keep = of_row if keep is None else keep & of_row
    return blocks(len(view.log), None if keep is None else np.flatnonzero(keep))


def _add_bins(scale: Floats | None, limited: Floats, clips: Floats, sums: Floats) -> None:
    """Add what every clip needs of rows of weight scale · limited, or of those limited themselves."""
    if find_spec("numba") is not None:
        from truerank.estimators.ranked.fast import add_bins

        add_bins(scale, limited, clips, sums)
        return
    at = np.searchsorted(clips, limited)
    scale = np.ones(len(limited)) if scale is None else scale
    weight = scale * limited
    for row, values in enumerate(((weight > 0).astype(np.float64), scale, scale**2, weight, weight**2)):
        sums[row] += np.bincount(at, values, minlength=sums.shape[1])


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
    k = np.array([float(np.mean(np.log1p(-each * excess))) for each in b])
    fit = n * (np.log(-b / k) - k - 1)
    weight = np.exp(fit - fit.max())
    centre = float(np.sum(b * weight) / np.sum(weight))
    index = float(np.mean(np.log1p(-centre * excess)))
    return (n * index + 10 * 0.5) / (n + 10)
