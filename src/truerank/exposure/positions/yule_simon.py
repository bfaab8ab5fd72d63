"""A user whose wish to go on grows with what was already seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.values import Count, Positive, check, text_of
from truerank.exposure.positions.places import cut

NEAR = 1024  # up to this rank the product is multiplied out; beyond it Stirling's series is exact to the last bits


@dataclass(frozen=True, slots=True)
class YuleSimon:
    """P(D >= r) of a Yule-Simon scroll depth D: Π_{k=1}^{r-1} k / (k + ρ) = ρ B(r, ρ) (C-3PO; paper 3, [45]).

    The chance to stop after item k is ρ / (k + ρ): the deeper a user has scrolled, the likelier the next item.

    >>> YuleSimon(1.5).view(np.array([1.0, 2.0, 3.0])).round(6).tolist()
    [1.0, 0.4, 0.228571]
    >>> str(YuleSimon(1.5))
    'yule:1.5'
    """

    rho: Positive
    cutoff: Count | None = None
    name: ClassVar[str] = "yule"
    positional: ClassVar[tuple[str, ...]] = ("rho",)

    def __post_init__(self) -> None:
        check(self, where=f"position model {self.name}")

    __str__ = text_of

    def view(self, position: Floats) -> Floats:
        position = np.asarray(position, dtype=np.float64)
        near = np.minimum(position, NEAR)
        last = int(near.max(initial=1.0))
        product = np.concatenate([[0.0], -np.cumsum(np.log1p(self.rho / np.arange(1, last)))])
        log_view = product[near.astype(np.int64) - 1]
        far = position > NEAR
        if far.any():
            # ln Γ(r + ρ) - ln Γ(r) from rank NEAR on, without the difference of two large numbers
            log_view = log_view - np.where(far, _log_rising(position, self.rho) - _log_rising(NEAR, self.rho), 0.0)
        return cut(np.exp(log_view), position, cutoff=self.cutoff)


def _log_rising(start: Floats | float, by: float) -> Floats:
    """ln Γ(start + by) - ln Γ(start) by Stirling's series."""
    end = np.asarray(start, dtype=np.float64) + by
    tail = (1 / end - 1 / start) / 12 - (1 / end**3 - 1 / start**3) / 360 + (1 / end**5 - 1 / start**5) / 1260
    return np.asarray((start - 0.5) * np.log1p(by / start) + by * np.log(end) - by + tail)
