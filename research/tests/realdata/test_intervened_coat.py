"""Intervened test sets on Coat: sizes, levelled items, and inclusion probabilities against drawn test sets."""

from __future__ import annotations

import pytest

import truerank as tr
from realdata import folder_of
from truerank.core.log import Log
from truerank.datasets.ratings import Coat
from truerank.estimators.intervened import Intervened, IntervenedPooled
from truerank.exposure.interventions import SkewIntervention
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.ranking.candidates import Overlap
from truerank_research.papers.splits import wtd
from truerank_research.papers.wtd.inclusion import (
    ALL_STRATEGIES,
    MODELS,
    REQUESTS,
    RankedHeldOut,
    dispersion,
    draw_sets,
)
from truerank_research.papers.wtd.setting import split_of
from truerank_research.runner import Setting, Source

pytestmark = pytest.mark.realdata


@pytest.fixture
def coat() -> dict[str, Log]:
    return Coat().load(folder_of("coat"))


@pytest.fixture
def setting() -> Setting:
    return Setting(Source(folder_of("coat")), full=True)


@pytest.fixture
def world(setting: Setting) -> RankedHeldOut:
    return RankedHeldOut.from_split(split_of(setting, 0))


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


def test_through_evaluate(world: RankedHeldOut) -> None:
    """One call gives what the pieces give, with intervals and comparisons."""
    log = tr.with_inclusion(world.heldout, SkewIntervention(), train=world.split.train)
    found = tr.evaluate(
        {name: model.fit(world.split.train, seed=0) for name, model in MODELS.items()},
        log,
        exposure=FullExposure(Unlisted.NEGATIVE),
        exclude=world.split.train,
        overlap=Overlap.KEEP,
        metrics=[Recall(10), Precision(10), DCG(10)],
        estimators=[Intervened(), IntervenedPooled()],
    )
    values = {(each.model, each.metric, each.estimator): each for each in found.estimates}
    expected = iter(world.by_formula(SkewIntervention()))
    for model in world.ranks:
        for metric, estimator in REQUESTS.values():
            each = values[model, str(metric), estimator.info.name]
            assert each.value == pytest.approx(next(expected), rel=1e-12)
            assert each.low < each.value < each.high
    assert len(values) == 20
    assert len(found.comparisons) == 4 * 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SKEW", "WTD", "WTD_H"])
def test_agrees_with_two_thousand_drawn_test_sets(setting: Setting, name: str) -> None:
    found = draw_sets(setting, name, 2000)
    assert len(found) == 20
    for row in found.iter_rows(named=True):
        assert abs(row["formula"] - row["mean"]) <= max(3 * row["error"], 0.01 * row["mean"]), row
