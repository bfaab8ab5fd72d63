"""E-S5: why ties are rarer here than in figure 2: features, tuning, rounding and unobserved cells, one at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import polars as pl

from truerank.reliability import Preset
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows
from truerank_research.papers.reliability.data import StudiedModel, StudiedSetting, fit_scores, settings_of, study_logs
from truerank_research.papers.reliability.figures import RESOLUTION, LogPlace, StudyFigures
from truerank_research.papers.reliability.questions import DIFFERENCES, SIMULATED, published
from truerank_research.papers.reliability.tuning import FULL, QUICK, search_settings
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

SAMPLERS = ("Full", "Exposed", "Random@e", "Positivity", "WTDH", "Skew")
SPARSITIES = (0.0, 0.5, 0.95)
MISSING = 0.0038  # of all cells: 17,827 of 4,694,397 of KuaiRec
BASE, NO_FEATURES, CELLS, CHANCE, TUNED = (
    "as in E-S1", "no features", "unobserved cells", "settings by chance", "tuned",
)  # fmt: skip
READINGS = EXACT, ROUNDED = ("exact", "rounded")
TRIALS = "Trials: mean over folds"
HALF = 0.5  # of the way from what is here to what is printed


def measure(run: Run) -> Measured:
    setting = _narrower(settings_of(run)[0])
    best, first, trials = search_settings(run, setting)
    plain = {entry.title: entry for entry in setting.entries}
    variants = {
        BASE: plain,
        NO_FEATURES: {title: replace(entry, features=False) for title, entry in plain.items()},
        CHANCE: plain | first,
        TUNED: plain | best,
    }
    entries = list(dict.fromkeys(entry for models in variants.values() for entry in models.values()))
    arguments = [(run.source, setting.name, entry, _seed(entry, plain, run.seed)) for entry in entries]
    scores = dict(zip(entries, run.pieces(fit_scores, arguments, about="fitting models"), strict=True))
    n_missing = round(MISSING * len(setting.data(run.source).world))
    cells: list[Cell] = []
    for name in (*variants, CELLS):
        models = variants.get(name, plain)
        missing = n_missing if name == CELLS else 0
        (table,) = run.pieces(
            study_logs, [(run.setting, setting, Preset.RELEASED, "uniform", SAMPLERS, name, missing)],
            about=f"studying logs, {name}", scores={title: scores[entry] for title, entry in models.items()},
        )  # fmt: skip
        cells += _ties(name, setting, table, real=not run.source.is_synthetic)
    search = FULL if run.full else QUICK
    return Measured(
        {"cells": cell_rows([*cells, *_trials(trials)])},
        {
            "trials": search.trials, "folds": search.folds, "share of users in the search": search.users,
            "unobserved cells": n_missing,
        },
        [
            "Unobserved cells are drawn at random among those that are not liked; in KuaiRec they are of blocked "
            "authors, which these data do not contain.",
            "The search is at random as the text says, on a share of the training users; the code searched with a "
            "model of the trials, 128 of them, on users it knew nothing of.",
            "Co-occurrence of SAR on other rows than positives cannot be varied: the big matrix has none of them.",
            *DIFFERENCES[:2],
            *([SIMULATED] if run.source.is_synthetic else []),
        ],
    )  # fmt: skip


def _narrower(setting: StudiedSetting) -> StudiedSetting:
    """The large size alone, at few sparsities."""
    kept = tuple(value for value in SPARSITIES if value in setting.sparsities)
    return replace(setting, sizes=(setting.scale.large,), sparsities=kept)


def _seed(entry: StudiedModel, plain: Mapping[str, StudiedModel], seed: int) -> int:
    """LightFM-F without features is another run of LightFM, not the same one."""
    return seed + 1 if entry not in plain.values() and plain[entry.title].features and not entry.features else seed


def _ties(name: str, setting: StudiedSetting, table: pl.DataFrame, *, real: bool) -> Iterator[Cell]:
    known = published(RESOLUTION) if real else {}
    for how in READINGS:
        figures = StudyFigures.read(table, scale=setting.scale, rounded=how == ROUNDED)
        for sparsity in figures.sparsities:
            for sampler in SAMPLERS:
                figure = LogPlace(figures, "uniform", sparsity, sampler).at(RESOLUTION)
                printed = known.get(("uniform", sparsity, sampler))
                yield Cell(
                    f"Tie rate, {how}, uniform logger, n = {setting.scale.large:,}",
                    f"{sampler}, {100 * sparsity:.0f} %", name, figure.value, printed, figure.low, figure.high,
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


def cause_rule(variant: str, reading: str) -> Callable[[Cells], Finding]:
    """How far of the way from the tie rate here to the printed one a change brings it."""

    def rule(cells: Cells) -> Finding:
        full = [cell for cell in cells.cells if cell.row == "Full, 0 %"]
        here = [cell for cell in full if cell.column == BASE and f", {EXACT}," in cell.table]
        there = [cell for cell in full if cell.column == variant and f", {reading}," in cell.table]
        if not here or not there or here[0].published is None:
            return Finding(Verdict.UNTESTABLE, "The printed numbers are of KuaiRec; this dataset is simulated.")
        start, end, goal = here[0].obtained or 0.0, there[0].obtained or 0.0, here[0].published
        way = (end - start) / (goal - start) if goal != start else math.nan
        verdict = Verdict.REPLICATES if way >= HALF else Verdict.IN_PART if way >= 0.1 else Verdict.FAILS
        why = f"{start:.4f} here, {end:.4f} with it, {goal:.3f} printed: {100 * way:z.0f} % of the way."
        return Finding(verdict, why)

    return rule


CLAIMS = tuple(
    Claim(
        key, f"The ties of figure 2 come from {cause}.", "a question to Figure 2",
        "The change brings the tie rate of all candidates, with everything exposed, at least half of the way from what "
        "is here to what is printed (.045); in part if a tenth of the way.", cause_rule(variant, reading), ours=True,
    )
    for key, cause, variant, reading in (
        ("rounding", "rounding to 4 decimals", BASE, ROUNDED),
        ("features", "features that make LightFM-F like LightFM", NO_FEATURES, EXACT),
        ("tuning", "tuning", TUNED, EXACT),
        ("chance", "settings that a search without information chose", CHANCE, EXACT),
        ("unobserved", "cells that nobody observed", CELLS, EXACT),
    )
)  # fmt: skip
STUDIES = (
    Study(
        "E-S5", "Why do models tie less often than in figure 2?", measure, data=("kuairec",), minutes=45, claims=CLAIMS,
        shows={"reliability": ("Figure 2",)},
    ),
)  # fmt: skip
