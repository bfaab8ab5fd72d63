"""E-U6: BCE bounds BPR (Theorem 2), and which hardness of negatives is best for Recall at which K."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.chance import generator
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.models.recipes import HardNegatives, MatrixFactorisation
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    Cells,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
)
from truerank.studies.papers.ure import PAPER
from truerank.studies.papers.ure.agree import agreement
from truerank.studies.papers.ure.block import UreBlock, split_of
from truerank.studies.papers.ure.lists import recall_at, steps
from truerank.studies.papers.ure.training import TrainedModel, positions_of, recipe_of, trained, training_of
from truerank.studies.work import Keep, StudySize, StudySource

DRAWN, SEEDS = 50, 3
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RANDOM, REACH = 200_000, 30.0  # pairs of scores drawn from -REACH to REACH
BOUND, LOSSES = "Theorem 2: BCE against BPR", "BCE - BPR of one positive and one negative"
GRID, BEST = "Recall@K by H/U", "the best H/U for each K"
STRONG_ORDER = 0.5
ROUNDING = -1e-12


@dataclass(frozen=True, slots=True)
class NegativeHardness:
    """Matrix factorisation with DNS(H, U) over the grid of H/U: Recall@K of each on all candidates."""

    name: ClassVar[str] = "E-U6"
    about: ClassVar[str] = (
        "BCE is at least BPR; and whether a larger H/U of hard negatives is best for Recall@K at a larger K."
    )
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Theorem 2",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec",)
    minutes: ClassVar[float] = 3.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "bound",
            "The BCE loss is an upper bound of the BPR loss.",
            "Theorem 2, equations 17 to 21",
            f"Holds if BCE - BPR = ln(1 + (e^-a + e^b) / (1 + e^(b - a))) is never negative, for {RANDOM:,} pairs "
            "of scores drawn from -30 to 30 and on a grid.",
        ),
        PaperClaim(
            "hardness",
            "The larger H/U is, the larger is the K at which Recall@K is optimised.",
            "Theorem 2",
            "By the mean of three trainings: holds if the best H/U is larger at the largest K (below half of the "
            "candidates) than at K = 5 and Kendall's τ of K and the best H/U is at least 0.5; in part if one of "
            "both.",
        ),
    )

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        full = size is StudySize.FULL
        block = UreBlock.of(source, size=size, seed=seed)
        shares, seeds = (SHARES, SEEDS) if full else ((0.1, 0.5, 1.0), 1)
        asked = [(share, number) for share in shares for number in range(seeds)]
        pieces = [_piece(block, share, size=size, seed=seed + number) for share, number in asked]
        tables = keep(pieces, about="training models")
        split = split_of(block)
        n = int(split.count.min())
        cutoffs = tuple(k for k in sorted({*steps(n), 5, 500 if full else 20}) if k <= n / 2)
        recall: dict[float, list[Floats]] = {share: [] for share in shares}
        for (share, _), table in zip(asked, tables, strict=True):
            if trained(table):
                recall[share].append(recall_at(positions_of(table, split), split.label, cutoffs))
        cells = [*_bound(seed), *_grid(recall, cutoffs)]
        return Measurements(
            cells=tuple(cells),
            graphs=_graphs(cells, recall, cutoffs),
            settings={
                "U": DRAWN,
                "trainings of each": seeds,
                "users": len(split.count),
                "candidates per user": round(split.n_candidates, 1),
            },
            differs=(
                *block.differs,
                "The paper proves no rate for the second part and shows no figure of it; this grid is ours: U = 50, "
                "matrix "
                "factorisation, the epoch with the highest AUC on the random slice.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        lowest = cells.values(cells.of(BOUND, column="lowest BCE - BPR"))
        best = {int(cell.row[4:]): float(cell.obtained or 0.0) for cell in cells.of(BEST, column="H/U")}
        order, _ = agreement(np.array(list(best), dtype=float), np.array(list(best.values())), kendall=True)
        first, last = best[5], best[max(best)]
        kept = [last > first, order >= STRONG_ORDER]
        return (
            by_share("bound", [value >= ROUNDING for value in lowest], f"The lowest difference is {min(lowest):.2g}."),
            _hardness(
                kept,
                f"The best H/U is {first:g} at K = 5 and {last:g} at K = {max(best)}; τ of K and the best H/U is "
                f"{order:.2f}.",
            ),
        )


def _hardness(kept: list[bool], why: str) -> ClaimFinding:
    found = by_share("hardness", kept, why)
    return found if why.find("nan") < 0 else ClaimFinding("hardness", ClaimVerdict.DOES_NOT, why)


def _piece(block: UreBlock, share: float, *, size: StudySize, seed: int) -> TrainedModel:
    full = size is StudySize.FULL
    training = training_of(size, batch=4_096 if full else 1_024, epochs=15 if full else 2, learning_rate=0.02)
    recipe = recipe_of(MatrixFactorisation(dimensions=32), HardNegatives(drawn=DRAWN, hardness=share), training)
    return TrainedModel(f"dns {share:g} seed {seed}", block, recipe, seed)


def losses(positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
    """BCE = -ln σ(a) - ln(1 - σ(b)) and BPR = -ln σ(a - b) of a positive's score a and a negative's score b.

    >>> bce, bpr = losses(np.array([0.0]), np.array([0.0]))
    >>> bool(np.isclose(bce, 2 * np.log(2))), bool(np.isclose(bpr, np.log(2)))
    (True, True)
    """
    bce = np.logaddexp(0, -positive) + np.logaddexp(0, negative)
    return bce, np.logaddexp(0, negative - positive)


def _bound(seed: int) -> list[Cell]:
    scores = generator(seed, "scores of theorem 2").uniform(-REACH, REACH, (2, RANDOM))
    axis = np.linspace(-REACH, REACH, 301)
    grid = np.array([part.ravel() for part in np.meshgrid(axis, axis)])
    cells = []
    for row, (positive, negative) in (("drawn at random", scores), ("on a grid", grid)):
        bce, bpr = losses(positive, negative)
        numbers = {
            "pairs of scores": float(len(bce)),
            "lowest BCE - BPR": float((bce - bpr).min()),
            "mean BCE": float(bce.mean()),
            "mean BPR": float(bpr.mean()),
        }
        cells += [Cell(BOUND, row, column, value) for column, value in numbers.items()]
    return cells


def _grid(recall: Mapping[float, list[Floats]], cutoffs: tuple[int, ...]) -> list[Cell]:
    kept = {share: np.array(found) for share, found in recall.items() if found}
    cells = [
        Cell(GRID, f"K = {k}", f"H/U = {share:g}", *_spread(found[:, at]))
        for at, k in enumerate(cutoffs)
        for share, found in kept.items()
    ]
    shares = list(kept)
    for at, k in enumerate(cutoffs):
        means = np.array([found[:, at].mean() for found in kept.values()])
        cells += [
            Cell(BEST, f"K = {k}", "H/U", shares[int(means.argmax())]),
            Cell(BEST, f"K = {k}", "Recall@K", float(means.max())),
        ]
    return cells


def _spread(values: Floats) -> tuple[float, None, float, float]:
    """Mean, nothing published, and the smallest and largest of the trainings."""
    return float(values.mean()), None, float(values.min()), float(values.max())


def _graphs(
    cells: list[Cell], recall: Mapping[float, list[Floats]], cutoffs: tuple[int, ...]
) -> tuple[PaperGraph, ...]:
    found = Cells(tuple(cells))
    best = tuple(GraphPoint(float(cell.row[4:]), cell.obtained) for cell in found.of(BEST, column="H/U"))
    uniform = max(share for share, values in recall.items() if values)
    relative = tuple(
        GraphPoint(
            float(cutoffs[at]),
            found.value(GRID, f"K = {cutoffs[at]}", f"H/U = {share:g}")
            / max(found.value(GRID, f"K = {cutoffs[at]}", f"H/U = {uniform:g}"), 1e-12),
            group=f"H/U = {share:g}",
        )
        for share, values in recall.items()
        if values and share in (0.1, 0.3, 0.5, 0.7, uniform)
        for at in range(len(cutoffs))
    )
    axis = np.linspace(-6, 6, 25)
    points = tuple(
        GraphPoint(float(a), float(value), group=name)
        for name, values in zip(("BCE", "BPR"), losses(axis, np.zeros(len(axis))), strict=True)
        for a, value in zip(axis, values, strict=True)
    )
    return (
        PaperGraph(
            "hardness",
            "Recall@K of DNS(H, U) over that of uniform negatives (H/U = 1), mean of trainings",
            f"The best H/U is {best[0].y:g} at K = {cutoffs[0]} and {best[-1].y:g} at K = {cutoffs[-1]}.",
            GraphKind.LINES,
            x="K",
            y="Recall@K over that at H/U = 1",
            points=relative,
            level=1.0,
            log=True,
        ),
        PaperGraph(
            "best",
            "The H/U with the highest Recall@K",
            "The best H/U at each K, by the mean of trainings.",
            GraphKind.LINES,
            x="K",
            y="best H/U",
            points=best,
            log=True,
        ),
        PaperGraph(
            "bound",
            "Loss of a positive with score a and a negative with score 0",
            "BCE lies above BPR everywhere.",
            GraphKind.LINES,
            x="a",
            y="loss",
            points=points,
        ),
    )
