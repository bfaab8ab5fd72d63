"""What single units (users or sessions) contributed to each estimate, as a table that is made when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.record import record

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


@record(eq=False)
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
