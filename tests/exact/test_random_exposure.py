"""Unbiased where it is claimed, biased by exactly what is stated, over every possible sample."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, isnan, log2

import numpy as np
import polars as pl
import pytest
from tiny import Tiny
from tiny import expectation as expect

import truerank as tr
from truerank.core import Additive, Metric, Terms
from truerank.errors import InputError
from truerank.exposure.designs import Bernoulli, Uniform

# three users with different numbers of candidates and relevant items, one of whom likes nothing
WORLD = Tiny([[1, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0]])
DESIGNS = [Uniform(3), Uniform(2), Uniform(1)]
# scores with ties: above and tied counts of every candidate
TIED = Tiny(
    [[1, 0, 1, 0, 1], [0, 1, 1, 0]],
    above=[[0, 0, 2, 3, 3], [0, 1, 1, 1]],
    tied=[[1, 1, 0, 1, 1], [0, 2, 2, 2]],
)


def num(terms: Terms) -> float:
    return float(terms.num.sum())


def den(terms: Terms) -> float:
    return float(terms.den.sum())


def truth(world: Tiny, metric: Metric) -> float:
    return world.terms(tr.Full(), metric, world.everything()).value()


# ----------------------------------------------------------------------------------------------- fixtures of the papers


def test_six_items_three_positives() -> None:
    """Spec 13.1: positives at ranks 1, 4, 5 of 6, K = 2, 3 judged."""
    world = Tiny([[1, 0, 0, 1, 1, 0]])
    assert truth(world, tr.Recall(2)) == pytest.approx(1 / 3, abs=1e-15)
    kept = [
        world.terms(tr.Published(), tr.Recall(2), [members]).value()
        for members in combinations(range(6), 3)
        if set(members) & {0, 3, 4}
    ]
    assert len(kept) == 19
    assert np.mean(kept) == pytest.approx(1 / 3, abs=1e-12)
    every = [
        world.terms(tr.HorvitzThompson(), tr.Precision(2), [members]).value() for members in combinations(range(6), 3)
    ]
    assert len(every) == 20
    assert np.mean(every) == pytest.approx(1 / 2, abs=1e-12)


@pytest.mark.parametrize(("k_bar", "expected"), [(1, Fraction(41, 114)), (2, Fraction(41, 57))])
def test_traditional_scheme_is_another_number(k_bar: int, expected: Fraction) -> None:
    """Spec 13.1: neither Recall@1 nor Recall@2 among the judged is Recall@2 = 1/3."""
    labels = {0: 1, 1: 0, 2: 0, 3: 1, 4: 1, 5: 0}
    values = []
    for members in combinations(range(6), 3):
        judged = Tiny([[labels[i] for i in members]])
        value = judged.terms(tr.Traditional(), tr.Recall(k_bar), judged.everything()).value()
        if not isnan(value):
            values.append(value)
    assert len(values) == 19
    assert np.mean(values) == pytest.approx(float(expected), abs=1e-12)


def test_theorem_1() -> None:
    """Over all placements of 3 positives among 6, recall@1 of 3 judged and recall@2 of all agree on average."""
    full, judged = [], []
    for places in combinations(range(6), 3):
        labels = [int(i in places) for i in range(6)]
        full.append(truth(Tiny([labels]), tr.Recall(2)))
        kept = []
        for members in combinations(range(6), 3):
            seen = Tiny([[labels[i] for i in members]])
            kept.append(seen.terms(tr.Traditional(), tr.Recall(1), seen.everything()).value())
        judged.append(np.nanmean(kept))
    assert np.mean(full) == pytest.approx(1 / 3, abs=1e-12)
    assert np.mean(judged) == pytest.approx(1 / 3, abs=1e-12)


def test_dropping_users_biases_the_published_mean() -> None:
    """Spec 5.1.4: user A has recall 1 and is kept with probability 1/3, user B has recall 0 and is always kept."""
    world = Tiny([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]])
    assert truth(world, tr.Recall(1)) == 0.5
    mean = expect(world, tr.Published(), tr.Recall(1), [Uniform(2)] * 2, lambda terms: terms.value())
    assert mean == pytest.approx(1 / 6, abs=1e-12)
    # pooled recall has no such bias: its parts are unbiased
    assert expect(world, tr.Pooled(), tr.Recall(1), [Uniform(2)] * 2, num) == pytest.approx(1, abs=1e-12)
    assert expect(world, tr.Pooled(), tr.Recall(1), [Uniform(2)] * 2, den) == pytest.approx(6, abs=1e-12)


def test_cutoff_at_or_beyond_the_candidates_gives_1_and_0_is_refused() -> None:
    world = Tiny([[1, 0, 1]])
    for k in (3, 4, 100):
        assert truth(world, tr.Recall(k)) == 1
        assert world.terms(tr.Published(), tr.Recall(k), [(0, 1)]).value() == 1
    with pytest.raises(InputError, match="whole number from 1"):
        tr.Recall(0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_all_scores_equal(k: int) -> None:
    """Spec 13.1: the strict rule gives 0 for K < N; over tie orders K / N is expected."""
    labels = pl.DataFrame({"user": [1] * 4, "item": [0, 1, 2, 3], "label": [1, 0, 1, 0]})
    scores = {"same": tr.dense(np.zeros((1, 4)), users=[1])}

    def recall(ties: tr.Ties) -> float:
        return tr.evaluate(scores, tr.read(labels), metrics=[tr.Recall(k)], ties=ties).estimates[0].value

    assert recall(tr.Ties.STRICT) == (0 if k < 4 else 1)
    assert recall(tr.Ties.EXPECTED) == min(k / 4, 1)


# --------------------------------------------------------------------------------- unbiased, whatever N, N-bar and ties


@pytest.mark.parametrize("world", [WORLD, TIED], ids=["distinct", "tied"])
@pytest.mark.parametrize("metric", [tr.Precision(1), tr.Precision(2), tr.Precision(10), tr.DCG(2), tr.DCG(4)], ids=str)
def test_horvitz_thompson_is_exactly_unbiased(world: Tiny, metric: Additive) -> None:
    designs = DESIGNS[: len(world.labels)]
    assert expect(world, tr.HorvitzThompson(), metric, designs, lambda terms: terms.value()) == pytest.approx(
        truth(world, metric), abs=1e-12
    )


@pytest.mark.parametrize("metric", [tr.Precision(2), tr.DCG(4)], ids=str)
def test_horvitz_thompson_with_a_declared_rate(metric: Additive) -> None:
    """Bernoulli exposure: a user without a judged item contributes 0, and the mean is exactly unbiased."""
    designs = [Bernoulli(0.3)] * 3
    world = Tiny([[1, 0, 1, 1], [0, 1, 0], [0, 0]])
    estimator = tr.HorvitzThompson(rate=0.3)
    mean = expect(world, estimator, metric, designs, lambda terms: terms.value())
    assert mean == pytest.approx(truth(world, metric), abs=1e-12)
    assert world.terms(estimator, metric, [(), (), ()]).value() == 0
    # without the declaration the same user is undefined, and a sample size that depends on chance costs the proof
    assert isnan(world.terms(tr.HorvitzThompson(), metric, [(), (), ()]).value())


@pytest.mark.parametrize("world", [WORLD, TIED], ids=["distinct", "tied"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_both_parts_of_pooled_recall_are_unbiased(world: Tiny, k: int) -> None:
    designs = DESIGNS[: len(world.labels)]
    full = world.terms(tr.Pooled(), tr.Recall(k), world.everything())
    assert expect(world, tr.Pooled(), tr.Recall(k), designs, num) == pytest.approx(full.num.sum(), abs=1e-12)
    assert expect(world, tr.Pooled(), tr.Recall(k), designs, den) == pytest.approx(full.den.sum(), abs=1e-12)
    # ΣM / ΣN⁺, counted by hand for the world without ties
    if world is WORLD:
        hits = sum(sum(row[:k]) for row in world.labels)
        assert full.value() == pytest.approx(hits / 4, abs=1e-15)


@pytest.mark.parametrize("world", [WORLD, TIED], ids=["distinct", "tied"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_published_converges_to_a_weighted_mean_of_recall(world: Tiny, k: int) -> None:
    """Each kept user is unbiased, so Σ kept m/n has mean Σ π Recall and the number kept has mean Σ π."""
    designs = DESIGNS[: len(world.labels)]
    keep, recall = [], []
    for row, design, values in zip(
        world.labels, designs, world.terms(tr.Published(), tr.Recall(k), world.everything()).num, strict=True
    ):
        size, relevant = len(row), sum(row)
        keep.append(1 - comb(size - relevant, design.n) / comb(size, design.n))
        recall.append(float(values))
    assert expect(world, tr.Published(), tr.Recall(k), designs, num) == pytest.approx(
        float(np.dot(keep, recall)), abs=1e-12
    )
    assert expect(world, tr.Published(), tr.Recall(k), designs, den) == pytest.approx(sum(keep), abs=1e-12)


def test_pooled_equals_the_plain_ratio_when_the_judged_share_is_constant() -> None:
    world = Tiny([[1, 0, 0, 1], [0, 1]])
    terms = world.terms(tr.Pooled(), tr.Recall(1), [(0, 3), (1,)])
    assert terms.value() == pytest.approx(1 / 3, abs=1e-15)  # m = 1 and 0, n = 2 and 1


@pytest.mark.parametrize("metric", [tr.Precision(2), tr.DCG(3), tr.Precision(10)], ids=str)
def test_both_parts_of_hajek_are_unbiased_and_its_bias_has_this_size(metric: Additive) -> None:
    full = WORLD.terms(tr.Hajek(), metric, WORLD.everything())
    assert full.value() == pytest.approx(truth(WORLD, metric), abs=1e-12)
    assert expect(WORLD, tr.Hajek(), metric, DESIGNS, num) == pytest.approx(full.num.sum(), abs=1e-12)
    assert expect(WORLD, tr.Hajek(), metric, DESIGNS, den) == pytest.approx(full.den.sum(), abs=1e-12)


def test_the_bias_of_hajek_is_not_zero() -> None:
    """A ratio is only consistent. Two candidates, one judged, w = 1, 1/log2(3), the first relevant.

    The estimate is w_1 + w_2 if the first is judged, else 0: its mean is (w_1 + w_2) / 2, the truth is w_1.
    """
    world = Tiny([[1, 0]])
    mean = expect(world, tr.Hajek(), tr.DCG(2), [Uniform(1)], lambda terms: terms.value())
    assert mean == pytest.approx((1 + 1 / log2(3)) / 2, abs=1e-12)
    assert truth(world, tr.DCG(2)) == 1


# ----------------------------------------------------------------------------- through evaluate: exclusions and scores


def all_samples(pools: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[]]
    for user, (pool, size) in enumerate(zip(pools, sizes, strict=True)):
        found = [[*rows, *((user, item) for item in members)] for rows in found for members in combinations(pool, size)]
    return found


@pytest.mark.parametrize("ties", [tr.Ties.EXPECTED, tr.Ties.STRICT, tr.Ties.RANDOM])
def test_unbiased_through_evaluate_with_exclusions_and_ties(ties: tr.Ties) -> None:
    """An excluded item leaves both the candidates and the judged items, and N and N-bar are counted anew."""
    scores = {"m": np.array([[3.0, 2, 2, 1, 0], [1.0, 1, 4, 4, 2]])}
    label = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 0, 0]])
    excluded = pl.DataFrame({"user": [0, 1, 1], "item": [0, 3, 4]})
    pools = [[1, 2, 3, 4], [0, 1, 2]]
    metrics: list[Metric] = [tr.Precision(1), tr.Precision(2), tr.DCG(3)]

    def run(rows: list[tuple[int, int]], exposure: tr.FullExposure | tr.RandomExposure) -> list[float]:
        frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
        frame = frame.with_columns(label=pl.Series([int(label[u, i]) for u, i in rows]))
        estimator = tr.Full() if isinstance(exposure, tr.FullExposure) else tr.HorvitzThompson()
        found = tr.evaluate(
            scores,
            tr.read(frame),
            exposure=exposure,
            exclude=excluded,
            metrics=metrics,
            estimators=[estimator],
            ties=ties,
        )
        return [each.value for each in found.estimates]

    everything = [(u, i) for u in range(2) for i in range(5)]
    known = run(everything, tr.FullExposure())
    sampled = [run(rows, tr.RandomExposure()) for rows in all_samples(pools, [2, 1])]
    assert len(sampled) == 6 * 3
    assert np.mean(sampled, axis=0) == pytest.approx(known, abs=1e-12)


def test_judged_rows_that_are_excluded_are_dropped_and_counted() -> None:
    labels = pl.DataFrame({"user": [0, 0, 0], "item": [0, 1, 2], "label": [1, 1, 0]})
    found = tr.evaluate(
        {"m": np.array([[3.0, 2, 1, 0]])},
        tr.read(labels),
        exposure=tr.RandomExposure(),
        exclude=pl.DataFrame({"user": [0], "item": [0]}),
        metrics=[tr.Precision(1)],
    )
    assert "1 judged rows are excluded items" in found.notes[0]
    # N = 3 candidates, N-bar = 2 judged, item 1 is first among the candidates: (3 / 2) · 1
    assert found.estimates[0].value == 1.5
