"""The fast kernel gives the ranks of the plain one, to the last count."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import truerank as tr
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, Ranks, Scores, Ties
from truerank.ranking.kernel.rank import rank
from truerank.ranking.kernel.ties import count_above_and_tied

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


@pytest.mark.parametrize("ties", [Ties.RANDOM, Ties.STRICT])
def test_tie_policies_do_not_depend_on_the_kernel(ties: Ties) -> None:
    rng = np.random.default_rng(4)
    scores = tr.scores.dense(rng.integers(0, 5, size=(40, 70)).astype(np.float32))
    user, item = np.nonzero(rng.random((40, 70)) < 0.2)
    log = log_of(user, item, 40, 70)
    pool = Candidates(40, 70.0)
    same(*(rank(scores, log, pools=[pool], ties=ties, seed=3, fast=each) for each in (False, True)))


@pytest.mark.parametrize("dimensions", [1, 40])
def test_overflowing_factors_are_refused_not_ranked(dimensions: int) -> None:
    scores = tr.scores.factors(np.full((2, dimensions), 1e200), np.full((3, dimensions), 1e200))
    log = log_of(np.array([0, 1]), np.array([0, 2]), 2, 3)
    for each in (False, True):
        with refused("expected a finite number"):
            rank(scores, log, pools=[Candidates(2, 3.0)], fast=each)


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
