"""Intervals under biased exposure keep their promise with right propensities, and not with wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import biased_coverage
from truerank.core.ranking import Candidates
from truerank.estimators.biased.ips import IPS
from truerank.estimators.biased.naive import Naive
from truerank.estimators.biased.snips import SNIPS
from truerank.metrics.dcg import DCG
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.ranks.kernel.rank import rank
from truerank.studies.coverage import Asked, ByPropensity, ObservedWorld, measure
from truerank.studies.world import WorldSettings, make_world


def test_coverage_on_a_small_world() -> None:
    """200 logs: a correct 95 % interval falls outside 88 to 100 % less than once in 10,000 times."""
    world = make_world(WorldSettings(users=300, items=120, density=0.1, shown=20, judged=10), seed=1)
    labels = world.truth
    scores = Popularity().fit(world.train, seed=1)
    truth = ObservedWorld(labels, {"popularity": rank(scores, labels, pools=[Candidates(300, 120.0)])[0]})
    right = biased_coverage.propensities(labels.label.reshape(300, 120))
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


@pytest.mark.slow
def test_coverage_as_published() -> None:
    """2,000 logs, as `make biased` runs it."""
    rows = biased_coverage.study(runs=2000, seed=biased_coverage.SEED, only="right")
    promised = [each for each in rows if each.promised]
    assert len(promised) == 9
    assert [each for each in promised if not each.holds] == []
    assert all(each.found.unbiased for each in rows if each.found.estimator == "ips" and each.clip == np.inf)
