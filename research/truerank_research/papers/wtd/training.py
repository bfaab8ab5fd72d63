"""E-W3: recommenders trained on intervened sets, the extension that the paper's conclusion names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl

from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, share
from truerank_research.papers.wtd import RECOMMENDERS, SETS, TRUTH, WEIGHTED
from truerank_research.papers.wtd.runs import (
    EVERY,
    RANDOM,
    RunMeans,
    best_settings,
    interval_cell,
    lay_out_test,
    tuning_table,
    user_values,
)
from truerank_research.papers.wtd.setting import FULL_SHAPE, QUICK_SHAPE, STRATEGIES, Shape, split_of
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study

VALUES, GAINS, PAIRS = "Recall@10 by training set", "Difference from {} in percent", "Recall@10 over all pairs"
# fewer runs and settings than in E-W1: everything is tuned five times
FEW = replace(
    FULL_SHAPE, runs=4, neighbours=(10, 30, 100), factors=(20, 60, 120, 200), regularisation=(0.001, 0.01, 0.1, 0.6)
)


def measure(run: Run) -> Measured:
    shape = FEW if run.full else QUICK_SHAPE
    arguments = [(run.setting, shape, number, name) for number in range(shape.runs) for name in SETS]
    tables = run.pieces(train_run, arguments, about="training recommenders")
    by_run = [pl.concat(tables[at : at + len(SETS)]) for at in range(0, len(tables), len(SETS))]
    means = RunMeans.from_tables(by_run, seed=run.seed)
    cells = [*_cells(means, TRUTH)]
    if run.source.is_synthetic:
        cells += [*_cells(means, EVERY), *_pair_cells(means)]
    return Measured(
        {"cells": cell_rows(cells)},
        shape.settings() | {"intervals": "1,000 resamples of users, the same for both of a difference"},
        ["The paper has no numbers for training; it says that this is being investigated."],
    )


def train_run(setting: Setting, shape: Shape, number: int, training: str) -> pl.DataFrame:
    """Every user's recall with one training set, settings chosen anew on the random validation part."""
    split, seed = split_of(setting, number), setting.seed
    train = split.draw(STRATEGIES[training], split.train, seed=seed + number)
    # whatever the model is trained on, the same items are candidates: all biased training rows are excluded
    parts = {RANDOM: lay_out_test(split.validation, split.train)}
    best = best_settings(tuning_table(train, parts, shape, seed=seed), RANDOM)
    models = {name: shape.grid(name)[chosen] for name, chosen in best.items()}
    tests = {TRUTH: split.truth} | ({} if split.every is None else {EVERY: split.every})
    values = user_values(models, train, {name: lay_out_test(log, split.train) for name, log in tests.items()}, seed)
    return values.filter(metric="Recall").with_columns(test=pl.concat_str(pl.lit(f"{training}: "), "test"))


def _cells(means: RunMeans, test: str) -> Iterator[Cell]:
    for who in RECOMMENDERS:
        for name in SETS:
            yield interval_cell(f"{VALUES}, {test}", who, name, means.mean(who, f"{name}: {test}"))
        for base in SETS[:2]:
            for name in (name for name in SETS if name != base):
                gain = means.percent(who, f"{name}: {test}", truth=f"{base}: {test}")
                yield interval_cell(f"{GAINS.format(base)}, {test}", who, name, gain)


def _pair_cells(means: RunMeans) -> Iterator[Cell]:
    """Differences of recall of two recommenders trained on all biased rows: over all pairs, and on the random part."""
    for first, second in combinations(RECOMMENDERS, 2):
        for test in (EVERY, TRUTH):
            difference = means.mean(first, f"FULL: {test}") - means.mean(second, f"FULL: {test}")
            yield interval_cell(PAIRS, f"{first} - {second}", test, difference)


def _extends_rule(cells: Cells) -> Finding:
    trained = [(cell.obtained or 0.0) > 0 for cell in cells.select(f"{VALUES}, {TRUTH}")]
    return share(trained, f"{sum(trained)} of {len(trained)} recommenders and sets.")


def _gain_rule(base: str) -> Callable[[Cells], Finding]:
    """For each recommender the best weighted set is clearly above training on `base`."""

    def rule(cells: Cells) -> Finding:
        table = f"{GAINS.format(base)}, {TRUTH}"
        rows = {who: [cells.select(table, who, name)[0] for name in WEIGHTED] for who in RECOMMENDERS}
        best = [max(row, key=lambda cell: cell.obtained or -math.inf) for row in rows.values()]
        text = ", ".join(
            f"{cell.row} {cell.column} {cell.obtained or 0:+.0f} % ({cell.low or 0:+.0f} to {cell.high or 0:+.0f})"
            for cell in best
        )
        return share([(cell.low or 0.0) > 0 for cell in best], f"Best against {base}: {text}.")

    return rule


def _truth_rule(cells: Cells) -> Finding:
    true, random = (cells.select(PAIRS, column=test) for test in (EVERY, TRUTH))
    if not true:
        return Finding(Verdict.UNTESTABLE, "Not every rating is known here; run it on a simulated dataset.")
    parts = [
        bool(np.sign(whole.obtained or 0.0) == np.sign(part.obtained or 0.0))
        for whole, part in zip(true, random, strict=True)
        if whole.low is not None and whole.high is not None and not whole.low <= 0 <= whole.high
    ]
    return share(parts, f"{sum(parts)} of {len(parts)} pairs that differ clearly.")


CLAIMS = (
    Claim(
        "extends", "Intervened data can train recommenders without any modification.", "Section 7",
        "Every recommender trained on every intervened set has a recall above 0.", _extends_rule,
    ),
    Claim(
        "improves", "Training on an intervened set might boost ranking performance.", "Section 7",
        "For each recommender the best of SKEW, WTD and WTD_H is clearly above training on all biased rows.",
        _gain_rule("FULL"),
    ),
    Claim(
        "same size", "Intervened training sets are better than a uniform sample of the same size.",
        "our reading of section 7",
        "For each recommender the best of SKEW, WTD and WTD_H is clearly above REG.", _gain_rule("REG"),
    ),
    Claim(
        "known truth", "Randomly collected ratings give the true order of recommenders.", "Section 5.2",
        "In simulated data: for each pair of recommenders whose recall over all pairs differs clearly, the random part "
        "has the same order.", _truth_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-W3", "Does training on intervened sets help, and does the random part give the true order?", measure,
        data=("coat",), minutes=3, claims=CLAIMS, shows={"wtd": ()},
    ),
)  # fmt: skip
