"""Estimators for biased logs, proved by summing over every log that could have been drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from outcomes import alone, outcomes
from terms import terms_of

import truerank as tr
from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates, Ranks
from truerank.core.terms import Smooth
from truerank.estimators.assisted import DoublyRobust
from truerank.estimators.predictions import GainModel, GivenRewards, ItemRates
from truerank.estimators.weighted import IPS, SNIPS, Naive
from truerank.metrics.additive import DCG, RBP, Precision, Recall
from truerank.metrics.discounts import expected_discount, known_divisor
from truerank.ranking.kernel.rank import rank
from truerank.sampling.designs import BernoulliDesign, SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members

# item 3 of user 0 and item 0 of user 2 are no candidates; scores of user 1 are tied
SCORES = np.array([[4.0, 3.0, 2.0, 1.0], [2.0, 2.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
MODEL = tr.scores.dense(SCORES)
LABELS = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]])
CANDIDATE = np.array([[True, True, True, False], [True] * 4, [False, True, True, True]])
WEIGHT = np.array([[1.0, 0.5, 0.25, 1.0], [0.2, 0.9, 0.4, 0.6], [1.0, 0.8, 0.3, 0.5]])
GUESS = np.array([[0.9, 0.1, 0.4, 0.0], [0.3, 0.3, 0.8, 0.2], [0.0, 0.5, 0.5, 1.5]])

DESIGNS: list[SamplingDesign] = [
    BernoulliDesign(0.8),
    WeightedDesign(1),
    WeightedDesign(2),
    UniformDesign(2),
]
SUMS: list[Metric] = [Precision(2), DCG(1), DCG(3), RBP(0.8)]
METRICS: list[Metric] = [*SUMS, Recall(1), Recall(2)]

every_design = pytest.mark.parametrize("design", DESIGNS, ids=str)
every_sum = pytest.mark.parametrize("metric", SUMS, ids=str)


@dataclass(frozen=True, slots=True)
class Possible:
    """One log that could have been drawn, its ranks and its probability."""

    log: Log
    ranks: Ranks
    chance: float


def pool() -> Candidates:
    return Candidates(3, 4.0, exclude=Pairs.of(*np.nonzero(~CANDIDATE), n_units=3))


def log_of(rows: Sequence[Sequence[int]], propensity: Floats) -> Log:
    """The log that shows these items of each user."""
    user = np.repeat(np.arange(3), [len(each) for each in rows])
    item = np.array([i for each in rows for i in each], dtype=np.int64)
    return Log(
        users=Ids.of(np.arange(3)),
        items=Ids.of(np.arange(4)),
        unit=user,
        item=item,
        rewards={"label": LABELS[user, item]},
        propensity=propensity[user, item],
    )


def members(user: int) -> Members:
    kept = CANDIDATE[user]
    return alone(int(kept.sum()), weight=WEIGHT[user, kept])


def inclusion(design: SamplingDesign) -> Floats:
    found = np.full(LABELS.shape, np.nan)
    for user in range(3):
        found[user, CANDIDATE[user]] = design.inclusion(members(user))
    return found


def logs(design: Any, *, propensity: Floats | None = None) -> Iterator[Possible]:
    """Every log with its probability; propensities are the design's own unless others are claimed."""
    for case in drawn(design):
        if propensity is None:
            yield case
        else:
            claimed = propensity[case.log.user, case.log.item]
            yield replace(case, log=replace(case.log, propensity=claimed))


@cache
def drawn(design: Any) -> list[Possible]:
    item = [np.flatnonzero(each) for each in CANDIDATE]
    found = []
    for outcome in product(*(list(outcomes(design, members(user))) for user in range(3))):
        rows = [item[user][list(taken)].tolist() for user, (taken, _) in enumerate(outcome)]
        log = log_of(rows, inclusion(design))
        (ranks,) = rank(tr.scores.dense(SCORES), log, pools=[pool()])
        found.append(Possible(log, ranks, math.prod(chance for _, chance in outcome)))
    return found


def terms(estimator: Estimator, metric: Metric, case: Possible) -> Smooth:
    return terms_of(estimator, case.log, case.ranks, metric, candidates=pool(), scores=MODEL, seed=1)


def column(found: Smooth, name: str) -> Floats:
    return found.sums[:, found.form.columns.index(name)]


def expect(
    estimator: Estimator,
    metric: Metric,
    design: SamplingDesign,
    function: Callable[[Smooth], float],
    *,
    propensity: Floats | None = None,
) -> float:
    return math.fsum(
        case.chance * function(terms(estimator, metric, case)) for case in logs(design, propensity=propensity)
    )


def worth(metric: Metric) -> Floats:
    """The worth of every candidate, divided as the metric is; 0 for what is none."""
    assert isinstance(metric, Additive)
    full = log_of([np.flatnonzero(each).tolist() for each in CANDIDATE], np.ones(LABELS.shape))
    (ranks,) = rank(tr.scores.dense(SCORES), full, pools=[pool()])
    found = np.zeros(LABELS.shape)
    found[full.user, full.item] = expected_discount(metric, ranks)
    if metric.denominator is Denominator.POSITIVES:
        return found
    return np.asarray(found / known_divisor(metric.denominator, metric.cutoff, ranks)[:, None])


def truth(metric: Metric) -> float:
    """From every label: the mean over users, or pooled recall."""
    value = float((worth(metric) * LABELS).sum())
    assert isinstance(metric, Additive)
    return value / (LABELS * CANDIDATE).sum() if metric.denominator is Denominator.POSITIVES else value / 3


def value(found: Smooth) -> float:
    return found.value()


REWARDS: list[GainModel] = [GivenRewards(tr.scores.dense(GUESS)), ItemRates(), ItemRates(folds=3, strength=0.5)]


@every_design
@every_sum
@pytest.mark.parametrize("reward", REWARDS, ids=["given", "2 folds", "3 folds"])
def test_doubly_robust_is_exactly_unbiased(design: SamplingDesign, metric: Metric, reward: GainModel) -> None:
    assert expect(DoublyRobust(reward), metric, design, value) == pytest.approx(truth(metric), abs=1e-10)


@every_design
@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("estimator", [IPS(), SNIPS(), DoublyRobust(GivenRewards(tr.scores.dense(GUESS)))], ids=str)
def test_numerator_and_denominator_are_each_unbiased(
    design: SamplingDesign, metric: Metric, estimator: Estimator
) -> None:
    """So a ratio of them is consistent: its error is of the order 1 / users."""
    num = expect(estimator, metric, design, lambda found: float(column(found, "numerator").sum()))
    den = expect(estimator, metric, design, lambda found: float(column(found, "denominator").sum()))
    assert num == pytest.approx((worth(metric) * LABELS).sum(), abs=1e-10)
    ratio = isinstance(metric, Additive) and metric.denominator is Denominator.POSITIVES
    if ratio:
        assert den == pytest.approx((LABELS * CANDIDATE).sum(), abs=1e-10)
    else:
        assert den == pytest.approx(worth(metric).sum() if isinstance(estimator, SNIPS) else 3, abs=1e-10)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_a_right_reward_model_needs_no_propensities(metric: Metric) -> None:
    """Every single log gives the truth, whatever was claimed of exposure."""
    right = DoublyRobust(GivenRewards(tr.scores.dense(LABELS)))
    for case in logs(BernoulliDesign(0.8), propensity=np.full(LABELS.shape, 0.07)):
        assert terms(right, metric, case).value() == pytest.approx(truth(metric), abs=1e-10)


@every_design
@every_sum
def test_wrong_propensities_bias_by_the_stated_sum(design: SamplingDesign, metric: Metric) -> None:
    """E = Σ w [ŷ + E[O] / π (y - ŷ)]: the bias is -Σ w (1 - E[O] / π)(y - ŷ), and with ŷ = 0 that of IPS."""
    claimed = np.where(CANDIDATE, np.sqrt(np.where(CANDIDATE, inclusion(design), 1.0)), np.nan)
    shift = np.where(CANDIDATE, 1 - inclusion(design) / claimed, 0.0)
    for guess, estimator in ((GUESS, DoublyRobust(GivenRewards(tr.scores.dense(GUESS)))), (np.zeros((3, 4)), IPS())):
        bias = -(worth(metric) * shift * (LABELS - guess)).sum() / 3
        assert abs(bias) > 1e-4
        found = expect(estimator, metric, design, value, propensity=claimed)
        assert found - truth(metric) == pytest.approx(bias, abs=1e-10)


@every_design
@every_sum
@pytest.mark.parametrize("clip", [1.0, 1.5, 4.0])
def test_a_clip_biases_by_what_it_cuts(design: SamplingDesign, metric: Metric, clip: float) -> None:
    chance = np.where(CANDIDATE, inclusion(design), 1.0)
    kept = chance * np.minimum(1 / chance, clip)
    expected = (worth(metric) * LABELS * kept).sum() / 3
    assert expect(IPS(clip=clip), metric, design, value) == pytest.approx(expected, abs=1e-10)
    assert expected <= truth(metric) + 1e-12


@every_sum
@pytest.mark.parametrize("design", [WeightedDesign(1), WeightedDesign(2)], ids=str)
def test_the_naive_bias_is_the_covariance_of_exposure_and_worth(design: WeightedDesign, metric: Metric) -> None:
    """E[(N / n) Σ_S y w] = Σ (N π / n) y w, so the bias is Σ (N π / n - 1) y w."""
    assert isinstance(design.n, int)
    n = CANDIDATE.sum(axis=1, keepdims=True)
    excess = np.where(CANDIDATE, n * inclusion(design) / design.n - 1, 0.0)
    bias = (excess * LABELS * worth(metric)).sum() / 3
    assert abs(bias) > 0.01
    found = expect(Naive(), metric, design, value)
    assert found - truth(metric) == pytest.approx(bias, abs=1e-10)


def test_self_normalised_has_exactly_this_bias() -> None:
    """One user, two items, labels 1 and 0, shown by chances 1/2 and 1/4; Precision@2 is 1/2.

    Only the first: 3/8 of the time, value 1. Only the second: 1/8, value 0. Both: 1/8, value 2 / (2 + 4). None: 3/8,
    undefined. Mean of the defined: (3/8 + 1/24) / (5/8) = 2/3. The same for Recall@1 with labels 1, 1.
    """
    one = alone(2, weight=np.array([0.5, 0.25]))
    for label, metric in (([1.0, 0.0], Precision(2)), ([1.0, 1.0], Recall(1))):
        log = Log(
            Ids.of([0]), Ids.of([0, 1]), np.zeros(2, np.int64), np.arange(2), {"label": np.array(label)},
            np.array([0.5, 0.25]),
        )  # fmt: skip
        (ranks,) = rank(tr.scores.dense([[2.0, 1.0]]), log, pools=[Candidates(1, 2.0)])
        defined = mean = 0.0
        for rows, chance in outcomes(BernoulliDesign(), one):
            at = np.array(rows, dtype=np.int64)
            part = replace(ranks, above=ranks.above[at], tied=ranks.tied[at])
            found = terms_of(SNIPS(), log.select(at), part, metric).value()
            if not math.isnan(found):
                defined += chance
                mean += chance * found
        assert defined == pytest.approx(5 / 8)
        assert mean / defined == pytest.approx(2 / 3, abs=1e-12)


@pytest.mark.parametrize("metric", SUMS, ids=str)
def test_a_constant_label_is_known_without_error_by_self_normalisation(metric: Metric) -> None:
    values = []
    for case in logs(WeightedDesign(2)):
        constant = replace(case.log, rewards={"label": np.ones(len(case.log))})
        found = terms(SNIPS(), metric, replace(case, log=constant))
        if column(found, "denominator").sum() > 0:
            values.append(found.value())
            # of what users differ in, only the length of their lists is left
            lengths = float(np.ptp(column(found, "total"))) > 0
            assert lengths or np.abs(found.influence()).max() < 1e-12
    assert values == pytest.approx([worth(metric).sum() / 3] * len(values), abs=1e-12)


@every_design
def test_ips_and_self_normalised_are_one_for_recall(design: SamplingDesign) -> None:
    for case in logs(design):
        first, second = (terms(each, Recall(2), case).value() for each in (IPS(), SNIPS()))
        assert first == second or (math.isnan(first) and math.isnan(second))
