"""The fast kernel gives the ranks of the plain one, to the last count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from truerank.core.arrays import exact_sum
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, Ranks, Scores, Ties
from truerank.ranking.kernel import fast
from truerank.ranking.kernel.rank import rank
from truerank.ranking.kernel.ties import count_above_and_tied
from truerank.ranking.scores.tables import _ordered, _ordered_fast

Array = np.ndarray[Any, Any]


def log_of(user: Array, item: Array, n_users: int, n_items: int) -> Log:
    order = np.lexsort((item, user))
    return Log(
        users=Ids.of(np.arange(n_users)),
        items=Ids.of(np.arange(n_items)),
        unit=user[order].astype(np.int64),
        item=item[order].astype(np.int64),
        rewards={"label": np.ones(len(user))},
    )


def same(plain: tuple[Ranks, ...], quick: tuple[Ranks, ...]) -> None:
    for a, b in zip(plain, quick, strict=True):
        for name in ("above", "tied", "n_candidates", "n_recommended", "scored"):
            assert (getattr(a, name) == getattr(b, name)).all(), name


@st.composite
def cases(draw: st.DrawFn) -> tuple[Scores, Log, list[Candidates]]:
    """Few or many ties, exclusions, items never recommended, one user, one item, factors or a matrix."""
    n_users, n_items = draw(st.integers(1, 9)), draw(st.sampled_from([1, 2, 5, 31, 32, 33, 64, 100, 800]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([1, 2, 5, 10**6]))
    if draw(st.booleans()):
        d = draw(st.integers(1, 5))
        p, q = (rng.integers(-levels, levels + 1, size=(n, d)) / 4 for n in (n_users, n_items))
        scores: Scores = tr.scores.factors(p, q, item_bias=q[:, 0] if draw(st.booleans()) else None)
    else:
        matrix = rng.integers(-levels, levels, size=(n_users, n_items)).astype(draw(st.sampled_from(["f4", "f8"])))
        matrix[rng.random(matrix.shape) < draw(st.sampled_from([0, 0.3, 1]))] = -np.inf
        scores = tr.scores.dense(matrix)
    judged = rng.random((n_users, n_items)) < draw(st.sampled_from([0.05, 0.5, 1]))
    excluded = (rng.random((n_users, n_items)) < draw(st.sampled_from([0, 0.3]))) & ~judged
    user, item = np.nonzero(judged)
    log = log_of(user, item, n_users, n_items)
    pairs = Pairs.of(*np.nonzero(excluded), n_units=n_users)
    own = Pairs.of(log.user, log.item, n_units=n_users)
    pools = [
        Candidates(n_users, float(n_items), exclude=pairs),
        Candidates(n_users, float(n_items)),
        Candidates(n_users, float(n_items), only=own),
    ]
    return scores, log, pools


@given(cases())
@examples(200)
def test_fast_equals_plain(case: tuple[Scores, Log, list[Candidates]]) -> None:
    scores, log, pools = case
    same(rank(scores, log, pools=pools, fast=False), rank(scores, log, pools=pools, fast=True))


@st.composite
def tables(draw: st.DrawFn) -> tuple[pl.DataFrame, Log, list[Candidates]]:
    """Lists of uneven length with ties and -inf, judged items on and off them, exclusions."""
    n_users, n_items = draw(st.integers(1, 7)), draw(st.sampled_from([1, 2, 6, 60]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    user, item = np.nonzero(rng.random((n_users, n_items)) < draw(st.sampled_from([0.2, 0.8, 1])))
    score = rng.integers(0, draw(st.sampled_from([1, 4, 10**6])), len(user)).astype(float)
    score[rng.random(len(user)) < 0.1] = -np.inf
    order = rng.permutation(len(user))
    frame = pl.DataFrame({"user": user[order], "item": item[order], "score": score[order]})
    judged = rng.random((n_users, n_items)) < draw(st.sampled_from([0.1, 0.6]))
    gone_user, gone_item = np.nonzero((rng.random((n_users, n_items)) < 0.3) & ~judged)
    user, item = np.nonzero(judged)
    pairs = Pairs.of(gone_user, gone_item, n_units=n_users)
    pools = [Candidates(n_users, float(n_items)), Candidates(n_users, float(n_items), exclude=pairs)]
    return frame, log_of(user, item, n_users, n_items), pools


@given(tables())
@examples(150)
def test_lists_looked_up_equal_rows_sorted(case: tuple[pl.DataFrame, Log, list[Candidates]]) -> None:
    frame, log, pools = case
    if len(frame) == 0:
        return
    scores = tr.scores.lists(frame)
    same(rank(scores, log, pools=pools, fast=False), rank(scores, log, pools=pools, fast=True))


@given(tables())
@examples(100)
def test_lists_ordered_fast_equal_lists_ordered_plainly(case: tuple[pl.DataFrame, Log, list[Candidates]]) -> None:
    frame = case[0]
    user, item = (frame[name].to_numpy() for name in ("user", "item"))
    score = frame["score"].to_numpy()
    start = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=7))])
    agree(user, item, score, start)


def agree(user: Array, item: Array, score: Array, start: Array) -> None:
    """Both ways give each item of each user the same counts."""
    plain, quick = (way(user, item, score, start, 5000) for way in (_ordered, _ordered_fast))
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    a, b = (np.lexsort((each[0], owner)) for each in (plain, quick))
    for one, other in zip(plain, quick, strict=True):
        assert (np.asarray(one)[a] == np.asarray(other)[b]).all()


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, 3))
@examples(100)
def test_rows_of_units_begin_where_counts_say(units: list[int], without: int) -> None:
    unit, n = np.sort(np.array(units, dtype=np.int64)), 10 + without
    counted = np.concatenate([[0], np.cumsum(np.bincount(unit, minlength=n))])
    assert fast.starts(unit, n).tolist() == counted.tolist()


def test_long_lists_are_ordered() -> None:
    """Long enough for the splitting part of the sort, sorted, reversed, constant and shuffled."""
    rng = np.random.default_rng(2)
    for score in (np.arange(5000.0), -np.arange(5000.0), np.zeros(5000), rng.normal(size=5000).round(1)):
        user, item, start = np.zeros(5000, np.int64), rng.permutation(5000), np.array([0, 5000])
        agree(user, item, score, start)


@given(st.integers(0, 2**32), st.sampled_from([1, 1999, 2000, 5000]), st.sampled_from([0, 20, 300]))
@examples(60)
def test_exact_sums(seed: int, n: int, spread: int) -> None:
    """The vectorised sum is the correctly rounded one, whatever the order and the spread of magnitudes."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) * 2.0 ** rng.integers(-spread, spread + 1, n)
    assert exact_sum(values) == math.fsum(values.tolist()) == exact_sum(values[::-1].copy())


def few_among_zeros(*few: float) -> np.ndarray:
    values = np.zeros(100_000)
    values[:: len(values) // len(few)][: len(few)] = few
    return values


@pytest.mark.parametrize(
    "values",
    [
        few_among_zeros(1.0, 2.0**-53, 2.0**-120),  # a tie but for a number that is lost in any plain sum
        few_among_zeros(1.0, 2.0**-53, -(2.0**-120)),
        few_among_zeros(1.0, 2.0**-53),  # a tie
        few_among_zeros(1e300, 1.0, -1e300),
        few_among_zeros(5e-324, 1e-310),
        few_among_zeros(math.inf, 1.0),
        few_among_zeros(math.nan, 1.0),
        np.full(100_001, 0.1),
        np.full(100_001, math.nan),
        np.where(np.arange(100_001) % 2, 0.1, -0.1),
        np.random.default_rng(5).normal(size=2**17) * 2.0 ** np.random.default_rng(6).integers(-300, 300, 2**17),
        np.random.default_rng(7).exponential(size=2**20 + 1),
    ],
)
def test_exact_sums_of_many(values: np.ndarray) -> None:
    """The compiled sum, where it is certain and where it gives way to the other one."""
    expected = math.fsum(values.tolist())
    assert np.array_equal([exact_sum(values), exact_sum(values[::-1].copy())], [expected, expected], equal_nan=True)


@pytest.mark.parametrize("ties", [Ties.RANDOM, Ties.STRICT])
def test_tie_policies_do_not_depend_on_the_kernel(ties: Ties) -> None:
    rng = np.random.default_rng(4)
    scores = tr.scores.dense(rng.integers(0, 5, size=(40, 70)).astype(np.float32))
    user, item = np.nonzero(rng.random((40, 70)) < 0.2)
    log = log_of(user, item, 40, 70)
    pool = Candidates(40, 70.0)
    same(*(rank(scores, log, pools=[pool], ties=ties, seed=3, fast=each) for each in (False, True)))


@pytest.mark.parametrize("dimensions", [1, 7, 64])
def test_same_bits_across_threads_and_chunks(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    scores = tr.scores.factors(rng.normal(size=(900, dimensions)), rng.normal(size=(2000, dimensions)))
    user = np.repeat(np.arange(900), 5)
    log = log_of(user, np.concatenate([rng.choice(2000, 5, replace=False) for _ in range(900)]), 900, 2000)
    pools = [Candidates(900, 2000.0)]
    expected = rank(scores, log, pools=pools, fast=True)
    same(rank(scores, log, pools=pools, fast=False), expected)
    for threads in (1, 2):
        for block_users in (1, 100, 384):
            again = rank(scores, log, pools=pools, fast=True, threads=threads, block_users=block_users)
            same(again, expected)


def test_a_score_of_an_item_is_the_score_in_its_row() -> None:
    """An item never outranks itself: its score comes from the same arithmetic as the row."""
    rng = np.random.default_rng(1)
    scores = tr.scores.factors(rng.normal(size=(50, 64)), rng.normal(size=(3000, 64)))
    log = log_of(np.repeat(np.arange(50), 60), np.tile(np.arange(0, 3000, 50), 50), 50, 3000)
    found = rank(scores, log, pools=[Candidates(50, 3000.0)], fast=True)[0]
    assert (found.tied >= 0).all()
    for unit in (0, 17, 49):
        row = scores.block(np.array([unit]))[0]
        above, tied = count_above_and_tied(row, row[log.item[log.user == unit]])
        assert (found.above[log.user == unit] == above).all()
        assert (found.tied[log.user == unit] == tied).all()


@pytest.mark.parametrize("dimensions", [1, 40])
def test_overflowing_factors_are_refused_not_ranked(dimensions: int) -> None:
    scores = tr.scores.factors(np.full((2, dimensions), 1e200), np.full((3, dimensions), 1e200))
    log = log_of(np.array([0, 1]), np.array([0, 2]), 2, 3)
    for each in (False, True):
        with pytest.raises(InputError, match="expected a finite number"):
            rank(scores, log, pools=[Candidates(2, 3.0)], fast=each)


def test_counts_beyond_32_bits() -> None:
    """More than 2^31 cells: counts add up in 64 bits."""
    tile = np.ones((1, 2**15), dtype=np.float32)
    start, threshold = np.array([0, 1]), np.array([0.5], dtype=np.float32)
    above, reaching = np.array([2**31 - 5]), np.zeros(1, dtype=np.int64)
    fast.count_tile(tile, 1, start, threshold, above, reaching)
    assert above[0] == 2**31 - 5 + 2**15
    assert reaching[0] == 2**15


@pytest.mark.slow
def test_more_than_2_to_the_31_cells() -> None:
    """Factors and lists over more cells than 32 bits can number; users from all over agree with the plain kernel."""
    n_users, n_items = 44_000, 50_000
    assert n_users * n_items > 2**31
    rng = np.random.default_rng(9)
    user, item = np.repeat(np.arange(n_users), 2), rng.integers(0, n_items // 2, 2 * n_users)
    item[1::2] += n_items // 2  # two different items per user, the last of the catalogue within reach
    log, pool = log_of(user, item, n_users, n_items), Candidates(n_users, float(n_items))
    # whole-numbered factors: products are exact and often equal, so ties are counted too
    p, q = (rng.integers(-20, 21, size=(n, 2)).astype(np.float32) for n in (n_users, n_items))
    listed = pl.DataFrame({"user": user, "item": log.item, "score": rng.random(2 * n_users)})
    for scores in (tr.scores.factors(p, q), tr.scores.lists(listed)):
        found = rank(scores, log, pools=[pool], fast=True, threads=2)[0]
        for unit in (0, 1, 21_999, n_users - 2, n_users - 1):
            mine = log.user == unit
            row = np.full(n_items, -np.inf)
            row[scores.items.values.to_numpy()] = scores.block(np.array([unit]))[0]
            above, tied = count_above_and_tied(row, row[log.item[mine]])
            assert (found.above[mine] == above).all()
            assert (found.tied[mine] == tied).all()
