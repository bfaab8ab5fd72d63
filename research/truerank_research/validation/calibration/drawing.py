"""Draw simulated datasets many times and store what each draw reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import polars as pl

from truerank_research.runner import Run
from truerank_research.validation.calibration.said import SCHEMA, Said

BLOCK = 50  # draws of a piece


class DrawnWorld(Protocol):
    """A world of a study whose truth is known; its representation tells it from others."""

    @property
    def name(self) -> str: ...
    def n_draws(self, asked: int) -> int:
        """How many draws it has where so many are asked for."""
        ...

    def said(self, seed: int, run: int) -> Iterable[Said]:
        """What one draw said, in rows of `SCHEMA`."""
        ...

    def true_values(self, seed: int) -> Mapping[tuple[str, str, str], float]:
        """What each value and difference estimates, by what, metric and estimator; '' stands for every one."""
        ...


def draw_block(world: DrawnWorld, seed: int, first: int, last: int) -> pl.DataFrame:
    """What some draws report."""
    rows = [row for number in range(first, last) for row in world.said(seed, number)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


World = TypeVar("World", bound=DrawnWorld)


def draw_worlds(run: Run, worlds: Sequence[World], *, draws: int) -> Iterator[tuple[World, pl.DataFrame]]:
    """Each dataset with what all its draws report, and the truth."""
    arguments = {
        world.name: [
            (world, run.seed, first, min(first + BLOCK, world.n_draws(draws)))
            for first in range(0, world.n_draws(draws), BLOCK)
        ]
        for world in worlds
    }
    tables = iter(run.pieces(draw_block, [block for blocks in arguments.values() for block in blocks]))
    for world in worlds:
        drawn = pl.concat([next(tables) for _ in arguments[world.name]])
        values = world.true_values(run.seed)  # '' is every metric and every estimator
        keys = drawn.select("what", "metric", "estimator").rows()
        truth = [values.get(key, values.get((key[0], "", ""), math.nan)) for key in keys]
        yield world, drawn.with_columns(pl.Series("truth", truth, dtype=pl.Float64))
