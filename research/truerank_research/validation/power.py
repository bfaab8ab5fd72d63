"""Whether plans keep their word: power as planned from a pilot, and how often a difference is then shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from truerank_research.pages import Page, Picture
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.power_worlds import PowerFound, PowerWorld, power_found, worlds

CLOSE = 0.03  # that a plan may be apart from what happens


@dataclass(frozen=True, slots=True)
class PlannedWorld:
    """One world (a piece): planned from its pilot, and drawn."""

    world: PowerWorld
    draws: int
    seed: int

    @property
    def name(self) -> str:
        return self.world.name

    def table(self) -> pl.DataFrame:
        found = power_found(self.world, draws=self.draws, seed=self.seed)
        return pl.DataFrame({"difference": [found.difference], "planned": [found.planned], "shown": [found.shown]})


def measure(run: Run) -> Measured:
    """Power as planned beside the share of data sets of the planned size in which the difference was shown."""
    full, seed = run.full, run.seed
    draws, every = (4000, 1) if full else (5, 4)  # the fourth is another kind of estimate
    pieces = [PlannedWorld(world, draws, seed) for world in worlds()[::every]]
    tables = run.tables(pieces, about="drawing worlds")
    rows = [_row(each, table, draws) for each, table in zip(pieces, tables, strict=True)]
    return Measured({"worlds": rows}, {"draws": draws})


def _row(piece: PlannedWorld, table: pl.DataFrame, draws: int) -> dict[str, Any]:
    difference, planned, shown = table.row(0)
    found = PowerFound(piece.name, difference, planned, shown, draws)
    return {
        "world": found.world, "difference": found.difference, "planned": found.planned, "shown": found.shown,
        "noise": found.noise, "apart": found.apart,
    }  # fmt: skip


PAGE = Page(
    "Calibration of power estimates",
    "The power that truerank plans from a pilot was compared with the share of {{ settings.draws | number }} datasets of "
    "the planned size in which the true difference was significant. Over {{ tables.worlds | length }} simulated "
    "datasets, planned minus measured power is between {{ tables.worlds | map(attribute='apart') | min | percent }} and "
    "{{ tables.worlds | map(attribute='apart') | max | percent }} of all datasets.",
    Picture(
        "Planned minus measured power", "ranges", x="world", y="apart", y_title="planned - measured power",
        table="worlds", level=0.0, band=(-0.05, 0.05),
    ),
    "worlds",
    {
        "world": "dataset", "difference": "true difference", "planned": "planned power", "shown": "measured power",
        "noise": "Monte-Carlo error",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "power", "Is a true difference significant as often as was planned?", measure, minutes=4, page=PAGE,
    ),
)  # fmt: skip
