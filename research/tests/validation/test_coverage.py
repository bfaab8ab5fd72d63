"""Intervals keep their promise: a quick run on a small world, and the full one on KuaiRec."""

from __future__ import annotations

import pytest

import truerank as tr
from realdata import folder_of
from truerank.core.ranking import Candidates
from truerank.estimators.weighted import HorvitzThompson, Pooled, Published
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.models.ease import EASE
from truerank.ranks.kernel.rank import rank
from truerank.studies.world import WorldSettings, make_world
from truerank_research.coverage import Asked, ObservedWorld, Uniformly, measure, measure_case
from truerank_research.runner import Run, Source, committed
from truerank_research.validation.uniform_coverage import CLAIMED, PUBLISHED, UniformJudgements


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


COMMITTED = committed("coverage")


def test_the_committed_results_keep_what_is_claimed() -> None:
    """93 to 97 % coverage and no bias, for pooled and post-stratified recall and for Horvitz-Thompson."""
    result = COMMITTED
    claimed = [row for row in result.rows("coverage") if row["estimator"] in CLAIMED]
    assert len(claimed) == 24
    assert all(0.93 <= row["coverage"] <= 0.97 for row in claimed)
    assert all(abs(row["bias"]) <= max(3 * row["noise"], 0.005 * abs(row["truth"])) for row in claimed)
    published = {row["what"]: row for row in result.rows("published")}
    assert published["popularity"]["relative"] == pytest.approx(-0.19, abs=0.03)
    assert all(row["coverage"] < 0.5 for row in published.values())


@pytest.mark.realdata
@pytest.mark.slow
@pytest.mark.parametrize("name", ["population", "design", PUBLISHED])
def test_coverage_on_kuairec(name: str) -> None:
    """2,000 draws of 80 exposures per user, as `run coverage --seed 20261115` draws them."""
    case = UniformJudgements(name, Source(folder_of("kuairec")), True, 20261115)
    found = measure_case(case, draws=2000, run=Run())
    result = COMMITTED
    rows = [row for row in result.rows("coverage") if row["interval"] == name] or result.rows("published")
    assert [each.truth for each in found] == pytest.approx([row["truth"] for row in rows], abs=0.0000051)
    assert [each.mean for each in found] == pytest.approx([row["mean"] for row in rows], abs=0.0000051)
    assert [each.covered for each in found] == pytest.approx([row["coverage"] for row in rows], abs=0.00051)
