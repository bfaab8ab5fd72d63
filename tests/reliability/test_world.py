"""The simulated world has the skew it promises, and is a function of its seed."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.io.facts import gini
from truerank.simulation.dataset import SimulatedDataset, simulate_dataset


@pytest.fixture(scope="module")
def world() -> SimulatedDataset:
    return simulate_dataset(seed=3)


def test_skew(world: SimulatedDataset) -> None:
    positive = world.rating > 3
    assert 0.04 < positive.mean() < 0.06
    nobody = ~positive.any(axis=1)
    assert 0.05 <= nobody.mean() < 0.2  # those drawn to like nothing, and some of little activity
    assert gini(positive.sum(axis=0).astype(float)) > 0.4  # popularity
    assert gini(positive.sum(axis=1).astype(float)) > 0.4  # activity
    assert set(np.unique(world.rating)) == {1, 2, 3, 4, 5}


def test_the_training_log_is_biased_and_the_random_one_is_not(world: SimulatedDataset) -> None:
    positive = world.rating > 3
    assert world.train.label.mean() > 2 * positive.mean()
    unseen = np.ones_like(positive)
    unseen[world.train.user, world.train.item] = False
    expected = np.mean([positive[u][unseen[u]].mean() for u in range(len(positive))])
    noise = np.sqrt(expected / len(world.random))
    assert abs(world.random.label.mean() - expected) < 4 * noise
    assert unseen[world.random.user, world.random.item].all()
    assert (np.bincount(world.random.user) == 20).all()
