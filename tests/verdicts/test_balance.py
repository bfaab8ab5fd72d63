"""Judged rows must stand for the places of a list: where they do not, that is said, and no verdict is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from shown import Shown, uniform

import truerank as tr
from truerank.core.results import INSUFFICIENT, Estimate, Results
from truerank.inference.balance import Balance

USERS, ITEMS = 300, 150
METRICS = ["Precision@10", "Recall@10"]
ESTIMATORS = ["pooled", "horvitz-thompson", "hajek", "published"]


def codes(estimate: Estimate) -> set[str]:
    return {message.code for message in estimate.warnings}


def of(results: Results, model: str) -> list[Estimate]:
    return [each for each in results.estimates if each.model == model]


@pytest.fixture(scope="module")
def world() -> Shown:
    return Shown.of(np.random.default_rng(13), USERS, ITEMS)


@pytest.fixture(scope="module")
def avoiding(world: Shown) -> Results:
    """Rows drawn at random, of which a third of those in the lists of one model went missing."""
    rng = np.random.default_rng(5)
    shown = uniform(rng, world.label.shape, 40)
    shown &= ~(world.list_of("taste", 10) & (rng.random(shown.shape) < 0.35))
    how: dict[str, Any] = {"exposure": "random", "metrics": METRICS, "estimators": ESTIMATORS}
    return tr.evaluate(world.models, world.judged(shown), **how)


def test_rows_that_avoid_one_models_list_are_found(avoiding: Results) -> None:
    for estimate in of(avoiding, "taste"):
        assert "unbalanced" in codes(estimate), estimate.estimator
        assert estimate.evidence.balance == pytest.approx(0.65, abs=0.1)
        assert estimate.evidence.balance_z is not None
        assert estimate.evidence.balance_z < -3
    for model in ("popular", "guess"):
        for estimate in of(avoiding, model):
            assert "unbalanced" not in codes(estimate)
            assert estimate.evidence.balance == pytest.approx(1, abs=0.15)


def test_comparisons_with_that_model_have_no_verdict(avoiding: Results) -> None:
    assert len(avoiding.comparisons) == 12
    for comparison in avoiding.comparisons:
        reasons = {message.code for message in comparison.reasons}
        if "taste" in (comparison.model, comparison.baseline):
            assert comparison.verdict == INSUFFICIENT
            assert reasons == {"unbalanced"}
        else:
            assert not reasons


def test_the_share_and_its_z_by_hand() -> None:
    """Two users with 4 candidates of which 2 were judged: the list of the first, and nothing of that of the second.

    N / N-bar = 2; D = 2 x 2 places; D-hat = 2 x 2 + 0. S² = (2 - 4 / 4) / 3 = 1/3; V = 2 x 16 x 1/2 x 1/3 / 2 = 8/3.
    """
    scores = {"m": np.array([[4.0, 3, 2, 1], [4, 3, 2, 1]])}
    rows = [(0, 0, 1), (0, 1, 0), (1, 2, 1), (1, 3, 0)]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    plan_of: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@2"], "estimators": ["pooled"]}
    (found,) = tr.evaluate(scores, labels, **plan_of).estimates
    assert "few-list-rows" in codes(found)
    assert found.evidence.balance is None  # 2 of 4 places expected, fewer than 10
    one, other = Balance(2.0, 4.0, 4 / 3, 1.0), Balance(2.0, 0.0, 4 / 3, 1.0)
    both = one + other
    assert (both.share, both.z, both.checkable) == (1.0, 0.0, False)
    assert one.z == pytest.approx(2 / math.sqrt(4 / 3))


@pytest.mark.parametrize("ties", ["expected", "random"])
def test_the_tally_is_what_its_formula_says(world: Shown, ties: str) -> None:
    """D-hat, D and V of Precision@10, user by user, with excluded items and unequal numbers of judged ones."""
    rng = np.random.default_rng(3)
    n = rng.integers(1, 60, USERS)
    excluded = rng.random(world.label.shape) < 0.1
    shown = uniform(rng, world.label.shape, n) & ~excluded
    known = said = variance = rows = 0.0
    places = world.list_of("guess", 10)
    for user in range(USERS):
        order = [item for item in np.argsort(-world.scores["guess"][user]) if not excluded[user, item]][:10]
        size, judged = int((~excluded[user]).sum()), int(shown[user].sum())
        if not judged:
            continue
        known += 1
        said += size / judged * shown[user, order].sum() / 10
        spread = (10 / 100 - 1 / size) / (size - 1)
        variance += size**2 * (1 - judged / size) * spread / judged
        rows += 10 * judged / size
    assert places.sum() == 10 * USERS
    users, items = np.nonzero(excluded)
    found = tr.evaluate(
        {"guess": world.models["guess"]},
        world.judged(shown),
        exclude=pl.DataFrame({"user": users, "item": items}),
        exposure="random",
        metrics=["Precision@10"],
        estimators=["horvitz-thompson"],
        ties=ties,
    ).estimates[0]
    assert rows > 9
    assert found.evidence.balance == pytest.approx(said / known, rel=1e-12)
    assert found.evidence.balance_z == pytest.approx((said - known) / math.sqrt(variance), rel=1e-12)


def test_a_declared_rate_counts_users_without_a_row(world: Shown) -> None:
    rng = np.random.default_rng(8)
    rate = 0.02
    shown = rng.random(world.label.shape) < rate
    assert (~shown.any(axis=1)).any()
    labels = tr.read(world.judged(shown), users=range(USERS))
    found = tr.evaluate(
        {"guess": world.models["guess"]}, labels, exposure=f"random(rate={rate})", metrics=["Precision@10"]
    ).estimates[0]
    said = (shown & world.list_of("guess", 10)).sum() / 10 / rate
    variance = USERS * 10 / 100 * (1 - rate) / rate
    assert found.evidence.balance == pytest.approx(said / USERS)
    assert found.evidence.balance_z == pytest.approx((said - USERS) / math.sqrt(variance))


def test_chunks_of_users_do_not_matter(world: Shown) -> None:
    first, second = Balance(3.0, 2.0, 1.0, 5.0), Balance(4.0, 5.0, 2.0, 6.0)
    assert first + second == Balance(7.0, 7.0, 3.0, 11.0)


def test_uniform_rows_are_seldom_called_unbalanced(world: Shown) -> None:
    """|z| > 3 in at most 1 % of draws; three models x two metrics share the draws."""
    failed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shown = uniform(rng, world.label.shape, rng.integers(5, 60, USERS))
        how: dict[str, Any] = {
            "exposure": "random",
            "metrics": ["Precision@10", "Precision@1"],
            "estimators": ["hajek"],
        }
        results = tr.evaluate(world.models, world.judged(shown), **how)
        failed += sum("unbalanced" in codes(each) for each in results.estimates)
    assert failed <= 5  # of 240


def test_who_does_not_rest_on_the_list_is_not_checked(world: Shown) -> None:
    rng = np.random.default_rng(2)
    shown = uniform(rng, world.label.shape, 40)
    shown &= ~world.list_of("taste", 10)
    ways: list[dict[str, Any]] = [
        {"exposure": "random", "estimators": ["traditional"], "metrics": ["Recall@10"]},
        {"exposure": "biased", "estimators": ["naive"], "metrics": ["Recall@10"]},
        {"exposure": "full(unlisted=negative)", "estimators": ["full"], "metrics": ["Recall@10"]},
    ]
    for how in ways:
        for estimate in tr.evaluate(world.models, world.judged(shown, 0.3), **how).estimates:
            assert not codes(estimate) & {"unbalanced", "balance-unchecked"}
            assert estimate.evidence.balance is None


@pytest.mark.parametrize("estimator", ["ips", "snips", "doubly-robust"])
def test_biased_rows_balance_by_their_weights(world: Shown, estimator: str) -> None:
    rng = np.random.default_rng(4)
    propensity = np.linspace(0.1, 0.6, ITEMS)
    shown = rng.random(world.label.shape) < propensity
    how: dict[str, Any] = {"exposure": "biased", "metrics": ["Precision@10"], "estimators": [estimator]}
    for estimate in tr.evaluate(world.models, world.judged(shown, propensity), **how).estimates:
        assert "unbalanced" not in codes(estimate)
        assert estimate.evidence.balance == pytest.approx(1, abs=0.15)
    wrong = tr.evaluate(world.models, world.judged(shown, np.full(ITEMS, propensity.mean())), **how)
    (popular,) = of(wrong, "popular")
    assert "unbalanced" in codes(popular)
    assert all(c.verdict == INSUFFICIENT for c in wrong.comparisons if "popular" in (c.model, c.baseline))


def test_propensities_of_no_scale_are_compared_as_shares(world: Shown) -> None:
    """By a power of popularity, Σ 1 / π means nothing; whether a list has its share of it does."""
    rng = np.random.default_rng(6)
    propensity = np.linspace(0.1, 0.6, ITEMS)
    shown = rng.random(world.label.shape) < propensity
    liked = Shown(np.ones_like(world.label), world.scores)  # positives are spread as exposure is
    how: dict[str, Any] = {"exposure": "biased(propensity=power:1)", "metrics": ["Recall@10"], "estimators": ["snips"]}
    for estimate in tr.evaluate(world.models, liked.judged(shown), **how).estimates:
        assert "unbalanced" not in codes(estimate)
        assert estimate.evidence.balance == pytest.approx(1, abs=0.1)
    how["exposure"] = "biased(propensity=power:0)"
    wrong = tr.evaluate(world.models, liked.judged(shown), **how)
    assert "unbalanced" in codes(of(wrong, "popular")[0])
    assert "unbalanced" not in codes(of(wrong, "guess")[0])


def test_top_lists_of_an_unknown_catalogue_cannot_be_checked(world: Shown) -> None:
    shown = uniform(np.random.default_rng(2), world.label.shape, 40)
    user, item = np.nonzero(world.list_of("taste", 10))
    lists = pl.DataFrame({"user": user, "item": item, "score": world.scores["taste"][user, item]})
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@10"], "estimators": ["published"]}
    (found,) = tr.evaluate({"taste": lists}, world.judged(shown), **how).estimates
    (message,) = (each for each in found.warnings if each.code == "balance-unchecked")
    assert "the number of candidates is unknown" in str(message)
    (known,) = tr.evaluate({"taste": lists}, world.judged(shown), n_items=ITEMS, **how).estimates
    assert known.evidence.balance == pytest.approx(1, abs=0.15)


def test_strict_ties_know_no_worth_of_a_list(world: Shown) -> None:
    shown = uniform(np.random.default_rng(2), world.label.shape, 40)
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@10"], "ties": "strict"}
    for estimate in tr.evaluate(world.models, world.judged(shown), **how).estimates:
        assert estimate.evidence.balance is None
