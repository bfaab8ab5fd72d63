"""E-D2: how often DCG and nDCG order models differently on MovieLens-1M (Figure 2): 111 EASE and 81 KUNN models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from truerank.core.arrays import Floats, Ints
from truerank.core.log import Log
from truerank.inference.agreement import correlation, disagreement, rank_correlation
from truerank.io.read import read
from truerank.models.matrix import one_thread, positives
from truerank.models.neighbours import Draw, from_items, from_users, nearest, nearest_rows
from truerank.sampling.designs import UniformDesign
from truerank.sampling.pools import Members
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, printed_table, share
from truerank_research.papers.splits import dcg_movielens, movielens_interactions
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study


@dataclass(frozen=True, slots=True, eq=False)
class EASEPath:
    """EASE for many λ at the price of one eigendecomposition: XᵀX = Q diag(e) Qᵀ, so P = Q diag(1 / (e + λ)) Qᵀ."""

    liked: Any
    value: Floats
    vector: npt.NDArray[np.float32]

    @classmethod
    def of(cls, liked: Any) -> EASEPath:
        from scipy.linalg import eigh

        with one_thread():
            value, vector = eigh((liked.T @ liked).toarray(order="F"), overwrite_a=True)
        return cls(liked.astype(np.float32), value, vector.astype(np.float32))

    def scores(self, regularisation: float) -> npt.NDArray[np.float32]:
        """X B of one λ, for every user and item."""
        from scipy.linalg import blas

        root = np.sqrt(np.maximum(self.value, 0.0) + regularisation).astype(np.float32)
        with one_thread():
            inverse = blas.ssyrk(1.0, np.asfortranarray(self.vector / root[None, :]), lower=True)
        np.copyto(inverse, inverse.T, where=np.tri(len(inverse), dtype=bool).T)
        weights = inverse / -np.diag(inverse).copy()[None, :]
        np.fill_diagonal(weights, 0.0)
        scores: npt.NDArray[np.float32] = self.liked @ np.ascontiguousarray(weights)
        return scores


EASE, KUNN = "EASE", "KUNN"
TOGETHER = 37  # EASE models of one piece
SPLITS = 5
EQUAL = 5  # items of each user that are held out in the control
INTERACTIONS = 574_385  # that the paper's code keeps: ratings of 4 and 5, of items with at least 5 of them
FIGURE, MODELS, DATA = "Figure 2", "Models", "Data"
ALL, UNRATED = "all models", "all models, without ratings"
ACROSS, HELD = "EASE against KUNN", f"{EQUAL} items held out for every user"
R, TAU, P = "Pearson's r", "Kendall's tau", "pairs in opposite orders"
PUBLISHED = {R: (0.63248, 0.1), TAU: (0.49727, 0.1), P: (0.2514, 0.05)}  # value and tolerance
# nDCG and DCG of ten models, as the authors' notebook prints them
PRINTED = printed_table("""
KUNN 70, 70 | .447293 4.955154
KUNN 70, 75 | .448054 4.963528
KUNN 70, 80 | .448097 4.964685
KUNN 70, 85 | .449146 4.973631
KUNN 70, 90 | .449767 4.978514
EASE 1560 | .447419 4.975908
EASE 1570 | .447298 4.974461
EASE 1580 | .447230 4.973534
EASE 1590 | .447173 4.972941
EASE 1600 | .447056 4.971758""")
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
    grid, setting, real = grid_of(run), run.setting, not run.source.is_synthetic
    n = SPLITS if run.full else 2
    splits = [Split(setting, seed, True) for seed in range(n * run.seed, n * (run.seed + 1))]
    if real:
        splits.append(Split(setting, splits[0].seed, False))
    penalties = grid.regularisation
    groups = [penalties[start : start + TOGETHER] for start in range(0, len(penalties), TOGETHER)]
    ease = run.pieces(ease_models, [(split, group) for split in splits for group in groups], about="EASE models")
    kunn = run.pieces(kunn_models, [(split,) for split in splits], about="KUNN models")
    models = [
        pl.concat([*ease[number * len(groups) : (number + 1) * len(groups)], kunn[number]])
        for number in range(len(splits))
    ]
    cells = _cells(models[:n], describe_data(splits[0]), real=real)
    if real:
        cells += [Cell(FIGURE, row, UNRATED, value, PUBLISHED[row][0]) for row, value in _agreement(models[n]).items()]
    return Measured(
        {"cells": cell_rows(cells)},
        {
            "list length": grid.k, "EASE": f"λ {penalties[0]} to {penalties[-1]}",
            "KUNN": f"{grid.neighbours[0]} to {grid.neighbours[-1]} users and items", "models": len(models[0]),
            "held out": "half of the items of each user", "splits": [split.seed for split in splits[:n]],
        },
        [
            "The paper has one split, whose seed is not known: numbers are means over splits, with the lowest and the "
            "highest. The seeds are the first five; no other seed and no other filter was tried."
            if real
            else "A simulated dataset: published numbers cannot be compared.",
        ],
    )  # fmt: skip


class Split(NamedTuple):
    """One division of the data: `rated` keeps ratings of 4 and 5, otherwise every interaction counts."""

    setting: Setting
    seed: int
    rated: bool


class Parts(NamedTuple):
    """Half of each user's items for training, the other half, and of that the same number of each user."""

    train: Log
    test: Log
    equal: Log


@lru_cache(maxsize=1)
def parts_of(split: Split) -> Parts:
    parts = dcg_movielens(_interactions(split), seed=split.seed)
    test = parts["test"]
    members = Members(test.users.keys()[test.user], test.items.keys()[test.item])
    equal = test.select(UniformDesign(EQUAL).draw(members, seed=split.seed, purpose="equal numbers"))
    enough = np.bincount(equal.user, minlength=len(test.users)) == EQUAL
    return Parts(parts["train"], test, equal.select(enough[equal.user]))


def _interactions(split: Split) -> Log:
    """Interactions, each positive where ratings do not count."""
    setting = split.setting
    if setting.source.is_synthetic:
        grid = grid_of(setting)
        size = DatasetSettings(users=grid.users, items=grid.items, shown=grid.items // 3, judged=1)
        train = simulate_dataset(size, seed=split.seed).train
        return read(pl.DataFrame({"user": train.user, "item": train.item}).with_columns(label=pl.lit(1)))
    log = movielens_interactions(setting.source.path("movielens-1m"))
    return log if split.rated else replace(log, rewards={"label": np.ones(len(log))})


def describe_data(split: Split) -> dict[str, float]:
    train, test, _ = parts_of(split)
    held = np.bincount(test.user, minlength=len(test.users))
    return {
        "interactions": float(len(train) + len(test)), "users": float(len(train.users)),
        "items": float(len(train.items)), "held-out items of a user, median": float(np.median(held)),
        "held-out items of a user, highest": float(held.max()),
    }  # fmt: skip


@lru_cache(maxsize=1)
def _ease_path(split: Split) -> EASEPath:
    return EASEPath.of(positives(parts_of(split).train))


def ease_models(split: Split, penalties: tuple[int, ...]) -> pl.DataFrame:
    """EASE models that share one eigendecomposition."""
    path = _ease_path(split)
    rows = [(EASE, f"{EASE} {value}", *_values(split, path.scores(float(value)))) for value in penalties]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def kunn_models(split: Split) -> pl.DataFrame:
    """All KUNN models of a split, which share their similarities."""
    train, sizes = parts_of(split).train, grid_of(split.setting).neighbours
    liked = positives(train)
    by_user, by_item = (Draw(ids.keys(), split.seed) for ids in (train.users, train.items))
    users, items = (
        nearest_rows(liked, max(sizes), draw=by_user),
        nearest_rows(liked.T.tocsr(), max(sizes), draw=by_item),
    )
    item_parts = {k: _product(*from_items(liked, nearest(items, k, first=0, draw=by_item))) for k in sizes}
    rows = []
    for n in sizes:
        user_part = _product(*from_users(liked, nearest(users, n, first=0, draw=by_user)))
        rows += [
            (KUNN, f"{KUNN} {n}, {k}", *_values(split, user_part + item_part)) for k, item_part in item_parts.items()
        ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _product(left: Any, right: Any) -> Any:
    return (csr_array(left) @ csr_array(right)).toarray().astype(np.float32)


def _values(split: Split, scores: Any) -> list[float]:
    """DCG and nDCG on the held-out items, and on the same number of items for every user."""
    parts, k = parts_of(split), grid_of(split.setting).k
    scores[parts.train.user, parts.train.item] = -np.inf
    items = first_items(scores, k)
    return [value for test in (parts.test, parts.equal) for value in discounted_gains(items, test)]


def first_items(scores: npt.NDArray[np.float32], k: int) -> Ints:
    """The k items of each user with the highest scores, the best first."""
    least = np.partition(scores, -k, axis=1)[:, [-k]]
    best = np.flatnonzero(scores >= least)
    if len(best) == k * len(scores):  # no tie at the end of a list
        best = best.reshape(-1, k) % scores.shape[1]
    else:
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(best, order, axis=1))


def discounted_gains(items: Ints, test: Log) -> tuple[float, float]:
    """DCG@k and nDCG@k of lists of k items, means over users with a held-out item."""
    held = np.zeros((len(items), len(test.items)), dtype=bool)
    held[test.user, test.item] = True
    discount = 1.0 / np.log2(np.arange(2.0, items.shape[1] + 2.0))
    dcg = np.take_along_axis(held, items, axis=1) @ discount
    n = np.bincount(test.user, minlength=len(items))
    ideal = np.cumsum(discount)[np.minimum(n[n > 0], len(discount)) - 1]
    return float(dcg[n > 0].mean()), float((dcg[n > 0] / ideal).mean())


def _agreement(models: pl.DataFrame) -> dict[str, float]:
    x, y = models["DCG"].to_numpy(), models["nDCG"].to_numpy()
    return {R: correlation(x, y).coefficient, TAU: rank_correlation(x, y).coefficient, P: disagreement(x, y)}


def _spread(table: str, row: str, column: str, values: Sequence[float], *known: float | None) -> Cell:
    """The mean over splits, from the lowest to the highest; then the printed number and its tolerance."""
    printed, near = known or (None, None)
    return Cell(table, row, column, float(np.mean(values)), printed, min(values), max(values), near)


def _cells(splits: Sequence[pl.DataFrame], facts: Mapping[str, float], *, real: bool) -> list[Cell]:
    rated = real and facts["interactions"] == INTERACTIONS
    cells = [
        Cell(DATA, fact, "used", value, float(INTERACTIONS) if real and fact == "interactions" else None)
        for fact, value in facts.items()
    ]
    for column in (ALL, EASE, KUNN):
        found = [_agreement(models if column == ALL else models.filter(family=column)) for models in splits]
        for row in (R, TAU, P):
            known = PUBLISHED[row] if column == ALL and rated else (None, None)
            cells.append(_spread(FIGURE, row, column, [numbers[row] for numbers in found], *known))
    cells.append(_spread(FIGURE, P, ACROSS, [_opposite_across(models) for models in splits]))
    # one metric is the other times a constant there, so rounding must not decide
    steady = [
        disagreement(*(np.array([float(f"{v:.12g}") for v in models[f"{name}_equal"]]) for name in NEAR))
        for models in splits
    ]
    cells.append(_spread(FIGURE, P, HELD, steady))
    for number, model in enumerate(splits[0]["model"]):
        target = dict(zip(NEAR, PRINTED[model], strict=True)) if rated and model in PRINTED else {}
        for metric, near in NEAR.items():
            values = [models[metric][number] for models in splits]
            cells.append(_spread(MODELS, model, metric, values, target.get(metric), near if target else None))
    return cells


def _opposite_across(models: pl.DataFrame) -> float:
    """The share of pairs of one EASE and one KUNN model that are in opposite orders."""
    ease, kunn = (models.filter(family=name) for name in (EASE, KUNN))
    by_dcg, by_ndcg = (np.sign(ease[name].to_numpy()[:, None] - kunn[name].to_numpy()) for name in ("DCG", "nDCG"))
    return float(np.mean(by_dcg * by_ndcg < 0))


def _figure_rule(cells: Cells) -> Finding:
    shown = {cell.row: cell for cell in cells.select(FIGURE, column=ALL)}
    text = "; ".join(
        f"{row} {cell.obtained or 0.0:.3f} ({cell.low or 0.0:.3f} to {cell.high or 0.0:.3f} over splits; "
        f"{cells.value(FIGURE, row, UNRATED):.3f} without ratings; printed {PUBLISHED[row][0]:.3f})"
        for row, cell in shown.items()
    )
    if not cells.full or cells.value(DATA, "interactions", "used") != INTERACTIONS:
        return Finding(Verdict.UNTESTABLE, f"The data here have no ratings of 4 and 5 to select; on them {text}.")
    return share([bool(cell.is_within) for cell in shown.values()], f"{text}.")


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
        f"With the paper's {INTERACTIONS:,} interactions (ratings of 4 and 5), the means over splits of r and tau are "
        "within .1 and that of the share is within 5 points.", _figure_rule,
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
        data=("movielens-1m",), minutes=18, claims=CLAIMS, shows={"dcg": ("Figure 2",)},
    ),
)  # fmt: skip
