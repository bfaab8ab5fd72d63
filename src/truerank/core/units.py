"""What single units (users or sessions) contributed to each estimate, as a table that is made when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError, some

COLUMNS = (
    "unit", "cluster", "model", "metric", "estimator", "reward", "clip", "numerator", "denominator", "total", "value",
    "defined",
)  # fmt: skip


class UnitTable(Protocol):
    """One row per unit, model, metric, estimator, reward and clip, with the columns `COLUMNS`.

    `unit` and `cluster` are ids as the input has them; `clip` is null where there is none, `total` where the estimator
    knows none, `value` where a unit alone has none. The estimate is Σ numerator / Σ denominator, times the mean of
    total; where an estimator is no such quotient, a numerator is what the unit adds to first order, over 1.
    """

    def frame(self) -> pl.DataFrame: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitTerms:
    """What the units of one estimate contribute; the value of a unit is numerator / denominator if none is given."""

    model: str
    metric: str
    estimator: str
    reward: str
    clip: float | None
    unit: Any  # ids, one per unit: a series or an array
    cluster: Any
    numerator: Floats
    denominator: Floats
    defined: Bools
    total: Floats | None = None
    value: Floats | None = None

    def frame(self) -> pl.DataFrame:
        divided = pl.when(pl.col("defined") & (pl.col("denominator") != 0))
        ratio = divided.then(pl.col("numerator") / pl.col("denominator"))
        clip = None if self.clip is None or np.isinf(self.clip) else float(self.clip)
        arrays = ("unit", "cluster", "numerator", "denominator", "defined")
        columns = pl.DataFrame({name: getattr(self, name) for name in arrays})
        return columns.with_columns(
            **{name: pl.lit(getattr(self, name)) for name in ("model", "metric", "estimator", "reward")},
            clip=pl.lit(clip, dtype=pl.Float64),
            total=_numbers(self.total, len(columns)),
            value=ratio if self.value is None else _numbers(self.value, len(columns)),
        ).select(COLUMNS)


@dataclass(frozen=True, slots=True, eq=False)
class KeptUnits:
    """The units of all estimates, from the arrays they were estimated from."""

    parts: Sequence[UnitTerms]

    def frame(self) -> pl.DataFrame:
        return pl.concat([part.frame() for part in self.parts])


@dataclass(frozen=True, slots=True, eq=False)
class UnitFile:
    """Units in a Parquet file, read when they are asked for; a file that has changed since is refused."""

    path: Path
    stamp: tuple[int, int]

    @classmethod
    def stamped(cls, path: Path) -> UnitFile:
        return cls(path.resolve(), _stamp(path))

    def frame(self) -> pl.DataFrame:
        if _stamp(self.path) != self.stamp:
            raise InputError(f"{self.path}: was written anew after these results were read. Read the results again.")
        try:
            frame = pl.read_parquet(self.path, glob=False)
            if _stamp(self.path) != self.stamp:
                raise OSError("it was written anew meanwhile")
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(f"{self.path}: cannot be read as Parquet ({reason}). Save the results again.") from None
        if tuple(frame.columns) != COLUMNS:
            raise InputError(f"{self.path}: columns {some(frame.columns, most=20)}; expected {', '.join(COLUMNS)}.")
        return frame


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Save the results again.") from None
    return status.st_size, status.st_mtime_ns


def _numbers(values: Floats | None, length: int) -> Any:
    """A column of numbers, null where there are none."""
    if values is None:
        return pl.repeat(None, length, dtype=pl.Float64, eager=True)
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)
