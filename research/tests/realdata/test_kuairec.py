"""Random exposure on a real, fully observed block: known values, and one draw that finds them."""

from __future__ import annotations

import numpy as np
import pytest
from terms import terms_of

import truerank as tr
from realdata import folder_of
from truerank.core.estimator import Estimator
from truerank.core.metric import Metric
from truerank.estimators.full import Full
from truerank.estimators.weighted import HorvitzThompson, Pooled, Published
from truerank.metrics.dcg import DCG
from truerank.metrics.recall import Recall
from truerank.uncertainty.intervals import Interval, around
from truerank_research.coverage import ObservedWorld, Uniformly
from truerank_research.runner import Source
from truerank_research.validation.kuairec import observed

INTERVALS: list[Interval] = [tr.Population(), tr.Design()]

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def truth() -> ObservedWorld:
    return observed(Source(folder_of("kuairec")), full=True, seed=0)[0]


def value(truth: ObservedWorld, estimator: Full | Pooled, metric: Metric) -> float:
    return terms_of(estimator, truth.labels, truth.ranks["popularity"], metric).value()


def test_pooled_and_mean_recall_of_popularity(truth: ObservedWorld) -> None:
    """Two estimands, a factor of two apart: .110 over pairs, .226 over users."""
    assert value(truth, Pooled(), Recall(50)) == pytest.approx(0.110, abs=0.001)
    assert value(truth, Full(), Recall(50)) == pytest.approx(0.226, abs=0.001)


def test_one_draw_of_80_exposures(truth: ObservedWorld) -> None:
    """Within 4 standard errors of the truth; the published mean is not, and is too low."""
    log, ranks = Uniformly(80)(truth, units=np.arange(truth.n_users), rng=np.random.default_rng(1))
    ways: list[tuple[Estimator, Metric]] = [(Pooled(), Recall(50)), (HorvitzThompson(), DCG(50))]
    for estimator, metric in ways:
        for name, each in ranks.items():
            terms = terms_of(estimator, log, each, metric, keep_rows=True)
            known = terms_of(estimator, truth.labels, truth.ranks[name], metric).value()
            for interval in INTERVALS:
                spread = around(interval, terms, level=0.95)
                assert abs(spread.value - known) < 4 * spread.stderr
    terms = terms_of(Published(), log, ranks["popularity"], Recall(50))
    published = around(tr.Population(), terms, level=0.95)
    assert published.value + 4 * published.stderr < value(truth, Full(), Recall(50))
