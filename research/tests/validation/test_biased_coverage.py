"""Intervals under biased exposure keep their promise with right propensities, and not with wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.core.ranking import Candidates
from truerank.estimators.weighted import IPS, SNIPS, Naive
from truerank.metrics.dcg import DCG
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.ranks.kernel.rank import rank
from truerank.studies.world import WorldSettings, make_world
from truerank_research.coverage import Asked, ByPropensity, ObservedWorld, measure, measure_case
from truerank_research.runner import Run, committed
from truerank_research.validation.biased_exposure import RIGHT, SETTINGS, ClaimedPropensities, propensities


def test_coverage_on_a_small_world() -> None:
    """200 logs: a correct 95 % interval falls outside 88 to 100 % less than once in 10,000 times."""
    world = make_world(WorldSettings(users=300, items=120, density=0.1, shown=20, judged=10), seed=1)
    labels = world.truth
    scores = Popularity().fit(world.train, seed=1)
    truth = ObservedWorld(labels, {"popularity": rank(scores, labels, pools=[Candidates(300, 120.0)])[0]})
    right = propensities(labels.label.reshape(300, 120))
    asked: list[Asked] = [(Recall(20), SNIPS()), (DCG(20), SNIPS()), (DCG(20), IPS())]
    for each in measure(truth, asked, drawing=ByPropensity(right), runs=200, seed=1):
        assert 0.88 <= each.covered <= 1, each
        assert abs(each.bias) <= max(4 * each.noise, 0.01 * each.truth), each
    naive: list[Asked] = [(Recall(20), Naive()), (DCG(20), Naive())]
    for each in measure(truth, naive, drawing=ByPropensity(right), runs=30, seed=1):
        assert each.bias > 0.5 * each.truth, each
        assert each.covered == 0, each
    blind = np.broadcast_to(right.mean(axis=0), right.shape)
    # what is liked was shown more often than such propensities know, so it counts too much
    wrong = measure(truth, asked[1:], drawing=ByPropensity(right, blind), runs=30, seed=1)
    assert all(each.bias > 0.1 * each.truth for each in wrong)


COMMITTED = committed("biased-exposure")


def test_the_committed_results_keep_what_is_claimed() -> None:
    """93 to 97 % of intervals of self-normalised IPS with the right propensities hold the truth."""
    rows = [row for row in COMMITTED.rows("coverage") if row["propensities"] == RIGHT]
    unclipped = [row for row in rows if row["clip"] is None]
    promised = [row for row in unclipped if row["estimator"] == "snips"]
    assert len(promised) == 9
    assert all(0.93 <= row["coverage"] <= 0.97 for row in promised)
    unbiased = [row for row in unclipped if row["estimator"] == "ips"]
    assert unbiased
    assert all(abs(row["bias"]) <= max(3 * row["noise"], 0.005 * abs(row["truth"])) for row in unbiased)


def test_draws_that_are_kept_are_those_that_are_measured_at_once() -> None:
    case = ClaimedPropensities(RIGHT, WorldSettings(users=80, items=40, density=0.1, shown=8, judged=4), seed=3)
    at_once = measure(case.world(), case.asked, drawing=case.drawing(), runs=60, interval=case.interval, seed=3)
    assert measure_case(case, draws=60, run=Run()) == at_once


@pytest.mark.slow
def test_coverage_as_published() -> None:
    """2,000 logs, as `python -m truerank_research run biased-exposure --seed 20261116` draws them."""
    found = measure_case(ClaimedPropensities(RIGHT, SETTINGS, 20261116), draws=2000, run=Run())
    committed = [row for row in COMMITTED.rows("coverage") if row["propensities"] == RIGHT]
    assert [each.covered for each in found] == pytest.approx([row["coverage"] for row in committed], abs=0.00051)
    assert [each.mean for each in found] == pytest.approx([row["mean"] for row in committed], abs=0.0000051)
