"""What single units (users or sessions) contributed to each estimate, as a table that is made when it is asked for."""

from __future__ import annotations

from typing import Protocol

import polars as pl

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
