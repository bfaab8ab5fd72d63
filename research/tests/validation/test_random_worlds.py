"""Random environments: fixed by their numbers, wide in their settings, exact in their true values."""

import math
from typing import Any

import numpy as np
import pytest

from truerank_research.validation.calibration import N_WORLDS, draw_parameters, random_environment
from truerank_research.validation.environments import Parameters, draw_rng, tilted_weights, user_values
from truerank_research.validation.labelled_worlds import labelled_pairs, make_labelled_world


@pytest.fixture(scope="module")
def settings() -> Any:
    return [draw_parameters(index) for index in range(N_WORLDS)]


def test_values_of_other_metrics_by_hand() -> None:
    scores, labels = np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([[0, 1, 0, 1]])
    by_hand = {
        "RR@3": 1 / 2,
        "AP@4": (1 / 2 + 2 / 4) / 2,
        "AP@4(denominator=cutoff)": (1 / 2 + 2 / 4) / 4,
        "nDCG@4": (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)),
    }
    for metric, value in by_hand.items():
        assert user_values(metric, scores, labels) == pytest.approx([value]), metric


def test_tilted_weights_make_the_difference_zero() -> None:
    rng = np.random.default_rng(1)
    difference, direction = rng.normal(0.1, 1, 500), rng.normal(size=500)
    weights = tilted_weights(difference, difference + direction)
    assert weights is not None
    assert weights.sum() == pytest.approx(1)
    assert weights @ difference == pytest.approx(0, abs=1e-12)
    assert tilted_weights(np.ones(5), np.arange(5.0)) is None


@pytest.mark.parametrize("index", [5, 17, 20, 36, 54, 84])
def test_first_two_models_are_equal(index: int) -> None:
    environment = random_environment(index)
    first, second = (
        {key[1:]: value for key, value in environment.truth.items() if key[0] == model} for model in ("m0", "m1")
    )
    metric = environment.parameters.get("metrics", ["reward"])[0]
    kinds = [kind for name, kind in first if name == metric]
    is_equal = [math.isclose(first[metric, kind], second[metric, kind], rel_tol=1e-9) for kind in kinds]
    assert any(is_equal)


@pytest.mark.parametrize("exposure", ["random", "designed", "biased"])
def test_labelled_pairs_have_their_propensities(exposure: str, settings: list[Parameters]) -> None:
    index = next(n for n, p in enumerate(settings) if p["exposure"] == exposure and p["unequal_rows"] != "rate")
    p = settings[index]
    world, _, _ = make_labelled_world((index,), p)
    rng = np.random.default_rng(2)
    base, n = np.arange(20), 2000
    share = sum(labelled_pairs(world, p, base, rng).astype(float) for _ in range(n)) / n
    propensity = world.propensity[base] if world.propensity is not None else (
        world.is_candidate[base] * (world.n_rows / world.is_candidate.sum(axis=1))[base, None]
    )  # fmt: skip
    error = np.sqrt(propensity * (1 - propensity) / n)
    assert np.all(np.abs(share - propensity) <= 6 * error + 1e-9)


def test_mean_of_estimates_is_the_true_value(settings: list[Parameters]) -> None:
    index = next(
        n for n, p in enumerate(settings)
        if p["exposure"] == "off-policy" and p["family"] == "log" and not p["with_log"] and p["n_users"] < 300
        and p["n_models"] == 2
    )  # fmt: skip
    environment = random_environment(index)
    values = np.array([
        [e.value for e in environment.evaluate(draw_rng(environment.key, draw)).estimates if e.estimator == "ips"]
        for draw in range(60)
    ])  # fmt: skip
    truth = [environment.truth[model, "reward", "users"] for model in ("m0", "m1")]
    assert np.all(np.abs(values.mean(axis=0) - truth) <= 4 * values.std(axis=0) / math.sqrt(len(values)))
