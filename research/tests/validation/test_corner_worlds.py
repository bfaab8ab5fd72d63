"""Corner cases: what each showed at an earlier version, with few draws."""

import functools
from typing import Any

import numpy as np
import pytest

from truerank_research.validation.calibration import count, evaluate_draws
from truerank_research.validation.corner_worlds import CORNERS, corner_environment
from truerank_research.validation.environments import draw_rng


@functools.cache
def rates(name: str, n_draws: int) -> dict[str, Any]:
    """Shares of what is counted in some draws; None where there is nothing to count."""
    estimates, comparisons, n_refused = evaluate_draws(corner_environment(name), n_draws)
    counts = count(estimates, comparisons)

    def share(part: str, whole: str) -> float | None:
        return counts[part] / counts[whole] if counts[whole] else None

    return {
        "type I error": share("false", "families"),
        "coverage without a warning": share("sure_covered", "sure_intervals"),
        "coverage of differences": share("differences_covered", "difference_intervals"),
        "estimates with a warning": share("warned", "estimates"),
        "insufficient evidence": share("insufficient", "comparisons"),
        "contradictions": counts["contradictions"],
        "comparisons": counts["comparisons"],
        "refused": n_refused,
    }


@pytest.mark.parametrize("name", CORNERS)
def test_every_corner_can_be_evaluated_or_is_refused_with_a_reason(name: str) -> None:
    assert rates(name, 1)["comparisons"] or rates(name, 1)["refused"]


def test_lists_that_end_are_no_users_who_stop() -> None:
    assert rates("A1 position models: lists that end at 10", 8)["coverage of differences"] > 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["A1 position models: two surfaces", "A1 position models: two surfaces, with a column"]
)
def test_rejected_position_models_carry_no_verdict(name: str) -> None:
    assert rates(name, 40)["type I error"] < 0.09


def test_assisted_without_hits_is_no_verdict() -> None:
    assert rates("A2 assisted: lists without hits", 40)["type I error"] < 0.09


def test_a_good_judge_is_used_under_a_design() -> None:
    assert rates("A3 search with a judge", 12)["insufficient evidence"] < 0.5


def test_hit_rate_of_partial_labels_is_refused() -> None:
    assert rates("A4 hit rate bounds", 2)["refused"] == 2


def test_watch_of_unequal_propensities_seldom_stops_wrongly() -> None:
    assert rates("A5 watch: popular and niche list", 24)["type I error"] < 0.1


def test_users_kept_for_their_labels_are_noticed() -> None:
    noticed = rates("A6 users kept for their labels", 3)
    assert noticed["insufficient evidence"] == 1
    assert noticed["estimates with a warning"] == 1
    assert rates("A6 all users", 3)["insufficient evidence"] < 0.5


def test_average_precision_without_pairs_of_hits_has_a_warning() -> None:
    assert rates("A7 AP without labelled pairs of hits", 20)["coverage without a warning"] in (None, 1.0)


def test_corrected_carries_no_verdict() -> None:
    line = rates("A8 corrected", 3)
    assert line["refused"] == 3 or line["insufficient evidence"] == 1


def test_intervals_agree_with_verdicts() -> None:
    assert rates("A9 six models", 8)["contradictions"] == 0


def test_one_row_less_moves_values_little() -> None:
    environment = corner_environment("A10 default switch")
    changes = []
    for draw in range(20):
        estimates = environment.evaluate(draw_rng(environment.key, draw)).estimates
        values = {(estimate.model, estimate.estimator): estimate.value for estimate in estimates}
        changes += [
            abs(values[model, "default, one row less"] / value - 1)
            for (model, estimator), value in values.items()
            if estimator == "default"
        ]
    assert np.nanmedian(changes) < 0.02


def test_a_judge_that_contains_the_labels_is_noticed() -> None:
    assert rates("A11 judge contains the labels", 4)["coverage without a warning"] > 0.85
