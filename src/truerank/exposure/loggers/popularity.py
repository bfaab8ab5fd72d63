"""Popular items more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.exposure.counts import rows_of_items, zipf


@dataclass(frozen=True, slots=True)
class PopularityLogger:
    """q_i = (rank_i + 1)^-1/2 by the number of rows in training data and world together; the best has rank 1.

    Ranks are over all items of both, equal numbers share the smallest. This is what the code of the sampler paper does,
    and the default, because its text, q_i ∝ rows in the world (`zipf=False`), is degenerate: in a fully observed world
    every item has as many rows as there are users.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> world = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> train = read(pl.DataFrame({"user": [1, 2], "item": [2, 2], "label": [0, 1]}))
    >>> PopularityLogger().weights(world, train=train).round(4).tolist()
    [0.5774, 0.7071]
    >>> PopularityLogger.published().weights(world).tolist()
    [1.0, 1.0]
    """

    zipf: bool = True
    with_train: bool = True

    name: ClassVar[str] = "popularity"

    @classmethod
    def published(cls) -> PopularityLogger:
        return cls(zipf=False, with_train=False)

    @classmethod
    def released(cls) -> PopularityLogger:
        return cls()

    @property
    def needs_train(self) -> bool:
        return self.with_train

    __str__ = text_of

    def weights(self, world: Log, *, train: Log | None = None) -> Floats:
        if not self.with_train:
            count = rows_of_items(world, world.items)
            return zipf(count, shift=1) if self.zipf else count.astype(np.float64)
        together = _both(world, train)
        items = Ids.union(dict(zip(("world, items", "train, items"), (each.items for each in together), strict=True)))
        count = np.sum([rows_of_items(each, items) for each in together], axis=0)
        weight = zipf(count, shift=1) if self.zipf else count.astype(np.float64)
        return np.asarray(weight[items.locate(world.items)])


def _both(world: Log, train: Log | None) -> tuple[Log, Log]:
    if train is None:
        raise InputError(
            "the popularity logger ranks items by their rows in training data and world together; give train=, or use "
            "PopularityLogger.published(), which looks at the world alone."
        )
    return world, train
