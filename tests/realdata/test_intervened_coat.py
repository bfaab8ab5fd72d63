"""Intervened test sets on Coat: sizes, levelled items, and inclusion probabilities against drawn test sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import intervened_tests as study
import truerank as tr
from realdata import folder_of
from truerank.data.split import wtd
from truerank.estimators.biased.intervened import Intervened, IntervenedPooled
from truerank.exposure.interventions import dispersion, intervene, with_inclusion
from truerank.exposure.interventions.design import RegularIntervention
from truerank.exposure.interventions.skew import SkewIntervention
from truerank.exposure.interventions.weighted import WTDHIntervention
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.ranks.candidates import Overlap

pytestmark = pytest.mark.realdata


@pytest.fixture
def coat(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = folder_of("coat")
    monkeypatch.setenv("TRUERANK_DATA", str(folder.parent))
    return folder


@pytest.fixture
def world(coat: Path) -> study.World:
    return study.world_of(study.coat(), seed=0)


def test_half_of_the_held_out_rows_without_duplicates(coat: Path) -> None:
    parts = study.coat()
    for seed in range(3):
        split = wtd(parts["train"], parts["random"], seed=seed)
        heldout = split["heldout"]
        assert len(heldout) == 2784
        held = set(zip(heldout.user.tolist(), heldout.item.tolist(), strict=True))
        level = {}
        for name, strategy in study.SHOWN.items():
            drawn = intervene(heldout, strategy, train=split["train"], random=split["weights"], seed=seed)
            pairs = set(zip(drawn.user.tolist(), drawn.item.tolist(), strict=True))
            assert len(pairs) == len(drawn)
            assert pairs <= held
            if name not in ("FULL", "popularity-stratified", "equal-per-item"):
                assert len(drawn) == 1392  # floor(0.5 x 2,784)
            level[name] = dispersion(drawn)
        for name in ("SKEW", "WTD_H", "WTD_H, item power 1"):
            assert level[name] <= 0.7 * level["REG"]


def test_the_squared_weight_over_corrects(coat: Path) -> None:
    """Expected rows of an item rise with its popularity in REG, and fall with it under the squared weight."""
    parts = study.coat()
    split = wtd(parts["train"], parts["random"], seed=0)
    heldout, train = split["heldout"], split["train"]
    popularity = np.bincount(train.item, minlength=300)

    def slope(strategy: RegularIntervention | SkewIntervention | WTDHIntervention) -> float:
        chance = with_inclusion(heldout, strategy, train=train).inclusion
        assert chance is not None
        expected = np.bincount(heldout.item, chance, minlength=300)
        return float(np.corrcoef(popularity, expected)[0, 1])

    regular, plain, squared = (
        slope(each) for each in (RegularIntervention(), WTDHIntervention(item_power=1), WTDHIntervention(item_power=2))
    )
    assert squared < plain < regular
    assert squared < 0 < regular


def test_through_evaluate(world: study.World) -> None:
    """One call gives what the pieces give, with intervals and comparisons."""
    log = with_inclusion(world.heldout, SkewIntervention(), train=world.train)
    found = tr.evaluate(
        study.fitted(world.train),
        log,
        exposure=FullExposure(Unlisted.NEGATIVE),
        exclude=world.train,
        overlap=Overlap.KEEP,
        metrics=[Recall(10), Precision(10), DCG(10)],
        estimators=[Intervened(), IntervenedPooled()],
    )
    values = {(each.model, each.metric, each.estimator): each for each in found.estimates}
    expected = iter(study.by_formula(world, SkewIntervention()))
    for model in world.ranks:
        for metric, estimator in study.ASKED:
            each = values[model, str(metric), estimator.about.name]
            assert each.value == pytest.approx(next(expected), rel=1e-12)
            assert each.low < each.value < each.high
    assert len(values) == 16
    assert len(found.comparisons) == 4 * 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SKEW", "WTD", "WTD_H"])
def test_agrees_with_two_thousand_drawn_test_sets(world: study.World, name: str) -> None:
    found = study.agreement(world, name, study.COMPARED[name], runs=2000)
    assert len(found) == 16
    for each in found:
        assert each.holds, each
