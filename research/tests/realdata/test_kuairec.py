"""Random exposure on a real, fully observed block: known values, and one draw that finds them."""

from __future__ import annotations

import numpy as np
import pytest
from terms import terms_of

import truerank as tr
from realdata import folder_of
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Candidates, Ranks
from truerank.estimators.full import Full
from truerank.estimators.weighted import HorvitzThompson, Pooled, Published
from truerank.inference.intervals import Interval, around
from truerank.metrics.additive import DCG, Recall
from truerank.models.baselines import Popularity
from truerank.ranking.kernel.rank import rank
from truerank_research.papers.ure.theorems import draw_labels
from truerank_research.runner import Source
from truerank_research.validation.kuairec import block, svd

INTERVALS: list[Interval] = [tr.Population(), tr.Design()]

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def truth() -> tuple[Log, dict[str, Ranks]]:
    """Every cell of the block, and its ranks by popularity and by a truncated SVD."""
    labels, train = block(Source(folder_of("kuairec")), full=True, seed=0)
    whole = Candidates(len(labels.users), float(len(labels.items)))
    models = {"popularity": Popularity().fit(train, seed=0), "svd": svd(train, dimensions=32)}
    return labels, {name: rank(scores, labels, pools=[whole], name=name)[0] for name, scores in models.items()}


def test_pooled_and_mean_recall_of_popularity(truth: tuple[Log, dict[str, Ranks]]) -> None:
    """Two estimands, a factor of two apart: .110 over pairs, .226 over users."""
    labels, ranks = truth
    for estimator, value in ((Pooled(), 0.110), (Full(), 0.226)):
        terms = terms_of(estimator, labels, ranks["popularity"], Recall(50))
        assert terms.value() == pytest.approx(value, abs=0.001)


def test_one_draw_of_80_exposures(truth: tuple[Log, dict[str, Ranks]]) -> None:
    """Within 4 standard errors of the truth; the published mean is not, and is too low."""
    labels, ranks = truth
    ways: list[tuple[Estimator, Metric]] = [(Pooled(), Recall(50)), (HorvitzThompson(), DCG(50))]
    for name, whole in ranks.items():
        log, drawn = draw_labels(labels, whole, 80, np.random.default_rng(1))
        for estimator, metric in ways:
            terms = terms_of(estimator, log, drawn, metric, keep_rows=True)
            true_value = terms_of(estimator, labels, whole, metric).value()
            for interval in INTERVALS:
                spread = around(interval, terms, level=0.95)
                assert abs(spread.value - true_value) < 4 * spread.stderr
        if name == "popularity":
            published = around(tr.Population(), terms_of(Published(), log, drawn, Recall(50)), level=0.95)
            mean = terms_of(Full(), labels, whole, Recall(50)).value()
            assert published.value + 4 * published.stderr < mean
