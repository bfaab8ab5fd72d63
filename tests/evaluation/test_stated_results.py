"""Inputs at the edge of what makes sense, each with the result that the documents state; small enough to do by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.ids import Ids
from truerank.core.metric import Metric
from truerank.core.ranking import Scores, Ties
from truerank.core.results import Estimate, Results
from truerank.estimators.weighted import Pooled
from truerank.exposure.kinds import FullExposure, RandomExposure, Unlisted
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.listwise import NDCG, HitRate, ReciprocalRank
from truerank.metrics.pairwise import AveragePrecision
from truerank.ranking.candidates import Overlap

Rows = Sequence[tuple[Any, Any, float]]
NEGATIVE = FullExposure(Unlisted.NEGATIVE)
INF = math.inf


def table(rows: Rows, value: str = "label") -> pl.DataFrame:
    """A frame of (user, item, value)."""
    return pl.DataFrame(list(rows), schema=["user", "item", value], orient="row")


def grid(matrix: Sequence[Sequence[float]]) -> pl.DataFrame:
    """Labels of every pair, users and items numbered from 0."""
    return table([(user, item, value) for user, row in enumerate(matrix) for item, value in enumerate(row)])


def dense(*rows: Sequence[float]) -> npt.NDArray[np.float64]:
    return np.array(rows, dtype=np.float64)


def named(*rows: Sequence[float]) -> Scores:
    """The same, whose rows and columns have their numbers for ids."""
    return tr.scores.dense(dense(*rows), users=range(len(rows)), items=range(len(rows[0])))


def one(results: Results, metric: Metric | str, *, model: str = "a", estimator: str | None = None) -> Estimate:
    """The single estimate of a model's metric."""
    (found,) = (
        each
        for each in results.estimates
        if (each.model, each.metric) == (model, str(metric)) and estimator in (None, each.estimator)
    )
    return found


def counts(estimate: Estimate) -> tuple[int, int]:
    return estimate.units, estimate.undefined


# ------------------------------------------------------------------------------------------------------------ top lists


TOP = table([(1, 10, 1), (1, 20, 2), (2, 10, 1), (2, 40, 2)], "rank")
# what a popularity model gives: all pairs of what it names, and yet no scores of a whole catalogue
SAME = table([(1, 10, 1), (1, 20, 2), (2, 10, 1), (2, 20, 2)], "rank")


@pytest.mark.parametrize("how", [{"n_items": 9}, {"items": Ids.of(range(10, 100, 10))}], ids=["n_items", "items"])
def test_top_lists_that_are_the_same_for_everyone_are_top_lists(how: dict[str, Any]) -> None:
    labels = table([(1, 10, 1), (1, 30, 1), (2, 30, 1), (2, 20, 0)])
    results = tr.evaluate({"a": SAME}, labels, exposure=NEGATIVE, metrics=[Recall(2), DCG(2)], **how)
    assert [each.value for each in results.estimates] == [0.25, 0.5]
    # beyond the list nobody knows: 30 may well be third
    with refused("a lists at most 2 items per user", RefusedError):
        tr.evaluate({"a": SAME}, labels, exposure=NEGATIVE, metrics=[Recall(3)], **how)


def test_a_cut_off_too_deep_is_left_out_beside_one_that_is_not() -> None:
    labels = table([(1, 10, 1), (2, 30, 1)])
    both = tr.evaluate({"a": TOP}, labels, exposure=RandomExposure(), n_items=100, estimators=[Pooled()],
                       metrics=[Recall(2), Recall(5)])  # fmt: skip
    assert [(each.metric, each.value) for each in both.estimates] == [("Recall@2", 0.5)]
    (note,) = (note for note in both.notes if note.startswith("excluded: Recall@5 with pooled"))
    assert note in " ".join(str(both).split())


# ---------------------------------------------------------------------------------------------- users on one side only


def test_models_that_know_different_users_are_compared_on_common_ones() -> None:
    labels = grid([[1, 0], [1, 0], [1, 0]])
    scores = {
        "a": tr.scores.dense(dense([2, 1], [2, 1]), users=[0, 1], items=[0, 1]),
        "b": tr.scores.dense(dense([1, 2], [2, 1]), users=[1, 2], items=[0, 1]),
    }
    results = tr.evaluate(scores, labels, metrics=[Recall(1)])
    # a: 1 and 1 for users 0 and 1; b: 0 and 1 for users 1 and 2; only user 1 has both
    assert (one(results, "Recall@1").value, one(results, "Recall@1", model="b").value) == (1.0, 0.5)
    assert results.compare("a", "b")[0].difference == 1.0


# ---------------------------------------------------------------------------------------------------- deep cut-offs


@pytest.mark.parametrize("k", [3, 4, 1000, 10**12])
def test_a_cut_off_beyond_the_candidates(k: int) -> None:
    """Recall finds everything, Precision still divides by K, sums stop where the list does; memory does not grow."""
    labels = grid([[1, 0, 1], [0, 1, 0]])
    kinds = (Recall, Precision, DCG, NDCG, HitRate, AveragePrecision, ReciprocalRank)
    metrics: list[Metric] = [kind(k) for kind in kinds]
    results = tr.evaluate({"a": dense([3, 2, 1], [3, 2, 1])}, labels, metrics=metrics)
    # relevant ranks: user 0: 1 and 3; user 1: 2
    second, third = 1 / math.log2(3), 1 / 2
    expected = [
        1.0,
        (2 / k + 1 / k) / 2,
        (1 + third + second) / 2,
        ((1 + third) / (1 + second) + second / 1) / 2,
        1.0,
        ((1 + 2 / 3) / 2 + 1 / 2) / 2,
        (1 + 1 / 2) / 2,
    ]
    assert [one(results, metric).value for metric in metrics] == pytest.approx(expected, rel=1e-14)


# ----------------------------------------------------------------------------------------------------------------- ties


N = 4
FLAT = {"a": named([1.0] * N)}


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_all_scores_tied(k: int) -> None:
    """One relevant item among N tied ones: K / N on average, and the bounds on both sides."""
    labels = grid([[0, 1, 0, 0]])

    def recall(ties: Ties) -> float:
        return one(tr.evaluate(FLAT, labels, metrics=[Recall(k)], ties=ties), f"Recall@{k}").value

    assert recall(Ties.EXPECTED) == min(k / N, 1.0)
    assert recall(Ties.STRICT) == (0.0 if k < N else 1.0)
    assert recall(Ties.OPTIMISTIC) == 1.0
    assert recall(Ties.PESSIMISTIC) == (0.0 if k < N else 1.0)
    assert recall(Ties.RANDOM) in (0.0, 1.0)


def test_random_ties_depend_on_the_seed_alone() -> None:
    labels = grid([[0, 0, 1, 0, 0]] * 40)
    scores = {"a": np.zeros((40, 5))}

    def hits(seed: int, **how: Any) -> float:
        results = tr.evaluate(scores, labels, metrics=[Recall(2)], ties=Ties.RANDOM, seed=seed, **how)
        return one(results, "Recall@2").value

    assert hits(1) == hits(1, threads=1, block_users=1) == hits(1, threads=3, block_users=7)
    assert len({hits(seed) for seed in range(10)}) > 1


# -------------------------------------------------------------------------------------------------- as small as it gets


@pytest.mark.parametrize("interval", [tr.Population(), tr.Bootstrap(50)], ids=["population", "bootstrap"])
def test_a_single_user_has_a_value_but_no_interval(interval: Any) -> None:
    scores = {"a": dense([3, 2, 1]), "b": dense([1, 2, 3])}
    results = tr.evaluate(scores, grid([[1, 0, 0]]), metrics=[Recall(1)], interval=interval)
    found = one(results, "Recall@1")
    assert (found.value, counts(found)) == (1.0, (1, 0))
    assert all(math.isnan(x) for x in (found.stderr, found.low, found.high))
    assert found.warning_texts == ("a single user: there is no interval for a population",)
    (difference,) = results.comparisons
    assert difference.difference == -1.0
    assert all(math.isnan(x) for x in (difference.low, difference.high, difference.p, difference.p_adjusted))


# -------------------------------------------------------------------------------------------------- exclusions, overlap


SCORES3 = named([4, 3, 2, 1], [4, 3, 2, 1])
LABELS3 = grid([[1, 0, 1, 0], [0, 1, 0, 0]])


def test_a_judged_item_that_is_excluded_can_be_kept() -> None:
    """It stays a candidate and stays judged; what is excluded and not judged leaves all the same."""
    labels = table([(0, 1, 1), (0, 2, 1), (1, 1, 1)])
    exclude = table([(0, 0, 1), (0, 1, 1)])
    results = tr.evaluate({"a": SCORES3}, labels, exclude=exclude, overlap=Overlap.KEEP, exposure=NEGATIVE,
                          metrics=[Recall(1), Recall(2)])  # fmt: skip
    # user 0 without item 0: item 1 at rank 1, item 2 at rank 2; user 1: item 1 at rank 2
    assert (one(results, "Recall@1").value, one(results, "Recall@2").value) == (0.25, 1.0)
    assert not any("dropped" in note for note in results.notes)
    dropped = tr.evaluate({"a": SCORES3}, labels, exclude=exclude, exposure=NEGATIVE, metrics=[Recall(1)])
    # user 0: items 0 and 1 leave, item 2 is at rank 1; user 1 as before
    assert one(dropped, "Recall@1").value == 0.5


def test_an_excluded_item_need_not_be_in_the_catalogue() -> None:
    """An item seen in training may be gone since; judged and excluded, it is dropped, not refused."""
    labels = table([(0, 0, 1), (0, 99, 1)])
    results = tr.evaluate({"a": SCORES3}, labels, exclude=table([(0, 99, 1)]), exposure=NEGATIVE, metrics=[Recall(1)])
    assert one(results, "Recall@1").value == 1.0
    with refused("not in the catalogue, such as user 0, item 99"):
        tr.evaluate({"a": SCORES3}, labels, exposure=NEGATIVE, metrics=[Recall(1)])


# --------------------------------------------------------------------------------------------------------------- tables

TRIPLE = dense([3, 2, 1], [3, 2, 1], [3, 2, 1])
FIVE = named([5, 4, 3, 2, 1], [5, 4, 3, 2, 1])
CANDIDATES = pl.DataFrame({"user": [0, 0, 0, 1, 1], "item": [1, 3, 4, 2, 4]})
JUDGED_OF_TWO = table([(1, 10, 1), (1, 30, 1), (2, 30, 1), (2, 20, 0)])
ONE_EACH = tr.read(table([(0, 0, 1), (1, 1, 0)]), users=Ids.of([0, 1, 2]))
DROPPED = {"overlap-dropped"}
Stated = tuple[Any, Any, dict[str, Any], dict[str, tuple[float, int, int]], set[str]]


def sampled(estimator: str, rate: float | None = None, **more: Any) -> dict[str, Any]:
    return {"exposure": RandomExposure(rate), "estimators": [estimator], **more}


# scores, labels, options; the value of each metric with the users it is of and those it leaves out; codes among others
STATED: dict[str, Stated] = {
    # user 1: item 10 at rank 1, item 30 nowhere; user 2: its only relevant item is nowhere
    "a relevant item missing from a top list": (
        TOP, JUDGED_OF_TWO, {"exposure": NEGATIVE},
        {"Recall@1": (0.25, 2, 0), "Recall@2": (0.25, 2, 0), "Precision@2": (0.25, 2, 0), "DCG@2": (0.5, 2, 0)},
        {"never-recommended"},
    ),
    "a list shorter than the cut-off": (
        table([(1, 10, 1), (1, 20, 2), (2, 10, 1)], "rank"), table([(1, 10, 1), (2, 10, 1)]),
        {"exposure": NEGATIVE, "n_items": 5}, {"Precision@2": (0.5, 2, 0)}, {"short-lists"},
    ),
    # weights N / N-bar: 9 / 2 for user 1, 9 / 1 for user 2; only item 10 of user 1 is at rank 1
    "pooled with the number of items": (
        TOP, table([(1, 10, 1), (1, 30, 1), (2, 20, 1)]), sampled("pooled", n_items=9),
        {"Recall@1": ((9 / 2) / (9 / 2 * 2 + 9 / 1), 2, 0)}, set(),
    ),
    "users without scores": (
        named([3, 2, 1], [1, 2, 3]), grid([[1, 0, 0], [1, 0, 0], [1, 0, 0]]), {},
        {"Recall@1": (0.5, 2, 1), "Precision@1": (0.5, 2, 1), "HitRate@1": (0.5, 2, 1)}, {"no-scores"},
    ),
    "users without labels": (TRIPLE, grid([[1, 0, 0]]), {}, {"Recall@1": (1.0, 1, 0)}, set()),
    "a single item": (
        dense([7]), grid([[1]]), {}, {"Recall@1": (1.0, 1, 0), "Precision@2": (0.5, 1, 0), "DCG@3": (1.0, 1, 0)}, set()
    ),
    "a single item that is not relevant": (
        dense([7]), grid([[0]]), {}, {"Precision@2": (0.0, 1, 0), "DCG@3": (0.0, 1, 0)}, set()
    ),
    # item 0 of user 0 leaves candidates and labels: item 2 moves up to rank 2; user 1: item 1 at rank 2
    "an excluded item": (
        SCORES3, LABELS3, {"exclude": table([(0, 0, 1)])}, {"Recall@1": (0.0, 2, 0), "Recall@2": (1.0, 2, 0)}, DROPPED
    ),
    "a user whose rows are all excluded": (
        SCORES3, LABELS3, {"exclude": table([(0, item, 1) for item in range(4)])},
        {"Recall@2": (1.0, 1, 1), "Precision@2": (0.5, 1, 1), "HitRate@2": (1.0, 1, 1)}, DROPPED,
    ),
    # user 1: item 0 at rank 1 of 4 candidates, 2 judged
    "a user whose sample is all excluded": (
        SCORES3, table([(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0)]),
        sampled("horvitz-thompson", exclude=table([(0, 0, 1), (0, 1, 1)])), {"Precision@1": (2.0, 1, 1)}, {"left-out"},
    ),
    # user 0: item 0 at rank 1, item 1 never; user 1: item 2 at rank 1
    "items that are never recommended": (
        dense([3, -INF, -INF], [1, 2, 3]), grid([[1, 1, 0], [0, 0, 1]]), {},
        {"Recall@2": (0.75, 2, 0), "Recall@100": (0.75, 2, 0), "DCG@100": (1.0, 2, 0), "RR": (1.0, 2, 0)},
        {"never-recommended", "short-lists"},
    ),
    **{
        f"items never recommended do not tie, {ties}": (
            dense([-INF, -INF, 1]), grid([[1, 1, 0]]), {"ties": ties}, {"Recall@3": (0.0, 1, 0)}, set()
        )
        for ties in Ties
    },
    # user 0: items 3 and 4 at ranks 2 and 3 of 3; user 1: item 4 at rank 2 of 2
    "candidates": (
        FIVE, table([(0, 1, 0), (0, 3, 1), (0, 4, 1), (1, 2, 0), (1, 4, 1)]), {"candidates": CANDIDATES},
        {"Recall@1": (0.0, 2, 0), "Recall@2": (0.75, 2, 0), "Precision@2": (0.5, 2, 0)}, set(),
    ),
    # expansion 3 / 1 for user 0 and 2 / 2 for user 1
    "candidates of a sample": (
        FIVE, table([(0, 3, 1), (1, 4, 1), (1, 2, 0)]), sampled("horvitz-thompson", candidates=CANDIDATES),
        {"Precision@2": ((3 / 2 + 1 / 2) / 2, 2, 0)}, set(),
    ),
    # each labelled item represents 1 / rate: user 0 has one at rank 1, users 1 and 2 add 0
    "declared users with a rate": (
        TRIPLE, ONE_EACH, sampled("horvitz-thompson", 0.5), {"Precision@1": (2.0 / 3, 3, 0)}, set()
    ),
    # each labelled item represents N / N-bar: 3 / 1 for user 0, 0 for user 1; user 2 is undefined
    "declared users without a rate": (
        TRIPLE, ONE_EACH, sampled("horvitz-thompson"), {"Precision@1": (3.0 / 2, 2, 1)}, {"left-out"}
    ),
    # one of two labelled places is relevant; lists are worth 1 and 1 / 2, whether or not user 1 has a row
    **{
        f"a short list of a user with {len(rows)} rows": (
            dense([3, 2, 1], [3, -INF, -INF]), tr.read(table([(0, 0, 1), (0, 1, 0), *rows]), users=Ids.of([0, 1])),
            sampled("hajek", 0.5), {"Precision@2": (0.5 * (1 + 0.5) / 2, 2, 0)}, set(),
        )
        for rows in ([], [(1, 2, 0)])
    },
    # user 0: a single judged item of three tells of no pair; user 1: 3 / 2 of 1 / K for item 0 at rank 1
    "pairs of a user with one judged item": (
        TRIPLE, table([(0, 0, 1), (1, 0, 1), (1, 1, 0)]), sampled("pairs"),
        {"AP@2(denominator=cutoff)": (0.75, 1, 1), "AUC": (1.0, 1, 1)}, {"left-out"},
    ),
    "declared users with every label": (
        dense([2, 1], [2, 1]), tr.read(table([(0, 0, 1)]), users=Ids.of([0, 1])), {"exposure": NEGATIVE},
        {"Recall@1": (1.0, 1, 1), "Precision@1": (0.5, 2, 0)}, set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STATED)
def test_stated_values(case: str) -> None:
    scores, labels, options, expected, codes = STATED[case]
    results = tr.evaluate({"a": scores}, labels, metrics=list(expected), **options)
    found = {each.metric: (each.value, each.units, each.undefined) for each in results.estimates}
    assert found == {metric: (pytest.approx(value, rel=1e-15), *n) for metric, (value, *n) in expected.items()}
    warned = {message.code for estimate in results.estimates for message in estimate.warnings}
    assert codes <= warned | {message.code for message in results.messages}


# ----------------------------------------------------------------------------------------------------------------- ids


USERS, ITEMS = np.arange(3), np.arange(4)
MATRIX = dense([4, 3, 2, 1], [1, 2, 3, 4], [2, 4, 1, 3])
OTHER = dense([1, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2, 1])
JUDGED = [(0, 0, 1), (0, 3, 0), (1, 1, 1), (1, 3, 1), (2, 0, 0), (2, 2, 1)]

Name = Callable[[int], Any]


def of_ids(user: Name, item: Name, *, score_ids: Callable[[list[Any]], Any] = list) -> Results:
    """One evaluation with users and items under other names, which must keep their order."""
    rows = [(user(u), item(i), label) for u, i, label in JUDGED]
    columns = {"user": [row[0] for row in rows], "item": [row[1] for row in rows], "label": [row[2] for row in rows]}
    users, items = score_ids([user(u) for u in range(3)]), score_ids([item(i) for i in range(4)])
    return evaluated(pl.DataFrame(columns), users, items)


def evaluated(labels: Any, users: Any = USERS, items: Any = ITEMS) -> Results:
    scores = {
        "a": tr.scores.dense(MATRIX, users=users, items=items),
        "b": tr.scores.dense(OTHER, users=users, items=items),
    }
    return tr.evaluate(scores, labels, exposure=RandomExposure(), metrics=[Recall(2), DCG(2)])


def numbers(results: Results) -> Any:
    """Everything but where it came from."""
    content = json.loads(results.json())
    return content["estimates"], content["comparisons"]


REFERENCE = numbers(of_ids(lambda user: user, lambda item: item))


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["u0", "u1", "u2"])], ids=["categorical", "enum"])
def test_ids_as_categories(kind: Any) -> None:
    labels = table([(f"u{user}", f"i{item}", label) for user, item, label in JUDGED])
    labels = labels.with_columns(pl.col("user").cast(kind), pl.col("item").cast(pl.Categorical))
    users, items = [f"u{user}" for user in range(3)], [f"i{item}" for item in range(4)]
    assert numbers(evaluated(labels, users, items)) == REFERENCE
    assert numbers(evaluated(labels, pl.Series(users, dtype=kind), pl.Series(items).cast(pl.Categorical))) == REFERENCE


@pytest.mark.parametrize("ours", [pl.Int8, pl.UInt8, pl.Int16, pl.UInt32, pl.Int64, pl.UInt64, pl.Float32, pl.Float64])
@pytest.mark.parametrize("theirs", ["i1", "u2", "i4", "u8", "f8"])
def test_integers_of_different_widths_match(ours: Any, theirs: str) -> None:
    labels = table(JUDGED).with_columns(pl.col("user", "item").cast(ours))
    assert numbers(evaluated(labels, USERS.astype(theirs), ITEMS.astype(theirs))) == REFERENCE


# -------------------------------------------------------------------------------------------------------- frames, files


LONG = table([(u, i, MATRIX[u, i]) for u in range(3) for i in range(4)], "score")
LABELS = table(JUDGED)


def as_pandas(frame: pl.DataFrame) -> Any:
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def as_arrow(frame: pl.DataFrame) -> Any:
    return pa.table({name: frame[name].to_list() for name in frame.columns})


FRAMES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "polars lazy": lambda frame: frame.lazy(),
    "pandas": as_pandas,
    "pandas with another index": lambda frame: as_pandas(frame).set_index(np.arange(len(frame)) * 7 + 3),
    "pandas nullable": lambda frame: as_pandas(frame).convert_dtypes(),
    "pandas objects": lambda frame: as_pandas(frame).astype(object),
    "arrow": as_arrow,
    "arrow batches": lambda frame: pa.Table.from_batches(as_arrow(frame).to_batches(max_chunksize=2)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_library_give_the_same(kind: str) -> None:
    def run(make: Callable[[pl.DataFrame], Any]) -> Results:
        return tr.evaluate(
            {"a": make(LONG), "b": OTHER},
            make(LABELS),
            exclude=make(pl.DataFrame({"user": [0], "item": [2]})),
            exposure=RandomExposure(),
            metrics=[Recall(2), DCG(2)],
        )

    assert run(FRAMES[kind]).json() == run(FRAMES["polars"]).json()


# ------------------------------------------------------------------------------------------------------ names and order


def test_a_mapped_column_wins_over_one_of_that_name() -> None:
    labels = LABELS.with_columns(pl.lit(0).alias("rating"), user=pl.col("item"), who=pl.col("user"))
    assert numbers(evaluated(tr.read(labels, columns={"user": "who", "label": "label"}))) == REFERENCE


def test_the_order_of_users_and_items_in_scores_does_not_matter(tmp_path: Path) -> None:
    users, items = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    turned = MATRIX[users][:, items]
    np.savez(tmp_path / "dense.npz", scores=turned, users=users, items=items)
    np.savez(
        tmp_path / "factors.npz", user_factors=MATRIX[users], item_factors=np.eye(4)[items], users=users, items=items
    )
    shapes = [
        tr.scores.dense(turned, users=users, items=items),
        tr.scores.dense(turned, users=users.tolist(), items=pl.Series(items)),
        tr.scores.factors(MATRIX[users], np.eye(4)[items], users=users, items=items),
        tr.scores.function(lambda rows: turned[rows], users=users, items=items),
        tr.read_scores(tmp_path / "dense.npz"),
        tr.read_scores(tmp_path / "factors.npz"),
    ]
    for shape in shapes:
        results = tr.evaluate({"a": shape, "b": OTHER}, LABELS, exposure=RandomExposure(), metrics=[Recall(2), DCG(2)])
        assert numbers(results) == REFERENCE


def test_nothing_writes_into_its_inputs() -> None:
    matrix, frame = MATRIX.copy(), as_pandas(LABELS)
    matrix.setflags(write=False)
    before = frame.copy()
    tr.evaluate({"a": matrix}, frame, exposure=RandomExposure(), metrics=[Recall(2)])
    pd.testing.assert_frame_equal(frame, before)
    writable = MATRIX.copy()
    tr.evaluate({"a": writable}, LABELS, exposure=RandomExposure(), metrics=[Recall(2)])
    assert writable.flags.writeable


def test_users_without_a_relevant_item_can_count_as_zero() -> None:
    """User 8 likes nothing: left out, or 0; of AUC, which is of pairs, always left out."""
    scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]] * 2, users=[7, 8], items=[1, 2, 3, 4])}
    labels = pl.DataFrame({"user": [7] * 4 + [8] * 4, "item": [1, 2, 3, 4] * 2, "label": [1, 0, 1, 0, 0, 0, 0, 0]})
    metrics = ["Recall@1", "AP@2", "AUC", "Precision@2"]
    for how, values, units in (
        ("full", [0.5, 0.5, 0.75, 0.25], [1, 1, 1, 2]),
        ("full(without_relevant=zero)", [0.25, 0.25, 0.75, 0.25], [2, 2, 1, 2]),
    ):
        found = tr.evaluate(scores, labels, exposure="full", metrics=metrics, estimators=[how]).estimates
        assert [each.value for each in found] == values
        assert [each.units for each in found] == units
    assert "as 0" in found[0].estimand
    assert "as 0" not in found[2].estimand
