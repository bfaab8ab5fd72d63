"""Laws of metrics with graded gains: the same as of binary ones, on labels that have grades."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from cases import instances, labelled
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from terms import terms_of

import truerank as tr
from truerank import metrics
from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Discount, Gain, Ideal
from truerank.core.ranking import Candidates, Ranks, Ties
from truerank.estimators.full import Full
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.dcg import DCG
from truerank.metrics.expected_reciprocal_rank import ERR
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.metrics.reciprocal_rank import ReciprocalRank
from truerank.ranking.kernel.rank import rank
from truerank.ranking.scores.scores import dense

GRADED = [
    metric
    for cls in labelled().values()
    for metric in instances(cls, (1, 2, 4))
    if metric.graded and getattr(metric, "highest", None) != 1
]
graded = pytest.mark.parametrize("metric", GRADED, ids=str)
TOLERANCE = 1e-12


class World(NamedTuple):
    """Scores and grades 0 ... 3 of one user's items."""

    scores: Floats
    grades: Floats


@st.composite
def worlds(draw: st.DrawFn, *, items: int = 6) -> World:
    n = draw(st.integers(1, items))
    level = st.sampled_from([0.0, 1.0, 2.0, -math.inf])
    return World(
        draw(arrays(np.float64, n, elements=level)),
        draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0]))),
    )


def ranked(scores: Floats, grades: Floats, *, ties: Ties, labelled: bool) -> tuple[Log, Ranks]:
    """Rows of scores [orders x items] with the same grades, as one user each."""
    n_users, n_items = scores.shape
    user, item = np.divmod(np.arange(scores.size), n_items)
    rating = np.tile(grades, n_users)
    rewards = {"rating": rating} | ({"label": (rating > 1).astype(np.float64)} if labelled else {})
    log = Log(Ids.of(np.arange(n_users)), Ids.of(np.arange(n_items)), user, item, rewards)
    (ranks,) = rank(dense(scores), log, pools=[Candidates(n_users, float(n_items))], ties=ties)
    return log, ranks


def values(
    metric: Metric, scores: Floats, grades: Floats, *, ties: Ties = Ties.EXPECTED, labelled: bool = True
) -> Floats:
    terms = terms_of(Full(), *ranked(scores, grades, ties=ties, labelled=labelled), metric)
    return np.where(terms.defined, terms.sums[:, 0], np.nan)


def orders(scores: Floats) -> Floats:
    """Every order of tied candidates as rows of scores without ties; what is never recommended stays so."""
    groups = [np.flatnonzero(scores == level) for level in np.unique(scores[np.isfinite(scores)])]
    rows = []
    for chosen in product(*(permutations(group) for group in groups)):
        row = np.full(len(scores), -np.inf)
        worst_first = [item for group in chosen for item in group]
        row[worst_first] = np.arange(len(worst_first))
        rows.append(row)
    return np.array(rows)


def by_hand(metric: Any, scores: Floats, grades: Floats) -> float:
    """The definition, item by item, for scores without ties."""
    best_first = [i for i in np.argsort(-scores) if np.isfinite(scores[i])]
    if isinstance(metric, ERR):
        assert metric.highest is not None
        total, looks = 0.0, 1.0
        for r, item in enumerate(best_first[: metric.k], start=1):
            stop = (2 ** grades[item] - 1) / 2**metric.highest
            total, looks = total + looks * stop / r, looks * (1 - stop)
        return total
    gain = grades if metric.gain is Gain.LINEAR else 2**grades - 1

    def below(rank: int) -> float:
        return math.log2(rank + 1) if metric.discount is Discount.SMOOTH else max(1.0, math.log2(rank))

    dcg = math.fsum(gain[item] / below(r) for r, item in enumerate(best_first[: metric.k], start=1))
    if isinstance(metric, DCG):
        return dcg
    best = sorted(gain, reverse=True) if metric.ideal is Ideal.POSITIVES else [max(gain)] * metric.k
    ideal = math.fsum(g / below(r) for r, g in enumerate(best[: metric.k], start=1))
    return dcg / ideal if ideal else math.nan


@graded
@examples(25)
@given(world=worlds())
def test_value_is_the_definition_in_every_order(metric: Metric, world: World) -> None:
    rows = orders(world.scores)
    wanted = [by_hand(metric, row, world.grades) for row in rows]
    np.testing.assert_allclose(values(metric, rows, world.grades), wanted, rtol=0, atol=TOLERANCE)


@graded
@examples(40)
@given(world=worlds(), labelled=st.booleans())
def test_expected_value_is_the_mean_over_all_tie_orders(metric: Metric, world: World, labelled: bool) -> None:
    each = values(metric, orders(world.scores), world.grades)
    (found,) = values(metric, world.scores[None], world.grades, labelled=labelled)
    assert found == pytest.approx(math.fsum(each) / len(each), abs=TOLERANCE, nan_ok=True)


@graded
@examples(25)
@given(world=worlds(), labelled=st.booleans())
def test_optimistic_and_pessimistic_are_the_extremes(metric: Metric, world: World, labelled: bool) -> None:
    # among tied items of one label the higher grade comes first, or last
    each = values(metric, orders(world.scores), world.grades)
    for ties, wanted in ((Ties.OPTIMISTIC, each.max()), (Ties.PESSIMISTIC, each.min())):
        (found,) = values(metric, world.scores[None], world.grades, ties=ties, labelled=labelled)
        assert found == pytest.approx(wanted, abs=TOLERANCE, nan_ok=True)


@graded
@examples(15)
@given(world=worlds())
def test_strict_is_never_more_than_pessimistic(metric: Metric, world: World) -> None:
    strict, worst = (
        values(metric, world.scores[None], world.grades, ties=ties)[0] for ties in (Ties.STRICT, Ties.PESSIMISTIC)
    )
    assert math.isnan(worst) or strict <= worst + TOLERANCE


@examples(25)
@given(world=worlds())
def test_binary_extremes_do_not_depend_on_grades(world: World) -> None:
    # ordering tied items by grade within a label leaves metrics of labels as they were
    label = (world.grades > 1).astype(np.float64)
    for metric in (DCG(3), AveragePrecision(3), ReciprocalRank()):
        for ties in (Ties.OPTIMISTIC, Ties.PESSIMISTIC):
            (found,) = values(metric, world.scores[None], world.grades, ties=ties)
            (plain,) = values(metric, world.scores[None], 2 * label, ties=ties)
            np.testing.assert_equal(found, plain)


def test_grades_of_zero_and_one_give_the_binary_value() -> None:
    rng = np.random.default_rng(0)
    scores, grades = rng.integers(0, 4, size=(1, 9)).astype(float), rng.integers(0, 2, size=9).astype(float)
    user, item = np.divmod(np.arange(9), 9)
    log = Log(Ids.of(np.arange(1)), Ids.of(np.arange(9)), user, item, {"label": grades})
    (ranks,) = rank(dense(scores), log, pools=[Candidates(1, 9.0)])
    for plain, others in (
        (DCG(4), [DCG(4, Gain.LINEAR), DCG(4, Gain.EXPONENTIAL)]),
        (NDCG(4), [NDCG(4, Gain.LINEAR), NDCG(4, Gain.EXPONENTIAL)]),
        (ERR(4), [ERR(4, highest=1)]),
    ):
        wanted = terms_of(Full(), log, ranks, plain).value()
        for other in others:
            assert terms_of(Full(), log, ranks, other).value() == pytest.approx(wanted, abs=1e-15)


# ---------------------------------------------------------------------------------------------- large groups of ties


@pytest.mark.parametrize("relevant", [1, 40, 3_000])
@pytest.mark.parametrize("highest", [None, 4])
def test_a_group_of_fifty_thousand_ties_is_quick_and_right(relevant: int, highest: int | None) -> None:
    """All candidates tied: the first item is relevant with probability p / t, and q_1 and q_t are known."""
    t = 50_000
    label = (np.arange(t) < relevant).astype(np.float64)
    rewards = {"label": label} if highest is None else {"rating": label * (1 + np.arange(t) % 4)}
    user, item = np.zeros(t, dtype=np.int64), np.arange(t)
    log = Log(Ids.of(np.arange(1)), Ids.of(item), user, item, rewards)
    (ranks,) = rank(dense(np.zeros((1, t))), log, pools=[Candidates(1, float(t))])

    def err(k: int) -> float:
        return terms_of(Full(), log, ranks, ERR(k, highest)).value()

    stop = label / 2 if highest is None else (2 ** rewards["rating"] - 1) / 2**4
    assert err(1) == pytest.approx(stop.mean(), rel=1e-12)
    # place 2: the chance to pass the first and stop at the second of two that differ
    second = (stop.sum() * (1 - stop).sum() - (stop * (1 - stop)).sum()) / (t * (t - 1))
    assert err(2) == pytest.approx(stop.mean() + second / 2, rel=1e-12)
    if relevant == 1:
        # one relevant item, anywhere: stop x the mean of 1 / rank
        assert err(t) == pytest.approx(stop.max() * np.sum(1 / np.arange(1.0, t + 1)) / t, rel=1e-9)
    assert err(10) <= err(t) <= 1


# ---------------------------------------------------------------------------------------------------- through evaluate


def frame(*, rating: list[float], user: list[int] | None = None) -> pl.DataFrame:
    n = len(rating)
    return pl.DataFrame({"user": user or [0] * n, "item": list(range(n)), "rating": rating})


def test_a_graded_log_needs_no_rule_where_only_gains_are_asked() -> None:
    scores = {"m": np.array([[3.0, 2, 1, 0]])}
    log = tr.read(frame(rating=[0, 2, 3, 0]))
    linear, exponential, err = tr.evaluate(
        scores, log, metrics=[DCG(2, Gain.LINEAR), NDCG(4, Gain.EXPONENTIAL), ERR(3, highest=3)]
    ).estimates
    assert linear.value == pytest.approx(2 / math.log2(3), abs=1e-15)
    best = 7 + 3 / math.log2(3)
    assert exponential.value == pytest.approx((3 / math.log2(3) + 7 / 2) / best, abs=1e-15)
    assert err.value == pytest.approx((3 / 8) / 2 + (5 / 8) * (7 / 8) / 3, abs=1e-15)
    assert {each.reward for each in (linear, exponential, err)} == {"rating"}


def test_a_graded_log_without_a_rule_has_no_labels() -> None:
    with pytest.raises(InputError, match="labels are needed"):
        tr.evaluate({"m": np.zeros((1, 2))}, tr.read(frame(rating=[0, 2])), metrics=[DCG(2)])


def test_both_kinds_of_metric_on_one_log() -> None:
    log = tr.read(frame(rating=[1, 5, 4]), positive=">3")
    found = tr.evaluate({"m": np.array([[3.0, 2, 1]])}, log, metrics=[DCG(1), DCG(1, Gain.LINEAR)])
    assert [(each.value, each.reward) for each in found.estimates] == [(0, "label"), (1, "rating")]


@pytest.mark.parametrize("metric", [DCG(2, Gain.LINEAR), NDCG(2, Gain.EXPONENTIAL), ERR(2, highest=4)])
def test_negative_grades_are_refused(metric: Metric) -> None:
    log = tr.read(frame(rating=[2, -1, 4]), positive=">3")
    with pytest.raises(InputError, match="user 0, item 1 is -1; gains need grades of 0 or more"):
        tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[metric])
    assert tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[DCG(2)]).estimates[0].value > 0


def test_grades_beyond_the_scale_are_refused() -> None:
    log = tr.read(frame(rating=[2, 5, 4]), positive=">3")
    with pytest.raises(InputError, match=r"ERR@10\(highest=4\).* rating of 5.*expected at most 4.*highest=5"):
        tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[ERR(10, highest=4)])
    with pytest.raises(InputError, match="too large"):
        tr.evaluate({"m": np.zeros((1, 2))}, tr.read(frame(rating=[0, 2000])), metrics=[DCG(2, Gain.EXPONENTIAL)])


def test_extremes_on_a_log_without_labels() -> None:
    log = tr.read(frame(rating=[0, 2, 3]))
    best, worst = (
        tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[DCG(1, Gain.LINEAR)], ties=ties).estimates[0].value
        for ties in (Ties.OPTIMISTIC, Ties.PESSIMISTIC)
    )
    assert (best, worst) == (3, 0)


# --------------------------------------------------------------------------------------------------------- text forms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AP@10(denominator=list)", "denominator=list; expected smaller or positives or cutoff"),
        ("AP@10(divisor=cutoff)", "no option 'divisor'; expected one of denominator"),
        ("nDCG@10(gain=linear,gain=linear)", "each once"),
        ("nDCG@10(gain)", "option 'gain' is not understood; expected NAME=VALUE"),
        ("nDCG@10()", "is not understood"),
        ("nDCG@10(gain=linear", "is not understood; expected one of AUC"),
        ("nDCG(gain=linear)", "expected nDCG@K"),
        ("HitRate@3(gain=linear)", "HitRate has no options"),
        ("ERR@3(highest=high)", "highest=high; expected a whole number from 1, or none"),
        ("ERR@3(highest=0)", "expected a whole number from 1"),
        ("RBP", "expected RBP@P"),
        ("RBP@1", "expected a number between 0 and 1"),
        ("RBP@0", "expected a number between 0 and 1"),
        ("RBP@nan", "expected a number between 0 and 1"),
        ("RBP@high", "p=high; expected a number between 0 and 1"),
        ("AUC@5", "expected AUC"),
        ("MeanRR@5", "expected MeanRR"),
    ],
)
def test_text_that_is_no_metric_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        metrics.parse(text)
    assert message in str(error.value)


def test_options_are_read_and_defaults_are_not_printed() -> None:
    assert metrics.parse("nDCG@10 (ideal=cutoff, gain=Exponential)") == NDCG(10, Gain.EXPONENTIAL, Ideal.CUTOFF)
    assert str(NDCG(10, Gain.EXPONENTIAL, Ideal.CUTOFF)) == "nDCG@10(gain=exponential,ideal=cutoff)"
    assert str(metrics.parse("nDCG@10(ideal=positives)")) == "nDCG@10"
    assert str(metrics.parse("AP@5(denominator=positives)")) == "AP@5(denominator=positives)"


@pytest.mark.parametrize("bad", [Denominator.LIST, "nonsense", None])
def test_options_of_other_metrics_are_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="expected positives or smaller"):
        Recall(5, bad)
