"""Uniform draws: the stated means and variances are those over every outcome."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest

from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.exposure.randomness import _overlap, _users
from truerank.exposure.randomness.draws import Draws, item_dispersion

N_ITEMS = 4
SIZES = [(1, 2, 3), (2, 2, 2), (1, 1), (2, 0, 3), (2,)]
EXCLUDED: list[tuple[tuple[int, ...], ...] | None] = [None, ((0,), (), (3,)), ((0, 1), (1,), ())]
SCORE = np.array([0.3, -1.0, 2.0, 0.7])


def log_of(sets: tuple[tuple[int, ...], ...]) -> Log:
    user = np.array([u for u, each in enumerate(sets) for _ in each], dtype=np.int64)
    item = np.array([i for each in sets for i in each], dtype=np.int64)
    return Log(Ids.of(range(len(sets))), Ids.of(range(N_ITEMS)), user, item, {})


def outcomes(sizes: tuple[int, ...], excluded: tuple[tuple[int, ...], ...] | None) -> Iterator[tuple[Draws, float]]:
    pools = [[i for i in range(N_ITEMS) if excluded is None or i not in excluded[u]] for u in range(len(sizes))]
    options = [list(combinations(pool, size)) for pool, size in zip(pools, sizes, strict=True)]
    chance = 1 / math.prod(len(each) for each in options)
    gone = None
    if excluded is not None:
        pairs = [(u, i) for u in range(len(sizes)) for i in excluded[u]]
        gone = Pairs.of(np.array([u for u, _ in pairs]), np.array([i for _, i in pairs]), n_units=len(sizes))
    for sets in product(*options):
        yield Draws.of(log_of(sets), excluded=gone), chance


CASES = [
    (sizes, excluded)
    for sizes in SIZES
    for excluded in EXCLUDED
    if excluded is None
    or (len(sizes) == 3 and all(s + len(e) <= N_ITEMS for s, e in zip(sizes, excluded, strict=True)))
]


@pytest.mark.parametrize(("sizes", "excluded"), CASES)
def test_means_and_variances_are_those_over_every_outcome(
    sizes: tuple[int, ...], excluded: tuple[tuple[int, ...], ...] | None
) -> None:
    everything = list(outcomes(sizes, excluded))
    draws = everything[0][0]
    chance = np.array([each for _, each in everything])
    assert chance.sum() == pytest.approx(1, abs=1e-12)

    count = np.array([each.count for each, _ in everything])
    mean = chance @ count
    assert mean == pytest.approx(draws.over_users(draws.share), abs=1e-10)
    assert chance @ (count - mean) ** 2 == pytest.approx(draws.over_users(draws.spread), abs=1e-10)

    contrast = np.array([each.contrast(SCORE)[0] for each, _ in everything])
    assert chance @ contrast == pytest.approx(0, abs=1e-10)
    assert chance @ contrast**2 == pytest.approx(draws.contrast(SCORE)[1], abs=1e-10)

    dispersions = [item_dispersion(each) for each, _ in everything]
    totals = np.array([each.total for each in dispersions if each is not None])
    first = dispersions[0]
    assert first is not None
    assert chance @ totals == pytest.approx(first.n, abs=1e-10)
    assert chance @ (totals - first.n) ** 2 == pytest.approx(first.variance, abs=1e-10)


def test_pairs_in_common_with_training() -> None:
    everything = list(outcomes((1, 2, 3), None))
    seen = Pairs.of(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 3]), n_units=3)
    chance = np.array([each for _, each in everything])
    overlap = np.array([_overlap(each, seen)[0] for each, _ in everything])
    _, expected, noise = _overlap(everything[0][0], seen)
    assert chance @ overlap == pytest.approx(expected, abs=1e-10)
    assert chance @ (overlap - expected) ** 2 == pytest.approx(noise**2, abs=1e-10)


def test_the_statistic_of_users_has_the_mean_of_its_chi_square() -> None:
    """Over every set of 5 of the 12 cells of 3 users; where all users have as many rows X² is 0."""
    statistics = []
    for cells in combinations(range(12), 5):
        user, item = np.divmod(np.array(cells), N_ITEMS)
        found = _users(Draws.of(Log(Ids.of(range(3)), Ids.of(range(N_ITEMS)), user, item, {})))
        statistics.append(0.0 if found is None else found.statistic)
    assert np.mean(statistics) == pytest.approx(2, abs=1e-10)
