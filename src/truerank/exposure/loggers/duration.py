"""Short videos more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.values import text_of
from truerank.data.split import first_by, short_first

STEEPEST = 700.0  # exp(-700) is the last that is safely above 0


@dataclass(frozen=True, slots=True)
class DurationLogger:
    """q_i = exp(-k / scale) for the k-th shortest video: the biased training data of the URE paper (its λ is `scale`).

    Durations are the column video_duration of the world (the median over a video's rows), or `duration`, one for each
    item of the world in the order of its ids. Equally long videos come in the order of ids.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> world = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> DurationLogger(scale=1, duration=(60, 7)).weights(world).round(4).tolist()
    [0.1353, 0.3679]
    """

    scale: float = 1000.0
    duration: tuple[float, ...] | None = None

    name: ClassVar[str] = "duration"
    needs_train: ClassVar[bool] = False

    __str__ = text_of

    def weights(self, world: Log, *, train: Log | None = None) -> Floats:
        if len(world.items) > STEEPEST * self.scale:
            raise InputError(
                f"a duration logger with scale {self.scale:g} for {len(world.items):,} items: the longest would never "
                f"be shown. Give a scale of at least {len(world.items) / STEEPEST:.3g}."
            )
        if self.duration is None and "video_duration" not in world.rewards:
            raise InputError(
                f"{world.source}: no column video_duration (it is in the original KuaiRec files); give durations: "
                "DurationLogger(duration=...), one for each item."
            )
        if self.duration is None:
            return np.exp(short_first(world, scale=self.scale))
        duration = np.asarray(self.duration, dtype=np.float64)
        if duration.shape != (len(world.items),) or not np.isfinite(duration).all():
            raise InputError(
                f"{duration.size:,} durations for {len(world.items):,} items; expected a finite number for each."
            )
        return np.exp(first_by(duration, scale=self.scale))
