"""Intervals of coverage and inequality hold the value of as many users, in worlds whose lists are all known."""

from __future__ import annotations

import numpy as np
import pytest

import list_intervals as study
from truerank.core.counted import CountedItems

DRAWS = 300


@pytest.fixture(scope="module")
def worlds() -> list[study.ListWorld]:
    rng = np.random.default_rng(5)
    return [study.zipf_world("small", 60, 0.5, 1, rng), study.rare_world("rare", 2000, 0.02, rng)]


@pytest.mark.parametrize("n", [20, 100])
def test_they_hold_as_often_as_they_say(worlds: list[study.ListWorld], n: int) -> None:
    chance = 2 * (0.95 * 0.05 / DRAWS) ** 0.5
    for world in worlds:
        for row in study.held(world, n, draws=DRAWS, seed=1):
            assert row.held >= 0.95 - chance, row
            assert row.without == 0 or row.metric == "Gini", row


def test_the_study_can_fail(worlds: list[study.ListWorld], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a third of the influence of each user intervals are too narrow, and that is seen."""
    found = CountedItems.influence
    monkeypatch.setattr(CountedItems, "influence", lambda terms: found(terms) / 3)
    rows = list(study.held(worlds[0], 100, draws=DRAWS, seed=1))
    assert min(row.held for row in rows if row.metric == "Gini") < 0.8
