"""E-D2: how often DCG and nDCG order models differently on MovieLens-1M (Figure 2): 111 EASE and 81 KUNN models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.datasets.movielens import MovieLens1M
from truerank.evaluation.labels import evaluate
from truerank.inference.agreement import correlation, disagreement, rank_correlation
from truerank.io.read import read
from truerank.models.ease import mirror
from truerank.models.kunn import from_items, from_users, nearest_items, nearest_users
from truerank.models.matrix import one_thread, positives
from truerank.models.neighbours import Draw, nearest
from truerank.ranking.scores.scores import dense
from truerank.sampling.designs import UniformDesign
from truerank.sampling.pools import Members
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, share
from truerank_research.papers.splits import dcg_movielens
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study


@dataclass(frozen=True, slots=True, eq=False)
class EASEPath:
    """EASE for many λ at the price of one eigendecomposition: XᵀX = Q diag(e) Qᵀ, so P = Q diag(1 / (e + λ)) Qᵀ."""

    liked: Any
    value: Floats
    vector: Floats

    @classmethod
    def of(cls, liked: Any) -> EASEPath:
        from scipy.linalg import eigh

        with one_thread():
            value, vector = eigh((liked.T @ liked).toarray(order="F"), overwrite_a=True)
        return cls(liked.astype(np.float32), value, vector)

    def scores(self, regularisation: float) -> npt.NDArray[np.float32]:
        """X B of one λ, for every user and item."""
        from scipy.linalg import blas

        with one_thread():
            half = np.asfortranarray(self.vector / np.sqrt(np.maximum(self.value, 0.0) + regularisation)[None, :])
            inverse = blas.dsyrk(1.0, half, lower=True)
        mirror(inverse)
        weights = inverse / -np.diag(inverse).copy()[None, :]
        np.fill_diagonal(weights, 0.0)
        found: npt.NDArray[np.float32] = self.liked @ weights.astype(np.float32, order="C")
        return found


EASE, KUNN = "EASE", "KUNN"
TOGETHER = 3  # EASE models of one piece
EQUAL = 5  # items of each user that are held out in the control
INTERACTIONS = 574_385  # that the paper's code keeps: ratings of 4 and 5, of items with at least 5 of them
FIGURE, MODELS, RANGE, DATA = "Figure 2", "Models", "Range of values", "Data"
ALL, ACROSS, HELD = "all models", "EASE against KUNN", f"{EQUAL} items held out for every user"
R, TAU, P = "Pearson's r", "Kendall's tau", "pairs in opposite orders"
PUBLISHED = {R: (0.63248, 0.1), TAU: (0.49727, 0.1), P: (0.2514, 0.05)}  # value and tolerance
# nDCG and DCG of ten models, as the authors' notebook prints them
PRINTED = {
    "KUNN 70, 70": (0.447293, 4.955154), "KUNN 70, 75": (0.448054, 4.963528), "KUNN 70, 80": (0.448097, 4.964685),
    "KUNN 70, 85": (0.449146, 4.973631), "KUNN 70, 90": (0.449767, 4.978514), "EASE 1560": (0.447419, 4.975908),
    "EASE 1570": (0.447298, 4.974461), "EASE 1580": (0.447230, 4.973534), "EASE 1590": (0.447173, 4.972941),
    "EASE 1600": (0.447056, 4.971758),
}  # fmt: skip
RANGES = {"DCG": (4.955, 5.018), "nDCG": (0.4468, 0.4545)}
NEAR = {"nDCG": 0.003, "DCG": 0.03}
OFTEN = 0.05  # share of pairs in opposite orders that counts as often
SCHEMA = ["family", "model", "DCG", "nDCG", "DCG_equal", "nDCG_equal"]


class Grid(NamedTuple):
    """Length of lists, settings of models, and the size of the simulated dataset."""

    k: int
    regularisation: tuple[int, ...]
    neighbours: tuple[int, ...]
    users: int
    items: int


FULL = Grid(100, tuple(range(500, 1601, 10)), tuple(range(70, 111, 5)), 2000, 1000)
QUICK = Grid(20, tuple(range(500, 1601, 220)), (70, 90, 110), 300, 160)


def grid_of(setting: Setting) -> Grid:
    return FULL if setting.full else QUICK


def measure(run: Run) -> Measured:
    grid, setting = grid_of(run), run.setting
    (data,) = run.pieces(describe_data, [(setting,)])
    penalties = grid.regularisation
    groups = [(setting, penalties[at : at + TOGETHER]) for at in range(0, len(penalties), TOGETHER)]
    ease = run.pieces(ease_models, groups, about="EASE models")
    models = pl.concat([*ease, *run.pieces(kunn_models, [(setting, n) for n in grid.neighbours], about="KUNN models")])
    facts = dict(data.iter_rows())
    differences = []
    if run.source.is_synthetic:
        differences.append("A simulated dataset: published numbers cannot be compared.")
    elif facts["interactions"] != INTERACTIONS:
        differences.append(
            f"These data have no ratings. All {facts['interactions']:,.0f} interactions count; the paper keeps the "
            f"{INTERACTIONS:,} with a rating of 4 or 5. Users have more held-out items here."
        )
    return Measured(
        {"cells": cell_rows(_cells(models, facts, synthetic=run.source.is_synthetic))},
        {
            "list length": grid.k, "EASE": f"λ {penalties[0]} to {penalties[-1]}",
            "KUNN": f"{grid.neighbours[0]} to {grid.neighbours[-1]} users and items", "models": len(models),
            "held out": "half of the items of each user",
        },
        differences,
    )  # fmt: skip


class Parts(NamedTuple):
    """Half of each user's items for training, the other half, and of that the same number of each user."""

    train: Log
    test: Log
    equal: Log


@lru_cache(maxsize=1)
def parts_of(setting: Setting) -> Parts:
    seed = setting.seed
    if setting.source.is_synthetic:
        grid = grid_of(setting)
        size = DatasetSettings(users=grid.users, items=grid.items, shown=grid.items // 3, judged=1)
        train = simulate_dataset(size, seed=seed).train
        log = read(pl.DataFrame({"user": train.user, "item": train.item}).with_columns(label=pl.lit(1)))
    else:
        log = MovieLens1M().load(setting.source.path("movielens-1m"))["train"]
    split = dcg_movielens(log, seed=seed)
    test = split["test"]
    members = Members(test.users.keys()[test.user], test.items.keys()[test.item])
    equal = test.select(UniformDesign(EQUAL).draw(members, seed=seed, purpose="equal numbers"))
    enough = np.bincount(equal.user, minlength=len(test.users)) == EQUAL
    return Parts(split["train"], test, equal.select(enough[equal.user]))


def describe_data(setting: Setting) -> pl.DataFrame:
    parts = parts_of(setting)
    held = np.bincount(parts.test.user, minlength=len(parts.test.users))
    facts = {
        "interactions": float(len(parts.train) + len(parts.test)), "users": float(len(parts.train.users)),
        "items": float(len(parts.train.items)), "held-out items of a user, median": float(np.median(held)),
        "held-out items of a user, highest": float(held.max()),
    }  # fmt: skip
    return pl.DataFrame({"fact": list(facts), "value": list(facts.values())})


@lru_cache(maxsize=1)
def _ease_path(setting: Setting) -> EASEPath:
    return EASEPath.of(positives(parts_of(setting).train))


def ease_models(setting: Setting, penalties: tuple[int, ...]) -> pl.DataFrame:
    """EASE models that share one eigendecomposition."""
    path = _ease_path(setting)
    rows = [(EASE, f"{EASE} {value}", *_values(setting, path.scores(float(value)))) for value in penalties]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@lru_cache(maxsize=1)
def _neighbours(setting: Setting) -> tuple[Any, Any, dict[int, Floats]]:
    """Positives, the most similar users, and the item part of the score for every number of similar items."""
    train, sizes = parts_of(setting).train, grid_of(setting).neighbours
    liked, by_item = positives(train), Draw(train.items.keys(), setting.seed)
    users = nearest_users(liked, max(sizes), draw=Draw(train.users.keys(), setting.seed))
    items = nearest_items(liked, max(sizes), draw=by_item)
    parts = {k: _product(*from_items(liked, nearest(items, k, first=0, draw=by_item))) for k in sizes}
    return liked, users, parts


def kunn_models(setting: Setting, n_users: int) -> pl.DataFrame:
    """The KUNN models with one number of similar users."""
    liked, users, item_parts = _neighbours(setting)
    draw = Draw(parts_of(setting).train.users.keys(), setting.seed)
    user_part = _product(*from_users(liked, nearest(users, n_users, first=0, draw=draw)))
    rows = [
        (KUNN, f"{KUNN} {n_users}, {n_items}", *_values(setting, user_part + item_part))
        for n_items, item_part in item_parts.items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _product(left: Any, right: Any) -> Any:
    return (csr_array(left) @ csr_array(right)).toarray().astype(np.float32)


def _values(setting: Setting, scores: Any) -> list[float]:
    """DCG and nDCG on the held-out items, and on the same number of items for every user."""
    parts, k = parts_of(setting), grid_of(setting).k
    model = dense(scores, users=parts.train.users, items=parts.train.items)
    metrics = [f"DCG@{k}", f"nDCG@{k}"]
    return [
        estimate.value
        for labels in (parts.test, parts.equal)
        for estimate in evaluate(
            {"model": model}, labels, exposure="holdout", metrics=metrics, exclude=parts.train, threads=1
        ).estimates
    ]


def _cells(models: pl.DataFrame, facts: Mapping[str, float], *, synthetic: bool) -> list[Cell]:
    real = not synthetic
    comparable = real and facts["interactions"] == INTERACTIONS
    cells = [
        Cell(DATA, fact, "used", value, float(INTERACTIONS) if real and fact == "interactions" else None)
        for fact, value in facts.items()
    ]
    families = {ALL: models, **{name: models.filter(family=name) for name in (EASE, KUNN)}}
    for column, family in families.items():
        x, y = family["DCG"].to_numpy(), family["nDCG"].to_numpy()
        r, tau = correlation(x, y), rank_correlation(x, y)
        for row, value, low, high in (
            (R, r.r, r.low, r.high),
            (TAU, tau.tau, tau.low, tau.high),
            (P, disagreement(x, y), math.nan, math.nan),
        ):
            printed, near = PUBLISHED[row] if column == ALL and real else (None, None)
            cells.append(Cell(FIGURE, row, column, value, printed, low, high, near if comparable else None))
    cells.append(Cell(FIGURE, P, ACROSS, _opposite_across(models)))
    # one metric is the other times a constant there, so rounding must not decide
    steady = [np.array([float(f"{value:.12g}") for value in models[f"{name}_equal"]]) for name in ("DCG", "nDCG")]
    cells.append(Cell(FIGURE, P, HELD, disagreement(*steady)))
    for metric, printed_ends in RANGES.items():
        values = models[metric].to_numpy()
        for name, end, limit in zip(("lowest", "highest"), (values.min(), values.max()), printed_ends, strict=True):
            cells.append(Cell(RANGE, metric, name, float(end), limit if real else None))
    for model, ndcg, dcg in models.select("model", *NEAR).iter_rows():
        target = dict(zip(NEAR, PRINTED[model], strict=True)) if real and model in PRINTED else {}
        for metric, value in zip(NEAR, (ndcg, dcg), strict=True):
            near = NEAR[metric] if comparable and target else None
            cells.append(Cell(MODELS, model, metric, value, target.get(metric), tolerance=near))
    return cells


def _opposite_across(models: pl.DataFrame) -> float:
    """The share of pairs of one EASE and one KUNN model that are in opposite orders."""
    ease, kunn = (models.filter(family=name) for name in (EASE, KUNN))
    by_dcg, by_ndcg = (np.sign(ease[name].to_numpy()[:, None] - kunn[name].to_numpy()) for name in ("DCG", "nDCG"))
    return float(np.mean(by_dcg * by_ndcg < 0))


def _figure_rule(cells: Cells) -> Finding:
    r, tau, opposite = (cells.value(FIGURE, row, ALL) for row in (R, TAU, P))
    numbers = f"r {r:.2f}, tau {tau:.2f}, {opposite:.1%} of pairs in opposite orders."
    if not cells.full or cells.value(DATA, "interactions", "used") != INTERACTIONS:
        return Finding(Verdict.UNTESTABLE, f"The data here have no ratings of 4 and 5 to select; on them {numbers}")
    return share([bool(cell.is_within) for cell in cells.select(FIGURE, column=ALL) if cell.tolerance], numbers)


def _often_rule(cells: Cells) -> Finding:
    opposite = cells.value(FIGURE, P, ALL)
    return share([opposite >= OFTEN, opposite > 0], f"{opposite:.1%} of all pairs of models are in opposite orders.")


def _clouds_rule(cells: Cells) -> Finding:
    across, ease, kunn = (cells.value(FIGURE, P, column) for column in (ACROSS, EASE, KUNN))
    why = f"{across:.1%} of pairs across families, {ease:.1%} within EASE, {kunn:.1%} within KUNN."
    return share([across > ease, across > kunn], why)


def _equal_rule(cells: Cells) -> Finding:
    opposite = cells.value(FIGURE, P, HELD)
    return share([opposite == 0], f"{opposite:.1%} of pairs are in opposite orders.")


CLAIMS = (
    Claim(
        "figure", "On MovieLens-1M r is about .6, tau about .5, and a quarter of pairs are in opposite orders.",
        "Figure 2",
        f"With the paper's {INTERACTIONS:,} interactions (ratings of 4 and 5), r and tau are within .1 and the share "
        "is within 5 points.", _figure_rule,
    ),
    Claim(
        "often", "DCG and nDCG often disagree on which of two models is better, in a usual evaluation.", "Figure 2",
        f"At least {OFTEN:.0%} of pairs are in opposite orders; in part if any are.", _often_rule,
    ),
    Claim(
        "clouds", "The models of the two families form two clouds; nDCG and DCG disagree between them.", "Figure 2",
        "Pairs across families are in opposite orders more often than pairs within either.", _clouds_rule,
    ),
    Claim(
        "equal", "With the same number of held-out items for every user they cannot disagree.", "Appendix A",
        f"No pair of models is in opposite orders when {EQUAL} items are held out for every user.", _equal_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-D2", "How often do DCG and nDCG order 192 EASE and KUNN models on MovieLens-1M differently?", measure,
        data=("movielens-1m",), minutes=12, claims=CLAIMS, shows={"dcg": ("Figure 2",)},
    ),
)  # fmt: skip
