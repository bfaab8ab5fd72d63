"""How far importance weights can be trusted: effective size, largest weights, tail, support, clipping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats

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

    def warnings(self, clip: float, *, rows: str = "viewed rows") -> tuple[str, ...]:
        """In plain words, with the threshold that was passed."""
        found = []
        if self.n and (self.ess < FEW_EFFECTIVE or self.ess < SMALL_EFFECTIVE_SHARE * self.n):
            found.append(
                f"the {self.n:,} {rows} are worth {self.ess:,.0f} after weighting (expected at least "
                f"{FEW_EFFECTIVE:.0f} and {SMALL_EFFECTIVE_SHARE:.0%}): target and log differ too much; collect more, "
                "or clip"
            )
        if math.isinf(clip) and self.largest_share > LARGE_SHARE:
            found.append(
                f"one row carries {self.largest_share:.0%} of all weight (its weight is {self.largest:.3g}; expected "
                f"at most {LARGE_SHARE:.0%}): the value hangs on single rows"
            )
        if math.isinf(clip) and self.tail > HEAVY_TAIL:
            found.append(
                f"the largest weights have a tail index of {self.tail:.2f} (above {HEAVY_TAIL}): even the interval "
                "cannot be trusted; clip, or collect data nearer to the target"
            )
        if self.lost > MUCH_CLIPPED:
            found.append(
                f"clipping at {clip:g} takes {self.lost:.0%} of the weight away (above {MUCH_CLIPPED:.0%}): the value "
                "is biased by up to about that share, and the interval does not say so"
            )
        return tuple(found + self._about_support())

    def _about_support(self) -> list[str]:
        if self.unsupported is None:
            return []
        sure = 2 * self.unsupported_error
        if self.unsupported - sure > 0 and self.unsupported > UNSUPPORTED:
            how = "estimated: " if self.unsupported_error else ""
            return [
                f"{how}{self.unsupported:.0%} of what the target would expose is never shown by the log (above "
                f"{UNSUPPORTED:.0%}), or the position model is wrong: rewards there are missing from the value"
            ]
        if self.unsupported + sure < -UNSUPPORTED:
            return [
                f"weights sum to {1 - self.unsupported:.0%} of the target's exposure, more than can be: the position "
                "model, the propensities or the lists do not fit the log"
            ]
        return []


@dataclass(frozen=True, slots=True)
class WeightSums:
    """Sums of weights of viewed rows for ascending clips, and the largest weights before clipping."""

    n: int
    clips: Floats
    total: Floats
    square: Floats
    lowered: Floats  # rows whose weight each clip lowers
    unclipped: float  # Σ w without a clip
    largest: Floats  # descending

    def at(self, clip: float, *, unsupported: float | None = None, error: float = 0.0) -> WeightDiagnostics:
        k = int(np.searchsorted(self.clips, clip))
        square = float(self.square[k])
        largest = float(self.largest[0]) if len(self.largest) else 0.0
        return WeightDiagnostics(
            n=self.n,
            ess=float(self.total[k]) ** 2 / square if square else 0.0,
            largest=largest,
            largest_share=largest / self.unclipped if self.unclipped else 0.0,
            tail=pareto_tail(self.largest),
            clipped=float(self.lowered[k]) / self.n if self.n else 0.0,
            lost=1 - float(self.total[k]) / self.unclipped if self.unclipped else 0.0,
            unsupported=unsupported,
            unsupported_error=error,
        )


def tail_length(n: int) -> int:
    """How many of n weights are the tail: min(n / 5, 3 √n), as in Pareto-smoothed importance sampling."""
    return int(min(math.ceil(0.2 * n), math.ceil(3 * math.sqrt(n))))


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
    k = np.array([float(np.mean(np.log1p(-each * excess))) for each in b])
    fit = n * (np.log(-b / k) - k - 1)
    weight = np.exp(fit - fit.max())
    centre = float(np.sum(b * weight) / np.sum(weight))
    index = float(np.mean(np.log1p(-centre * excess)))
    return (n * index + 10 * 0.5) / (n + 10)
