"""E-U6: BCE bounds BPR (Theorem 2), and which hardness of negatives is best for Recall at which K."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.rng import generator
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, numbers, share
from truerank_research.learners.recipes import HardNegatives, MatrixFactorisation, Recipe
from truerank_research.papers.ure.data import Block, coefficient, cutoffs_up_to, recall_at, split_of
from truerank_research.papers.ure.training import positions_of, recipe_of, size_settings, train_model, training_of
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

DRAWN, SEEDS = 50, 3
HARDNESS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # H / U
RANDOM, REACH = 200_000, 30.0  # pairs of scores drawn from -REACH to REACH
BOUND = "Theorem 2: BCE against BPR"
GRID, BEST = "Recall@K by H/U", "the best H/U for each K"
STRONG_ORDER = 0.5
ROUNDING = -1e-12


def measure(run: Run) -> Measured:
    block = Block(run.setting)
    grid, seeds = (HARDNESS, SEEDS) if run.full else ((0.1, 0.5, 1.0), 1)
    cases = [(hardness, number) for hardness in grid for number in range(seeds)]
    arguments = [(block, _recipe(hardness, full=run.full), run.seed + number) for hardness, number in cases]
    tables = run.pieces(train_model, arguments, about="training models")
    split = split_of(block)
    n = int(split.count.min())
    cutoffs = tuple(k for k in sorted({*cutoffs_up_to(n), 5, 500 if run.full else 20}) if k <= n / 2)
    recall: dict[float, list[Floats]] = {}
    for (hardness, _), table in zip(cases, tables, strict=True):
        if table.height:
            recall.setdefault(hardness, []).append(recall_at(positions_of(table, split), split.label, cutoffs))
    return Measured(
        {"cells": cell_rows([*_bound_cells(run.seed), *_grid_cells(recall, cutoffs)])},
        {"U": DRAWN, "trainings of each": seeds, **size_settings(split)},
        [
            *block.differences,
            "The paper proves no rate for the second part and has no figure of it. This grid is ours: U = 50, matrix "
            "factorisation, the epoch with the highest AUC on the random slice.",
        ],
    )


def _recipe(hardness: float, *, full: bool) -> Recipe:
    training = training_of(full=full, batch=4_096 if full else 1_024, epochs=15 if full else 2, learning_rate=0.02)
    return recipe_of(MatrixFactorisation(dimensions=32), HardNegatives(drawn=DRAWN, hardness=hardness), training)


def losses(positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
    """BCE = -ln σ(a) - ln(1 - σ(b)) and BPR = -ln σ(a - b) of a positive's score a and a negative's score b.

    >>> bce, bpr = losses(np.array([0.0]), np.array([0.0]))
    >>> bool(np.isclose(bce, 2 * np.log(2))), bool(np.isclose(bpr, np.log(2)))
    (True, True)
    """
    bce = np.logaddexp(0, -positive) + np.logaddexp(0, negative)
    return bce, np.logaddexp(0, negative - positive)


def _bound_cells(seed: int) -> Iterator[Cell]:
    scores = generator(seed, "scores of theorem 2").uniform(-REACH, REACH, (2, RANDOM))
    axis = np.linspace(-REACH, REACH, 301)
    grid = np.array([part.ravel() for part in np.meshgrid(axis, axis)])
    for row, (positive, negative) in (("drawn at random", scores), ("on a grid", grid)):
        bce, bpr = losses(positive, negative)
        yield Cell(BOUND, row, "pairs of scores", float(len(bce)))
        yield Cell(BOUND, row, "lowest BCE - BPR", float((bce - bpr).min()))
        yield Cell(BOUND, row, "mean BCE", float(bce.mean()))
        yield Cell(BOUND, row, "mean BPR", float(bpr.mean()))


def _grid_cells(recall: Mapping[float, list[Floats]], cutoffs: tuple[int, ...]) -> Iterator[Cell]:
    """Recall by H/U: mean, smallest and largest of the trainings; then the best H/U at each K."""
    for at, k in enumerate(cutoffs):
        values = {hardness: np.array(trained)[:, at] for hardness, trained in recall.items()}
        for hardness, own in values.items():
            low, high = float(own.min()), float(own.max())
            yield Cell(GRID, f"K = {k}", f"H/U = {hardness:g}", float(own.mean()), low=low, high=high)
        best = max(values, key=lambda hardness: values[hardness].mean())
        yield Cell(BEST, f"K = {k}", "H/U", best)
        yield Cell(BEST, f"K = {k}", "Recall@K", float(values[best].mean()))


def _bound_rule(cells: Cells) -> Finding:
    lowest = numbers(cells.select(BOUND, column="lowest BCE - BPR"))
    return share([value >= ROUNDING for value in lowest], f"The lowest difference is {min(lowest):.2g}.")


def _hardness_rule(cells: Cells) -> Finding:
    best = {int(cell.row[4:]): float(cell.obtained or 0.0) for cell in cells.select(BEST, column="H/U")}
    order, _ = coefficient(np.array(list(best), dtype=float), np.array(list(best.values())), kendall=True)
    first, last = best[5], best[max(best)]
    finding = share(
        [last > first, order >= STRONG_ORDER],
        f"The best H/U is {first:g} at K = 5 and {last:g} at K = {max(best)}; τ of K and the best H/U is {order:.2f}.",
    )
    return Finding(Verdict.FAILS, finding.why) if np.isnan(order) else finding


CLAIMS = (
    Claim(
        "bound", "The BCE loss is an upper bound of the BPR loss.", "Theorem 2, equations 17 to 21",
        f"BCE - BPR = ln(1 + (e^-a + e^b) / (1 + e^(b - a))) is never negative, for {RANDOM:,} pairs of scores drawn "
        "from -30 to 30 and on a grid.", _bound_rule,
    ),
    Claim(
        "hardness", "The larger H/U is, the larger is the K at which Recall@K is optimised.", "Theorem 2",
        "By the mean of three trainings: the best H/U is larger at the largest K (below half of the candidates) than "
        "at K = 5, and Kendall's τ of K and the best H/U is at least 0.5.", _hardness_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-U6", "Is BCE at least BPR, and is a larger H/U of hard negatives best for Recall@K at a larger K?", measure,
        data=("kuairec",), minutes=3, claims=CLAIMS, shows={"ure": ("Theorem 2",)},
    ),
)  # fmt: skip
