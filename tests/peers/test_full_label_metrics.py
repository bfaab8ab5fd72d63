"""On full labels every metric agrees with the tools people use today, or differs in a stated way.

Peers: trec_eval (pytrec-eval-terrier) and scikit-learn. Where a definition differs, the exact relation is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import pytrec_eval
from peer_world import CUTOFFS, N_ITEMS, N_USERS, SEEDS, TOLERANCE, World, per_user, reported, same, world
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

from truerank.core.arrays import Floats
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Gain
from truerank.core.ranking import Ties
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.listwise import NDCG, HitRate, ReciprocalRank, RPrecision
from truerank.metrics.pairwise import AUC, AveragePrecision

# --------------------------------------------------------------------------------------------------------- trec_eval

MEASURES = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in ("recall", "P", "ndcg_cut", "success", "map_cut")} | {
    "recip_rank",
    "Rprec",
}


@cache
def trec(seed: int, *, short: bool = False) -> Mapping[str, Floats]:
    """Every measure of trec_eval for each user. An item that is never recommended is one that was not retrieved."""
    given = world(seed)
    scores = given.short if short else given.free
    items = [f"i{item}" for item in range(N_ITEMS)]
    qrel = {f"u{u}": dict(zip(items, map(int, row), strict=True)) for u, row in enumerate(given.labels)}
    run = {
        f"u{u}": {item: float(s) for item, s in zip(items, row, strict=True) if np.isfinite(s)}
        for u, row in enumerate(scores)
    }
    found = pytrec_eval.RelevanceEvaluator(qrel, MEASURES).evaluate(run)
    names = next(iter(found.values()))
    return {name: np.array([found[f"u{u}"][name] for u in range(N_USERS)]) for name in names}


COMMON = [
    *((f"recall_{k}", Recall(k)) for k in CUTOFFS),
    *((f"P_{k}", Precision(k)) for k in CUTOFFS),
    *((f"ndcg_cut_{k}", NDCG(k)) for k in CUTOFFS),
    *((f"success_{k}", HitRate(k)) for k in CUTOFFS),
    *((f"map_cut_{k}", AveragePrecision(k, Denominator.POSITIVES)) for k in CUTOFFS),
    ("recip_rank", ReciprocalRank()),
    ("Rprec", RPrecision()),
]
# trec_eval gives 0 to every query without a relevant document and keeps it in its mean; here these are undefined for
# such users (the ideal, or the first relevant item, does not exist), left out of the mean, and counted
UNDEFINED_WITHOUT_POSITIVES = (Recall, NDCG, AveragePrecision, ReciprocalRank, RPrecision)


@pytest.mark.parametrize("short", [False, True], ids=["all retrieved", "some retrieved"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "metric"), COMMON, ids=str)
def test_equals_trec_eval_for_each_user_and_in_the_mean(name: str, metric: Metric, seed: int, short: bool) -> None:
    given, theirs = world(seed), trec(seed, short=short)[name]
    scores = given.short if short else given.free
    ours = per_user(metric, given, scores)
    same(ours[~given.empty], theirs[~given.empty])
    assert given.empty.sum() >= N_USERS // 10
    assert (theirs[given.empty] == 0).all()
    (estimate,) = reported(metric, given, scores).estimates
    if isinstance(metric, UNDEFINED_WITHOUT_POSITIVES):
        assert np.isnan(ours[given.empty]).all()
        assert (estimate.units, estimate.undefined) == ((~given.empty).sum(), given.empty.sum())
        theirs = theirs[~given.empty]
    else:
        assert (ours[given.empty] == 0).all()
        assert (estimate.units, estimate.undefined) == (N_USERS, 0)
    assert estimate.value == pytest.approx(float(theirs.mean()), abs=TOLERANCE)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("seed", SEEDS)
def test_average_precision_differs_from_trec_eval_by_its_divisor(seed: int, k: int, short: bool) -> None:
    # trec_eval divides by all relevant items, so that a perfect list longer than K stays below 1; here by min(K, all)
    given, theirs = world(seed), trec(seed, short=short)[f"map_cut_{k}"]
    ours = per_user(AveragePrecision(k), given, given.short if short else given.free)
    kept = ~given.empty
    relevant = given.relevant[kept]
    same(ours[kept] * np.minimum(k, relevant) / relevant, theirs[kept])
    assert (theirs[given.empty] == 0).all()
    assert np.isnan(ours[given.empty]).all()


@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("seed", SEEDS)
def test_reciprocal_rank_with_a_cut_is_that_of_trec_eval_or_zero(seed: int, k: int) -> None:
    # trec_eval has no cut-off for it: beyond rank K the value is 0
    given, theirs = world(seed), trec(seed)["recip_rank"]
    ours = per_user(ReciprocalRank(k), given, given.free)
    first = 1 / theirs[~given.empty]
    same(ours[~given.empty], np.where(np.round(first) <= k, 1 / first, 0.0))


@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("seed", SEEDS)
def test_graded_gain_is_that_of_trec_eval(seed: int, k: int) -> None:
    # trec_eval takes the grade itself as the gain
    given = world(seed)
    items = [f"i{item}" for item in range(N_ITEMS)]
    qrel = {f"u{u}": dict(zip(items, map(int, row), strict=True)) for u, row in enumerate(given.grades)}
    run = {f"u{u}": dict(zip(items, map(float, row), strict=True)) for u, row in enumerate(given.free)}
    found = pytrec_eval.RelevanceEvaluator(qrel, {f"ndcg_cut.{k}"}).evaluate(run)
    theirs = np.array([found[f"u{u}"][f"ndcg_cut_{k}"] for u in range(N_USERS)])
    ours = per_user(NDCG(k, Gain.LINEAR), given, given.free)
    same(ours[~given.empty], theirs[~given.empty])
    assert np.abs(per_user(NDCG(k), given, given.free) - theirs)[~given.empty].max() > 0.01


# ------------------------------------------------------------------------------------------------------ scikit-learn


def sklearn_rows(peer: object, given: World, scores: Floats, k: int, *, ignore_ties: bool) -> Floats:
    assert callable(peer)
    rows = zip(given.labels, scores, strict=True)
    return np.array([peer(y[None], s[None], k=k, ignore_ties=ignore_ties) for y, s in rows])


@pytest.mark.parametrize("ignore_ties", [False, True])
@pytest.mark.parametrize("k", CUTOFFS)
def test_gain_equals_sklearn_for_each_user_without_ties(k: int, ignore_ties: bool) -> None:
    given = world(0)
    same(
        per_user(DCG(k), given, given.free),
        sklearn_rows(dcg_score, given, given.free, k, ignore_ties=ignore_ties),
    )
    theirs = sklearn_rows(ndcg_score, given, given.free, k, ignore_ties=ignore_ties)
    ours = per_user(NDCG(k), given, given.free)
    same(ours[~given.empty], theirs[~given.empty])
    # scikit-learn gives nDCG 0 where there is no relevant item; here it is undefined
    assert (theirs[given.empty] == 0).all()
    assert np.isnan(ours[given.empty]).all()


@pytest.mark.parametrize("k", CUTOFFS)
def test_expected_gain_over_ties_equals_sklearn_for_each_user(k: int) -> None:
    # scikit-learn averages over tie orders by default, which is what Ties.EXPECTED does
    given = world(0)
    same(
        per_user(DCG(k), given, given.tied),
        sklearn_rows(dcg_score, given, given.tied, k, ignore_ties=False),
    )
    ours = per_user(NDCG(k), given, given.tied)[~given.empty]
    same(ours, sklearn_rows(ndcg_score, given, given.tied, k, ignore_ties=False)[~given.empty])


def test_one_order_of_ties_is_not_the_average_over_orders() -> None:
    # negative control: on tied scores ignore_ties=True is one arbitrary order, so the comparison above can fail
    given = world(0)
    theirs = sklearn_rows(dcg_score, given, given.tied, 5, ignore_ties=True)
    assert np.abs(per_user(DCG(5), given, given.tied) - theirs).max() > 0.1


@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("which", ["free", "tied"])
@pytest.mark.parametrize("gain", [Gain.LINEAR, Gain.EXPONENTIAL])
def test_graded_gain_equals_sklearn_for_each_user(gain: Gain, which: str, k: int) -> None:
    # scikit-learn takes the numbers it is given as gains, and averages over tie orders
    given = world(1)
    scores = given.free if which == "free" else given.tied
    gains = given.grades if gain is Gain.LINEAR else 2**given.grades - 1
    rows = list(zip(gains, scores, strict=True))
    same(per_user(DCG(k, gain), given, scores), np.array([dcg_score(y[None], s[None], k=k) for y, s in rows]))
    theirs = np.array([ndcg_score(y[None], s[None], k=k) for y, s in rows])
    same(per_user(NDCG(k, gain), given, scores)[~given.empty], theirs[~given.empty])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("which", ["free", "tied", "short"])
def test_area_under_the_curve_equals_sklearn(which: str, seed: int) -> None:
    # ties count one half in both; what is never recommended is tied below everything else
    given = world(seed)
    scores = {"free": given.free, "tied": given.tied, "short": given.short}[which]
    finite = np.where(np.isneginf(scores), -1.0, scores)
    both = ~given.empty & (given.relevant < N_ITEMS)
    theirs = np.array([roc_auc_score(y, s) for y, s in zip(given.labels[both], finite[both], strict=True)])
    ours = per_user(AUC(), given, scores)
    same(ours[both], theirs)
    assert np.isnan(ours[~both]).all()


def sklearn_average_precision(given: World, scores: Floats) -> Floats:
    rows = zip(given.labels[~given.empty], scores[~given.empty], strict=True)
    return np.array([average_precision_score(y, s) for y, s in rows])


@pytest.mark.parametrize("seed", SEEDS)
def test_average_precision_on_ties_is_the_strict_rule_of_sklearn(seed: int) -> None:
    # scikit-learn takes all candidates of one score at once: each has the rank of the last of them, as in Ties.STRICT
    given = world(seed)
    theirs = sklearn_average_precision(given, given.tied)
    strict = per_user(AveragePrecision(N_ITEMS), given, given.tied, ties=Ties.STRICT)[~given.empty]
    same(strict, theirs)
    expected = per_user(AveragePrecision(N_ITEMS), given, given.tied)[~given.empty]
    assert np.abs(expected - theirs).max() > 0.01
