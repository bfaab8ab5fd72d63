"""Every item equally often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.chance import cell_uniforms
from truerank.core.log import Log
from truerank.core.values import text_of


@dataclass(frozen=True, slots=True)
class UniformLogger:
    """q_i = 1: exposure at random.

    With `item_seed`, q_i is drawn once for each item from U(0, 1), the same for all users. That is what the code of the
    sampler paper does under this name: a logger that favours random items, not a uniform one.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> world = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> UniformLogger().weights(world).tolist()
    [1.0, 1.0]
    """

    item_seed: int | None = None

    name: ClassVar[str] = "uniform"
    needs_train: ClassVar[bool] = False

    @classmethod
    def published(cls) -> UniformLogger:
        return cls()

    @classmethod
    def released(cls) -> UniformLogger:
        return cls(item_seed=42)

    __str__ = text_of

    def weights(self, world: Log, *, train: Log | None = None) -> Floats:
        if self.item_seed is None:
            return np.ones(len(world.items))
        item = world.items.keys()
        return cell_uniforms(self.item_seed, "uniform logger", np.zeros_like(item), item)
