"""Extreme weights: what was not drawn, what a clip takes away, propensities without a scale, impossible values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from shown import Shown, uniform

import truerank as tr
from truerank.core.arrays import Floats
from truerank.core.errors import RefusedError
from truerank.core.messages import Severity
from truerank.core.results import BETTER, INSUFFICIENT, Estimate, Results

USERS, ITEMS = 200, 100


def codes(estimate: Estimate) -> set[str]:
    return {message.code for message in estimate.warnings if message.severity is not Severity.NOTE}


@pytest.fixture(scope="module")
def world() -> Shown:
    return Shown.of(np.random.default_rng(21), USERS, ITEMS)


def biased(world: Shown, propensity: Floats, *, seed: int, estimators: list[str], **how: Any) -> Results:
    shown = np.random.default_rng(seed).random(world.label.shape) < propensity
    labels = tr.read(world.judged(shown, propensity), users=range(USERS))
    return tr.evaluate(world.models, labels, exposure="biased", metrics=["Precision@10"], estimators=estimators, **how)


def test_misses_under_tiny_propensities_are_warned_of() -> None:
    """π = 1e-3 on 15 % of items, of which hardly a row is drawn: intervals miss, and nearly all that do warn."""
    misses = silent = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        world = Shown.of(rng, USERS, ITEMS)
        propensity = np.where(rng.random(ITEMS) < 0.15, 1e-3, 0.3)
        for estimate in biased(world, propensity, seed=seed, estimators=["ips", "doubly-robust"]).estimates:
            truth = (world.label & world.list_of(estimate.model, 10)).sum() / (10 * USERS)
            if not estimate.low <= truth <= estimate.high:
                misses += 1
                silent += not codes(estimate)
    assert misses >= 10
    assert silent <= 0.2 * misses


def test_moderate_propensities_do_not_warn(world: Shown) -> None:
    propensity = np.linspace(0.15, 0.5, ITEMS)
    results = biased(world, propensity, seed=1, estimators=["ips", "snips", "doubly-robust"])
    assert not set().union(*(codes(each) for each in results.estimates))
    assert {each.verdict for each in results.compare("taste", "guess")} == {BETTER}
    assert not [each for each in results.messages if each.code == "propensity-scale"]


def test_heavy_rows_that_were_not_drawn_are_said(world: Shown) -> None:
    """A tenth of the items had a chance of 1 in 10,000: none was drawn, and Σ 1 / π is a tenth short of all pairs."""
    propensity = np.where(np.arange(ITEMS) % 10 == 0, 1e-4, 0.4)
    results = biased(world, propensity, seed=2, estimators=["ips", "snips", "doubly-robust"])
    assert [each.code for each in results.messages if each.severity is Severity.WARNING] == ["propensity-scale"]
    for estimate in results.estimates:
        assert ("heavy-rows-missing" in codes(estimate)) == (estimate.estimator != "snips")


def test_what_was_not_drawn_can_turn_a_difference_round(world: Shown) -> None:
    """A close pair has no verdict where a tenth of all pairs is missing, a clear one keeps it."""
    propensity = np.where(np.arange(ITEMS) % 10 == 0, 1e-4, 0.9)
    better = np.where(world.label, 0.2, 0.0) + world.scores["guess"]
    close = Shown(
        world.label, {"guess": world.scores["guess"], "hardly better": better, "taste": world.scores["taste"]}
    )
    results = biased(close, propensity, seed=3, estimators=["ips"])
    reasons = {
        (each.model, each.baseline): {reason.code for reason in each.reasons} - {"unbalanced"}
        for each in results.comparisons
    }
    assert reasons["hardly better", "guess"] == {"unseen-exposure"}
    assert reasons["taste", "guess"] == set()


@pytest.mark.parametrize("estimator", ["ips", "snips", "doubly-robust"])
def test_a_clip_says_how_much_weight_it_takes(world: Shown, estimator: str) -> None:
    """About 1 % of the rows are cut, but these carry a tenth of the weight."""
    propensity = np.where(np.arange(ITEMS) % 10 == 9, 0.04, 0.5)
    cut, whole = (
        biased(world, propensity, seed=4, estimators=[estimator], clips=[clip]).estimates[2] for clip in (4.0, math.inf)
    )
    assert (cut.model, whole.evidence.lost) == ("guess", None)
    assert cut.evidence.lost is not None
    assert cut.evidence.lost > 0.05
    (message,) = (each for each in cut.warnings if each.code == "much-clipped")
    assert message.numbers["lost"] == cut.evidence.lost
    assert message.severity is Severity.WARNING


def test_lost_weight_by_hand() -> None:
    """Rows with π = 1/2 and 1/8 in the list: weights 2 and 8; a clip of 4 takes 4 of 10 away."""
    scores = {"m": np.array([[4.0, 3, 2, 1]])}
    log = pl.DataFrame({"user": [0, 0], "item": [0, 1], "label": [1, 1], "propensity": [0.5, 0.125]})
    how: dict[str, Any] = {
        "exposure": "biased",
        "metrics": ["Precision@2"],
        "estimators": ["ips"],
        "clips": [4.0, 16.0],
    }
    cut, whole = tr.evaluate(scores, log, **how).estimates
    assert (cut.value, whole.value) == (3.0, 5.0)
    assert cut.evidence.lost == pytest.approx(0.4)
    assert whole.evidence.lost == 0
    assert "much-clipped" in codes(cut)
    assert not {"much-clipped", "clipped"} & codes(whole)


def test_a_small_loss_is_a_caution_and_leaves_the_verdict(world: Shown) -> None:
    propensity = np.linspace(0.15, 0.5, ITEMS)
    results = biased(world, propensity, seed=1, estimators=["ips"], clips=[6.5])
    (found,) = (each for each in results.estimates if each.model == "taste")
    assert found.evidence.lost is not None
    assert 0 < found.evidence.lost < 0.05
    assert codes(found) == {"clipped"}
    assert {each.verdict for each in results.compare("taste", "guess")} == {BETTER}


def test_a_large_loss_takes_close_verdicts_away(world: Shown) -> None:
    propensity = np.linspace(0.15, 0.5, ITEMS)
    shown = np.random.default_rng(1).random(world.label.shape) < propensity
    better = np.where(world.label, 0.15, 0.0) + world.scores["guess"]
    models = {"guess": world.scores["guess"], "hardly better": better}
    labels = world.judged(shown, propensity)
    how: dict[str, Any] = {"exposure": "biased", "metrics": ["Precision@10"], "estimators": ["ips"]}
    (shows,) = tr.evaluate(models, labels, **how).comparisons
    (cut,) = tr.evaluate(models, labels, clips=[2.5], **how).comparisons
    assert shows.verdict == BETTER
    assert cut.p < 0.05
    assert cut.verdict == INSUFFICIENT
    assert [reason.code for reason in cut.reasons] == ["unseen-exposure"]


# --------------------------------------------------------------------------------------------------------------- scale


@pytest.mark.parametrize("estimator", ["ips", "doubly-robust"])
@pytest.mark.parametrize("metric", ["Precision@10", "DCG@10", "Recall@10"])
def test_sums_refuse_propensities_of_no_scale(world: Shown, estimator: str, metric: str) -> None:
    shown = np.random.default_rng(1).random(world.label.shape) < np.linspace(0.1, 0.6, ITEMS)
    with refused(r"known only up to a factor; use .*snips", RefusedError):
        tr.evaluate(
            world.models,
            world.judged(shown),
            exposure="biased(propensity=power:0.5)",
            metrics=[metric],
            estimators=[estimator],
        )


def test_what_divides_by_the_weights_takes_them(world: Shown) -> None:
    shown = np.random.default_rng(1).random(world.label.shape) < np.linspace(0.1, 0.6, ITEMS)
    how: dict[str, Any] = {"exposure": "biased(propensity=power:0.5)", "metrics": ["Precision@10", "Recall@10"]}
    assert len(tr.evaluate(world.models, world.judged(shown), estimators=["snips"], **how).estimates) == 6


# -------------------------------------------------------------------------------------------------- impossible values


def test_impossible_values_are_said_on_random_exposure() -> None:
    """Every judged item is a relevant one of the list: N / N-bar x hits / K = 10 x 1 / 2 for each of 40 users."""
    scores = {"m": np.tile(np.arange(10.0)[::-1], (40, 1))}
    labels = pl.DataFrame({"user": range(40), "item": [0] * 40, "label": [1] * 40})
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Precision@2"], "estimators": ["horvitz-thompson"]}
    (found,) = tr.evaluate(scores, labels, **how).estimates
    assert found.value == 5.0
    assert "outside-bounds" in codes(found)
    assert math.isnan(found.low)


def test_an_interval_wholly_outside_is_left_out_and_said() -> None:
    """The same with one or two judged items a user, so that there is a spread: 5 or 2.5."""
    scores = {"m": np.tile(np.arange(10.0)[::-1], (40, 1))}
    user, item = [*range(40), *range(20)], [*[0] * 40, *[9] * 20]
    labels = pl.DataFrame({"user": user, "item": item, "label": [1] * 40 + [0] * 20})
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Precision@2"], "estimators": ["horvitz-thompson"]}
    (found,) = tr.evaluate(scores, labels, **how).estimates
    assert found.value == 3.75
    assert {"outside-bounds", "interval-outside"} <= codes(found)
    assert math.isnan(found.low)


def test_possible_values_are_not_called_impossible(world: Shown) -> None:
    shown = uniform(np.random.default_rng(3), world.label.shape, 30)
    metrics = ["Precision@10", "Recall@10", "DCG@10", "DCG@10(gain=exponential)"]
    for estimate in tr.evaluate(world.models, world.judged(shown), exposure="random", metrics=metrics).estimates:
        assert "outside-bounds" not in codes(estimate)
