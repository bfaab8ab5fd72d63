"""Draw labels of a dataset many times and store what each draw reports, beside the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import polars as pl

from truerank.uncertainty.spreads import Spread
from truerank_research.runner import Run

BLOCK = 50  # draws of a piece
KEY = ("what", "metric", "estimator")
SCHEMA: dict[str, Any] = {"run": pl.Int64} | dict.fromkeys(KEY, pl.String) | {
    "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "warned": pl.Boolean,
}  # fmt: skip
Reported = tuple[str, str, str, Spread, bool]  # what, metric, estimator, value with its interval, is it warned of


class DrawnWorld(Protocol):
    """A dataset whose truth is known; its representation tells it from others."""

    def reported(self, seed: int, run: int) -> Iterable[Reported]:
        """Every value and every difference of one draw."""
        ...

    def true_values(self, seed: int) -> Mapping[tuple[str, str, str], float]:
        """What each value and difference estimates, by what, metric and estimator."""
        ...


def draw_block(world: DrawnWorld, seed: int, first: int, last: int) -> pl.DataFrame:
    """What some draws report."""
    rows = [
        (run, *key, spread.value, spread.low, spread.high, is_warned)
        for run in range(first, last)
        for *key, spread, is_warned in world.reported(seed, run)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


World = TypeVar("World", bound=DrawnWorld)


def draw_worlds(run: Run, worlds: Sequence[World], *, draws: int) -> Iterator[tuple[World, pl.DataFrame]]:
    """Each dataset with what all its draws report, and the truth."""
    starts = range(0, draws, BLOCK)
    arguments = [(world, run.seed, first, min(first + BLOCK, draws)) for world in worlds for first in starts]
    tables = iter(run.pieces(draw_block, arguments))
    for world in worlds:
        drawn = pl.concat([next(tables) for _ in starts])
        values = world.true_values(run.seed)
        truth = [values[key] for key in drawn.select(KEY).rows()]
        yield world, drawn.with_columns(pl.Series("truth", truth, dtype=pl.Float64))
