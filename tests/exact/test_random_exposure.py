"""Unbiased where it is claimed, biased by exactly what is stated, over every possible sample."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, isnan, log2

import numpy as np
import polars as pl
import pytest
from outcomes import outcomes
from tiny import Tiny
from tiny import expectation as expect

import truerank as tr
from truerank.core.errors import InputError, RefusedError
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator, Gain
from truerank.core.ranking import Ties
from truerank.core.terms import Smooth
from truerank.estimators.full import Full, Traditional
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.exposure.kinds import FullExposure, RandomExposure
from truerank.metrics.auc import AUC
from truerank.metrics.dcg import DCG
from truerank.metrics.expected_reciprocal_rank import ERR
from truerank.metrics.precision import Precision
from truerank.metrics.r_precision import RPrecision
from truerank.metrics.rank_biased_precision import RBP
from truerank.metrics.recall import Recall
from truerank.metrics.reciprocal_rank import MeanRR
from truerank.sampling.designs import BernoulliDesign, UniformDesign
from truerank.sampling.pools import Members, size_of

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


def test_cutoff_at_or_beyond_the_candidates_gives_1_and_0_is_refused() -> None:
    world = Tiny([[1, 0, 1]])
    for k in (3, 4, 100):
        assert truth(world, Recall(k)) == 1
        assert world.terms(Published(), Recall(k), [(0, 1)]).value() == 1
    with pytest.raises(InputError, match="whole number from 1"):
        Recall(0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_all_scores_equal(k: int) -> None:
    """Spec 13.1: the strict rule gives 0 for K < N; over tie orders K / N is expected."""
    labels = pl.DataFrame({"user": [1] * 4, "item": [0, 1, 2, 3], "label": [1, 0, 1, 0]})
    scores = {"same": tr.scores.dense(np.zeros((1, 4)), users=[1])}

    def recall(ties: Ties) -> float:
        return tr.evaluate(scores, tr.read(labels), metrics=[Recall(k)], ties=ties).estimates[0].value

    assert recall(Ties.STRICT) == (0 if k < 4 else 1)
    assert recall(Ties.EXPECTED) == min(k / 4, 1)


# --------------------------------------------------------------------------------- unbiased, whatever N, N-bar and ties


@pytest.mark.parametrize("world", [WORLD, TIED], ids=["distinct", "tied"])
@pytest.mark.parametrize("metric", [Precision(1), Precision(2), Precision(10), DCG(2), DCG(4)], ids=str)
def test_horvitz_thompson_is_exactly_unbiased(world: Tiny, metric: Additive) -> None:
    designs = DESIGNS[: len(world.labels)]
    assert expect(world, HorvitzThompson(), metric, designs, lambda terms: terms.value()) == pytest.approx(
        truth(world, metric), abs=1e-12
    )


@pytest.mark.parametrize("metric", [Precision(2), DCG(4)], ids=str)
def test_horvitz_thompson_with_a_declared_rate(metric: Additive) -> None:
    """Bernoulli exposure: a user without a judged item contributes 0, and the mean is exactly unbiased."""
    designs = [BernoulliDesign(0.3)] * 3
    world = Tiny([[1, 0, 1, 1], [0, 1, 0], [0, 0]])
    estimator = HorvitzThompson()
    mean = expect(world, estimator, metric, designs, lambda terms: terms.value(), rate=0.3)
    assert mean == pytest.approx(truth(world, metric), abs=1e-12)
    assert world.terms(estimator, metric, [(), (), ()], rate=0.3).value() == 0
    # without the declaration the same user is undefined, and a sample size that depends on chance costs the proof
    assert isnan(world.terms(estimator, metric, [(), (), ()]).value())


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
        drawn = size_of(design.n, size)
        keep.append(1 - comb(size - relevant, drawn) / comb(size, drawn))
        recall.append(float(values))
    assert expect(world, Published(), Recall(k), designs, num) == pytest.approx(float(np.dot(keep, recall)), abs=1e-12)
    assert expect(world, Published(), Recall(k), designs, den) == pytest.approx(sum(keep), abs=1e-12)


def test_pooled_equals_the_plain_ratio_when_the_judged_share_is_constant() -> None:
    world = Tiny([[1, 0, 0, 1], [0, 1]])
    terms = world.terms(Pooled(), Recall(1), [(0, 3), (1,)])
    assert terms.value() == pytest.approx(1 / 3, abs=1e-15)  # m = 1 and 0, n = 2 and 1


@pytest.mark.parametrize("metric", [Precision(2), DCG(3), Precision(10)], ids=str)
def test_both_parts_of_hajek_are_unbiased_and_its_bias_has_this_size(metric: Additive) -> None:
    full = WORLD.terms(Hajek(), metric, WORLD.everything())
    assert full.value() == pytest.approx(truth(WORLD, metric), abs=1e-12)
    assert expect(WORLD, Hajek(), metric, DESIGNS, num) == pytest.approx(full.sums[:, 0].sum(), abs=1e-12)
    assert expect(WORLD, Hajek(), metric, DESIGNS, den) == pytest.approx(full.sums[:, 1].sum(), abs=1e-12)


def test_the_bias_of_hajek_is_not_zero() -> None:
    """A ratio is only consistent. Two candidates, one judged, w = 1, 1/log2(3), the first relevant.

    The estimate is w_1 + w_2 if the first is judged, else 0: its mean is (w_1 + w_2) / 2, the truth is w_1.
    """
    world = Tiny([[1, 0]])
    mean = expect(world, Hajek(), DCG(2), [UniformDesign(1)], lambda terms: terms.value())
    assert mean == pytest.approx((1 + 1 / log2(3)) / 2, abs=1e-12)
    assert truth(world, DCG(2)) == 1


# --------------------------------------------------------------------------------------------------------- graded gains

# three users with grades 0 ... 3 instead of labels
GRADES = Tiny([[3, 0, 1, 0, 2, 0], [0, 2, 0, 1, 0], [0, 0, 0, 3]], column="rating")
GRADED: list[Additive] = [DCG(k, gain) for k in (2, 4) for gain in (Gain.LINEAR, Gain.EXPONENTIAL)]


@pytest.mark.parametrize("metric", GRADED, ids=str)
def test_horvitz_thompson_is_exactly_unbiased_for_graded_gains(metric: Additive) -> None:
    known = truth(GRADES, metric)
    exponential = getattr(metric, "gain", None) is Gain.EXPONENTIAL
    by_hand = [
        sum((2**g - 1 if exponential else g) / log2(r + 2) for r, g in enumerate(row[: metric.cutoff]))
        for row in GRADES.labels
    ]
    assert known == pytest.approx(sum(by_hand) / 3, abs=1e-12)
    mean = expect(GRADES, HorvitzThompson(), metric, DESIGNS, lambda terms: terms.value())
    assert mean == pytest.approx(known, abs=1e-12)
    # a declared rate: users without a judged item contribute 0
    small = Tiny([[3, 0, 1], [0, 2]], column="rating")
    drawn = [BernoulliDesign(0.3)] * 2
    mean = expect(small, HorvitzThompson(), metric, drawn, lambda terms: terms.value(), rate=0.3)
    assert mean == pytest.approx(truth(small, metric), abs=1e-12)


@pytest.mark.parametrize("metric", GRADED, ids=str)
def test_both_parts_of_hajek_are_unbiased_for_graded_gains(metric: Additive) -> None:
    """Σ gain x worth over Σ worth, times the known mean of Σ worth, so that with everything judged it is the truth."""
    full = GRADES.terms(Hajek(), metric, GRADES.everything())
    assert full.value() == pytest.approx(truth(GRADES, metric), abs=1e-12)
    assert full.sums[:, 1].sum() == pytest.approx(
        sum(metric.rank_discount(np.arange(1.0, n + 1)).sum() for n in (6, 5, 4)), abs=1e-12
    )
    assert expect(GRADES, Hajek(), metric, DESIGNS, num) == pytest.approx(full.sums[:, 0].sum(), abs=1e-12)
    assert expect(GRADES, Hajek(), metric, DESIGNS, den) == pytest.approx(full.sums[:, 1].sum(), abs=1e-12)


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


def test_the_bias_of_hajek_with_graded_gains_has_this_size() -> None:
    """Two candidates of grades 2 and 1, one judged, w = 1, 1/log2(3), gain 3 and 1.

    The estimate is 3 (w_1 + w_2) or 1 (w_1 + w_2): its mean is 2 (w_1 + w_2), the truth 3 w_1 + w_2.
    """
    world = Tiny([[2, 1]], column="rating")
    metric = DCG(2, Gain.EXPONENTIAL)
    second = 1 / log2(3)
    mean = expect(world, Hajek(), metric, [UniformDesign(1)], lambda terms: terms.value())
    assert mean == pytest.approx(2 * (1 + second), abs=1e-12)
    assert truth(world, metric) == pytest.approx(3 + second, abs=1e-12)


# --------------------------------------------------------------------- other additive metrics, and AUC among the judged


@pytest.mark.parametrize("world", [WORLD, TIED], ids=["distinct", "tied"])
@pytest.mark.parametrize(
    "metric", [RBP(0.9), RBP(0.3), Precision(5, Denominator.LIST), Precision(2, Denominator.LIST)],
    ids=str,
)  # fmt: skip
def test_horvitz_thompson_is_unbiased_for_every_known_denominator(world: Tiny, metric: Additive) -> None:
    designs = DESIGNS[: len(world.labels)]
    mean = expect(world, HorvitzThompson(), metric, designs, lambda terms: terms.value())
    assert mean == pytest.approx(truth(world, metric), abs=1e-12)
    full = world.terms(Hajek(), metric, world.everything())
    assert full.value() == pytest.approx(truth(world, metric), abs=1e-12)
    assert expect(world, Hajek(), metric, designs, num) == pytest.approx(full.sums[:, 0].sum(), abs=1e-12)
    assert expect(world, Hajek(), metric, designs, den) == pytest.approx(full.sums[:, 1].sum(), abs=1e-12)


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
        assert estimate.estimand.startswith("mean AUC over users weighted by their chance")
        assert not any("not AUC" in each for each in estimate.warning_texts)
        found.append(estimate.value)
    assert np.mean(found) == pytest.approx(auc_by_pairs(labels, scores), abs=1e-12)


def test_auc_of_several_users_converges_to_a_weighted_mean() -> None:
    """Σ over users with both classes judged has mean Σ π AUC; their number has mean Σ π."""
    rows = [[1, 0, 0, 1, 0], [0, 1, 1, 1], [0, 0, 1]]
    designs = [UniformDesign(2), UniformDesign(2), UniformDesign(2)]
    num_mean = den_mean = wanted_num = wanted_den = 0.0
    for row, design in zip(rows, designs, strict=True):
        both = [(chance, [row[i] for i in members]) for members, chance in outcomes(design, Members.alone(len(row)))]
        keep = sum(chance for chance, labels in both if len(set(labels)) == 2)
        wanted_num += keep * auc_by_pairs(row, [-float(i) for i in range(len(row))])
        wanted_den += keep
        for members, chance in outcomes(design, Members.alone(len(row))):
            judged = Tiny([[row[i] for i in members]])
            terms = judged.terms(Traditional(), AUC(), judged.everything())
            num_mean += chance * terms.sums[:, 0].sum()
            den_mean += chance * terms.sums[:, 1].sum()
    assert num_mean == pytest.approx(wanted_num, abs=1e-12)
    assert den_mean == pytest.approx(wanted_den, abs=1e-12)


def test_refusals_say_what_to_use() -> None:
    labels = pl.DataFrame({"user": [0, 0], "item": [0, 1], "label": [1, 0]})

    def refused(metric: Metric) -> str:
        with pytest.raises(RefusedError) as error:
            tr.evaluate({"m": np.zeros((1, 4))}, tr.read(labels), exposure=RandomExposure(), metrics=[metric])
        return str(error.value)

    pairs = tr.evaluate({"m": np.zeros((1, 4))}, tr.read(labels), exposure=RandomExposure(), metrics=[AUC()])
    assert [each.estimator for each in pairs.estimates] == ["pairs"]  # of all candidates, by default
    assert "no unbiased form exists; use Recall divided by all" in refused(Recall(2, Denominator.SMALLER))
    assert "use Recall or Precision" in refused(RPrecision())
    assert "use DCG or RBP" in refused(ERR(2))


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
