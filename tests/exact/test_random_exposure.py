"""Unbiased where it is claimed, biased by exactly what is stated, over every possible sample."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, isnan, log2

import numpy as np
import polars as pl
import pytest
from outcomes import alone, outcomes
from tiny import Tiny
from tiny import expectation as expect

import truerank as tr
from truerank.core.estimator import Estimator
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator, Gain, Ideal
from truerank.core.ranking import Ties
from truerank.core.terms import Smooth
from truerank.estimators.full import Full, Traditional
from truerank.estimators.ratios import ExpandedPairs, IdealRatio, PostNormalised
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.exposure.kinds import FullExposure, RandomExposure
from truerank.metrics.additive import DCG, RBP, MeanRR, Precision, Recall
from truerank.metrics.listwise import NDCG
from truerank.metrics.pairwise import AUC, AveragePrecision
from truerank.sampling.designs import BernoulliDesign, SamplingDesign, UniformDesign
from truerank.sampling.pools import sizes_of

# three users with different numbers of candidates and relevant items, one of whom likes nothing
WORLD = Tiny([[1, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0]])
DESIGNS = [UniformDesign(3), UniformDesign(2), UniformDesign(1)]
# scores with ties: above and tied counts of every candidate
TIED = Tiny(
    [[1, 0, 1, 0, 1], [0, 1, 1, 0]],
    above=[[0, 0, 2, 3, 3], [0, 1, 1, 1]],
    tied=[[1, 1, 0, 1, 1], [0, 2, 2, 2]],
)


def num(terms: Smooth) -> float:
    return float(terms.sums[:, 0].sum())


def den(terms: Smooth) -> float:
    return float(terms.sums[:, 1].sum())


def truth(world: Tiny, metric: Metric) -> float:
    return world.terms(Full(), metric, world.everything()).value()


# ----------------------------------------------------------------------------------------------- fixtures of the papers


def test_six_items_three_positives() -> None:
    """Spec 13.1: positives at ranks 1, 4, 5 of 6, K = 2, 3 judged."""
    world = Tiny([[1, 0, 0, 1, 1, 0]])
    assert truth(world, Recall(2)) == pytest.approx(1 / 3, abs=1e-15)
    kept = [
        world.terms(Published(), Recall(2), [members]).value()
        for members in combinations(range(6), 3)
        if set(members) & {0, 3, 4}
    ]
    assert len(kept) == 19
    assert np.mean(kept) == pytest.approx(1 / 3, abs=1e-12)
    every = [world.terms(HorvitzThompson(), Precision(2), [members]).value() for members in combinations(range(6), 3)]
    assert len(every) == 20
    assert np.mean(every) == pytest.approx(1 / 2, abs=1e-12)


@pytest.mark.parametrize(("k_bar", "expected"), [(1, Fraction(41, 114)), (2, Fraction(41, 57))])
def test_traditional_scheme_is_another_number(k_bar: int, expected: Fraction) -> None:
    """Spec 13.1: neither Recall@1 nor Recall@2 among the judged is Recall@2 = 1/3."""
    labels = {0: 1, 1: 0, 2: 0, 3: 1, 4: 1, 5: 0}
    values = []
    for members in combinations(range(6), 3):
        judged = Tiny([[labels[i] for i in members]])
        value = judged.terms(Traditional(), Recall(k_bar), judged.everything()).value()
        if not isnan(value):
            values.append(value)
    assert len(values) == 19
    assert np.mean(values) == pytest.approx(float(expected), abs=1e-12)


def test_theorem_1() -> None:
    """Over all placements of 3 positives among 6, recall@1 of 3 judged and recall@2 of all agree on average."""
    full, judged = [], []
    for places in combinations(range(6), 3):
        labels = [int(i in places) for i in range(6)]
        full.append(truth(Tiny([labels]), Recall(2)))
        kept = []
        for members in combinations(range(6), 3):
            seen = Tiny([[labels[i] for i in members]])
            kept.append(seen.terms(Traditional(), Recall(1), seen.everything()).value())
        judged.append(np.nanmean(kept))
    assert np.mean(full) == pytest.approx(1 / 3, abs=1e-12)
    assert np.mean(judged) == pytest.approx(1 / 3, abs=1e-12)


def test_dropping_users_biases_the_published_mean() -> None:
    """Spec 5.1.4: user A has recall 1 and is kept with probability 1/3, user B has recall 0 and is always kept."""
    world = Tiny([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]])
    assert truth(world, Recall(1)) == 0.5
    mean = expect(world, Published(), Recall(1), [UniformDesign(2)] * 2, lambda terms: terms.value())
    assert mean == pytest.approx(1 / 6, abs=1e-12)
    # pooled recall has no such bias: its parts are unbiased
    assert expect(world, Pooled(), Recall(1), [UniformDesign(2)] * 2, num) == pytest.approx(1, abs=1e-12)
    assert expect(world, Pooled(), Recall(1), [UniformDesign(2)] * 2, den) == pytest.approx(6, abs=1e-12)


# --------------------------------------------------------------------------------- unbiased, whatever N, N-bar and ties


GRADES = Tiny([[3, 0, 1, 0, 2, 0], [0, 2, 0, 1, 0], [0, 0, 0, 3]], column="rating")  # grades instead of labels
GRADED: list[Additive] = [DCG(k, gain) for k in (2, 4) for gain in (Gain.LINEAR, Gain.EXPONENTIAL)]
BINARY: list[Additive] = [
    *(Precision(k) for k in (1, 2, 10)), *(Precision(k, Denominator.LIST) for k in (2, 5)), DCG(2), DCG(4), RBP(0.3),
    RBP(0.9),
]  # fmt: skip
ADDITIVE = [(world, metric) for world in (WORLD, TIED) for metric in BINARY] + [(GRADES, metric) for metric in GRADED]


@pytest.mark.parametrize(("world", "metric"), ADDITIVE, ids=str)
def test_horvitz_thompson_and_both_parts_of_hajek_are_exactly_unbiased(world: Tiny, metric: Additive) -> None:
    """Σ gain x discount over Σ discount, times the known mean of Σ discount: with everything judged it is the truth."""
    designs = DESIGNS[: len(world.labels)]
    mean = expect(world, HorvitzThompson(), metric, designs, lambda terms: terms.value())
    assert mean == pytest.approx(truth(world, metric), abs=1e-12)
    full = world.terms(Hajek(), metric, world.everything())
    assert full.value() == pytest.approx(truth(world, metric), abs=1e-12)
    assert expect(world, Hajek(), metric, designs, num) == pytest.approx(full.sums[:, 0].sum(), abs=1e-12)
    assert expect(world, Hajek(), metric, designs, den) == pytest.approx(full.sums[:, 1].sum(), abs=1e-12)


RATED = [(Tiny([[1, 0, 1, 1], [0, 1, 0], [0, 0]]), each) for each in (Precision(2), DCG(4))]
RATED += [(Tiny([[3, 0, 1], [0, 2]], column="rating"), DCG(2, Gain.EXPONENTIAL))]


@pytest.mark.parametrize(("world", "metric"), RATED, ids=str)
def test_horvitz_thompson_with_a_declared_rate(world: Tiny, metric: Additive) -> None:
    """Bernoulli exposure: a user without a judged item contributes 0, and the mean is exactly unbiased."""
    estimator, nothing = HorvitzThompson(), [()] * len(world.labels)
    designs = [BernoulliDesign(0.3)] * len(world.labels)
    mean = expect(world, estimator, metric, designs, lambda terms: terms.value(), rate=0.3)
    assert mean == pytest.approx(truth(world, metric), abs=1e-12)
    assert world.terms(estimator, metric, nothing, rate=0.3).value() == 0
    # without the declaration the same user is undefined, and a sample size that depends on chance costs the proof
    assert isnan(world.terms(estimator, metric, nothing).value())


@pytest.mark.parametrize("world", [WORLD, TIED], ids=["distinct", "tied"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_both_parts_of_pooled_recall_are_unbiased(world: Tiny, k: int) -> None:
    designs = DESIGNS[: len(world.labels)]
    full = world.terms(Pooled(), Recall(k), world.everything())
    assert expect(world, Pooled(), Recall(k), designs, num) == pytest.approx(full.sums[:, 0].sum(), abs=1e-12)
    assert expect(world, Pooled(), Recall(k), designs, den) == pytest.approx(full.sums[:, 1].sum(), abs=1e-12)
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
        world.labels, designs, world.terms(Published(), Recall(k), world.everything()).sums[:, 0], strict=True
    ):
        size, relevant = len(row), sum(row)
        drawn = int(sizes_of(design.n, np.array([size]))[0])
        keep.append(1 - comb(size - relevant, drawn) / comb(size, drawn))
        recall.append(float(values))
    assert expect(world, Published(), Recall(k), designs, num) == pytest.approx(float(np.dot(keep, recall)), abs=1e-12)
    assert expect(world, Published(), Recall(k), designs, den) == pytest.approx(sum(keep), abs=1e-12)


@pytest.mark.parametrize(
    ("world", "metric", "mean", "known"),
    [
        (Tiny([[1, 0]]), DCG(2), (1 + 1 / log2(3)) / 2, 1.0),
        (Tiny([[2, 1]], column="rating"), DCG(2, Gain.EXPONENTIAL), 2 * (1 + 1 / log2(3)), 3 + 1 / log2(3)),
    ],
    ids=["labels", "grades"],
)
def test_the_bias_of_hajek_has_this_size(world: Tiny, metric: Metric, mean: float, known: float) -> None:
    """A ratio is only consistent. Two candidates of gains g and h, one judged, w = 1, 1/log2(3).

    The estimate is g (w_1 + w_2) or h (w_1 + w_2): its mean is (g + h) (w_1 + w_2) / 2, the truth g w_1 + h w_2.
    """
    assert expect(world, Hajek(), metric, [UniformDesign(1)], lambda terms: terms.value()) == pytest.approx(mean)
    assert truth(world, metric) == pytest.approx(known)


def test_hajek_is_exact_where_the_gain_is_the_same_for_all() -> None:
    """Chance in how many judged items rank high cancels, also with gains: every sample that has one gives the truth."""
    world = Tiny([[2, 2, 2, 2], [2, 2, 2]], column="rating")
    metric = DCG(2, Gain.EXPONENTIAL)
    for members, _ in world.samples([UniformDesign(2), UniformDesign(1)]):
        terms = world.terms(Hajek(), metric, members)
        if any(place < 2 for judged in members for place in judged):
            assert terms.value() == pytest.approx(truth(world, metric), abs=1e-12)
        else:
            assert isnan(terms.value())


def test_mean_reciprocal_rank_pooled_and_published() -> None:
    """Both parts of pooled are unbiased; published is unbiased for each user given a judged relevant item."""
    metric = MeanRR()
    full = WORLD.terms(Pooled(), metric, WORLD.everything())
    assert full.value() == pytest.approx((1 + 1 / 4 + 1 / 5 + 1 / 2) / 4, abs=1e-12)
    assert expect(WORLD, Pooled(), metric, DESIGNS, num) == pytest.approx(full.sums[:, 0].sum(), abs=1e-12)
    assert expect(WORLD, Pooled(), metric, DESIGNS, den) == pytest.approx(full.sums[:, 1].sum(), abs=1e-12)
    one = Tiny([[1, 0, 0, 1, 1, 0]])
    kept = [one.terms(Published(), metric, [m]).value() for m in combinations(range(6), 3) if set(m) & {0, 3, 4}]
    assert np.mean(kept) == pytest.approx((1 + 1 / 4 + 1 / 5) / 3, abs=1e-12)


def auc_by_pairs(labels: Sequence[int], scores: Sequence[float]) -> float:
    pairs = [(a > b) + (a == b) / 2 for x, a in zip(labels, scores, strict=True) if x
             for y, b in zip(labels, scores, strict=True) if not y]  # fmt: skip
    return float(np.mean(pairs)) if pairs else float("nan")


@pytest.mark.parametrize("scores", [[5.0, 4, 3, 2, 1, 0], [2.0, 2, 1, 1, 1, 0]], ids=["distinct", "tied"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_auc_among_judged_items_is_unbiased_for_a_user_given_both_classes(scores: list[float], n: int) -> None:
    """Every pair of a relevant and another item is as likely as any other to be judged, whatever the sample holds."""
    labels = [1, 0, 0, 1, 1, 0]
    found = []
    for members in combinations(range(6), n):
        frame = pl.DataFrame({"user": [0] * n, "item": list(members), "label": [labels[i] for i in members]})
        if frame["label"].n_unique() < 2:
            continue
        model = {"m": tr.scores.dense([scores], users=[0], items=range(6))}
        (estimate,) = tr.evaluate(
            model, tr.read(frame), exposure=RandomExposure(), metrics=[AUC()], estimators=[Traditional()]
        ).estimates
        found.append(estimate.value)
    assert np.mean(found) == pytest.approx(auc_by_pairs(labels, scores), abs=1e-12)


def test_auc_of_several_users_converges_to_a_weighted_mean() -> None:
    """Σ over users with both classes judged has mean Σ π AUC; their number has mean Σ π."""
    rows = [[1, 0, 0, 1, 0], [0, 1, 1, 1], [0, 0, 1]]
    designs = [UniformDesign(2), UniformDesign(2), UniformDesign(2)]
    num_mean = den_mean = wanted_num = wanted_den = 0.0
    for row, design in zip(rows, designs, strict=True):
        both = [(chance, [row[i] for i in members]) for members, chance in outcomes(design, alone(len(row)))]
        keep = sum(chance for chance, labels in both if len(set(labels)) == 2)
        wanted_num += keep * auc_by_pairs(row, [-float(i) for i in range(len(row))])
        wanted_den += keep
        for members, chance in outcomes(design, alone(len(row))):
            judged = Tiny([[row[i] for i in members]])
            terms = judged.terms(Traditional(), AUC(), judged.everything())
            num_mean += chance * terms.sums[:, 0].sum()
            den_mean += chance * terms.sums[:, 1].sum()
    assert num_mean == pytest.approx(wanted_num, abs=1e-12)
    assert den_mean == pytest.approx(wanted_den, abs=1e-12)


# ----------------------------------------------------------------------------- through evaluate: exclusions and scores


def all_samples(pools: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[]]
    for user, (pool, size) in enumerate(zip(pools, sizes, strict=True)):
        found = [[*rows, *((user, item) for item in members)] for rows in found for members in combinations(pool, size)]
    return found


@pytest.mark.parametrize("ties", [Ties.EXPECTED, Ties.STRICT, Ties.RANDOM])
def test_unbiased_through_evaluate_with_exclusions_and_ties(ties: Ties) -> None:
    """An excluded item leaves both the candidates and the judged items, and N and N-bar are counted anew."""
    scores = {"m": np.array([[3.0, 2, 2, 1, 0], [1.0, 1, 4, 4, 2]])}
    label = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 0, 0]])
    excluded = pl.DataFrame({"user": [0, 1, 1], "item": [0, 3, 4]})
    pools = [[1, 2, 3, 4], [0, 1, 2]]
    metrics: list[Metric] = [Precision(1), Precision(2), DCG(3)]

    def run(rows: list[tuple[int, int]], exposure: FullExposure | RandomExposure) -> list[float]:
        frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
        frame = frame.with_columns(label=pl.Series([int(label[u, i]) for u, i in rows]))
        estimator = Full() if isinstance(exposure, FullExposure) else HorvitzThompson()
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
    known = run(everything, FullExposure())
    sampled = [run(rows, RandomExposure()) for rows in all_samples(pools, [2, 1])]
    assert len(sampled) == 6 * 3
    assert np.mean(sampled, axis=0) == pytest.approx(known, abs=1e-12)


def test_judged_rows_that_are_excluded_are_dropped_and_counted() -> None:
    labels = pl.DataFrame({"user": [0, 0, 0], "item": [0, 1, 2], "label": [1, 1, 0]})
    found = tr.evaluate(
        {"m": np.array([[3.0, 2, 1, 0]])},
        tr.read(labels),
        exposure=RandomExposure(),
        exclude=pl.DataFrame({"user": [0], "item": [0]}),
        metrics=[Precision(1)],
        estimators=["horvitz-thompson"],
    )
    assert any("1 labelled rows are excluded items" in note for note in found.notes)
    # N = 3 candidates, N-bar = 2 judged, item 1 is first among the candidates: (3 / 2) · 1
    assert found.estimates[0].value == 1.5


# -------------------------------------------------------------------------------------- metrics of pairs of items, nDCG

PAIRED = Tiny([[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0]])
SAMPLINGS: list[tuple[SamplingDesign, float | None]] = [
    (UniformDesign(2), None),
    (UniformDesign(3), None),
    (BernoulliDesign(0.4), 0.4),
]
drawn = pytest.mark.parametrize(("design", "rate"), SAMPLINGS, ids=str)
worlds = pytest.mark.parametrize("world", [PAIRED, TIED], ids=["ranks", "ties"])


def single_user(world: Tiny, user: int) -> Tiny:
    above, tied = (None if each is None else [each[user]] for each in (world.above, world.tied))
    return Tiny([world.labels[user]], above=above, tied=tied)


def mean_total(
    world: Tiny, estimator: Estimator, metric: Metric, column: int, design: SamplingDesign, rate: float | None
) -> float:
    """The expectation of a total, user by user: users are drawn apart."""

    def of(terms: Smooth) -> float:
        return float(terms.sums[:, column].sum())

    users = [single_user(world, user) for user in range(len(world.labels))]
    return sum(expect(user, estimator, metric, [design], of, rate=rate) for user in users)


def unit_values(world: Tiny, metric: Metric) -> np.ndarray:
    """The value of each user with every label known, NaN where undefined."""
    return world.terms(Full(), metric, world.everything()).unit_values()


# ---------------------------------------------------------------------------------------------------------- AP and AUC


@worlds
@drawn
@pytest.mark.parametrize("k", [1, 3, 5])
def test_average_precision_has_unbiased_sums(world: Tiny, design: SamplingDesign, rate: float | None, k: int) -> None:
    n = np.array([sum(row) for row in world.labels])
    precision = np.nansum(unit_values(world, AveragePrecision(k, Denominator.POSITIVES)) * n)
    by_cutoff, by_positives = (AveragePrecision(k, each) for each in (Denominator.CUTOFF, Denominator.POSITIVES))
    for metric in (by_cutoff, by_positives):
        found = mean_total(world, ExpandedPairs(), metric, 0, design, rate)
        assert found == pytest.approx(precision, abs=1e-12)
    assert mean_total(world, ExpandedPairs(), by_positives, 1, design, rate) == pytest.approx(n.sum(), abs=1e-12)


def test_average_precision_divided_by_the_cutoff_is_unbiased_itself() -> None:
    metric = AveragePrecision(3, Denominator.CUTOFF)
    mean = expect(PAIRED, ExpandedPairs(), metric, [UniformDesign(2)] * 3, lambda terms: terms.value())
    assert mean == pytest.approx(np.nansum(unit_values(PAIRED, metric)) / 3, abs=1e-12)


@worlds
@drawn
def test_area_under_the_curve_has_unbiased_sums(world: Tiny, design: SamplingDesign, rate: float | None) -> None:
    n = np.array([sum(row) for row in world.labels])
    pairs = n * (np.array([len(row) for row in world.labels]) - n)
    assert mean_total(world, ExpandedPairs(), AUC(), 0, design, rate) == pytest.approx(
        np.nansum(unit_values(world, AUC()) * pairs), abs=1e-12
    )
    assert mean_total(world, ExpandedPairs(), AUC(), 1, design, rate) == pytest.approx(pairs.sum(), abs=1e-12)


# ---------------------------------------------------------------------------------------------------------------- nDCG


@drawn
def test_normalised_after_averaging(design: SamplingDesign, rate: float | None) -> None:
    """DCG and the number of relevant items are unbiased; over a full list so is the value."""
    n_users = len(PAIRED.labels)
    dcg = sum(label / log2(place + 2) for row in PAIRED.labels for place, label in enumerate(row[:3]))
    assert mean_total(PAIRED, PostNormalised(), NDCG(3), 0, design, rate) == pytest.approx(dcg, abs=1e-12)
    assert mean_total(PAIRED, PostNormalised(), NDCG(3), 1, design, rate) == pytest.approx(5, abs=1e-12)
    if rate is None:
        metric = NDCG(3, ideal=Ideal.CUTOFF)
        full = 1 + 1 / log2(3) + 1 / 2
        form = IdealRatio(3, whole=True)
        totals = np.array([[mean_total(PAIRED, PostNormalised(), metric, column, design, rate) for column in range(3)]])
        assert form.values(totals)[0] == pytest.approx(dcg / full / n_users, abs=1e-12)
