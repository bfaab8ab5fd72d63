"""E-W1: recall on the random ground truth, and on intervened test sets, of five recommenders (tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    ClaimFinding,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
)
from truerank.studies.papers.wtd import PAPER
from truerank.studies.papers.wtd.findings import CLAIMS, FORMS, judged
from truerank.studies.papers.wtd.item_forms import FormsRun
from truerank.studies.papers.wtd.published import COAT, COLUMNS_1, CUT, RECOMMENDERS, SETS, TABLE_1, TRUTH
from truerank.studies.papers.wtd.shapes import STRATEGIES, WtdShape, parts_of, shape_of
from truerank.studies.papers.wtd.tables_3_4 import PRINTED
from truerank.studies.papers.wtd.tested import (
    DROP,
    EVERY,
    KEPT,
    METRICS,
    PRACTICE,
    RANDOM,
    MeansOfRuns,
    TestedRun,
    TuningRun,
    chosen,
    interval,
)
from truerank.studies.work import Keep, StudySize, StudySource
from truerank.uncertainty.agreement import rank_correlation

NEAR = 0.01  # of the printed truths
DIFFERS = (
    "Yahoo! R3 (Webscope) may not be used without its own agreement: its half of the tables is not run.",
    "The paper does not say what becomes of random test rows that are also training rows (366 pairs of Coat are in "
    "both parts): here they are dropped from the truth, and a table beside it keeps them.",
    "MF is solved exactly where RankSys makes one sweep of coordinate descent in a round; α = 1 and 20 rounds, which "
    "the paper does not give.",
    "The similarity of IB_KNN is not given: it is the cosine of raw ratings here, and a table beside has others.",
    "Users without a positive in a test set are left out of its means; the paper does not say.",
)
SYNTHETIC = "The data are a synthetic world of Coat's shape: published numbers stand beside it for their order alone."


@dataclass(frozen=True, slots=True)
class IntervenedTestSets:
    """Five recommenders, tuned and tested in ten runs."""

    name: ClassVar[str] = "E-W1"
    about: ClassVar[str] = "How far recall on intervened test sets is from recall on randomly collected ratings."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 1", "Table 2")}
    data: ClassVar[tuple[str, ...]] = ("coat",)
    minutes: ClassVar[float] = 4
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = CLAIMS

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        shape = shape_of(size)
        runs = range(shape.runs)
        tuned = keep([TuningRun(source, shape, seed, run) for run in runs], about="choosing settings")
        picked = {part: [chosen(table, part) for table in tuned] for part in (RANDOM, PRACTICE)}
        pieces = [
            TestedRun(source, shape, seed, run, part, tuple(settings.items()))
            for part, of_runs in picked.items()
            for run, settings in zip(runs, of_runs, strict=True)
        ]
        tables = keep(pieces, about="testing recommenders")
        first, second = tables[: shape.runs], tables[shape.runs :]
        of_random, of_practice = (MeansOfRuns.of(each, seed=seed) for each in (first, second))
        cells = [
            *_counts(source, shape, seed=seed),
            *_differences(of_random, "Table 2, Recall@10", printed=COAT),
            *_orders(of_random),
            *_differences(of_practice, f"Table 2, tuned on an {PRACTICE}"),
            *_differences(of_random, "Table 2, training rows kept in the truth", truth=KEPT),
            *(cell for metric in list(METRICS)[1:]
              for cell in _differences(of_random, f"{metric}@10, difference in percent", metric=metric)),
            *_settings_cells(tuned, picked),
            *_forms(keep([FormsRun(source, shape, seed, run) for run in runs], about="other forms of IB_KNN")),
        ]  # fmt: skip
        if source.is_synthetic:
            cells += _differences(of_random, "Table 2, truth from all pairs", truth=EVERY)
        return Measurements(
            tuple(cells),
            (_graph(cells, real=not source.is_synthetic),),
            settings=shape.settings() | {"drawn": "half of the held-out rows", "intervals": "1,000 resamples of users"},
            differs=(*DIFFERS, *((SYNTHETIC,) if source.is_synthetic else ())),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        return judged(obtained)


def _counts(source: StudySource, shape: WtdShape, *, seed: int) -> Iterator[Cell]:
    """Table 1."""
    parts, _ = parts_of(source, shape, seed=seed)
    ours = [_facts(parts["random"]), _facts(parts["train"])]
    for name, printed in TABLE_1.items():
        for at, (column, value) in enumerate(zip(COLUMNS_1, printed, strict=True)):
            own = ours[at][name] if at < len(ours) else None
            yield Cell(
                "Table 1", name, column, own, value, tolerance=None if source.is_synthetic else CUT.get(name, 0.5)
            )


def _facts(log: Log) -> dict[str, float]:
    users, items = (len(np.unique(each)) for each in (log.user, log.item))
    return {
        "ratings": len(log), "users": users, "items": items, "ratings per user": len(log) / users,
        "ratings per item": len(log) / items, "mean rating": float(log.rewards["rating"].mean()),
        "sparsity": 1 - len(log) / (users * items),
    }  # fmt: skip


def _differences(
    means: MeansOfRuns,
    table: str,
    *,
    printed: Mapping[str, Sequence[float]] | None = None,
    truth: str = DROP,
    metric: str = "Recall",
) -> Iterator[Cell]:
    """The value on the truth, then by how many percent each test set is off."""
    for recommender in RECOMMENDERS:
        known = None if printed is None else printed[recommender]
        value, low, high = interval(means.mean(recommender, truth, metric))
        yield Cell(
            table, recommender, TRUTH, value, None if known is None else known[0], low, high,
            tolerance=None if known is None else NEAR,
        )  # fmt: skip
        for at, name in enumerate(STRATEGIES):
            value, low, high = interval(means.percent(recommender, name, truth=truth, metric=metric))
            own = None if known is None or name not in SETS else known[1 + at]
            yield Cell(table, recommender, f"{name}, %", value, own, low, high)


def _orders(means: MeansOfRuns) -> Iterator[Cell]:
    """Tables 3 and 4 of what was obtained here."""
    for row, table in (("all five", "Table 3"), ("without MF", "Table 4")):
        names = [each for each in RECOMMENDERS if row == "all five" or each != "MF"]
        truth = [means.mean(each, DROP)[0] for each in names]
        for at, test in enumerate(SETS):
            found = rank_correlation([means.mean(each, test)[0] for each in names], truth).tau
            yield Cell(
                "Kendall's τ of the means here (tables 3 and 4)", row, test, found, PRINTED[table]["CoatShopping"][at]
            )


def _settings_cells(tuned: Sequence[pl.DataFrame], picked: Mapping[str, Sequence[Mapping[str, int]]]) -> Iterator[Cell]:
    """The recall on the validation part of what was chosen, mean over runs: how much choosing flatters."""
    for part, of_runs in picked.items():
        for recommender in ("UB_KNN", "IB_KNN", "MF"):
            best = [
                table.filter(part=part, recommender=recommender, at=own[recommender])["recall"][0]
                for table, own in zip(tuned, of_runs, strict=True)
            ]
            yield Cell("Recall@10 on the validation part, chosen settings", recommender, part, float(np.mean(best)))


def _forms(tables: Sequence[pl.DataFrame]) -> Iterator[Cell]:
    """IB_KNN with similarities that the paper may have used."""
    mean = pl.concat(tables).group_by("form", maintain_order=True).agg(pl.col("truth", "full").mean())
    for form, truth, full in mean.iter_rows():
        yield Cell(FORMS, form, TRUTH, truth, COAT["IB_KNN"][0])
        yield Cell(FORMS, form, "FULL, %", 100 * (full / truth - 1), COAT["IB_KNN"][1])


def _graph(cells: Sequence[Cell], *, real: bool) -> PaperGraph:
    shown = [cell for cell in cells if cell.table == "Table 2, Recall@10" and cell.column.removesuffix(", %") in SETS]
    points = []
    for cell in shown:
        line = f"{cell.row}, {cell.column.removesuffix(', %')}"
        points.append(GraphPoint(line, cell.obtained, "here", low=cell.low, high=cell.high))
        points.append(GraphPoint(line, cell.published if real else None, "paper"))
    where = "Coat" if real else "a synthetic world of Coat's shape"
    full, aware = (
        [abs(cell.obtained or 0.0) for cell in shown if (cell.column.removesuffix(", %") in SETS[:2]) is plain]
        for plain in (True, False)
    )
    return PaperGraph(
        "difference", f"Recall@10 on each test set against randomly collected ratings, {where}, mean of all runs",
        f"Held-out ratings are {np.mean(full):.0f} % off on average, intervened ones {np.mean(aware):.0f} %.",
        GraphKind.RANGES, x="recommender", y="difference from the truth in percent", points=tuple(points), level=0.0,
    )  # fmt: skip
