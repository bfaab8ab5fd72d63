"""The studies that come with truerank are those that research packs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from truerank.reliability import advice_for
from truerank.reliability.studied import NOTE, QUESTIONS, SHIPPED, WORLD, FinishedStudy, shipped_datasets
from truerank_research.papers.reliability.pack import SCENARIOS, pack_studies
from truerank_research.runner import Run


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


def test_a_packed_study_is_what_advice_needs_in_three_digits(tmp_path: Path) -> None:
    out = tmp_path / "packed"
    (place,) = pack_studies(Run(folder=out))
    assert place == out / "small"
    packed, whole = FinishedStudy.read(place), FinishedStudy.read(out / "small-study")
    assert packed.logs.equals(whole.logs.select(packed.logs.columns))
    assert set(packed.results["question"]) == set(QUESTIONS)
    difference = whole.pairs["difference"].to_numpy()
    assert packed.pairs.height == whole.pairs.height
    np.testing.assert_allclose(packed.pairs["difference"].to_numpy(), difference, rtol=0.005)
    assert not np.array_equal(packed.pairs["difference"].to_numpy(), difference)
    choice = advice_for(packed, None, users=40, sparsity=0.7, logger="uniform").recommended
    assert -1 <= choice.tau <= 1
    assert json.loads((place / WORLD).read_text())["what"] == "40 users of a made world"
    files = {path.name: path.read_bytes() for path in place.iterdir()}
    assert pack_studies(Run(folder=out)) == [place]
    assert {path.name: path.read_bytes() for path in place.iterdir()} == files
