"""Power as planned, and as measured."""

from __future__ import annotations

import pytest

from truerank_research.runner import committed
from truerank_research.validation.power import CLOSE, compare_power, worlds


@pytest.mark.parametrize("name", ["precision hajek, 40 users x 30", "sessions snips, 40 users x 30"])
def test_a_plan_keeps_its_word(name: str) -> None:
    """Within 3 points, and 4 Monte-Carlo errors of fewer draws; the page has 4,000 draws of 18 worlds."""
    world = next(each for each in worlds() if each.name == name)
    row = compare_power(world, 500, 1).row(0, named=True)
    assert abs(row["apart"]) <= 0.03 + 4 * row["noise"]
    assert 0.1 < row["planned"] < 0.9


def test_plans_kept_their_word_in_every_world_that_was_drawn() -> None:
    """What `run power --seed 1` found in 4,000 data sets each: within 3 points; plans are those of now."""
    found = committed("power")
    rows = {row["world"]: row for row in found.rows("worlds")}
    assert found.settings["draws"] == 4000
    assert list(rows) == [world.name for world in worlds()]
    assert all(abs(row["apart"]) <= CLOSE for row in rows.values())
    for kind in ("recall", "precision", "DCG", "close models", "sessions", "12 users"):
        assert any(kind in name for name in rows)
    for world in worlds()[-6:]:
        assert compare_power(world, 1, found.seed)["planned"][0] == pytest.approx(rows[world.name]["planned"], rel=1e-8)
