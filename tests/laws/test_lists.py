"""Laws of metrics of lists, found through the catalogue: against definitions written out by hand for every list.

What has no closed form over users (coverage, inequality) is held to its definition with and without each user; chunks
and their order are held by test_chunks.py. Each law has something broken that it catches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from cases import instances, of_lists
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from truerank.core.clusters import Clusters
from truerank.core.counted import CountedItems, CountForm, Covered, Inequality, side_by_side
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Metric
from truerank.core.ranking import Candidates
from truerank.core.rng import cell_keys
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.kernel.top import EVERY, top_lists
from truerank.ranking.scores.scores import dense, factors, function
from truerank.ranking.scores.tables import lists as as_lists

N_USERS, N_ITEMS = 23, 17
RNG = np.random.default_rng(11)
SCORES = RNG.permuted(np.tile(np.arange(N_ITEMS, dtype=np.float64), (N_USERS, 1)), axis=1)
SCORES[3, 4:] = -np.inf  # a short list
TRAIN = RNG.random((N_USERS, N_ITEMS)) < 0.25
TRAIN[:, -1] = False  # an item that nobody has
LIKED = ~TRAIN & (RNG.random((N_USERS, N_ITEMS)) < 0.3)
LIKED[:, 0] |= ~TRAIN[:, 0] & ~LIKED.any(axis=1)
FEATURES = RNG.integers(0, 3, (N_ITEMS, 4)).astype(np.float64)
METRICS: list[Metric] = [metric for cls in of_lists().values() for metric in instances(cls, (1, 5))]


def pairs(matrix: Any) -> pl.DataFrame:
    user, item = np.nonzero(matrix)
    return pl.DataFrame({"user": user, "item": item})


def evaluated(scores: Any = SCORES, metrics: Sequence[Any] = METRICS, **how: Any) -> tr.Results:
    labels = pairs(LIKED)
    features = pl.DataFrame({"item": range(N_ITEMS)}).with_columns(
        **{f"f{at}": pl.Series(column) for at, column in enumerate(FEATURES.T)}
    )
    given_too: dict[str, Any] = {"exposure": "holdout", "exclude": pairs(TRAIN), "item_features": features}
    models = scores if isinstance(scores, dict) else {"m": scores}
    return tr.evaluate(models, labels, metrics=metrics, **(given_too | how))


def top(k: int) -> list[list[int]]:
    """Lists by hand: candidates in falling order of score."""
    able = [[i for i in range(N_ITEMS) if not TRAIN[u, i] and SCORES[u, i] > -np.inf] for u in range(N_USERS)]
    return [[i for _, i in sorted((-SCORES[u, i], i) for i in items)[:k]] for u, items in enumerate(able)]


POPULAR = TRAIN.sum(axis=0)


def apart(first: int, second: int, *, cosine: bool) -> float:
    a, b = FEATURES[first], FEATURES[second]
    if not cosine:
        return float((a != b).sum())
    return 1 - float(a @ b) / (math.hypot(*a) * math.hypot(*b)) if a.any() and b.any() else 1.0


def gini(count: Sequence[int]) -> float:
    return sum(abs(a - b) for a, b in combinations(count, 2)) / (len(count) * sum(count))


def counts(lists: list[list[int]]) -> list[int]:
    return [sum(item in items for items in lists) for item in range(N_ITEMS)]


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


DEFINED = {"Gini", "PopularityLift", "Diversity"}  # the others are those of RecTools and RePlay: tests/golden


def by_hand(metric: Any) -> float:
    """The value over all users, by the definition."""
    lists = top(metric.k)
    some = [(user, items) for user, items in enumerate(lists) if items]
    value = math.nan
    match metric.name:
        case "Gini":
            value = gini(counts(lists))
        case "PopularityLift":
            whole = metric.base == "catalogue"
            known = [(user, items) for user, items in some if whole or TRAIN[user].any()]
            base = [POPULAR if whole else POPULAR[TRAIN[user]] for user, _ in known]
            value = mean([POPULAR[items].mean() for _, items in known]) / mean([each.mean() for each in base])
        case "Diversity":
            cosine = metric.distance == "cosine"
            two = [list(combinations(items, 2)) for _, items in some if len(items) > 1]
            value = mean([mean([apart(a, b, cosine=cosine) for a, b in each]) for each in two]) if two else math.nan
        case _:
            pytest.fail(f"no definition of {metric} here")
    return value


def test_values_are_those_of_the_definitions() -> None:
    found = evaluated()
    assert [each.metric for each in found.estimates] == [str(metric) for metric in METRICS]
    for metric, estimate in zip(METRICS, found.estimates, strict=True):
        if metric.name in DEFINED:
            assert estimate.value == pytest.approx(by_hand(metric), abs=1e-12, nan_ok=True), str(metric)
        low, high = metric.bounds  # type: ignore[attr-defined]
        assert not low - 1e-12 > estimate.value
        assert not estimate.value > high + 1e-12
        if not math.isnan(estimate.stderr):
            assert low <= estimate.low <= estimate.value <= estimate.high <= high, str(metric)


def test_exposure_changes_nothing_but_what_needs_labels() -> None:
    labels = pairs(LIKED).with_columns(label=1, propensity=0.5)
    wanted = evaluated()
    for exposure in ("random", "biased"):
        able = [metric for metric in METRICS if metric.name != "Serendipity"]
        found = tr.evaluate(
            {"m": SCORES}, labels, metrics=able, exposure=exposure, exclude=pairs(TRAIN),
            item_features=pl.DataFrame(FEATURES, schema=list("abcd")).with_columns(item=pl.arange(N_ITEMS)),
        )  # fmt: skip
        same = {each.metric: (each.value, each.stderr) for each in wanted.estimates}
        for each in found.estimates:
            np.testing.assert_equal((each.value, each.stderr), same[each.metric])
            assert each.estimator == "lists"


# --------------------------------------------------------------------------------------------------------------- shapes

WIDE = RNG.integers(0, 4, (N_USERS, 3)).astype(np.float64)
TALL = RNG.integers(0, 4, (N_ITEMS, 3)).astype(np.float64)  # many ties
TIED = WIDE @ TALL.T


def lists_of(scores: Any, *, k: int, seed: int = 0, exclude: bool = True, only: bool = False) -> list[list[int]]:
    none = np.zeros(0, dtype=np.int64)
    log = Log(Ids.of(np.arange(N_USERS)), Ids.of(np.arange(N_ITEMS)), none, none, {})
    gone = Pairs.of(*np.nonzero(TRAIN), n_units=N_USERS) if exclude else None
    chosen = Pairs.of(*np.nonzero(~TRAIN), n_units=N_USERS) if only else None
    pool = Candidates(N_USERS, float(N_ITEMS), only=chosen, exclude=gone)
    aligned = Aligned.of(scores, users=log.users, items=log.items, name="m")
    found = top_lists(aligned, log, pool=pool, k=k, seed=seed)
    return [found.item[a:b].tolist() for a, b in zip(found.start[:-1], found.start[1:], strict=True)]


@pytest.mark.parametrize("k", [1, 5, 100])
def test_every_shape_of_scores_gives_the_same_lists(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    user, item = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    table = pl.DataFrame({"user": user, "item": item, "score": TIED.ravel()})
    ids: dict[str, Any] = {"users": np.arange(N_USERS), "items": np.arange(N_ITEMS)}
    shapes = [
        dense(TIED), factors(WIDE, TALL), as_lists(table), function(lambda rows: TIED[rows], **ids),
        dense(TIED[:, ::-1], users=np.arange(N_USERS), items=np.arange(N_ITEMS)[::-1]),
    ]  # fmt: skip
    wanted = lists_of(shapes[0], k=k)
    for shape in shapes[1:]:
        assert lists_of(shape, k=k) == wanted
    assert lists_of(shapes[0], k=k, exclude=False, only=True) == wanted
    monkeypatch.setattr("truerank.ranking.kernel.top.CELLS_AT_ONCE", 3 * N_ITEMS)  # blocks of three users
    assert lists_of(shapes[0], k=k) == wanted
    assert lists_of(shapes[1], k=k) == wanted


def test_a_tie_is_in_the_order_of_random_ties() -> None:
    """So that a list holds what Precision counts under --ties random, and every order is as likely."""
    judged = pairs(np.ones_like(TRAIN)).with_columns(label=1)
    how: dict[str, Any] = {"metrics": ["Recall@5", "Precision@5"], "ties": "random", "seed": 7}
    found = tr.evaluate({"m": TIED}, judged, **how)
    assert found.estimates[1].value == 1
    chosen = lists_of(dense(TIED), k=5, seed=7, exclude=False)
    marked = np.zeros(TRAIN.shape)
    for user, items in enumerate(chosen):
        marked[user, items] = 1
    again = judged.with_columns(label=pl.Series(marked.ravel()))
    assert tr.evaluate({"m": TIED}, again, **how).estimates[0].value == 1
    assert chosen != lists_of(dense(TIED), k=5, seed=8, exclude=False)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_long_rows_are_cut_where_sorting_would(k: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the part that is looked at first misses what is best: high scores stand where nobody looks, or only
    where one looks; many are equal; nearly all are out."""
    rng = np.random.default_rng(4)
    n = 20_000
    seen = np.arange(n) % EVERY == 0
    rows = np.stack([
        rng.normal(size=n), np.where(seen, -5.0, 5.0) + rng.normal(size=n),
        np.where(seen, 5.0, -5.0) + rng.normal(size=n),
        rng.integers(0, 3, n).astype(float), np.where(np.arange(n) < n - 2 * k, -np.inf, rng.normal(size=n)),
        np.arange(float(n)), np.zeros(n),
    ])  # fmt: skip
    monkeypatch.setattr("truerank.ranking.kernel.top.CELLS_AT_ONCE", 2 * n)
    none = np.zeros(0, dtype=np.int64)
    log = Log(Ids.of(np.arange(len(rows))), Ids.of(np.arange(n)), none, none, {})
    aligned = Aligned.of(dense(rows), users=log.users, items=log.items, name="m")
    found = top_lists(aligned, log, pool=Candidates(len(rows), float(n)), k=k, seed=3, threads=threads)
    for at, row in enumerate(rows):
        key = cell_keys(3, "ties", np.full(n, log.users.keys()[at]), log.items.keys())
        wanted = np.lexsort((key, -row))[:k]
        assert found.item[found.start[at] : found.start[at + 1]].tolist() == wanted.tolist(), at


# --------------------------------------------------------------------------------------------------------------- counts


@st.composite
def listings(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Lists of distinct items, some empty; and items that nobody knows by name."""
    rows = draw(st.lists(st.lists(st.integers(0, 5), max_size=4, unique=True), min_size=1, max_size=6))
    return rows, draw(st.integers(0, 2))


def terms_of(form: CountForm, rows: list[list[int]], clusters: Clusters | None = None) -> CountedItems:
    row = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    listed = side_by_side(row, np.array([item for row in rows for item in row], dtype=np.int64), n=len(rows), width=4)
    alone = Clusters.numbered(len(rows)) if clusters is None else clusters
    return CountedItems(form, listed, np.array([bool(row) for row in rows]), 6, alone)


FORMS: list[Callable[[int], CountForm]] = [
    lambda hidden: Covered(6.0 + hidden),
    lambda hidden: Covered(3.0, np.array([True, False, True, True, False, False])),
    lambda hidden: Inequality(6.0 + hidden),
]


def without_each(form: CountForm, rows: list[list[int]], cluster: Sequence[int]) -> list[float]:
    """By counting again what is left."""
    return [
        form.value(
            np.bincount([i for row, c in zip(rows, cluster, strict=True) if c != gone for i in row], minlength=6)
        )
        for gone in range(max(cluster) + 1)
    ]


@pytest.mark.parametrize("at", range(len(FORMS)))
@examples(150)
@given(listing=listings(), data=st.data())
def test_values_without_each_user_are_what_is_left(at: int, listing: tuple[list[list[int]], int], data: Any) -> None:
    rows, hidden = listing
    form = FORMS[at](hidden)
    terms = terms_of(form, rows)
    if math.isnan(terms.value()):
        return
    np.testing.assert_allclose(terms._without(), without_each(form, rows, range(len(rows))), atol=1e-12)
    np.testing.assert_allclose(terms.whole.value(), terms.value(), atol=1e-12)  # the shares of users add up
    # users of one cluster may list the same item
    of = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    cluster = np.unique(of, return_inverse=True)[1]
    n = int(cluster.max()) + 1
    joined = terms_of(form, rows, Clusters(cluster, np.arange(n, dtype=np.uint64)))
    wanted = without_each(form, rows, cluster.tolist())
    np.testing.assert_allclose(joined._without(), wanted, atol=1e-12)
    if not terms.defined.all():
        return  # what becomes one row is defined alike
    reduced = joined.reduce(cluster, Clusters.numbered(n))
    np.testing.assert_allclose(reduced._without(), wanted, atol=1e-12)
    assert reduced.value() == joined.value() == terms.value()


@examples(50)
@given(listing=listings(), data=st.data())
def test_rows_join_restrict_and_come_in_any_order(listing: tuple[list[list[int]], int], data: Any) -> None:
    rows, hidden = listing
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    for make in FORMS:
        form = make(hidden)
        terms = terms_of(form, rows)
        parts = [terms_of(form, [row]) for row in rows]
        joined = parts[0].join(parts[1:])
        turned = joined.take(order, joined.clusters.take(order))
        np.testing.assert_equal([joined.value(), turned.value()], [terms.value()] * 2)
        if terms.defined.any():
            np.testing.assert_allclose(turned.influence(), joined.influence()[order], atol=1e-12)
            assert abs(joined.influence().sum()) < 1e-12
        kept = np.arange(len(rows)) % 2 == 0
        left = terms_of(form, [row if keep else [] for row, keep in zip(rows, kept, strict=True)])
        np.testing.assert_equal(terms.restrict(kept).value(), left.value())


def test_the_law_of_leaving_out_can_fail() -> None:
    """The shares of users are no values without them: an item of two users is lost with neither."""
    terms = terms_of(Covered(6.0), [[0, 1], [1, 2]])
    wrong = terms.value() - terms.whole.sums[:, 0] / 6
    assert not np.allclose(wrong, without_each(terms.form, [[0, 1], [1, 2]], range(2)))
