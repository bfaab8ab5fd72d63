"""Exponential clocks: the integral equals the sum over all orders, and its approximation keeps to its stated error."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from truerank.core.arrays import Floats, Ints
from truerank.sampling.clocks import (
    inclusion_probabilities,
    rank_probabilities,
    rosen_probabilities,
)

WEIGHTS = [[1.0], [2.0, 1.0], [1.0, 2, 3, 4, 0.5], [1e-6, 1, 1e3, 5, 0.1, 7], [1e-9, 1e9, 1.0], [1.0] * 6]


def by_enumeration(weight: Floats) -> Floats:
    found = np.zeros((len(weight), len(weight)))
    for order in permutations(range(len(weight))):
        left = np.cumsum(weight[list(order)][::-1])[::-1]
        found[list(order), range(len(order))] += float(np.prod(weight[list(order)] / left))
    return found


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_rank_probabilities_sum_over_all_orders(weights: list[float]) -> None:
    weight = np.array(weights)
    exact = by_enumeration(weight)
    assert rank_probabilities(weight) == pytest.approx(exact, rel=1e-10, abs=1e-300)
    assert rank_probabilities(weight, depth=1) == pytest.approx(exact[:, :1], rel=1e-10)
    for n in range(len(weight) + 2):
        assert inclusion_probabilities(weight, n) == pytest.approx(exact[:, :n].sum(axis=1), rel=1e-10)


def add_all(rung: Floats, density: Floats, found: Floats) -> None:
    nobody = np.zeros((len(rung), found.shape[1]))
    nobody[:, 0] = 1.0
    add_without_each(rung, density, nobody, np.arange(len(found)), found)


def add_without_each(rung: Floats, density: Floats, others: Floats, members: Ints, found: Floats) -> None:
    """Add Σ over nodes of density x P(r - 1 of the others have rung) to `found`, for each of `members`.

    `others` [nodes x depth] is the distribution of how many of those outside `members` have rung. Halving the members
    takes every one into all distributions but its own, with additions of positive numbers only.
    """
    if len(members) == 1:
        found[members[0]] += density[:, members[0]] @ others
        return
    for kept, joined in ((members[::2], members[1::2]), (members[1::2], members[::2])):
        count = others.copy()
        for i in joined:
            _join(count, rung[:, i : i + 1])
        add_without_each(rung, density, count, kept, found)


def _join(count: Floats, p: Floats) -> None:
    """One more member, rung with probability p, in the distribution of how many have rung."""
    count[:, 1:] = count[:, 1:] * (1 - p) + count[:, :-1] * p
    count[:, :1] *= 1 - p


@pytest.mark.parametrize(("members", "n"), [(2, 1), (3, 2), (17, 4), (50, 25), (64, 63), (120, 1)])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_the_compiled_kernel_equals_the_plain_one(
    members: int, n: int, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = np.random.default_rng(members).lognormal(0, spread, members)

    def found() -> list[Floats]:
        return [rank_probabilities(weight, depth=n), inclusion_probabilities(weight, n)]

    compiled = found()
    monkeypatch.setattr("truerank.sampling.fast_clocks.add_without_each", add_all)
    for fast, plain in zip(compiled, found(), strict=True):
        assert fast == pytest.approx(plain, rel=1e-12, abs=0)


@pytest.mark.parametrize("n", [1, 7, 30, 59])
def test_inclusion_is_the_sum_of_ranks(n: int) -> None:
    """Inclusion probabilities leave out nodes whose part is known; ranks take them all."""
    for spread in (0.1, 1.5, 4.0):
        weight = np.random.default_rng(n).lognormal(0, spread, 60)
        found = inclusion_probabilities(weight, n)
        assert found == pytest.approx(rank_probabilities(weight, depth=n).sum(axis=1), rel=1e-12)


def test_members_without_weight_come_last_in_any_order() -> None:
    found = rank_probabilities(np.array([0.0, 2.0, 0.0, 1.0]))
    assert found[1] == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert found[0] == pytest.approx([0, 0, 0.5, 0.5])
    assert rank_probabilities(np.zeros(3)) == pytest.approx(np.full((3, 3), 1 / 3))
    assert inclusion_probabilities(np.array([0.0, 2.0, 0.0, 1.0]), 3) == pytest.approx([0.5, 1, 0.5, 1])
    assert rank_probabilities(np.array([0.0, 2.0]), depth=1) == pytest.approx(np.array([[0.0], [1.0]]), abs=1e-12)


@pytest.mark.parametrize("n", [1, 3, 40, 79])
def test_ranks_of_many_members_are_complete(n: int) -> None:
    weight = np.random.default_rng(1).lognormal(0, 2, 80)
    found = rank_probabilities(weight, depth=n)
    assert found.sum(axis=0) == pytest.approx(np.ones(n), rel=1e-11)
    assert rank_probabilities(weight)[:, :n] == pytest.approx(found, rel=1e-9, abs=1e-15)
    assert inclusion_probabilities(weight, n).sum() == pytest.approx(n)


def test_the_approximation_keeps_its_stated_error() -> None:
    rng = np.random.default_rng(2)
    worst = {}
    for members in (50, 100, 200):
        weight = rng.lognormal(0, 1.5, members)
        exact = rank_probabilities(weight, depth=members // 2).sum(axis=1)
        close = rosen_probabilities(weight, members // 2)
        assert close.sum() == pytest.approx(members // 2)
        worst[members] = float(np.abs(close / exact - 1).max())
    assert worst[200] < 0.006 < worst[50] < 0.03
    for members, spread, stated in ((500, 1.5, 0.002), (300, 2.0, 0.004)):
        weight = np.random.default_rng(3).lognormal(0, spread, members)
        exact, close = inclusion_probabilities(weight, members // 2), rosen_probabilities(weight, members // 2)
        assert stated / 2 < np.abs(close / exact - 1).max() < stated
    large = rosen_probabilities(rng.lognormal(0, 3, 20_000), 9_000)
    assert large.sum() == pytest.approx(9_000)
    assert ((large > 0) & (large <= 1)).all()
    extreme = np.concatenate([np.full(10, 1e-12), np.full(90, 1e12)])
    for n in (5, 89.0, 90.5, 99):
        assert rosen_probabilities(extreme, n).sum() == pytest.approx(n)
