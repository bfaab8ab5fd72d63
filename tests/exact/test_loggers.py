"""Propensities of simulated logs, forced positives included, by summing over every possible log of a tiny pool."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from logs import full_world
from outcomes import alone, assert_follows, outcomes

from truerank.core.arrays import Bools, Floats
from truerank.exposure.expose import expose, expose_independently
from truerank.sampling.clocks import exact_steps
from truerank.sampling.designs import (
    BernoulliDesign,
    SamplingDesign,
    WeightedDesign,
    inclusion_of_pools,
    none_shown,
    shown_propensities,
)

POOLS = {
    "equal": [1.0, 1.0, 1.0, 1.0, 1.0],
    "unequal": [0.1, 3.0, 0.7, 1.0, 0.7],
    "steep": [1e-4, 1.0, 1e3, 5.0, 0.1],
    "zeros": [0.0, 3.0, 0.0, 1.0, 0.5],
    "all zero": [0.0] * 5,
}
LABELS = [(1, 0, 0, 0, 0), (1, 0, 1, 0, 0), (0, 1, 1, 0, 1), (1, 1, 1, 1, 1), (0, 0, 0, 0, 0), (0, 1, 0, 0, 0)]


def logs_of(design: SamplingDesign, weight: Floats, positive: Bools) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every log of one user with its probability: a positive is added, proportional to weight, where none was drawn."""
    share = weight * positive if (weight * positive).any() else positive.astype(float)
    for rows, chance in outcomes(design, alone(len(weight), weight=weight)):
        if not positive.any() or positive[list(rows)].any():
            yield rows, chance
            continue
        for added in np.flatnonzero(share):
            yield tuple(sorted((*rows, int(added)))), chance * float(share[added] / share.sum())


@pytest.mark.parametrize(("name", "label", "n"), list(product(POOLS, LABELS, range(7))), ids=str)
def test_propensities_sum_over_every_log(name: str, label: tuple[int, ...], n: int) -> None:
    weight, positive = np.array(POOLS[name]), np.array(label, dtype=bool)
    exact, none = np.zeros(5), 0.0
    for rows, chance in logs_of(WeightedDesign(n, fill=True), weight, positive):
        exact[list(rows)] += chance
    for rows, chance in outcomes(WeightedDesign(n, fill=True), alone(5, weight=weight)):
        none += chance * (not positive[list(rows)].any())
    found = shown_propensities(np.array([0, 5]), weight, positive, size=np.array([n]))
    assert found.value == pytest.approx(exact, abs=1e-10)
    assert not found.approximate.any()
    if positive.any():
        assert none_shown([(weight, positive)], np.array([n]))[0] == pytest.approx([none], abs=1e-10)


def test_weighting_by_these_propensities_is_unbiased_and_by_others_is_not() -> None:
    """Σ y w / π over the log has the mean Σ y w; uncorrected it is too large by P(none) Σ y w q / (π⁰ Σ q)."""
    weight, positive = np.array(POOLS["unequal"]), np.array([1, 0, 1, 0, 0], dtype=bool)
    worth = np.array([0.2, 1.0, 0.7, 0.5, 0.3]) * positive
    right = shown_propensities(np.array([0, 5]), weight, positive, size=np.array([2])).value
    wrong = WeightedDesign(2).inclusion(alone(5, weight=weight))
    means = [
        sum(
            chance * float((worth / chosen)[list(rows)].sum())
            for rows, chance in logs_of(WeightedDesign(2, fill=True), weight, positive)
        )
        for chosen in (right, wrong)
    ]
    none = none_shown([(weight, positive)], np.array([2]))[0][0]
    bias = none * float((worth * weight / wrong).sum()) / float(weight[positive].sum())
    assert means == pytest.approx([worth.sum(), worth.sum() + bias], abs=1e-10)
    assert bias > 0.3


@pytest.mark.parametrize("name", list(POOLS))
@pytest.mark.parametrize("n", [1, 3])
def test_drawn_logs_follow_the_outcomes(name: str, n: int) -> None:
    """A chi-square test over 20,000 users; seed fixed, the bound is beyond the 99.99 % quantile."""
    weight, positive, n_users = np.array(POOLS[name]), np.array([1, 0, 1, 0, 0], dtype=bool), 20_000
    log = expose(full_world([positive.tolist()] * n_users), weight, size=n, propensities=False, seed=4)
    shown = np.zeros((n_users, 5), dtype=bool)
    shown[log.user, log.item] = True
    assert_follows(shown, logs_of(WeightedDesign(n, fill=True), weight, positive))


def test_independent_exposure_follows_its_outcomes_and_propensities() -> None:
    chance, positive, n_users = np.array([0.2, 0.5, 0.7, 0.0, 1.0]), np.array([1, 0, 1, 1, 0], dtype=bool), 20_000
    world = full_world([positive.tolist()] * n_users)
    log = expose_independently(world, np.tile(chance, n_users), seed=3)
    shown = np.zeros((n_users, 5), dtype=bool)
    shown[log.user, log.item] = True
    assert_follows(shown, logs_of(BernoulliDesign(), chance, np.zeros(5, dtype=bool)))
    assert log.propensity == pytest.approx(chance[log.item], abs=1e-12)


@pytest.mark.parametrize(("members", "n", "bound"), [(60, 10, 0.02), (200, 20, 0.01), (200, 100, 0.005)])
def test_the_approximation_of_large_pools_is_close(
    members: int, n: int, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zipf weights, five positives: the largest relative error of a propensity by Rosén's equation."""
    weight = np.arange(2.0, members + 2) ** -0.5
    positive = np.zeros(members, dtype=bool)
    positive[:: members // 5] = True
    pool = np.array([0, members]), weight, positive
    exact = shown_propensities(*pool, size=np.array([n]))
    monkeypatch.setattr("truerank.sampling.designs.TOTAL_STEPS", 0.0)
    rough = shown_propensities(*pool, size=np.array([n]))
    assert rough.approximate.all()
    assert not exact.approximate.any()
    worst = float(np.abs(rough.value / exact.value - 1).max())
    assert 0 < worst < bound


def test_different_pools_have_equal_shares_of_the_budget_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    weights = [rng.lognormal(0, 1, members) for members in (40, 6, 20, 6, 40)]
    weights.append(weights[2])  # shares its computation
    size = np.array([20, 3, 10, 2, 5, 10])

    def approximate(order: list[int]) -> list[bool]:
        rough = inclusion_of_pools([weights[at] for at in order], size[order]).approximate
        return [bool(each) for each in rough[np.argsort(order)]]

    order = list(range(6))
    assert not any(approximate(order))
    monkeypatch.setattr("truerank.sampling.designs.TOTAL_STEPS", 5 * exact_steps(weights[2], 10))
    assert approximate(order) == approximate(order[::-1]) == [True, False, False, False, True, False]
    monkeypatch.setattr("truerank.sampling.designs.TOTAL_STEPS", 5 * exact_steps(weights[2], 10) - 1)
    assert approximate(order) == approximate(order[::-1]) == [True, False, True, False, True, True]
