"""E-W4: how level intervened test sets are, and one evaluation by inclusion probabilities in place of many draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.progress import Progress
from truerank.core.ranking import Pool, Ranks
from truerank.core.values import text_of
from truerank.estimators import terms_of
from truerank.estimators.biased.intervened import Intervened, IntervenedPooled
from truerank.estimators.judged.full import Full as Plain
from truerank.exposure.interventions import design_of, dispersion, intervene, with_inclusion
from truerank.exposure.interventions.design import Strategy
from truerank.exposure.interventions.popularity import EqualPerItemIntervention, PopularityStratifiedIntervention
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models import Model
from truerank.models.baselines import AvgRating, PosPop
from truerank.models.ials import IALS
from truerank.models.neighbours import ItemKNN, UserKNN
from truerank.ranks.kernel.rank import rank
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    ClaimFinding,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
)
from truerank.studies.papers.wtd import PAPER
from truerank.studies.papers.wtd.shapes import RAW, STRATEGIES, WtdShape, WtdSplit, shape_of, split_of
from truerank.studies.papers.wtd.tested import K, laid_out
from truerank.studies.work import Keep, StudySize, StudySource

COMPARED = ("SKEW", "WTD", "WTD_H", "WTD, item power 1", "WTD_H, item power 1")
SHOWN: Mapping[str, Strategy] = {
    **STRATEGIES,
    "popularity-stratified": PopularityStratifiedIntervention(),
    "equal-per-item": EqualPerItemIntervention(),
}
MODELS: Mapping[str, Model] = {
    "PosPop": PosPop(),
    "AvgRating": AvgRating(),
    "UB_KNN": UserKNN(50, RAW),
    "IB_KNN": ItemKNN(50, RAW),
    "MF": IALS(factors=20, regularisation=0.1, rows=RAW),
}
ASKED: Mapping[str, tuple[Metric, Estimator]] = {
    "Recall per user": (Recall(K), Intervened()),
    "Recall pooled": (Recall(K), IntervenedPooled()),
    "Precision": (Precision(K), Intervened()),
    "DCG": (DCG(K), Intervened()),
}
DRAWS = {StudySize.FULL: 2000, StudySize.QUICK: 15}
ERRORS, SHARE = 3.0, 0.01  # Monte-Carlo standard errors, or part of the value, that a difference may have
LEVEL = "How level items are: variance / mean of rows per item"
DRAWN, FORMULA = "mean of drawn sets", "by probabilities"
RANDOM = "random part"


@dataclass(frozen=True, slots=True)
class RankedHeldOut:
    """The held-out rows of a split over the catalogue, with every model's ranks."""

    heldout: Log
    split: WtdSplit
    ranks: Mapping[str, Ranks]

    @classmethod
    def of(cls, split: WtdSplit) -> RankedHeldOut:
        setting = laid_out(split.heldout, split.train)
        pool = setting.pools[Pool.CATALOGUE]
        ranks = {
            name: rank(model.fit(split.train, seed=0), setting.labels, pools=[pool])[0]
            for name, model in MODELS.items()
        }
        return cls(setting.labels, split, ranks)

    def by_formula(self, strategy: Strategy) -> list[float]:
        """The value of every model and question from the probabilities of rows to be drawn."""
        log = with_inclusion(self.heldout, strategy, train=self.split.train, random=self.split.weights)
        return [
            terms_of(estimator, log, ranks, metrics=[metric])[0].value()
            for ranks in self.ranks.values()
            for metric, estimator in ASKED.values()
        ]

    def by_drawing(self, strategy: Strategy, *, seeds: Sequence[int]) -> list[list[float]]:
        """The values on drawn sets by the plain estimator; pooled recall is Σ hits / Σ relevant."""
        shown = self.split.weights
        plan = design_of(self.heldout, strategy, train=self.split.train, random=shown, fraction=0.5, seed=0)
        found = []
        for seed in seeds:
            rows = plan.draw(seed=seed)
            log = replace(self.heldout.select(rows), inclusion=np.ones(len(rows)))
            values = []
            for whole in self.ranks.values():
                ranks = replace(whole, above=whole.above[rows], tied=whole.tied[rows])
                for metric, estimator in ASKED.values():
                    way: Estimator = estimator if isinstance(estimator, IntervenedPooled) else Plain()
                    values.append(terms_of(way, log, ranks, metrics=[metric])[0].value())
            found.append(values)
        return found


@dataclass(frozen=True, slots=True)
class DrawnSets:
    """The values of all models on drawn test sets of one strategy: mean, Monte-Carlo error, and by probabilities."""

    source: StudySource
    shape: WtdShape
    seed: int
    strategy: str
    draws: int

    @property
    def name(self) -> str:
        return f"drawn {self.strategy}"

    def table(self) -> pl.DataFrame:
        world = RankedHeldOut.of(split_of(self.source, self.shape, seed=self.seed, run=0))
        strategy = SHOWN[self.strategy]
        seeds = range(self.seed, self.seed + self.draws)
        drawn = np.array(world.by_drawing(strategy, seeds=seeds))
        return pl.DataFrame(
            {
                "model": [model for model in MODELS for _ in ASKED],
                "asked": [asked for _ in MODELS for asked in ASKED],
                "mean": np.nanmean(drawn, axis=0),
                "error": np.nanstd(drawn, axis=0, ddof=1) / math.sqrt(self.draws),
                "formula": world.by_formula(strategy),
            }
        )


@dataclass(frozen=True, slots=True)
class ProbabilitiesOfRows:
    """Intervened test sets without the noise of drawing them."""

    name: ClassVar[str] = "E-W4"
    about: ClassVar[str] = (
        "How level intervened test sets are, and what many of them give on average, in one evaluation."
    )
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ()}
    data: ClassVar[tuple[str, ...]] = ("coat",)
    minutes: ClassVar[float] = 1
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "skew", "SKEW gives items a roughly uniform exposure.", "Section 2",
            "Variance / mean of rows per item must be at most 1.5, and at most 0.7 of that of REG.",
        ),
        PaperClaim(
            "posteriors", "WTD and WTD_H make the posteriors of users and items those of random data.", "Equation 7",
            "Variance / mean of rows per item must be nearer to that of as many random rows (1) than REG's, for both.",
        ),
        PaperClaim(
            "squared", "The squared item weight is the better choice.", "Section 4.2",
            "Variance / mean must be nearer to 1 with the squared weight than with the plain one, for WTD and WTD_H.",
        ),
        PaperClaim(
            "formula", "Inclusion probabilities give in one evaluation what many drawn test sets give on average.",
            "not in the paper; how truerank evaluates them",
            f"Each value must be within {ERRORS:g} Monte-Carlo errors of the mean of drawn sets, or within 1 %.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        shape, draws = shape_of(size), DRAWS[size]
        pieces = [DrawnSets(source, shape, seed, name, draws) for name in COMPARED]
        tables = dict(zip(COMPARED, keep(pieces, about="drawing test sets"), strict=True))
        cells = [*_levels(source, shape, seed=seed), *_agreement(tables)]
        return Measurements(
            tuple(cells),
            settings={"draws": draws, "runs": shape.runs, "models": [str(each) for each in MODELS.values()]},
            differs=("Models have fixed settings: nothing here depends on how good they are.",),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        level = {name: cells.value(LEVEL, name, "mean") for name in SHOWN}
        far = {name: abs(value - 1) for name, value in level.items()}
        near = [far[name] < far["REG"] for name in ("WTD", "WTD_H")]
        squared = [far[name] < far[f"{name}, item power 1"] for name in ("WTD", "WTD_H")]
        held = []
        for cell in (each for each in cells.all if each.column.endswith(FORMULA)):
            (drawn,) = cells.of(cell.table, cell.row, cell.column.replace(FORMULA, DRAWN))
            if cell.obtained is not None and drawn.obtained is not None:
                room = (drawn.high or drawn.obtained) - drawn.obtained
                held.append(abs(cell.obtained - drawn.obtained) <= max(room, SHARE * abs(drawn.obtained)) + 1e-9)
        said = ", ".join(f"{name} {level[name]:.2f}" for name in ("REG", *COMPARED))
        return (
            by_share("skew", [level["SKEW"] <= 1.5 and level["SKEW"] <= 0.7 * level["REG"]], f"{said}."),
            by_share("posteriors", near, f"{said}; {RANDOM} {cells.value(LEVEL, RANDOM, 'mean'):.2f}."),
            by_share("squared", squared, f"{said}."),
            by_share("formula", held, f"{sum(held)} of {len(held)} values."),
        )

    def graphs(self, obtained: Obtained) -> tuple[PaperGraph, ...]:
        return (_graph(obtained.cells.all),)


def _levels(source: StudySource, shape: WtdShape, *, seed: int) -> Iterator[Cell]:
    """Variance / mean of rows per item, mean, least and most over the runs; of the random part of all runs alike."""
    splits = [split_of(source, shape, seed=seed, run=run) for run in range(shape.runs)]
    for name, strategy in SHOWN.items():
        found = [
            dispersion(intervene(each.heldout, strategy, train=each.train, random=each.weights, seed=seed + run))
            for run, each in enumerate(splits)
        ]
        yield Cell(LEVEL, name, "mean", float(np.mean(found)), low=min(found), high=max(found))
    found = [dispersion(each.truth) for each in splits]
    yield Cell(LEVEL, RANDOM, "mean", float(np.mean(found)), low=min(found), high=max(found))


def _agreement(tables: Mapping[str, pl.DataFrame]) -> Iterator[Cell]:
    for strategy, table in tables.items():
        for row in table.iter_rows(named=True):
            mean, room = row["mean"], ERRORS * row["error"]
            where = (f"{strategy}: drawn test sets and probabilities", row["model"])
            yield Cell(*where, f"{row['asked']}, {DRAWN}", mean, low=mean - room, high=mean + room)
            yield Cell(*where, f"{row['asked']}, {FORMULA}", row["formula"])


def _graph(cells: Sequence[Cell]) -> PaperGraph:
    points = tuple(
        GraphPoint(cell.row, cell.obtained, low=cell.low, high=cell.high) for cell in cells if cell.table == LEVEL
    )
    level = {str(point.x): point.y or math.nan for point in points}
    far = {name: abs(value - 1) for name, value in level.items()}
    moved = ", ".join(
        f"{name} brings it to {level[name]:.1f}"
        if far[name] < far["REG"]
        else f"{name} makes it worse ({level[name]:.1f})"
        for name in ("SKEW", "WTD", "WTD_H")
    )
    return PaperGraph(
        "level", "Variance / mean of rows per item of test sets, mean and range over all runs; about 1 at random",
        f"Variance / mean of rows per item is {level['REG']:.1f} in a plain sample (REG) and {level[RANDOM]:.1f} in "
        f"the random part: {moved}.",
        GraphKind.RANGES, x="test set", y="variance / mean", points=points, level=1.0,
    )  # fmt: skip
