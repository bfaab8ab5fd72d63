"""Intervals keep their promise: a quick run on a small world, and the full one on KuaiRec."""

from __future__ import annotations

import numpy as np
import pytest

import interval_coverage as coverage
import kuairec
import truerank as tr
from realdata import folder_of
from truerank.core.ranking import Candidates
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.published import Published
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.models.ease import EASE
from truerank.ranks.kernel.rank import rank
from truerank.studies.coverage import Asked, ObservedWorld, Uniformly, measure
from truerank.studies.world import WorldSettings, make_world


def test_coverage_on_a_small_world() -> None:
    """200 draws: a correct 95 % interval falls outside 88 to 100 % less than once in 10,000 times."""
    world = make_world(WorldSettings(users=300, items=120, density=0.1, shown=20, judged=10), seed=1)
    labels = world.truth
    pool = Candidates(300, 120.0)
    truth = ObservedWorld(
        labels,
        {
            name: rank(model.fit(world.train, seed=1), labels, pools=[pool])[0]
            for name, model in (("popularity", Popularity()), ("ease", EASE()))
        },
    )
    asked: list[Asked] = [(Recall(20), Pooled()), (Precision(20), HorvitzThompson())]
    for interval in (tr.Population(), tr.Design()):
        for each in measure(truth, asked, drawing=Uniformly(30), runs=200, interval=interval, seed=1):
            assert 0.88 <= each.covered <= 1, each
            assert each.unbiased, each
    published = measure(truth, [(Recall(5), Published())], drawing=Uniformly(10), runs=50, seed=1)
    assert all(each.bias < -5 * each.noise for each in published[:2])  # the bias is there, and it is downwards


@pytest.mark.realdata
@pytest.mark.slow
def test_coverage_on_kuairec() -> None:
    """2,000 draws of 80 exposures per user, as `make coverage` runs it."""
    folder_of("kuairec")
    truth = kuairec.truth()
    found = coverage.study(truth, runs=2000)
    assert [each for each in found if not coverage.holds(each)] == []
    by_name = {each.what: each for each in found if each.estimator == "published"}
    assert by_name["popularity"].bias / by_name["popularity"].truth == pytest.approx(-0.19, abs=0.03)
    assert np.isfinite([each.width for each in found]).all()
