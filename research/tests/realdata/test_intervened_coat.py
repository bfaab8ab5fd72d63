"""Intervened test sets on Coat: sizes, levelled items, and inclusion probabilities against drawn test sets."""

from __future__ import annotations

import pytest

import truerank as tr
from realdata import folder_of
from truerank.core.log import Log
from truerank.datasets.ratings import Coat
from truerank_research.papers.splits import wtd
from truerank_research.papers.wtd.inclusion import (
    ALL_STRATEGIES,
    dispersion,
    draw_sets,
)
from truerank_research.runner import Setting, Source

pytestmark = pytest.mark.realdata


@pytest.fixture
def coat() -> dict[str, Log]:
    return Coat().load(folder_of("coat"))


@pytest.fixture
def setting() -> Setting:
    return Setting(Source(folder_of("coat")), full=True)


def test_half_of_the_held_out_rows_without_duplicates(coat: dict[str, Log]) -> None:
    parts = coat
    for seed in range(3):
        split = wtd(parts["train"], parts["random"], seed=seed)
        heldout = split["heldout"]
        assert len(heldout) == 2784
        held = set(zip(heldout.user.tolist(), heldout.item.tolist(), strict=True))
        level = {}
        for name, strategy in ALL_STRATEGIES.items():
            drawn = tr.intervene(heldout, strategy, train=split["train"], random=split["weights"], seed=seed)
            pairs = set(zip(drawn.user.tolist(), drawn.item.tolist(), strict=True))
            assert len(pairs) == len(drawn)
            assert pairs <= held
            if name not in ("FULL", "popularity-stratified", "equal-per-item"):
                assert len(drawn) == 1392  # floor(0.5 x 2,784)
            level[name] = dispersion(drawn)
        for name in ("SKEW", "WTD_H", "WTD_H, item power 1"):
            assert level[name] <= 0.7 * level["REG"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SKEW", "WTD", "WTD_H"])
def test_agrees_with_two_thousand_drawn_test_sets(setting: Setting, name: str) -> None:
    found = draw_sets(setting, name, 2000)
    assert len(found) == 20
    for row in found.iter_rows(named=True):
        assert abs(row["formula"] - row["mean"]) <= max(3 * row["error"], 0.01 * row["mean"]), row
