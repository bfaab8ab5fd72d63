"""Sampling designs: all outcomes sum to 1 and give the stated inclusion probabilities; draws follow them."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.exposure.designs import Bernoulli, Design, Uniform

DESIGNS = [Uniform(1), Uniform(2), Uniform(4), Uniform(9), Bernoulli(0.3), Bernoulli(1.0)]


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_outcomes_have_the_stated_probabilities(design: Design) -> None:
    inclusion, total = np.zeros(5), 0.0
    for members, chance in design.outcomes(5):
        total += chance
        inclusion[list(members)] += chance
    assert total == pytest.approx(1, abs=1e-12)
    assert inclusion == pytest.approx(design.inclusion(5), abs=1e-12)


@pytest.mark.parametrize("design", [Uniform(2), Bernoulli(0.3)], ids=str)
def test_draws_follow_the_outcomes(design: Design) -> None:
    """A chi-square test of 20,000 users' samples of a pool of 4; seed fixed, the bound is the 99.99 % quantile."""
    n = 20_000
    user = np.repeat(np.arange(n, dtype=np.uint64), 4)
    item = np.tile(np.arange(4, dtype=np.uint64), n)
    drawn = design.draw(user, item, seed=5)
    code = np.bincount(drawn // 4, weights=2.0 ** (drawn % 4), minlength=n).astype(int)
    expected = np.zeros(16)
    for members, chance in design.outcomes(4):
        expected[sum(2**i for i in members)] = chance * n
    counted = np.bincount(code, minlength=16)
    possible = expected > 0
    assert counted[~possible].sum() == 0
    statistic = ((counted - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < 45  # 5 to 15 degrees of freedom; 99.99 % of chi-square(15) is below 44.3


def test_uniform_draws_are_nested_and_independent_of_order() -> None:
    user = np.repeat(np.arange(50, dtype=np.uint64), 20)
    item = np.tile(np.arange(20, dtype=np.uint64), 50)
    small, large = (set(Uniform(n).draw(user, item, seed=1).tolist()) for n in (3, 7))
    assert small < large
    shuffled = np.random.default_rng(0).permutation(len(user))
    again = shuffled[Uniform(3).draw(user[shuffled], item[shuffled], seed=1)]
    assert set(again.tolist()) == small
