"""Set a random part of a world aside before anything is logged: what samplers that need random data learn from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.data.split import split_per_user
from truerank.exposure.loggers.expose import Logger
from truerank.sampling.designs import UniformDesign
from truerank.sampling.pools import Members, Share


class HoldOutUnit(StrEnum):
    """What is set aside: cells of each user, or whole items."""

    CELLS = "cells"
    ITEMS = "items"


@dataclass(frozen=True, slots=True)
class WorldHoldOut:
    """`fraction` of each user's cells (default), or of the items, rounded down.

    The sampler paper holds out "a random 10 %" of the world from every logger. Its code holds out 10 % of the items, so
    that what is logged and what is held out have no item in common, and nothing for the uniform logger.
    """

    fraction: float = 0.1
    unit: HoldOutUnit = HoldOutUnit.CELLS
    from_uniform: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", HoldOutUnit(self.unit))
        if not 0 < self.fraction < 1:
            raise InputError(f"a hold-out of {self.fraction:g}; expected a share between 0 and 1.")

    @classmethod
    def published(cls) -> WorldHoldOut:
        return cls()

    @classmethod
    def released(cls) -> WorldHoldOut:
        return cls(unit=HoldOutUnit.ITEMS, from_uniform=False)

    def split(self, world: Log, *, logger: Logger, seed: int) -> tuple[Log, Log | None]:
        """What is left for the logger, and what is held out: None where nothing is.

        >>> import polars as pl
        >>> from truerank.data.read import read
        >>> from truerank.exposure.loggers.uniform import UniformLogger
        >>> world = read(pl.DataFrame({"user": [1] * 10, "item": list(range(10)), "label": [1] + [0] * 9}))
        >>> [len(part) for part in WorldHoldOut().split(world, logger=UniformLogger(), seed=1)]
        [9, 1]
        >>> WorldHoldOut.released().split(world, logger=UniformLogger.released(), seed=1)[1] is None
        True
        """
        if logger.name == "uniform" and not self.from_uniform:
            return world, None
        if self.unit is HoldOutUnit.CELLS:
            return split_per_user(world, self.fraction, seed=seed)
        items = Members.together(world.items.keys())
        held = np.zeros(len(items), dtype=bool)
        held[UniformDesign(Share(self.fraction)).draw(items, seed=seed, purpose="hold out items")] = True
        return world.select(~held[world.item]), world.select(held[world.item])
