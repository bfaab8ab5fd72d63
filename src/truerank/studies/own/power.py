"""Whether plans keep their word: power as planned from a pilot, and how often a difference is then shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from truerank.core.progress import Progress
from truerank.studies.own.study import StudyTables
from truerank.studies.power import PowerFound, PowerWorld, power_found, worlds
from truerank.studies.work import Keep, StudySize, StudySource

CLOSE = 0.03  # that a plan may be apart from what happens


@dataclass(frozen=True, slots=True)
class PlannedWorld:
    """One world (a `WorkPiece`): planned from its pilot, and drawn."""

    world: PowerWorld
    draws: int
    seed: int

    @property
    def name(self) -> str:
        return self.world.name

    def table(self) -> pl.DataFrame:
        found = power_found(self.world, draws=self.draws, seed=self.seed)
        return pl.DataFrame({"difference": [found.difference], "planned": [found.planned], "shown": [found.shown]})


@dataclass(frozen=True, slots=True)
class PowerStudy:
    """Power as planned beside the share of data sets of the planned size in which the difference was shown."""

    name: ClassVar[str] = "power"
    about: ClassVar[str] = "Does a plan keep its word: is a difference shown as often as was planned?"
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 4.0

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        del source, progress
        draws, every = (4000, 1) if size is StudySize.FULL else (5, 4)  # the fourth is another kind of estimate
        pieces = [PlannedWorld(world, draws, seed) for world in worlds()[::every]]
        tables = keep(pieces, about="drawing worlds")
        rows = [_row(each, table, draws) for each, table in zip(pieces, tables, strict=True)]
        return StudyTables({"worlds": rows}, {"draws": draws})


def _row(piece: PlannedWorld, table: pl.DataFrame, draws: int) -> dict[str, Any]:
    found = PowerFound(piece.name, draws=draws, **table.row(0, named=True))
    return {
        "world": found.world, "difference": found.difference, "planned": found.planned, "shown": found.shown,
        "noise": found.noise, "apart": found.apart,
    }  # fmt: skip
