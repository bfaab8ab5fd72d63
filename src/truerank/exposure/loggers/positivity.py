"""Liked items more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.exposure.counts import rows_of_items


@dataclass(frozen=True, slots=True)
class PositivityLogger:
    """q_i = the number of positives of the item in the world; `with_train` adds those in the training data.

    The text of the sampler paper counts in the world alone, its code in both. An item without positives has weight 0:
    it is shown only where a user's other items do not suffice.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> world = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> train = read(pl.DataFrame({"user": [1, 2], "item": [1, 2], "label": [1, 1]}))
    >>> PositivityLogger().weights(world).tolist(), PositivityLogger.released().weights(world, train=train).tolist()
    ([0.0, 1.0], [1.0, 2.0])
    """

    with_train: bool = False

    name: ClassVar[str] = "positivity"

    @classmethod
    def published(cls) -> PositivityLogger:
        return cls()

    @classmethod
    def released(cls) -> PositivityLogger:
        return cls(with_train=True)

    @property
    def needs_train(self) -> bool:
        return self.with_train

    __str__ = text_of

    def weights(self, world: Log, *, train: Log | None = None) -> Floats:
        count = rows_of_items(world, world.items, positive=True)
        if self.with_train:
            if train is None:
                raise InputError(
                    "PositivityLogger.released() counts positives in training data and world together; give train=, "
                    "or use PositivityLogger.published(), which looks at the world alone."
                )
            count = count + rows_of_items(train, world.items, positive=True)
        return count.astype(np.float64)
