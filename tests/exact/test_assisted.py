"""Post-stratified and assisted estimates over every possible sample: what is exact, and what is biased by how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from outcomes import alone, outcomes
from terms import all_terms_of
from tiny import Tiny

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, Exposed, Request
from truerank.core.forms import HitMove, slopes
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Ranks
from truerank.core.terms import Smooth
from truerank.estimators.assistance import AssistedMean, AssistedShare
from truerank.estimators.assisted import Assisted
from truerank.estimators.listed_predictions import PredictionBalance, StratumBalance
from truerank.estimators.predictions import Assistance, JudgeTable, ranked_within_rows
from truerank.estimators.ratios import PostStratified
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled
from truerank.inference.linearization import FEW_HITS, RareHits
from truerank.metrics.additive import DCG, RBP, Precision, Recall
from truerank.ranking.scores.scores import dense
from truerank.sampling.unequal import DrawBy

LABELS = np.array([[1, 0, 1, 0, 0, 1], [1, 1, 0, 0, 1, 0]], dtype=float)
JUDGE = np.array([[0.9, 0.2, 0.6, 0.4, 0.1, 0.3], [0.7, 0.8, 0.3, 0.2, 0.6, 0.1]])
CHANCE = np.array([[0.9, 0.5, 0.4, 0.3, 0.6, 0.8], [0.2, 0.7, 0.5, 0.9, 0.4, 0.6]])
METRICS: list[Metric] = [Precision(3), DCG(3), RBP(0.8), Recall(3)]


def every_sample(judged: int, n_users: int = 2) -> Iterator[list[tuple[int, ...]]]:
    """All ways to judge so many items of every user, each as likely as any other."""
    for chosen in product(combinations(range(6), judged), repeat=n_users):
        yield list(chosen)


def terms(
    estimator: Estimator,
    metric: Metric,
    judged: Sequence[Sequence[int]],
    *,
    said: Floats = JUDGE,
    propensity: Floats | None = None,
    drawn: Exposed = Exposed.BIASED,
) -> Smooth:
    """Of users who have these items judged and are recommended items in their order, with a judge of every pair."""
    n = len(judged)
    user = np.repeat(np.arange(n), [len(items) for items in judged])
    item = np.array([at for items in judged for at in items], dtype=np.int64)
    users, items = Ids.of(np.arange(n)), Ids.of(np.arange(6))
    log = Log(
        users=users,
        items=items,
        unit=user,
        item=item,
        rewards={"label": LABELS[user, item]},
        propensity=None if propensity is None else propensity[user, item],
    )
    size = np.full(n, 6.0)
    ranks = Ranks(item.astype(float), np.zeros(len(item)), size, size, np.ones(n, dtype=bool))
    pair = np.indices((n, 6)).reshape(2, -1)
    known = ~np.isnan(said[:n].ravel())
    judge = Log(users, items, pair[0][known], pair[1][known], {"label": said[:n].ravel()[known]}, source="judge")
    (found,) = all_terms_of(
        estimator,
        log,
        ranks,
        [Request(metric)],
        scores=dense(np.tile(-np.arange(6.0), (n, 1)), users=np.arange(n), items=np.arange(6)),
        exposed=None if propensity is None else drawn,
        predictions={Assistance.JUDGE: JudgeTable(judge)},
    )
    return found


def truth(metric: Metric) -> float:
    return terms(Pooled() if isinstance(metric, Recall) else Hajek(), metric, [range(6)] * 2).value()


# ------------------------------------------------------------------------------------------------------ post-stratified


def test_the_worked_example() -> None:
    """Two users with 10 candidates, K = 2, 5 judged each; 2 of 3 judged in lists and 1 of 7 beside are relevant."""
    world = Tiny([[1, 0, 0, 0, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    judged = [(0, 1, 2, 3, 6), (0, 2, 3, 4, 5)]
    found = world.terms(PostStratified(), Recall(2), judged)
    assert found.value() == pytest.approx((8 / 3) / (8 / 3 + 16 / 7), abs=1e-15)
    assert world.terms(Pooled(), Recall(2), judged).value() == pytest.approx(2 / 3, abs=1e-15)


@pytest.mark.parametrize("judged", [2, 3, 4])
def test_the_share_of_a_stratum_is_unbiased_where_it_was_judged(judged: int) -> None:
    """Of one user: given how many judged items are in the list, they are a uniform sample of it."""
    world = Tiny([LABELS[0].astype(int).tolist()])
    inside, outside = [], []
    for members in combinations(range(6), judged):
        found, _, listed, missed, beside, _, _ = world.terms(PostStratified(), Recall(2), [members]).sums[0]
        inside += [found / listed] if listed else []
        outside += [missed / beside] if beside else []
    assert np.mean(inside) == pytest.approx(LABELS[0, :2].mean(), abs=1e-12)
    assert np.mean(outside) == pytest.approx(LABELS[0, 2:].mean(), abs=1e-12)


def moments(estimator: Estimator, metric: Metric, samples: Sequence[Sequence[Sequence[int]]]) -> tuple[float, float]:
    values = [terms(estimator, metric, sample).value() for sample in samples]
    return float(np.mean(values)) - truth(metric), float(np.var(values))


def test_the_bias_is_small_and_the_variance_smaller_than_that_of_pooled_recall() -> None:
    """Over all 225 samples of four of six items of two users; recall is 2/3."""
    samples = list(every_sample(4))
    bias, variance = moments(PostStratified(), Recall(3), samples)
    assert bias == pytest.approx(0.0113300574, abs=1e-9)
    assert bias**2 < 0.01 * variance
    assert variance == pytest.approx(0.7812 * moments(Pooled(), Recall(3), samples)[1], rel=1e-4)


# ------------------------------------------------------------------------------------------------------------- assisted


def fixed(found: Smooth, *, level: float, slope: float) -> float:
    """The numerator of the estimate with a level and a slope that no label has moved."""
    names, totals = found.form.columns, dict(zip(found.form.columns, found.sums.sum(axis=0), strict=True))
    places, foreseen = ("total", "foreseen_places") if "total" in names else ("places", "foreseen_places")
    listed = totals["denominator" if "total" in names else "listed"]
    apart = totals[foreseen] - totals["foreseen"]
    return float(totals["numerator"] + level * (totals[places] - listed) + slope * apart)


FIXED = [(0.0, 0.0), (0.3, 0.0), (0.0, 1.0), (-0.2, 0.7)]


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_with_a_level_and_a_slope_that_are_fixed_it_is_exactly_unbiased(metric: Metric) -> None:
    whole = terms(Assisted(fewest=0, doubt=0), metric, [range(6)] * 2).sums[:, 0].sum()
    samples = [terms(Assisted(fewest=0, doubt=0), metric, sample) for sample in every_sample(2)]
    for level, slope in FIXED:
        mean = np.mean([fixed(sample, level=level, slope=slope) for sample in samples])
        assert mean == pytest.approx(whole, abs=1e-12), (level, slope)


def test_so_it_is_with_unequal_propensities() -> None:
    metric = Precision(3)
    whole = terms(Assisted(fewest=0, doubt=0), metric, [range(6)], propensity=np.ones((1, 6))).sums[:, 0].sum()
    for level, slope in FIXED:
        mean = 0.0
        for drawn in product((False, True), repeat=6):
            chance = float(np.prod(np.where(drawn, CHANCE[0], 1 - CHANCE[0])))
            found = terms(Assisted(fewest=0, doubt=0), metric, [np.flatnonzero(drawn).tolist()], propensity=CHANCE)
            mean += chance * fixed(found, level=level, slope=slope)
        assert mean == pytest.approx(whole, abs=1e-12)


def test_what_is_fitted_to_four_rows_is_biased_by_a_third_of_its_error() -> None:
    """Two users with four of six items judged, four rows of lists on average: why fewer than 30 are not fitted to."""
    samples = list(every_sample(4))
    bias, variance = moments(Assisted(fewest=0, doubt=0), Precision(3), samples)
    assert bias == pytest.approx(0.0416812491, abs=1e-9)
    assert bias / np.sqrt(variance) == pytest.approx(0.3073, abs=1e-4)
    assert moments(Assisted(), Precision(3), samples)[0] == pytest.approx(moments(Hajek(), Precision(3), samples)[0])


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("said", [np.full((2, 6), 0.4), np.full((2, 6), np.nan)], ids=["constant", "nothing"])
def test_without_anything_to_learn_from_it_is_hajek_or_post_stratified(metric: Metric, said: Floats) -> None:
    plain = PostStratified() if isinstance(metric, Recall) else Hajek()
    for sample in list(every_sample(4))[::7]:
        found = terms(Assisted(fewest=0, doubt=0), metric, sample, said=said)
        wanted = terms(plain, metric, sample)
        np.testing.assert_allclose(found.value(), wanted.value(), rtol=1e-12)
        np.testing.assert_allclose(found.influence(), wanted.influence(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.leverage(), wanted.leverage(), rtol=0, atol=1e-12)


def squared_t(sample: Sequence[Sequence[int]]) -> float:
    """Of the slope on the judge's word over the judged rows of lists of three; 0 where all labels are equal."""
    rows = [(user, item) for user, items in enumerate(sample) for item in items if item < 3]
    label, said = (np.array([each[row] for row in rows]) for each in (LABELS, JUDGE))
    if label.std() == 0:
        return 0.0
    squared = float(np.corrcoef(label, said)[0, 1]) ** 2
    return (len(rows) - 2) * squared / (1 - squared)


def test_a_slope_that_rows_hardly_tell_is_drawn_towards_none() -> None:
    """Between hajek (none of the slope) and least squares (all of it) by max(0, 1 - doubt / t²), in every sample."""
    seen = set()
    for sample in every_sample(5):
        metric = Precision(3)
        none, all_of_it = terms(Hajek(), metric, sample).value(), terms(Assisted(fewest=0, doubt=0), metric, sample)
        for doubt in (0.5, 4.0):
            found = terms(Assisted(fewest=0, doubt=doubt), metric, sample)
            t2 = squared_t(sample)
            kept = max(0.0, 1 - doubt / t2) if t2 > 0 else 0.0
            seen.add(kept > 0)
            # uniform weights: the value moves along a line with the slope
            assert found.value() == pytest.approx(none + kept * (all_of_it.value() - none), abs=1e-12)
    assert seen == {False, True}


def test_two_rows_tell_no_slope() -> None:
    """Any line goes through two rows; two are in lists."""
    sample = [(1, 3), (1, 3)]  # one place of each list, with different labels
    found = terms(Assisted(fewest=0), Precision(3), sample).value()
    assert found == pytest.approx(terms(Hajek(), Precision(3), sample).value(), abs=1e-12)
    assert found != pytest.approx(terms(Assisted(fewest=0, doubt=0), Precision(3), sample).value(), abs=1e-6)


def test_unequal_chances_count_as_fewer_rows() -> None:
    """One row with a tiny chance outweighs the others: they are worth one; with any doubt only a level is fitted."""
    chance = CHANCE.copy()
    chance[0, 0] = 0.001
    sample = [(0, 1, 2), (0, 1, 2)]
    alpha, label = 1 / chance[:, :3].ravel(), LABELS[:, :3].ravel()
    weight = alpha * (alpha - 1)
    assert weight.sum() ** 2 / (weight**2).sum() < 1.01
    level = (weight * label).sum() / weight.sum()
    wanted = ((alpha * label).sum() + level * (6 - alpha.sum())) / 6
    doubted, fitted = (
        terms(Assisted(fewest=0, doubt=doubt), Precision(3), sample, propensity=chance).value() for doubt in (4, 0)
    )
    assert doubted == pytest.approx(wanted, abs=1e-9)
    assert fitted != pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_a_judge_who_is_right_up_to_scale_leaves_no_error(metric: Metric) -> None:
    """y = 0.25 + 0.5 ŷ exactly: any sample with both labels in and beside lists gives the truth."""
    said = (LABELS - 0.25) / 0.5
    for sample in ([(0, 1, 3, 5), (1, 2, 3, 4)], [(0, 1, 2, 4, 5), (0, 2, 3, 4)]):
        assert terms(Assisted(fewest=0, doubt=0), metric, sample, said=said).value() == pytest.approx(
            truth(metric), abs=1e-9
        )


def test_places_without_a_word_of_the_judge_have_the_mean_of_the_others() -> None:
    some = JUDGE.copy()
    some[0, 1] = np.nan
    filled = some.copy()
    filled[0, 1] = np.nanmean(some[:, :3])
    sample = [(0, 2, 3, 4), (0, 1, 2, 5)]  # the row itself is not judged
    found = terms(Assisted(fewest=0, doubt=0), Precision(3), sample, said=some)
    assert found.value() == pytest.approx(terms(Assisted(fewest=0, doubt=0), Precision(3), sample, said=filled).value())


@pytest.mark.parametrize(
    ("labelled", "repeats"), [((10, 10, 0), True), ((100, 9, 0), False), ((9, 100, 0), False), ((10, 10, 1), False)]
)
def test_predictions_that_are_the_labels_are_seen_from_ten_rows_of_either(
    labelled: tuple[int, ...], repeats: bool
) -> None:
    nothing = StratumBalance(np.zeros(12))
    balance = PredictionBalance(Assistance.JUDGE, Precision(3), nothing, nothing, np.array(labelled))
    assert balance.repeats_labels is repeats


def test_one_hit_more_is_allowed_for_where_predictions_and_few_hits_make_a_value() -> None:
    allowed = [RareHits(units, HitMove(0.1, assisted=True)).allowed for units in (0, 1, FEW_HITS - 1, FEW_HITS)]
    assert allowed == [0, 0.1, 0.1, 0]
    assert RareHits(1, HitMove(0.1, assisted=False)).allowed == 0


def test_one_prediction_of_a_user_is_the_middle_of_all() -> None:
    np.testing.assert_array_equal(ranked_within_rows(np.array([[7.0, np.nan, np.nan]])), [[0.0, np.nan, np.nan]])


@pytest.mark.parametrize("metric", [Precision(3), Recall(3)], ids=str)
def test_a_judge_of_few_pairs_takes_nothing_from_the_others(metric: Metric) -> None:
    """Of three pairs a judge says something, too little for a slope: the level is that of all judged rows."""
    few = np.full((2, 6), np.nan)
    few[0, [0, 1, 4]] = JUDGE[0, [0, 1, 4]]
    plain = PostStratified() if isinstance(metric, Recall) else Hajek()
    for sample in list(every_sample(4))[::7]:
        found = terms(Assisted(fewest=0), metric, sample, said=few)
        assert found.value() == pytest.approx(terms(plain, metric, sample).value(), abs=1e-12)


@pytest.mark.parametrize("propensity", [None, CHANCE], ids=["uniform", "designed"])
def test_the_labelled_rows_that_lists_have_decide_whether_a_slope_is_fitted(propensity: Floats | None) -> None:
    """Five of six labelled rows are in lists of three; by the size of the sample alone three would be expected."""
    sample = [(0, 1), (0, 1, 2, 3)]
    how: Any = {"propensity": propensity, "drawn": Exposed.DESIGNED}
    plain = terms(Assisted(fewest=100), Precision(3), sample, **how).value()
    fitted = terms(Assisted(fewest=0, doubt=0), Precision(3), sample, **how).value()
    at_edge = [terms(Assisted(fewest=n, doubt=0), Precision(3), sample, **how).value() for n in (5, 6)]
    assert plain != pytest.approx(fitted, abs=1e-6)
    assert at_edge == [fitted, plain]


def test_predictions_of_labelled_pairs_alone_predict_nothing() -> None:
    """The table of labels itself, given as a judge: no place without a label has a prediction."""
    sample = [(0, 1, 2, 4), (0, 1, 3, 5)]
    said = np.full((2, 6), np.nan)
    for user, items in enumerate(sample):
        said[user, list(items)] = LABELS[user, list(items)]
    for metric in (Precision(3), Recall(3)):
        plain: Estimator = PostStratified() if isinstance(metric, Recall) else Hajek()
        for propensity in (None, CHANCE):
            how: Any = {"propensity": propensity, "drawn": Exposed.DESIGNED}
            found = terms(Assisted(fewest=0, doubt=0), metric, sample, said=said, **how).value()
            assert found == pytest.approx(terms(plain, metric, sample, **how).value(), abs=1e-12)


@pytest.mark.parametrize("doubt", [0.0, 0.1])
@pytest.mark.parametrize(("of", "metric"), [(AssistedMean(), Precision(3)), (AssistedShare(), Recall(3))])
def test_slopes_are_those_of_small_differences(of: AssistedMean | AssistedShare, metric: Metric, doubt: float) -> None:
    form = replace(of, doubt=doubt)
    totals = terms(Assisted(fewest=0, doubt=0), metric, [(0, 1, 3, 4), (0, 2, 4, 5)]).totals()
    value: Callable[[Floats], Floats] = form.function
    step = 1e-6
    differences = [
        float((form.values((totals + step * unit)[None]) - form.values((totals - step * unit)[None]))[0] / (2 * step))
        for unit in np.eye(len(totals))
    ]
    moved = np.array(["weight_rows" not in name for name in form.columns])  # how many rows there are is a constant
    np.testing.assert_allclose(slopes(value, totals)[moved], np.array(differences)[moved], rtol=1e-5, atol=1e-7)
    assert form.influence(totals[None], totals)[0] == pytest.approx(0.0, abs=1e-12)  # influences add up to 0


# ------------------------------------------------------------------------------------------------------------- designed


@pytest.mark.parametrize(
    ("estimator", "metric"),
    [(PostStratified(), Recall(3)), *((Assisted(fewest=0, doubt=0), metric) for metric in METRICS)],
    ids=str,
)
def test_chances_of_a_design_weigh_as_propensities_do(estimator: Estimator, metric: Metric) -> None:
    """Whoever drew the rows: one that was drawn with chance π stands for 1 / π; a design also tells rows apart."""
    judged = [(0, 1, 3, 5), (0, 2, 4)]
    biased = terms(estimator, metric, judged, propensity=CHANCE)
    designed = terms(estimator, metric, judged, propensity=CHANCE, drawn=Exposed.DESIGNED)
    assert designed.value() == biased.value()
    np.testing.assert_array_equal(designed.influence(), biased.influence())
    assert designed.weighting is not None


@pytest.mark.parametrize("way", DrawBy)
@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_sums_are_unbiased_under_every_targeted_design(way: DrawBy, metric: Metric) -> None:
    """One user, three of six items shown with these chances, one of them surely: over every draw each sum is the true
    one, and so is an assisted sum with a level and a slope that are fixed."""
    chance = np.array([[1.0, 0.5, 0.4, 0.3, 0.2, 0.6]])
    plain: list[Estimator] = (
        [Pooled(), PostStratified()] if isinstance(metric, Recall) else [HorvitzThompson(), Hajek()]
    )
    draws = list(outcomes(way, alone(6, weight=chance[0])))
    assert math.fsum(probability for _, probability in draws) == pytest.approx(1, abs=1e-12)
    for estimator in (*plain, Assisted(fewest=0, doubt=0)):

        def of(judged: Sequence[int], chances: Floats, estimator: Estimator = estimator) -> Smooth:
            return terms(estimator, metric, [judged], propensity=chances, drawn=Exposed.DESIGNED)

        whole = of(range(6), np.ones((1, 6)))
        parts = [(of(judged, chance), probability) for judged, probability in draws]
        # all that lists, labels and predictions add up to; what weighs a fit, or counts rows, represents nothing
        counts = ("weight", "squared", "covered_rows")
        sums = [at for at, name in enumerate(whole.form.columns) if not any(each in name for each in counts)]
        mean = sum(probability * part.sums.sum(axis=0)[sums] for part, probability in parts)
        np.testing.assert_allclose(mean, whole.sums.sum(axis=0)[sums], rtol=0, atol=1e-10)
        if isinstance(estimator, Assisted):
            for level, slope in FIXED:
                value = sum(probability * fixed(part, level=level, slope=slope) for part, probability in parts)
                assert value == pytest.approx(whole.sums[:, 0].sum(), abs=1e-10)
