"""Intervals of coverage and inequality hold the value of as many users, in worlds whose lists are all known."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.core.counted import CountedItems
from truerank_research.runner import committed
from truerank_research.validation.list_intervals import (
    POPULATION,
    ListedPopulation,
    held,
    list_intervals,
    rare_world,
    zipf_world,
)

DRAWS = 300
COMMITTED = committed("lists")


@pytest.fixture(scope="module")
def worlds() -> list[ListedPopulation]:
    rng = np.random.default_rng(5)
    return [zipf_world(60, 0.5, 1, rng=rng, n_users=POPULATION), rare_world(2000, 0.02, rng=rng, n_users=POPULATION)]


@pytest.mark.parametrize("n", [20, 100])
def test_they_hold_as_often_as_they_say(worlds: list[ListedPopulation], n: int) -> None:
    chance = 2 * (0.95 * 0.05 / DRAWS) ** 0.5
    for world in worlds:
        for row in held(list_intervals(world, n, draws=DRAWS, rng=np.random.default_rng(1))):
            assert row["held"] >= 0.95 - chance, row
            assert row["without"] == 0 or row["metric"] == "Gini", row


def test_the_committed_ones_do() -> None:
    """2,000 draws each: a correct 95 % interval holds in less than 93.4 % less than once in 1,000 times."""
    rows = COMMITTED.rows("intervals")
    assert len(rows) == 64
    assert all(row["held"] >= 0.934 for row in rows)
    assert all(row["without"] == 0 for row in rows if row["metric"] == "Coverage")


def test_the_study_can_fail(worlds: list[ListedPopulation], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a third of the influence of each user intervals are too narrow, and that is seen."""
    found = CountedItems.influence
    monkeypatch.setattr(CountedItems, "influence", lambda terms: found(terms) / 3)
    rows = held(list_intervals(worlds[0], 100, draws=DRAWS, rng=np.random.default_rng(1)))
    assert min(row["held"] for row in rows if row["metric"] == "Gini") < 0.8
