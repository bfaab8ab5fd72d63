"""Mean recall and metrics of pairs from uniform samples: unbiased where it is claimed, over every possible sample."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from tiny import Tiny
from tiny import expectation as expect

from truerank.core.estimator import Estimator
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Ideal
from truerank.core.terms import Smooth
from truerank.estimators.full import Full
from truerank.estimators.pairs import ExpandedPairs
from truerank.estimators.post_normalised import IdealRatio, PostNormalised
from truerank.estimators.weighted import Published
from truerank.metrics.auc import AUC
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.sampling.designs import BernoulliDesign, SamplingDesign, UniformDesign

WORLD = Tiny([[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0]])
TIED = Tiny(
    [[1, 0, 1, 0, 1], [0, 1, 1, 0]],
    above=[[0, 0, 2, 3, 3], [0, 1, 1, 1]],
    tied=[[1, 1, 0, 1, 1], [0, 2, 2, 2]],
)
DESIGNS: list[tuple[SamplingDesign, float | None]] = [
    (UniformDesign(2), None),
    (UniformDesign(3), None),
    (BernoulliDesign(0.4), 0.4),
]
drawn = pytest.mark.parametrize(("design", "rate"), DESIGNS, ids=str)
worlds = pytest.mark.parametrize("world", [WORLD, TIED], ids=["ranks", "ties"])


def alone(world: Tiny, user: int) -> Tiny:
    above, tied = (None if each is None else [each[user]] for each in (world.above, world.tied))
    return Tiny([world.labels[user]], above=above, tied=tied)


def mean_total(
    world: Tiny, estimator: Estimator, metric: Metric, column: int, design: SamplingDesign, rate: float | None
) -> float:
    """The expectation of a total, user by user: users are drawn apart."""

    def of(terms: Smooth) -> float:
        return float(terms.sums[:, column].sum())

    users = [alone(world, user) for user in range(len(world.labels))]
    return sum(expect(user, estimator, metric, [design], of, rate=rate) for user in users)


def known(world: Tiny, metric: Metric) -> np.ndarray:
    """The value of each user with every label known, NaN where undefined."""
    return world.terms(Full(), metric, world.everything()).unit_values()


# ---------------------------------------------------------------------------------------------------------- AP and AUC


@worlds
@drawn
@pytest.mark.parametrize("k", [1, 3, 5])
def test_average_precision_has_unbiased_sums(world: Tiny, design: SamplingDesign, rate: float | None, k: int) -> None:
    n = np.array([sum(row) for row in world.labels])
    precision = np.nansum(known(world, AveragePrecision(k, Denominator.POSITIVES)) * n)
    by_cutoff, by_positives = (AveragePrecision(k, each) for each in (Denominator.CUTOFF, Denominator.POSITIVES))
    for metric in (by_cutoff, by_positives):
        found = mean_total(world, ExpandedPairs(), metric, 0, design, rate)
        assert found == pytest.approx(precision, abs=1e-12)
    assert mean_total(world, ExpandedPairs(), by_positives, 1, design, rate) == pytest.approx(n.sum(), abs=1e-12)


def test_average_precision_divided_by_the_cutoff_is_unbiased_itself() -> None:
    metric = AveragePrecision(3, Denominator.CUTOFF)
    mean = expect(WORLD, ExpandedPairs(), metric, [UniformDesign(2)] * 3, lambda terms: terms.value())
    assert mean == pytest.approx(np.nansum(known(WORLD, metric)) / 3, abs=1e-12)


@worlds
@drawn
def test_area_under_the_curve_has_unbiased_sums(world: Tiny, design: SamplingDesign, rate: float | None) -> None:
    n = np.array([sum(row) for row in world.labels])
    pairs = n * (np.array([len(row) for row in world.labels]) - n)
    assert mean_total(world, ExpandedPairs(), AUC(), 0, design, rate) == pytest.approx(
        np.nansum(known(world, AUC()) * pairs), abs=1e-12
    )
    assert mean_total(world, ExpandedPairs(), AUC(), 1, design, rate) == pytest.approx(pairs.sum(), abs=1e-12)


def test_no_unbiased_form_of_the_smaller_denominator() -> None:
    reason = ExpandedPairs().refusal(AveragePrecision(3))
    assert reason is not None
    assert "denominator=cutoff" in reason
    assert ExpandedPairs().refusal(Recall(3)) is not None


# ---------------------------------------------------------------------------------------------------------------- nDCG


@drawn
def test_normalised_after_averaging(design: SamplingDesign, rate: float | None) -> None:
    """DCG and the number of relevant items are unbiased; over a full list so is the value."""
    n_users = len(WORLD.labels)
    dcg = sum(label / log2(place + 2) for row in WORLD.labels for place, label in enumerate(row[:3]))
    assert mean_total(WORLD, PostNormalised(), NDCG(3), 0, design, rate) == pytest.approx(dcg, abs=1e-12)
    assert mean_total(WORLD, PostNormalised(), NDCG(3), 1, design, rate) == pytest.approx(5, abs=1e-12)
    if rate is None:
        metric = NDCG(3, ideal=Ideal.CUTOFF)
        full = 1 + 1 / log2(3) + 1 / 2
        form = IdealRatio(3, whole=True)
        totals = np.array([[mean_total(WORLD, PostNormalised(), metric, column, design, rate) for column in range(3)]])
        assert form.values(totals)[0] == pytest.approx(dcg / full / n_users, abs=1e-12)


def test_with_every_label_known_published_is_the_plain_mean() -> None:
    value = WORLD.terms(Published(), Recall(2), WORLD.everything()).value()
    assert value == pytest.approx(float(np.nanmean(known(WORLD, Recall(2)))), abs=1e-12)
