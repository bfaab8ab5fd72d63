"""E-D2: how often DCG and nDCG order models differently on MovieLens-1M (Figure 2): 111 EASE and 81 KUNN models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.data.datasets.movielens import MovieLens1M
from truerank.data.read import read
from truerank.data.split import dcg_movielens
from truerank.evaluation.judged import evaluate
from truerank.models.ease import EASEPath
from truerank.models.kunn import from_items, from_users, nearest_items, nearest_users
from truerank.models.matrix import positives
from truerank.models.neighbours import Draw, nearest
from truerank.ranks.scores.scores import dense
from truerank.sampling.designs import UniformDesign
from truerank.sampling.pools import Members
from truerank.studies.papers.dcg import PAPER
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
    by_share,
)
from truerank.studies.work import Keep, StudySize, StudySource, WorkPiece
from truerank.studies.world import WorldSettings, make_world
from truerank.uncertainty.agreement import correlation, disagreement, rank_correlation

EASE, KUNN = "EASE", "KUNN"
TOGETHER = 3  # EASE models of one piece
EQUAL = 5  # items of each user that are held out in the control
INTERACTIONS = 574_385  # that the paper's code keeps: ratings of 4 and 5, of items with at least 5 of them
FIGURE, POINTS, RANGE, DATA = "Figure 2", "Models of the authors' notebook", "Range of values", "Data"
ALL, ACROSS, HELD = "all models", "EASE against KUNN", f"{EQUAL} items held out for every user"
R, TAU, P = "Pearson's r", "Kendall's tau", "pairs in opposite orders"
PUBLISHED = {R: (0.63248, 0.1), TAU: (0.49727, 0.1), P: (0.2514, 0.05)}  # and how far from it is near
# nDCG and DCG of ten models, as the notebook prints them
TARGETS = {
    "KUNN 70, 70": (0.447293, 4.955154), "KUNN 70, 75": (0.448054, 4.963528), "KUNN 70, 80": (0.448097, 4.964685),
    "KUNN 70, 85": (0.449146, 4.973631), "KUNN 70, 90": (0.449767, 4.978514), "EASE 1560": (0.447419, 4.975908),
    "EASE 1570": (0.447298, 4.974461), "EASE 1580": (0.447230, 4.973534), "EASE 1590": (0.447173, 4.972941),
    "EASE 1600": (0.447056, 4.971758),
}  # fmt: skip
RANGES = {"DCG": (4.955, 5.018), "nDCG": (0.4468, 0.4545)}
NEAR = {"nDCG": 0.003, "DCG": 0.03}
OFTEN = 0.05  # of pairs in opposite orders, from which disagreement is worth a word


@dataclass(frozen=True, slots=True)
class _Grid:
    """Which models are trained, and how long lists are."""

    k: int
    regularisation: tuple[int, ...]
    neighbours: tuple[int, ...]
    users: int  # of the synthetic world
    items: int

    @classmethod
    def of(cls, size: StudySize, *, synthetic: bool) -> _Grid:
        if size is StudySize.FULL:
            full = (tuple(range(500, 1601, 10)), tuple(range(70, 111, 5)))
            return cls(100, *full, users=2000, items=1000) if synthetic else cls(100, *full, 0, 0)
        return cls(20, tuple(range(500, 1601, 220)), (70, 90, 110), users=300, items=160)


@dataclass(frozen=True, slots=True)
class MovieLensDisagreement:
    """192 models of two families, trained on half of each user's items and evaluated on the other half."""

    name: ClassVar[str] = "E-D2"
    about: ClassVar[str] = "192 EASE and KUNN models on MovieLens-1M: how often DCG and nDCG order them differently."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 2",)}
    data: ClassVar[tuple[str, ...]] = ("movielens-1m",)
    minutes: ClassVar[float] = 12.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "figure", "On MovieLens-1M r is about .6, tau about .5, and a quarter of pairs are in opposite orders.",
            "Figure 2",
            f"Tested where there are the paper's {INTERACTIONS:,} interactions (ratings of 4 and 5): r and tau are to "
            "be within .1, and the share within 5 points.",
        ),
        PaperClaim(
            "often", "DCG and nDCG often disagree on which of two models is better, in a usual evaluation.", "Figure 2",
            f"Holds if at least {OFTEN:.0%} of pairs are in opposite orders, in part if any are.",
        ),
        PaperClaim(
            "clouds", "The models of the two families form two clouds; nDCG and DCG disagree between them.", "Figure 2",
            "Two parts: pairs across families are in opposite orders more often than pairs within either.",
        ),
        PaperClaim(
            "equal", "With the same number of held-out items for every user they cannot disagree.", "Appendix A",
            f"Holds if no pair of models is in opposite orders when {EQUAL} items are held out for every user.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        grid = _Grid.of(size, synthetic=source.is_synthetic)
        about = _Setting(source, size, seed)
        ease = [
            _EASEPiece(about, grid.regularisation[at : at + TOGETHER])
            for at in range(0, len(grid.regularisation), TOGETHER)
        ]
        pieces: list[WorkPiece] = [_DataPiece(about), *ease, *(_KUNNPiece(about, users) for users in grid.neighbours)]
        data, *tables = keep(pieces, about="training and evaluating models")
        models = pl.concat(tables)
        facts = {str(row["what"]): float(row["value"]) for row in data.iter_rows(named=True)}
        differs = []
        if source.is_synthetic:
            differs.append("A synthetic world: nothing that was published can be met here, only its shape.")
        elif facts["interactions"] != INTERACTIONS:
            differs.append(
                f"These data have no ratings, so that all {facts['interactions']:,.0f} interactions count where the "
                f"paper keeps the {INTERACTIONS:,} with a rating of 4 or 5: users have more held-out items, and values "
                "of the paper cannot be met."
            )
        return Measurements(
            cells=_cells(models, facts, synthetic=source.is_synthetic),
            graphs=(_graph(models, grid.k),),
            settings={
                "lists": f"of {grid.k}", "EASE": f"λ {grid.regularisation[0]} to {grid.regularisation[-1]}",
                "KUNN": f"{grid.neighbours[0]} to {grid.neighbours[-1]} users and items", "models": len(models),
                "held out": "half of the items of each user",
            },
            differs=tuple(differs),
        )  # fmt: skip

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        r, tau, often = (cells.value(FIGURE, row, ALL) for row in (R, TAU, P))
        numbers = f"r {r:.2f}, tau {tau:.2f}, {often:.1%} of pairs in opposite orders"
        same = cells.value(DATA, "interactions", "used") == INTERACTIONS and obtained.size is StudySize.FULL
        figure = (
            by_share("figure", [cell.is_within is True for cell in cells.of(FIGURE, column=ALL) if cell.tolerance],
                     f"{numbers}.")
            if same else
            ClaimFinding("figure", ClaimVerdict.UNTESTED,
                         f"The data here are not the paper's (no ratings of 4 and 5 to keep); on them {numbers}.")
        )  # fmt: skip
        share = ClaimVerdict.HOLDS if often >= OFTEN else ClaimVerdict.IN_PART if often > 0 else ClaimVerdict.DOES_NOT
        across, *within = (cells.value(FIGURE, P, column) for column in (ACROSS, EASE, KUNN))
        equal = cells.value(FIGURE, P, HELD)
        return (
            figure,
            ClaimFinding("often", share, f"{often:.1%} of all pairs of models are in opposite orders."),
            by_share("clouds", [across > each for each in within],
                     f"{across:.1%} of pairs across families, {within[0]:.1%} within EASE, {within[1]:.1%} within "
                     "KUNN."),
            by_share("equal", [equal == 0], f"{equal:.1%} of pairs are in opposite orders."),
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- pieces


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all pieces of a run share."""

    source: StudySource
    size: StudySize
    seed: int

    @property
    def grid(self) -> _Grid:
        return _Grid.of(self.size, synthetic=self.source.is_synthetic)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Half of each user's items to learn from, the other half, and of that the same number of each user."""

    train: Log
    test: Log
    few: Log


@lru_cache(maxsize=1)
def _parts(about: _Setting) -> _Parts:
    if about.source.is_synthetic:
        grid = about.grid
        shown = grid.items // 3
        world = make_world(WorldSettings(users=grid.users, items=grid.items, shown=shown, judged=1), seed=about.seed)
        pairs = pl.DataFrame({"user": world.train.user, "item": world.train.item})
        log = read(pairs.with_columns(label=pl.lit(1)))
    else:
        log = MovieLens1M().load(about.source.place("movielens-1m"))["train"]
    split = dcg_movielens(log, seed=about.seed)
    test = split["test"]
    members = Members(test.users.keys()[test.user], test.items.keys()[test.item])
    few = test.select(UniformDesign(EQUAL).draw(members, seed=about.seed, purpose="equal numbers"))
    enough = np.bincount(few.user, minlength=len(test.users)) == EQUAL
    return _Parts(split["train"], test, few.select(enough[few.user]))


@lru_cache(maxsize=1)
def _path(about: _Setting) -> EASEPath:
    return EASEPath.of(positives(_parts(about).train))


@lru_cache(maxsize=1)
def _similar(about: _Setting) -> tuple[Any, Any, Any]:
    """Positives, and the most similar users and items that any model needs."""
    train, most = _parts(about).train, max(about.grid.neighbours)
    liked = positives(train)
    return (
        liked,
        nearest_users(liked, most, draw=Draw(train.users.keys(), about.seed)),
        nearest_items(liked, most, draw=Draw(train.items.keys(), about.seed)),
    )


@lru_cache(maxsize=1)
def _of_items(about: _Setting) -> dict[int, npt.NDArray[np.float32]]:
    """S_I of every number of similar items."""
    liked, _, items = _similar(about)
    draw = Draw(_parts(about).train.items.keys(), about.seed)
    return {k: _dense(*from_items(liked, nearest(items, k, first=0, draw=draw))) for k in about.grid.neighbours}


def _dense(left: Any, right: Any) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = (csr_array(left) @ csr_array(right)).toarray().astype(np.float32)
    return found


def _values(about: _Setting, scores: npt.NDArray[np.float32]) -> tuple[float, float, float, float]:
    """DCG and nDCG on what was held out, and on the same number of items for every user."""
    parts, k = _parts(about), about.grid.k
    given = dense(scores, users=parts.train.users, items=parts.train.items)
    found = []
    for labels in (parts.test, parts.few):
        results = evaluate(
            {"model": given}, labels, exposure="holdout", metrics=[f"DCG@{k}", f"nDCG@{k}"], exclude=parts.train,
            threads=1,
        )  # fmt: skip
        found += [estimate.value for estimate in results.estimates]
    return found[0], found[1], found[2], found[3]


SCHEMA = ["family", "model", "dcg", "ndcg", "dcg_equal", "ndcg_equal"]


@dataclass(frozen=True, slots=True)
class _DataPiece:
    """How much there is to learn from."""

    about: _Setting

    @property
    def name(self) -> str:
        return "data"

    def table(self) -> pl.DataFrame:
        parts = _parts(self.about)
        held = np.bincount(parts.test.user, minlength=len(parts.test.users))
        facts = {
            "interactions": float(len(parts.train) + len(parts.test)), "users": float(len(parts.train.users)),
            "items": float(len(parts.train.items)), "held-out items of a user, median": float(np.median(held)),
            "held-out items of a user, highest": float(held.max()),
        }  # fmt: skip
        return pl.DataFrame({"what": list(facts), "value": list(facts.values())})


@dataclass(frozen=True, slots=True)
class _EASEPiece:
    """A few EASE models, of one eigendecomposition."""

    about: _Setting
    regularisation: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"EASE {self.regularisation[0]} to {self.regularisation[-1]}"

    def table(self) -> pl.DataFrame:
        path = _path(self.about)
        rows = [
            (EASE, f"{EASE} {each}", *_values(self.about, path.scores(float(each)))) for each in self.regularisation
        ]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@dataclass(frozen=True, slots=True)
class _KUNNPiece:
    """The KUNN models of one number of similar users."""

    about: _Setting
    users: int

    @property
    def name(self) -> str:
        return f"KUNN {self.users}"

    def table(self) -> pl.DataFrame:
        liked, users, _ = _similar(self.about)
        draw = Draw(_parts(self.about).train.users.keys(), self.about.seed)
        own = _dense(*from_users(liked, nearest(users, self.users, first=0, draw=draw)))
        rows = [
            (KUNN, f"{KUNN} {self.users}, {items}", *_values(self.about, own + each))
            for items, each in _of_items(self.about).items()
        ]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")


# ------------------------------------------------------------------------------------------------------------ numbers


def _cells(models: pl.DataFrame, facts: Mapping[str, float], *, synthetic: bool) -> tuple[Cell, ...]:
    real = not synthetic
    comparable = real and facts["interactions"] == INTERACTIONS
    found = [
        Cell(DATA, what, "used", value, float(INTERACTIONS) if real and what == "interactions" else None)
        for what, value in facts.items()
    ]
    families = {ALL: models, **{name: models.filter(pl.col("family") == name) for name in (EASE, KUNN)}}
    for column, part in families.items():
        x, y = part["dcg"].to_numpy(), part["ndcg"].to_numpy()
        r, tau = correlation(x, y), rank_correlation(x, y)
        published = PUBLISHED if column == ALL and real else {}
        for row, value, low, high in (
            (R, r.r, r.low, r.high),
            (TAU, tau.tau, tau.low, tau.high),
            (P, disagreement(x, y), math.nan, math.nan),
        ):
            printed, near = published.get(row, (None, None))
            found.append(Cell(FIGURE, row, column, value, printed, low, high, near if comparable else None))
    found.append(Cell(FIGURE, P, ACROSS, _across(models)))
    equal = disagreement(_steady(models["dcg_equal"]), _steady(models["ndcg_equal"]))
    found.append(Cell(FIGURE, P, HELD, equal))
    for metric, (low, high) in RANGES.items():
        values = models[metric.lower()].to_numpy()
        ends = (("lowest", float(values.min()), low), ("highest", float(values.max()), high))
        found += [Cell(RANGE, metric, name, value, end if real else None) for name, value, end in ends]
    by_name = {row["model"]: row for row in models.iter_rows(named=True)}
    for model, targets in TARGETS.items():
        if model in by_name and real:
            for metric, value in zip(("nDCG", "DCG"), targets, strict=True):
                near = NEAR[metric] if comparable else None
                found.append(Cell(POINTS, model, metric, by_name[model][metric.lower()], value, tolerance=near))
    return tuple(found)


def _steady(values: pl.Series) -> npt.NDArray[np.float64]:
    """Values without the last digits: where one metric is the other times a number, rounding must not decide."""
    return np.array([float(f"{value:.12g}") for value in values])


def _across(models: pl.DataFrame) -> float:
    """The share of pairs of one EASE and one KUNN model that are in opposite orders."""
    ease, kunn = (models.filter(pl.col("family") == name) for name in (EASE, KUNN))
    by_dcg, by_ndcg = (
        np.sign(ease[name].to_numpy()[:, None] - kunn[name].to_numpy()[None, :]) for name in ("dcg", "ndcg")
    )
    return float(np.mean(by_dcg * by_ndcg < 0))


def _graph(models: pl.DataFrame, k: int) -> PaperGraph:
    share = disagreement(models["dcg"].to_numpy(), models["ndcg"].to_numpy())
    points = tuple(GraphPoint(row["dcg"], row["ndcg"], group=row["family"]) for row in models.iter_rows(named=True))
    return PaperGraph(
        "models", f"{len(models)} models, each a point",
        f"DCG and nDCG put {share:.0%} of all pairs of models in opposite orders.",
        GraphKind.POINTS, x=f"DCG@{k}", y=f"nDCG@{k}", points=points,
    )  # fmt: skip
