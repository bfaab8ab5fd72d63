"""On worlds with a planted selection bias, debiased learners come closer to the truth than plain ones."""

from __future__ import annotations

import numpy as np

from truerank.simulation.dataset import DatasetSettings
from truerank_research.learners.recipes import Training
from truerank_research.runner import committed
from truerank_research.validation.debiased_learners import (
    BACKBONES,
    LOG_LOSS,
    PLAIN,
    SQUARED,
    errors,
    planted_bias,
)

CLAIMED = ("ips, true propensities", "dr, true propensities", "autodebias")
COMMITTED = committed("debiased-learners")


def test_propensities_are_what_the_log_was_drawn_with() -> None:
    """Σ 1 / propensity over the rows seen estimates the number of pairs, and of positives, without bias."""
    whole, liked = [], []
    for seed in range(20):
        found = planted_bias(seed, settings=DatasetSettings(users=100, items=80, shown=20, judged=10))
        assert found.log.propensity is not None
        weight = 1 / found.log.propensity
        truth = found.world.truth
        whole.append(weight.sum() / len(truth))
        liked.append((weight * found.log.label).sum() / truth.label.sum())
    assert abs(np.mean(whole) - 1) < 4 * np.std(whole) / np.sqrt(20)
    assert abs(np.mean(liked) - 1) < 4 * np.std(liked) / np.sqrt(20)


def test_debiased_learners_are_closer_to_the_truth_on_one_world() -> None:
    world = planted_bias(200, settings=DatasetSettings(users=200, items=150, shown=20, judged=10))
    training = Training(batch=2048, patience=15, epochs=80)
    found = errors(world, BACKBONES["mf"], seed=200, training=training, methods=(PLAIN, *CLAIMED))
    plain, *debiased = found.select(SQUARED, LOG_LOSS).rows()
    assert len(debiased) == len(CLAIMED)
    assert all(squared < plain[0] and loss < plain[1] for squared, loss in debiased)


def test_the_committed_results_keep_what_is_claimed() -> None:
    """Over ten worlds all debiased learners lower the squared error, with both backbones."""
    saved = [row for row in COMMITTED.rows("errors") if row["measure"] == SQUARED and row["method"] != PLAIN]
    assert {row["backbone"] for row in saved} == set(BACKBONES)
    assert len(saved) == 10
    assert all(row["low"] > 0 for row in saved)
