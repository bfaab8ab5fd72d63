"""Mean recall from uniform samples: unbiased where it is claimed, over every possible sample."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import Tiny
from tiny import expectation as expect

from truerank.core.estimator import Estimator
from truerank.core.metric import Metric
from truerank.core.terms import Smooth
from truerank.estimators.full import Full
from truerank.estimators.weighted import Published
from truerank.metrics.additive import Recall
from truerank.sampling.designs import UniformDesign
from truerank_research.estimators.weighted import WeightedUsers, kept_chance

WORLD = Tiny([[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0]])


def known(world: Tiny, metric: Metric) -> np.ndarray:
    """The value of each user with every label known, NaN where undefined."""
    return world.terms(Full(), metric, world.everything()).unit_values()


def test_weights_move_the_published_mean_and_do_not_cure_it() -> None:
    """Of six items one user likes the first, one the five others; two judged: truth .5."""
    world = Tiny([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]])

    def mean(estimator: Estimator) -> float:
        return expect(world, estimator, Recall(1), [UniformDesign(2)] * 2, lambda terms: terms.value())

    assert mean(Published()) == pytest.approx(1 / 6, abs=1e-12)
    # n = 1 stands for three items: 1 - C(3, 2) / C(6, 2) = .8, weight 5/4; n = 2 is sure to be kept; the first user is
    # kept in a third of the draws
    assert mean(WeightedUsers()) == pytest.approx(1 / 3 * (1 / 3 * 1 / 2 + 2 / 3 * 5 / 9), abs=1e-12)
    assert mean(Published()) < mean(WeightedUsers()) < 0.25


@pytest.mark.parametrize("judged", [1, 2, 4])
@pytest.mark.parametrize("k", [1, 3])
def test_weights_by_the_true_chance_to_be_kept_would_be_unbiased(k: int, judged: int) -> None:
    """Σ (m / n) / π and Σ 1 / π over kept users, with N⁺ known: the sum of recalls and the number of users."""
    for row in WORLD.labels[:2]:
        n = np.array([float(sum(row))])
        size, drawn_of = np.array([float(len(row))]), np.array([float(judged)])
        (chance,) = kept_chance(n, n_candidates=size, n_judged=drawn_of)
        user = Tiny([row])

        def recall_of(terms: Smooth) -> float:
            return float(terms.sums[0, 0])

        def number_of(terms: Smooth) -> float:
            return float(terms.sums[0, 1])

        recall, number = (
            expect(user, Published(), Recall(k), [UniformDesign(judged)], of) / chance for of in (recall_of, number_of)
        )
        assert recall == pytest.approx(sum(row[:k]) / sum(row), abs=1e-12)
        assert number == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("estimator", [WeightedUsers(), Published()], ids=str)
def test_with_every_label_known_it_is_the_plain_mean(estimator: Estimator) -> None:
    found = WORLD.terms(estimator, Recall(2), WORLD.everything()).value()
    assert found == pytest.approx(float(np.nanmean(known(WORLD, Recall(2)))), abs=1e-12)
