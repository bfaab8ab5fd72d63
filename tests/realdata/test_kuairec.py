"""Random exposure on a real, fully observed block: known values, and one draw that finds them."""

from __future__ import annotations

import numpy as np
import pytest

import kuairec
import truerank as tr
from realdata import folder_of
from truerank.core.metric import Metric
from truerank.studies.coverage import Truth, Uniformly

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def truth() -> Truth:
    folder_of("kuairec")
    found = kuairec.truth()
    kuairec.check(found)
    return found


def value(truth: Truth, estimator: tr.Full | tr.Pooled, metric: Metric) -> float:
    return estimator.terms(truth.labels, truth.ranks["popularity"], metric=metric).value()


def test_pooled_and_mean_recall_of_popularity(truth: Truth) -> None:
    """Two estimands, a factor of two apart: .110 over pairs, .226 over users."""
    assert value(truth, tr.Pooled(), tr.Recall(50)) == pytest.approx(0.110, abs=0.001)
    assert value(truth, tr.Full(), tr.Recall(50)) == pytest.approx(0.226, abs=0.001)


def test_one_draw_of_80_exposures(truth: Truth) -> None:
    """Within 4 standard errors of the truth; the published mean is not, and is too low."""
    log, ranks = Uniformly(80)(truth, units=np.arange(truth.n_users), rng=np.random.default_rng(1))
    for estimator, metric in ((tr.Pooled(), tr.Recall(50)), (tr.HorvitzThompson(), tr.DCG(50))):
        for name, each in ranks.items():
            terms = estimator.terms(log, each, metric=metric, keep_rows=True)
            known = estimator.terms(truth.labels, truth.ranks[name], metric=metric).value()
            for interval in (tr.Population(), tr.Design()):
                spread = interval.around(terms, level=0.95)
                assert abs(spread.value - known) < 4 * spread.stderr
    published = tr.Population().around(tr.Published().terms(log, ranks["popularity"], metric=tr.Recall(50)), level=0.95)
    assert published.value + 4 * published.stderr < value(truth, tr.Full(), tr.Recall(50))
