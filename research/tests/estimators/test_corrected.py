"""Mean recall by the rank curve: exact with every label, golden values, and what is said where it cannot be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.estimator import Learned, ObservedUnits, Request
from truerank.core.ranking import RankView
from truerank.core.results import INSUFFICIENT, Results
from truerank.inference.linearization import Spread, allowing
from truerank.metrics.additive import Recall
from truerank_research.estimators.corrected import Corrected
from truerank_research.estimators.curve_messages import check_fit
from truerank_research.estimators.histograms import Histograms
from truerank_research.estimators.rank_curve import fit_curve
from truerank_research.validation.truth.contenders import ShownRows
from truerank_research.validation.truth.known import SyntheticSettings, synthetic
from truerank_research.validation.truth.mean_recall import ranks_of

N_USERS, N_ITEMS = 300, 200
# of the first implementation, a loop over users, nodes and bins, which takes small chances as their odds
GOLDEN = (0.292068, 0.031467)


def world(seed: int = 1) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Labels of users who like much or little, and two orders of the items, one of them good."""
    rng = np.random.default_rng(seed)
    popular, active = rng.gumbel(size=N_ITEMS), rng.normal(size=(N_USERS, 1))
    labels = rng.random((N_USERS, N_ITEMS)) < 1 / (1 + np.exp(3.5 - active - popular))
    scores = {"good": np.broadcast_to(popular, labels.shape), "other": rng.random(labels.shape)}
    return labels, {name: np.ascontiguousarray(each) for name, each in scores.items()}


def asked(n: int, *, estimators: list[Any], seed: int = 2, **how: Any) -> Results:
    labels, scores = world()
    rng = np.random.default_rng(seed)
    item = np.argsort(rng.random(labels.shape), axis=1)[:, :n].ravel()
    user = np.repeat(np.arange(N_USERS), n)
    rows = pl.DataFrame({"user": user, "item": item, "label": labels[user, item].astype(int)})
    return tr.evaluate(scores, rows, exposure="random", metrics=["Recall@10"], estimators=estimators, **how)


def drawn(seed: int = 0) -> Histograms:
    rng = np.random.default_rng(seed)
    size = np.tile([5.0, 10.0, 35.0, 150.0], (400, 1))
    judged = rng.multivariate_hypergeometric([5, 10, 35, 150], 12, size=400).astype(np.float64)
    much = rng.normal(size=(400, 1))
    relevant = rng.binomial(judged.astype(int), 1 / (1 + np.exp(-(np.array([0.0, -1, -2, -3]) + much))))
    return Histograms(relevant.astype(np.float64), judged, size, np.array([5.0, 15.0, 50.0, 200.0]), 2)


def test_the_fit_is_that_of_the_first_implementation() -> None:
    """Value and standard error as a plain loop over users, nodes and bins gives them."""
    found = fit_curve(drawn(), like_nothing=0.0).found
    error = float(np.sqrt((found.influence**2).sum()))
    assert (found.mean, error) == pytest.approx(GOLDEN, rel=1e-4)


def test_influences_are_what_users_add() -> None:
    """Without each of some users the value moves by about minus their influence."""
    rows = drawn()
    whole = fit_curve(rows, like_nothing=0.0).found
    chosen = np.argsort(-np.abs(whole.influence))[:12]
    moved = []
    for user in chosen:
        kept = np.arange(len(rows.size)) != user
        rest = Histograms(rows.relevant[kept], rows.judged[kept], rows.size[kept], rows.last, rows.within)
        moved.append(whole.mean - fit_curve(rest, like_nothing=0.0).found.mean)
    assert np.corrcoef(moved, whole.influence[chosen])[0, 1] > 0.95
    assert np.polyfit(whole.influence[chosen], moved, 1)[0] == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("n", [2, 20, 60])
def test_it_gives_no_verdict_unless_every_label_is_known(n: int) -> None:
    results = asked(n, estimators=["corrected", "pooled"])
    verdicts = {each.estimator: each for each in results.comparisons}
    assert verdicts["corrected"].verdict == INSUFFICIENT
    assert "experimental-estimator" in {reason.code for reason in verdicts["corrected"].reasons}
    assert "experimental-estimator" not in {reason.code for reason in verdicts["pooled"].reasons}
    doubted = {message.code for each in results.estimates if each.estimator == "corrected" for message in each.warnings}
    assert ("few-with-relevant" in doubted) == (n == 2)
    assert asked(N_ITEMS, estimators=["corrected"]).comparisons[0].verdict == "worse"


@pytest.mark.parametrize("correction", [0.0, 0.05, 0.5])
def test_an_interval_that_allows_for_bias(correction: float) -> None:
    """Wider with a larger correction; p is the level at which it ends at 0."""
    plain = Spread(0.2, 0.05, 0.102, 0.298, 0.0, informative=500, df=1e9)
    found = allowing(plain, correction, level=0.95)
    assert found.high - found.low >= plain.high - plain.low - 1e-9
    assert allowing(plain, correction, level=1 - found.p).low == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("rising", [True, False])
def test_a_correction_that_goes_down_is_said(rising: bool) -> None:
    """Where recall rises with what users like, the curve was measured to correct too little."""
    known = synthetic(SyntheticSettings(500, 600, rising=rising), seed=5)
    rng = np.random.default_rng(5)
    shown = np.sort(np.argsort(rng.random(known.labels.shape), axis=1)[:, :150], axis=1)
    draw = ShownRows(known, np.arange(known.n_users), shown, 5)
    view = RankView(ranks_of(draw, "popularity"))
    terms = Corrected().term(ObservedUnits(draw.chunk(), view, (), Learned()), Request(Recall(10)))
    codes = {message.code for message in check_fit(terms)}
    assert ("recall-rises" in codes) == rising
    assert (terms.correction() < -0.05 * terms.value()) == rising
