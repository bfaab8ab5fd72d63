"""E-W3: recommenders that learn from intervened training sets, the extension that the paper's conclusion names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.values import text_of
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
from truerank.studies.papers.wtd import PAPER
from truerank.studies.papers.wtd.published import RECOMMENDERS
from truerank.studies.papers.wtd.shapes import STRATEGIES, WtdShape, shape_of, split_of
from truerank.studies.papers.wtd.tested import (
    DROP,
    EVERY,
    RANDOM,
    MeansOfRuns,
    chosen,
    interval,
    laid_out,
    tested_table,
    tuning_table,
)
from truerank.studies.work import Keep, StudySize, StudySource

ALL, SAME_SIZE = "FULL", "REG"
AWARE = ("SKEW", "WTD", "WTD_H")
SETS = (ALL, SAME_SIZE, *AWARE)
VALUES, GAINS, KNOWN = "Recall@10 by training set", "Difference from {} in percent", "Recall@10 over all pairs"


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """Every user's values with one training set, settings chosen anew on the random validation part."""

    source: StudySource
    shape: WtdShape
    seed: int
    run: int
    training: str

    @property
    def name(self) -> str:
        return f"trained {self.run}, {self.training}"

    def table(self) -> pl.DataFrame:
        split = split_of(self.source, self.shape, seed=self.seed, run=self.run)
        learnt = split.drawn(STRATEGIES[self.training], split.train, seed=self.seed + self.run)
        # whatever was learnt from, the same items compete: all biased training rows are known
        parts = {RANDOM: laid_out(split.validation, split.train)}
        best = chosen(tuning_table(learnt, parts, self.shape, seed=self.seed), RANDOM)
        models = {name: self.shape.grid(name)[at] for name, at in best.items()}
        tests: dict[str, Log] = {DROP: split.truth} | ({} if split.every is None else {EVERY: split.every})
        sets = {name: laid_out(log, split.train) for name, log in tests.items()}
        found = tested_table(models, learnt, sets, seed=self.seed)
        return found.filter(pl.col("metric") == "Recall").with_columns(
            test=pl.concat_str(pl.lit(f"{self.training}: "), "test")
        )


@dataclass(frozen=True, slots=True)
class IntervenedTraining:
    """Five recommenders, each trained on five sets, tested on random ratings."""

    name: ClassVar[str] = "E-W3"
    about: ClassVar[str] = "Training on intervened sets, and the truth of a world in which every rating is known."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ()}
    data: ClassVar[tuple[str, ...]] = ("coat",)
    minutes: ClassVar[float] = 3
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "extends", "Intervened data can train recommenders without any modification.", "Section 7",
            "Holds if every recommender learns from every intervened set and is better than nothing: recall above 0.",
        ),
        PaperClaim(
            "improves", "Training on an intervened set might boost ranking performance.", "Section 7",
            "For each recommender the best of SKEW, WTD and WTD_H must be clearly above training on all biased rows.",
        ),
        PaperClaim(
            "same size", "Intervened training sets are better than a uniform sample of the same size.",
            "our reading of section 7",
            "For each recommender the best of SKEW, WTD and WTD_H must be clearly above REG.",
        ),
        PaperClaim(
            "known truth", "Randomly collected ratings give the true order of recommenders.", "Section 5.2",
            "In a synthetic world: for each pair of recommenders whose recall over all pairs differs clearly, the "
            "random part must have the same order.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        shape = coarser(shape_of(size))
        pieces = [TrainedRun(source, shape, seed, run, each) for run in range(shape.runs) for each in SETS]
        tables = keep(pieces, about="training recommenders")
        by_run = [pl.concat(tables[at : at + len(SETS)]) for at in range(0, len(tables), len(SETS))]
        means = MeansOfRuns.of(by_run, seed=seed)
        cells = [*_cells(means, DROP)]
        if source.is_synthetic:
            cells += [*_cells(means, EVERY), *_pairs(means)]
        return Measurements(
            tuple(cells),
            (_graph(cells),),
            settings=shape.settings() | {"intervals": "1,000 resamples of users, the same for both of a difference"},
            differs=("The paper has no numbers for training; it says that this is being investigated.",),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        values = [cell.obtained for cell in cells.of(f"{VALUES}, {DROP}")]
        learnt = [value is not None and value > 0 for value in values]
        return (
            by_share("extends", learnt, f"{sum(learnt)} of {len(learnt)} recommenders and sets."),
            _better(cells, "improves", ALL),
            _better(cells, "same size", SAME_SIZE),
            _known(obtained),
        )


def coarser(shape: WtdShape) -> WtdShape:
    """Fewer runs and settings: everything is tuned five times."""
    if len(shape.factors) < 5:
        return shape
    few: dict[str, Any] = {"neighbours": (10, 30, 100), "factors": (20, 60, 120, 200)}
    return replace(shape, runs=4, regularisation=(0.001, 0.01, 0.1, 0.6), **few)


def _cells(means: MeansOfRuns, test: str) -> Iterator[Cell]:
    for who in RECOMMENDERS:
        for name in SETS:
            yield Cell(f"{VALUES}, {test}", who, name, *_spread(means.mean(who, f"{name}: {test}")))
    for base in (ALL, SAME_SIZE):
        for who in RECOMMENDERS:
            for name in (each for each in SETS if each != base):
                found = means.percent(who, f"{name}: {test}", truth=f"{base}: {test}")
                yield Cell(f"{GAINS.format(base)}, {test}", who, name, *_spread(found))


def _spread(values: Floats) -> tuple[float, None, float, float]:
    value, low, high = interval(values)
    return value, None, low, high


def _pairs(means: MeansOfRuns) -> Iterator[Cell]:
    """Differences of recall of two recommenders trained on all biased rows: over all pairs, and on the random part."""
    for at, one in enumerate(RECOMMENDERS):
        for other in RECOMMENDERS[at + 1 :]:
            for test in (EVERY, DROP):
                found = means.mean(one, f"{ALL}: {test}") - means.mean(other, f"{ALL}: {test}")
                yield Cell(KNOWN, f"{one} - {other}", test, *_spread(found))


def _better(cells: Cells, key: str, base: str) -> ClaimFinding:
    table = f"{GAINS.format(base)}, {DROP}"
    best = {who: max((cells.of(table, who, name)[0] for name in AWARE), key=lambda cell: cell.obtained or -np.inf)
            for who in RECOMMENDERS}  # fmt: skip
    clear = [cell.low is not None and cell.low > 0 for cell in best.values()]
    said = ", ".join(
        f"{who} {cell.column} {cell.obtained or 0.0:+.0f} % ({cell.low or 0.0:+.0f} to {cell.high or 0.0:+.0f})"
        for who, cell in best.items()
    )
    return by_share(key, clear, f"Best against {base}: {said}.")


def _known(obtained: Obtained) -> ClaimFinding:
    pairs = dict.fromkeys(cell.row for cell in obtained.cells.of(KNOWN))
    if not pairs:
        return ClaimFinding(
            "known truth", ClaimVerdict.UNTESTED, "Not every rating is known here; run it on a synthetic world."
        )
    kept = []
    for pair in pairs:
        (true,), (shown,) = (obtained.cells.of(KNOWN, pair, test) for test in (EVERY, DROP))
        if true.low is not None and true.high is not None and not true.low <= 0 <= true.high:
            kept.append(bool(np.sign(true.obtained or 0.0) == np.sign(shown.obtained or 0.0)))
    return by_share("known truth", kept, f"{sum(kept)} of {len(kept)} pairs that differ clearly.")


def _graph(cells: Sequence[Cell]) -> PaperGraph:
    points = tuple(
        GraphPoint(f"{cell.row}, {cell.column}", cell.obtained, low=cell.low, high=cell.high)
        for cell in cells
        if cell.table == f"{GAINS.format(ALL)}, {DROP}"
    )
    clear = sum(point.low is not None and point.low > 0 for point in points)
    return PaperGraph(
        "training", "Recall@10 on random ratings, against training on all biased rows",
        f"Of {len(points)} ways to train on half of the rows, {clear} are clearly better than training on all of them.",
        GraphKind.RANGES, x="recommender", y="difference in percent", points=points, level=0.0,
    )  # fmt: skip
