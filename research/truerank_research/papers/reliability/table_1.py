"""E-S0: the data, the grid of scenarios and the models of the study (table 1, figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import polars as pl

from truerank.evaluation.labels import evaluate
from truerank.reliability import Grid
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, share
from truerank_research.papers.reliability.data import StudiedData, StudiedSetting, fitted, scores_of, settings_of
from truerank_research.papers.reliability.questions import DIFFERENCES, SIMULATED
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

# users, items, positive and other interactions, density
PUBLISHED = {"Train": (7176, 10_728, 936_390, 11_594_416, 0.163), "Test": (1411, 3327, 217_175, 4_459_395, 0.996)}
COLUMNS = ("users", "items", "positive", "other", "density")
EXACT = ("users", "items", "positive")
TABLE, GRID, MODELS, PAIRS = "Table 1", "Scenarios", "True means of models", "Pairs of models"
SCENARIOS = 1512


def measure(run: Run) -> Measured:
    cells: list[Cell] = []
    for setting in settings_of(run):
        data = setting.data(run.source)
        cells += [*_counts(setting, data), *_truths(setting, data, fitted(run, setting, seed=run.seed))]
    grid = Grid.from_names()
    scenarios = len(grid.loggers) * len(grid.sparsities) * grid.n_candidates
    cells.append(Cell(GRID, "the paper's grid", "scenarios", float(scenarios), float(SCENARIOS), tolerance=0.0))
    return Measured(
        {"cells": cell_rows(cells)},
        {"models": [entry.title for entry in settings_of(run)[0].entries]},
        [*DIFFERENCES[:-1], *([SIMULATED] if run.source.is_synthetic else [])],
    )


def _counts(setting: StudiedSetting, data: StudiedData) -> Iterator[Cell]:
    """Table 1; what these data do not contain has no number."""
    liked = float(data.world.label.sum())
    ours = {
        "Train": (len(data.train.users), len(data.train.items), len(data.train), None, None),
        "Test": (len(data.world.users), len(data.world.items), liked, len(data.world) - liked, None),
    }
    for part, values in ours.items():
        for at, column in enumerate(COLUMNS):
            known = PUBLISHED[part][at] if setting.name == "kuairec" else None
            if known is not None or values[at] is not None:
                yield Cell(
                    TABLE, f"{setting.title}, {part}", column, values[at], known,
                    tolerance=0.0 if known is not None and column in EXACT else None,
                )  # fmt: skip


def _truths(setting: StudiedSetting, data: StudiedData, scores: Mapping[str, pl.DataFrame]) -> Iterator[Cell]:
    """The true mean of every model over all pairs, and of every two their difference, for the population of users."""
    world = data.world
    known = scores_of(scores, world)
    found = evaluate(known, world, items=world.items, metrics=[setting.metrics[0]])
    for each in found.estimates:
        yield Cell(
            MODELS, each.model, f"{setting.title}, {setting.scale.metric}", each.value, None, each.low, each.high
        )
    for pair in found.comparisons:
        row = f"{setting.title}: {pair.model} - {pair.baseline}"
        yield Cell(PAIRS, row, "difference", pair.difference, None, pair.low, pair.high)


def count_rule(part: str) -> Callable[[Cells], Finding]:
    """The counts of one matrix are those that are printed."""

    def rule(cells: Cells) -> Finding:
        counts = [cell for cell in cells.select(TABLE) if cell.row.endswith(f", {part}") and cell.is_within is not None]
        if not counts:
            return Finding(Verdict.UNTESTABLE, "The counts are of KuaiRec; this dataset is simulated.")
        text = ", ".join(f"{cell.column} {cell.obtained or 0:,.0f} ({cell.published or 0:,.0f})" for cell in counts)
        return share([cell.is_within is True for cell in counts], f"Here (printed): {text}.")

    return rule


def _scenarios_rule(cells: Cells) -> Finding:
    (grid,) = cells.select(GRID)
    return share([grid.is_within is True], f"{grid.obtained or 0:,.0f}.")


def _models_rule(cells: Cells) -> Finding:
    pairs = cells.select(PAIRS, column="difference")
    clear = [cell.low is not None and cell.high is not None and not cell.low <= 0 <= cell.high for cell in pairs]
    unclear = ", ".join(cell.row for cell, is_clear in zip(pairs, clear, strict=True) if not is_clear) or "none"
    return share(clear, f"{sum(clear)} of {len(clear)} pairs; not: {unclear}.")


CLAIMS = (
    Claim(
        "train", "The counts of the training matrix.", "Table 1", "Users, items and positives are what is printed.",
        count_rule("Train"),
    ),
    Claim(
        "test", "The counts of the test matrix.", "Table 1",
        "Users, items and positives are what is printed; other interactions cannot be counted here.",
        count_rule("Test"),
    ),
    Claim(
        "scenarios", "3 loggers, 8 sparsities and 63 samplers are 1,512 scenarios.", "section 4.3",
        "The grid of the paper has as many.", _scenarios_rule,
    ),
    Claim(
        "models", "The models cover distinct families, so that there is an order to recover.", "section 4.4",
        "The true means of every two models differ clearly: the interval of the difference excludes 0.", _models_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-S0", "Which data, scenarios and models are studied, and how good are the models?", measure,
        data=("kuairec", "jester"), minutes=3, claims=CLAIMS, shows={"reliability": ("Table 1", "Figure 1")},
    ),
)  # fmt: skip
