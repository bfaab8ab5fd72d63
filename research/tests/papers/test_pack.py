"""The studies that come with truerank are those that research packs."""

from __future__ import annotations

import json

import pytest

from truerank.reliability.studied import NOTE, SHIPPED, shipped_datasets
from truerank_research.papers.reliability.pack import SCENARIOS


@pytest.mark.parametrize("folder", shipped_datasets(), ids=str)
def test_what_is_shipped_is_what_would_be_packed_now(folder: str) -> None:
    """World, terms, scenarios and repetitions; the figures themselves take hours."""
    noted = json.loads((SHIPPED / folder / NOTE).read_text())
    asked = SCENARIOS[folder]
    grid = asked.grid(10)
    assert (noted["sparsities"], noted["repetitions"]) == (list(grid.sparsities), grid.repetitions)
    assert noted["metrics"] == [str(each) for each in grid.metrics]
    found = shipped_datasets()[folder]
    assert (found.name, found.home, found.terms, found.made_by) == (
        asked.world.name, asked.world.home, asked.world.terms, asked.world.made_by,
    )  # fmt: skip
    assert found.what == asked.world.what.format(**noted)
