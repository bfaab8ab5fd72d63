"""E-S5: why ties are rarer here than in figure 2: features, tuning, rounding and unobserved cells, one at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
)
from truerank.studies.papers.reliability import PAPER
from truerank.studies.papers.reliability.curves import published
from truerank.studies.papers.reliability.questions import DIFFERS, MADE
from truerank.studies.papers.reliability.rules import RESOLUTION, LogPlace, ResultReading, StudyFigures
from truerank.studies.papers.reliability.studied import FittedScores, StudiedLogs
from truerank.studies.papers.reliability.tuned import SEARCHES, searched
from truerank.studies.papers.reliability.worlds import StudiedModel, StudiedSetting, settings_of
from truerank.studies.reliability import Preset
from truerank.studies.work import Keep, StudySize, StudySource

SAMPLERS = ("Full", "Exposed", "Random@e", "Positivity", "WTDH", "Skew")
SPARSITIES = (0.0, 0.5, 0.95)
MISSING = 0.0038  # of all cells: 17,827 of 4,694,397 of KuaiRec
BASE, NO_FEATURES, CELLS, CHANCE, TUNED = (
    "as in E-S1", "no features", "unobserved cells", "settings by chance", "tuned",
)  # fmt: skip
READINGS = {"exact": ResultReading.USERS, "rounded": ResultReading.ROUNDED}
TRIALS = "Trials: mean over folds"
HALF = 0.5  # of the way from what is here to what is printed


@dataclass(frozen=True, slots=True)
class CausesOfTies:
    """The tie rate with one thing changed at a time."""

    name: ClassVar[str] = "E-S5"
    about: ClassVar[str] = "Why models tie less often than in figure 2, one possible cause at a time; tuned models."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 2",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec",)
    minutes: ClassVar[float] = 45
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = tuple(
        PaperClaim(
            key, f"The ties of figure 2 come from {what}.", "a question to Figure 2",
            "Holds if the change brings the tie rate of all candidates, with everything shown, at least half of the "
            "way from what is here to what is printed (.045); in part if it brings it a tenth of the way.", ours=True,
        )
        for key, what in (
            ("rounding", "rounding to 4 decimals"),
            ("features", "features that make LightFM-F like LightFM"),
            ("tuning", "tuning"),
            ("chance", "settings that a search without information chose"),
            ("unobserved", "cells that nobody observed"),
        )
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        setting = _narrower(settings_of(source, size)[0])
        best, first, trials = searched(source, setting, keep, size=size, seed=seed)
        plain = {entry.title: entry for entry in setting.entries}
        variants = {
            BASE: plain,
            NO_FEATURES: {title: replace(entry, features=False) for title, entry in plain.items()},
            CHANCE: plain | first,
            TUNED: plain | best,
        }
        fits = {entry: FittedScores(source, setting.name, entry, _seed(entry, plain, seed))
                for entries in variants.values() for entry in entries.values()}  # fmt: skip
        made = dict(zip(fits, keep(list(fits.values()), about="fitting models"), strict=True))
        n_missing = round(MISSING * len(setting.data(source).world))
        pieces = {
            name: _Varied(
                source, size, setting, Preset.RELEASED, "uniform", seed,
                tuple((title, made[entry]) for title, entry in entries.items()), SAMPLERS, variant=name,
            )
            for name, entries in variants.items()
        }  # fmt: skip
        pieces[CELLS] = replace(pieces[BASE], without=n_missing, variant=CELLS)
        tables = dict(zip(pieces, keep(list(pieces.values()), about="studying logs", apart=False), strict=True))
        cells = [
            cell for name, table in tables.items() for cell in _ties(name, setting, table, real=not source.is_synthetic)
        ]
        cells += _trials(trials)
        return Measurements(
            tuple(cells),
            (_graph(cells, setting),),
            settings={"trials": SEARCHES[size].trials, "folds": SEARCHES[size].folds,
                      "share of users in the search": SEARCHES[size].users, "unobserved cells": n_missing},
            differs=(
                "Unobserved cells are drawn at random among those that are not liked; in KuaiRec they are of blocked "
                "authors, which data here do not tell.",
                "The search is at random as the text says, on a share of the training users; the code searched with a "
                "model of the trials, 128 of them, on users it knew nothing of.",
                "Co-occurrence of SAR on other rows than positives cannot be varied: the big matrix has none of them.",
                *DIFFERS[:2],
                *((MADE,) if source.is_synthetic else ()),
            ),
        )  # fmt: skip

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        asked = {"rounding": (BASE, "rounded"), "features": (NO_FEATURES, "exact"), "tuning": (TUNED, "exact"),
                 "chance": (CHANCE, "exact"), "unobserved": (CELLS, "exact")}  # fmt: skip
        return tuple(_cause(obtained, key, *where) for key, where in asked.items())


@dataclass(frozen=True, slots=True)
class _Varied(StudiedLogs):
    """Logs studied with one thing changed, which its name tells."""

    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.setting.name}, ties, {self.variant}"


def _narrower(setting: StudiedSetting) -> StudiedSetting:
    """The large size alone, at few sparsities."""
    kept = tuple(each for each in SPARSITIES if each in setting.sparsities)
    return replace(setting, sizes=(setting.scale.large,), sparsities=kept)


def _seed(entry: StudiedModel, plain: Mapping[str, StudiedModel], seed: int) -> int:
    """LightFM-F without features is another run of LightFM, not the same one."""
    return seed + 1 if entry not in plain.values() and plain[entry.title].features and not entry.features else seed


def _ties(name: str, setting: StudiedSetting, table: pl.DataFrame, *, real: bool) -> Iterator[Cell]:
    known = {(each.sparsity, each.sampler): each.value for each in published()
             if each.question == RESOLUTION and each.logger == "uniform"}  # fmt: skip
    for how, reading in READINGS.items():
        figures = StudyFigures.read(table, scale=setting.scale, reading=reading)
        for sparsity in figures.sparsities:
            for sampler in SAMPLERS:
                found = LogPlace(figures, "uniform", sparsity, sampler).at(RESOLUTION)
                printed = known.get((sparsity, sampler)) if real else None
                yield Cell(
                    f"Tie rate, {how}, uniform logger, n = {setting.scale.large:,}",
                    f"{sampler}, {100 * sparsity:.0f} %", name, found.value, printed, found.low, found.high,
                )  # fmt: skip


def _trials(trials: pl.DataFrame) -> Iterator[Cell]:
    for row in trials.iter_rows(named=True):
        settings = ", ".join(f"{name}={_short(value)}" for name, value in json.loads(row["settings"]).items())
        yield Cell(TRIALS, f"{row['model']} {row['trial'] + 1}: {settings}", "value", row["value"])


def _short(value: str) -> str:
    """
    >>> _short("0.000200389968391397"), _short("168"), _short("warp")
    ('0.0002', '168', 'warp')
    """
    try:
        return f"{float(value):.3g}"
    except ValueError:
        return value


def _cause(obtained: Obtained, key: str, variant: str, how: str) -> ClaimFinding:
    cells = [cell for cell in obtained.cells.all if cell.row == "Full, 0 %"]
    here = [cell for cell in cells if cell.column == BASE and ", exact," in cell.table]
    there = [cell for cell in cells if cell.column == variant and f", {how}," in cell.table]
    if not here or not there or here[0].published is None:
        return ClaimFinding(key, ClaimVerdict.UNTESTED, "What is printed is of KuaiRec; this world is synthetic.")
    start, end, goal = here[0].obtained or 0.0, there[0].obtained or 0.0, here[0].published
    way = (end - start) / (goal - start) if goal != start else math.nan
    word = ClaimVerdict.HOLDS if way >= HALF else ClaimVerdict.IN_PART if way >= 0.1 else ClaimVerdict.DOES_NOT
    return ClaimFinding(
        key, word, f"{start:.4f} here, {end:.4f} with it, {goal:.3f} printed: {100 * way:z.0f} % of the way."
    )


def _graph(cells: Sequence[Cell], setting: StudiedSetting) -> PaperGraph:
    points = [
        GraphPoint("printed in the paper", cell.published, cell.row.removeprefix("Full, "))
        for cell in cells
        if cell.row.startswith("Full, ") and cell.column == BASE and ", exact," in cell.table and cell.published
    ]
    for cell in cells:
        if cell.table.startswith("Tie rate") and cell.row.startswith("Full, "):
            how = "exact" if ", exact," in cell.table else "rounded"
            points.append(
                GraphPoint(
                    f"{cell.column}, {how}",
                    cell.obtained,
                    cell.row.removeprefix("Full, "),
                    low=cell.low,
                    high=cell.high,
                )
            )
    zero = [point for point in points if point.group == "0 %" and point.low is not None]
    printed = "; the paper has .045" if setting.name == "kuairec" else ""
    most = max(zero, key=lambda point: point.y or 0.0)
    return PaperGraph(
        "causes", f"Share of pairs of models that tie, all candidates, {setting.title}, by sparsity of the log",
        f"With everything shown, ties are at most {most.y or 0.0:.4f} ({most.x}){printed}.",
        GraphKind.RANGES, x="what is changed", y="tie rate", points=tuple(points),
    )  # fmt: skip
