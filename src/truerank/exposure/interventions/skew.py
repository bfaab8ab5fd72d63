"""SKEW: rows of popular items less often (Liang, Charlin and Blei 2016; section 5.3 of the WTD paper)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.chance import cell_uniforms
from truerank.core.log import Log
from truerank.core.values import NotNegative, check, text_of
from truerank.exposure.counts import Margins, counts_in
from truerank.exposure.interventions.design import DrawingRule
from truerank.sampling.pools import Share


class Unseen(StrEnum):
    """The weight of an item without a row in the training log.

    ONCE    1, as if it had been seen once (default; the paper is silent)
    RANDOM  a uniform number in (0, 1), drawn by seed and item (the paper's code)
    """

    ONCE = "once"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class SkewIntervention:
    """P_S(u, i) ∝ 1 / pop(i)^`item_power`, pop(i) the rows of item i in the training log.

    >>> import polars as pl, truerank as tr
    >>> train = tr.read(pl.DataFrame({"user": [1, 2, 3, 1], "item": [7, 7, 7, 8]}))
    >>> log = tr.read(pl.DataFrame({"user": [4, 4, 4], "item": [7, 8, 9]}))
    >>> SkewIntervention().weights(log, train=train, seed=0).round(3).tolist()
    [0.333, 1.0, 1.0]
    """

    item_power: NotNegative = 1.0
    unseen: Unseen = Unseen.ONCE
    name: ClassVar[str] = "skew"
    margins: ClassVar[tuple[str, ...]] = ("item",)
    needs_random: ClassVar[bool] = False

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls(unseen=Unseen.RANDOM)

    def weights(self, log: Log, *, train: Log, seed: int) -> Floats:
        """The weight of each row."""
        return self.of_items(Margins.of(log), train=Margins.of(train), seed=seed)[log.item]

    def of_items(self, log: Margins, *, train: Margins, seed: int) -> Floats:
        popularity = counts_in(log.items, train, margin="item", size=len(log.items)).count
        if self.unseen is Unseen.ONCE:
            other = np.ones(len(popularity))
        else:
            key = log.items.keys()
            other = np.maximum(cell_uniforms(seed, "skew unseen", np.zeros_like(key), key), 2.0**-54)
        return np.where(popularity > 0, np.maximum(popularity, 1.0) ** -self.item_power, other)

    def rule(self, log: Margins, *, train: Margins, random: Margins | None, fraction: float, seed: int) -> DrawingRule:
        of_item = self.of_items(log, train=train, seed=seed)
        return DrawingRule(Share(fraction).of(len(log)), of_item=of_item)
