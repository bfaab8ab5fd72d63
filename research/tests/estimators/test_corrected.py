"""Mean recall by the rank curve: what is reported where it cannot be trusted."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.core.estimator import Asked, Learned
from truerank.core.ranking import RankView
from truerank.estimators.judged.corrected import Corrected
from truerank.metrics.recall import Recall
from truerank.uncertainty.modelled import about_curve, distrust
from truerank_research.validation.truth.contenders import ShownRows
from truerank_research.validation.truth.known import SyntheticSettings, synthetic
from truerank_research.validation.truth.means import MeanRecallWorld, ranks_of


@pytest.mark.parametrize("rising", [True, False])
def test_a_correction_that_goes_down_is_said(rising: bool) -> None:
    """Where recall rises with what users like, the curve was measured to correct too little, and gives no verdict."""
    known = synthetic(SyntheticSettings(500, 600, rising=rising), seed=5)
    rng = np.random.default_rng(5)
    shown = np.sort(np.argsort(rng.random(known.labels.shape), axis=1)[:, :150], axis=1)
    draw = ShownRows(known, np.arange(known.n_users), shown, 5)
    view = RankView(ranks_of(draw, "popularity"))
    terms = Corrected().terms(draw.chunk(), view, asked=[Asked(Recall(10))], learned=Learned())[0]
    doubts = {message.code for message in distrust(terms, "popularity")}
    assert ("recall-rises" in doubts) == rising
    assert (terms.correction() < -0.05 * terms.value()) == rising


def test_where_many_like_nothing_what_other_shares_would_give_is_said() -> None:
    """The worlds of the study in which values are off by more than the published mean, and no verdict is taken away."""
    drawing = MeanRecallWorld("30% like nothing", 80).drawn
    for run in range(3):
        draw = drawing.draw(20261117, run)
        for model in ("popularity", "item-knn"):
            view = RankView(ranks_of(draw, model))
            parts = Corrected().terms(draw.chunk(), view, asked=[Asked(Recall(k)) for k in (5, 10)], learned=Learned())
            for terms in parts:
                said = {message.code: message for message in about_curve(terms)}
                most = said["like-nothing"].numbers["most"]
                assert isinstance(most, float)
                assert most >= 0.25  # the true share is among those that can be
