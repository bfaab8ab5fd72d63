"""On worlds with a planted selection bias, debiased learners come closer to the truth than plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from debiased_learners import BACKBONES, METHODS, biased_world, closer, errors
from truerank.models.recipes import Training
from truerank.studies.world import WorldSettings

CLAIMED = ("ips, true propensities", "dr, true propensities", "autodebias")


def test_propensities_are_what_the_log_was_drawn_with() -> None:
    """Σ 1 / propensity over the rows seen estimates the number of pairs, and of positives, without bias."""
    whole, liked = [], []
    for seed in range(20):
        found = biased_world(seed, settings=WorldSettings(users=100, items=80, shown=20, judged=10))
        assert found.log.propensity is not None
        weight = 1 / found.log.propensity
        truth = found.world.truth
        whole.append(weight.sum() / len(truth))
        liked.append((weight * found.log.label).sum() / truth.label.sum())
    assert abs(np.mean(whole) - 1) < 4 * np.std(whole) / np.sqrt(20)
    assert abs(np.mean(liked) - 1) < 4 * np.std(liked) / np.sqrt(20)


def test_debiased_learners_are_closer_to_the_truth_on_one_world() -> None:
    world = biased_world(200, settings=WorldSettings(users=200, items=150, shown=20, judged=10))
    methods = {name: METHODS[name] for name in ("bias", *CLAIMED)}
    found = errors(
        world, BACKBONES["mf"], seed=200, training=Training(batch=2048, patience=15, epochs=80), methods=methods
    )
    for method in CLAIMED:
        assert found[method][0] < found["bias"][0]
        assert found[method][1] < found["bias"][1]


@pytest.mark.slow
def test_debiased_learners_are_closer_to_the_truth_over_worlds() -> None:
    """The lower ends of 95 % intervals over ten worlds lie above zero, for squared error and log loss."""
    methods = {name: METHODS[name] for name in ("bias", *CLAIMED)}
    training = Training(batch=2048, patience=25)
    settings = WorldSettings(users=200, items=150, shown=20, judged=10)
    by_seed = [
        errors(biased_world(seed, settings=settings), BACKBONES["mf"], seed=seed, training=training, methods=methods)
        for seed in range(300, 310)
    ]
    for method in CLAIMED:
        for measure in (0, 1):
            assert closer(by_seed, method, measure)[1] > 0
