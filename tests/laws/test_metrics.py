"""Laws that every metric obeys, found through the catalogue: a new metric is held to them without a change here.

Items have grades 0 to 3 and are relevant above 1: metrics with graded gains look at the grades, the others at labels.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import pkgutil
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from cases import instances, labelled, of_lists
from drawn import examples
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused
from terms import all_terms_of, terms_of

import truerank as tr
from truerank import metrics
from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.estimator import Request
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator, Discount, Gain, Ideal
from truerank.core.ranking import Candidates, Ranks, Ties
from truerank.estimators.full import Full
from truerank.metrics.additive import DCG
from truerank.metrics.discounts import unit_values
from truerank.metrics.listwise import ERR, NDCG
from truerank.metrics.tables import Walked, unit_values_of
from truerank.ranking.kernel.rank import rank
from truerank.ranking.scores.scores import dense

CUTOFFS = (1, 2, 3, 10)
TOLERANCE = 1e-12


# with a highest grade of 1 the grades here would be refused
METRICS = {
    name: [metric for metric in instances(cls, CUTOFFS) if getattr(metric, "highest", None) != 1]
    for name, cls in labelled().items()
}
BOUNDED = sorted(set(METRICS) - {"DCG"})  # a sum of gains; all others are shares
CUT = sorted(name for name, each in METRICS.items() if any(metric.cutoff is not None for metric in each))

every_metric = pytest.mark.parametrize("name", sorted(METRICS))


# ------------------------------------------------------------------------------------------------------------- worlds


class World(NamedTuple):
    """Scores and grades 0 ... 3 of everything [users x items]."""

    scores: Floats
    grades: Floats

    def gains(self, metric: Metric) -> Bools:
        """Which items count for a metric."""
        return self.grades > (0 if metric.graded else 1)


@st.composite
def worlds(draw: st.DrawFn, *, users: int = 3, items: int = 6, never: bool = True) -> World:
    """Few items and few distinct scores, so that ties are common; some items may be never recommended (-inf)."""
    shape = (draw(st.integers(1, users)), draw(st.integers(1, items)))
    level = st.sampled_from([0.0, 1.0, 2.0, 3.0, *([-math.inf] if never else [])])
    grade = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0])
    return World(draw(arrays(np.float64, shape, elements=level)), draw(arrays(np.float64, shape, elements=grade)))


def all_tied(relevant: int) -> World:
    """The whole list is one group of ties that the cut-offs cut through."""
    return World(np.zeros((1, 6)), np.where(np.arange(6) < relevant, 2.0, 0.0)[None])


# two relevant items without a rank stay without one, and no warning about inf - inf escapes
UNRANKED = World(np.array([[1.0, 1.0, 2.0, -np.inf, -np.inf]]), np.array([[2.0, 0.0, 0.0, 3.0, 2.0]]))


def ranked(world: World, *, ties: Ties = Ties.EXPECTED, seed: int = 0) -> tuple[Log, Ranks]:
    n_users, n_items = world.scores.shape
    user, item = np.divmod(np.arange(n_users * n_items), n_items)
    rewards = {"label": (world.grades > 1).ravel().astype(np.float64), "rating": world.grades.ravel()}
    log = Log(Ids.of(np.arange(n_users)), Ids.of(np.arange(n_items)), user, item, rewards)
    (ranks,) = rank(dense(world.scores), log, pools=[Candidates(n_users, float(n_items))], ties=ties, seed=seed)
    return log, ranks


def values_of(name: str, world: World, *, ties: Ties = Ties.EXPECTED, seed: int = 0) -> dict[Metric, Floats]:
    """The value of every user on full labels, NaN where undefined, for each instance of the metric."""
    log, ranks = ranked(world, ties=ties, seed=seed)
    return {
        metric: np.where(terms.defined, terms.sums[:, 0], np.nan)
        for metric, terms in zip(
            METRICS[name], all_terms_of(Full(), log, ranks, [Request(metric) for metric in METRICS[name]]), strict=True
        )
    }


def orders(scores: Floats) -> Floats:
    """Every order of tied candidates, as rows of scores without ties; what is never recommended stays so."""
    groups = [np.flatnonzero(scores == level) for level in np.unique(scores[np.isfinite(scores)])]
    rows = []
    for chosen in product(*(permutations(group) for group in groups)):
        row = np.full(len(scores), -np.inf)
        worst_first = [item for group in chosen for item in group]
        row[worst_first] = np.arange(len(worst_first))
        rows.append(row)
    return np.array(rows)


def in_every_order(name: str, world: World) -> dict[Metric, Floats]:
    """The values of the only user of a world in every order of its tied candidates."""
    rows = orders(world.scores[0])
    return values_of(name, World(rows, np.tile(world.grades[0], (len(rows), 1))))


def same(found: dict[Metric, Floats], wanted: dict[Metric, Floats], *, tolerance: float = TOLERANCE) -> None:
    for metric, values in found.items():
        np.testing.assert_allclose(values, wanted[metric], rtol=0, atol=tolerance, err_msg=str(metric))


def not_lower(metric: Metric, before: float, after: float) -> None:
    """What was undefined may become defined, not the other way round."""
    assert math.isnan(before) or after >= before - TOLERANCE, str(metric)


def uses_list(metric: Metric) -> bool:
    """Whether it divides by the length of the list, which an item more makes longer."""
    return isinstance(metric, Additive) and metric.denominator is Denominator.LIST


def same_bits(found: dict[Metric, Floats], wanted: dict[Metric, Floats]) -> None:
    for metric, values in found.items():
        np.testing.assert_array_equal(values, wanted[metric], err_msg=str(metric))


# ----------------------------------------------------------------------------------------------------------- coverage


def test_every_metric_of_the_catalogue_is_tested() -> None:
    assert {*METRICS, *of_lists()} == set(metrics.catalogue())  # test_lists.py has those of lists
    for name, cls in labelled().items():
        assert METRICS[name]
        assert {type(metric) for metric in METRICS[name]} == {cls}


def test_every_metric_class_is_in_the_catalogue() -> None:
    # by what a metric must have to be of use, not by the rule that the catalogue itself applies
    for entry in pkgutil.iter_modules(metrics.__path__):
        module = importlib.import_module(f"truerank.metrics.{entry.name}")
        for value in vars(module).values():
            if dataclasses.is_dataclass(value) and isinstance(value, type) and value.__module__ == module.__name__:
                usable = hasattr(value, "name") and any(
                    hasattr(value, way) for way in ("rank_discount", "values", "sums", "form")
                )
                assert usable == (value in metrics.catalogue().values()), value


@pytest.mark.parametrize("name", CUT)
def test_cut_off_is_the_deepest_rank_that_counts(name: str) -> None:
    # one relevant item at rank r: worth something up to the cut-off, nothing beyond
    scores, grades = -np.tile(np.arange(12.0), (12, 1)), 2 * np.eye(12)
    for metric, found in values_of(name, World(scores, grades)).items():
        deepest = metric.cutoff or 12
        assert (found[:deepest] > 0).all(), str(metric)
        assert (found[deepest:] == 0).all(), str(metric)


# ------------------------------------------------------------------------------------------------------- size of values


@pytest.mark.parametrize("name", BOUNDED)
@examples(25)
@given(world=worlds(), ties=st.sampled_from(list(Ties)))
def test_value_is_a_share(name: str, world: World, ties: Ties) -> None:
    for metric, found in values_of(name, world, ties=ties).items():
        known = found[~np.isnan(found)]
        assert ((known >= -TOLERANCE) & (known <= 1 + TOLERANCE)).all(), str(metric)


@every_metric
@examples(20)
@given(world=worlds())
def test_undefined_is_where_the_metric_says(name: str, world: World) -> None:
    for metric, found in values_of(name, world).items():
        counts = world.gains(metric)
        empty = ~counts.any(axis=1)
        if metric.on_full_labels == "users":
            assert not np.isnan(found).any(), str(metric)
            assert (found[empty] == 0).all(), str(metric)
        if metric.on_full_labels == "users with a relevant item":
            np.testing.assert_array_equal(np.isnan(found), empty, err_msg=str(metric))
        if metric.on_full_labels == "users with a recommended item":
            np.testing.assert_array_equal(np.isnan(found), np.isneginf(world.scores).all(axis=1), err_msg=str(metric))
        if metric.on_full_labels == "users with both relevant and other candidates":
            np.testing.assert_array_equal(np.isnan(found), empty | counts.all(axis=1), err_msg=str(metric))


@every_metric
def test_perfect_and_empty_lists(name: str) -> None:
    # the best a list can be is worth 1 where the metric is a share that can reach it; nothing recommended is worth 0
    scores, grades = np.arange(6.0)[None, ::-1], np.array([[2.0, 2, 2, 0, 0, 0]])
    nothing = values_of(name, World(np.full((1, 6), -np.inf), grades))
    for metric, found in values_of(name, World(scores, grades)).items():
        if uses_list(metric):
            assert np.isnan(nothing[metric][0]), str(metric)
        else:
            # all tied at the bottom: half of the pairs in the right order
            assert nothing[metric][0] == (0.5 if name == "AUC" else 0), str(metric)
        assert found[0] > 0, str(metric)
        if name in {"AP", "nDCG", "RR", "HitRate", "RPrecision", "AUC"} and "(" not in str(metric):
            assert found[0] == pytest.approx(1.0, abs=TOLERANCE), str(metric)


# -------------------------------------------------------------------------------------------------------- definitions


def by_hand(metric: Any, scores: Floats, grades: Floats) -> float:
    """The definition, item by item, for scores without ties."""
    best_first = [i for i in np.argsort(-scores) if np.isfinite(scores[i])]
    if isinstance(metric, ERR):
        total, looks = 0.0, 1.0
        for r, item in enumerate(best_first[: metric.k], start=1):
            stop = (grades[item] > 1) / 2 if metric.highest is None else (2 ** grades[item] - 1) / 2**metric.highest
            total, looks = total + looks * stop / r, looks * (1 - stop)
        return total
    gain = {Gain.LINEAR: grades, Gain.EXPONENTIAL: 2**grades - 1}.get(metric.gain, 1.0 * (grades > 1))

    def below(rank: int) -> float:
        return math.log2(rank + 1) if metric.discount is Discount.SMOOTH else max(1.0, math.log2(rank))

    dcg = math.fsum(gain[item] / below(r) for r, item in enumerate(best_first[: metric.k], start=1))
    if isinstance(metric, DCG):
        return dcg
    best = sorted(gain, reverse=True) if metric.ideal is Ideal.POSITIVES else [max(gain)] * metric.k
    ideal = math.fsum(g / below(r) for r, g in enumerate(best[: metric.k], start=1))
    return dcg / ideal if ideal else math.nan


@pytest.mark.parametrize("name", ["DCG", "ERR", "nDCG"])
@examples(25)
@given(world=worlds(users=1))
def test_value_is_the_definition_in_every_order(name: str, world: World) -> None:
    rows = orders(world.scores[0])
    for metric, found in in_every_order(name, world).items():
        wanted = [by_hand(metric, row, world.grades[0]) for row in rows]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE, err_msg=str(metric))


# ---------------------------------------------------------------------------------------------------------- monotony


@every_metric
@examples(25)
@given(world=worlds(users=1), data=st.data())
def test_raising_a_relevant_item_never_lowers_the_expected_value(name: str, world: World, data: st.DataObject) -> None:
    # from, to and through ties, and from never recommended
    item = data.draw(st.integers(0, world.scores.shape[1] - 1))
    world.grades[0, item] = 3.0
    raised = world.scores.copy()
    raised[0, item] = max(raised[0, item], data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])))
    before, after = values_of(name, world), values_of(name, World(raised, world.grades))
    for metric in before:
        not_lower(metric, before[metric][0], after[metric][0])


# --------------------------------------------------------------------------------------------------------------- ties


@every_metric
@examples(25)
@given(world=worlds(users=1))
@example(world=all_tied(1))
@example(world=all_tied(3))
@example(world=all_tied(5))
def test_expected_value_is_the_mean_over_all_tie_orders(name: str, world: World) -> None:
    each = in_every_order(name, world)
    for metric, found in values_of(name, world).items():
        wanted = math.fsum(each[metric]) / len(each[metric])
        assert found[0] == pytest.approx(wanted, abs=TOLERANCE, nan_ok=True), str(metric)


@every_metric
@examples(20)
@given(world=worlds(users=1))
@example(world=UNRANKED)
def test_optimistic_and_pessimistic_are_the_extremes_over_tie_orders(name: str, world: World) -> None:
    each = in_every_order(name, world)
    best, worst = (values_of(name, world, ties=ties) for ties in (Ties.OPTIMISTIC, Ties.PESSIMISTIC))
    for metric, values in each.items():
        assert best[metric][0] == pytest.approx(values.max(), abs=TOLERANCE, nan_ok=True), str(metric)
        assert worst[metric][0] == pytest.approx(values.min(), abs=TOLERANCE, nan_ok=True), str(metric)


@every_metric
@examples(10)
@given(world=worlds(users=1))
def test_extremes_need_no_rows_of_negatives(name: str, world: World) -> None:
    # known negatives may be left unlisted: where tied relevant items land must not change
    (kept,) = np.nonzero(world.grades[0])
    log, _ = ranked(world)
    for ties in Ties:
        n_items = world.scores.shape[1]
        listed = dataclasses.replace(log.select(kept), complete=True)
        (ranks,) = rank(dense(world.scores), listed, pools=[Candidates(1, float(n_items))], ties=ties)
        wanted = values_of(name, world, ties=ties)
        for metric in METRICS[name]:
            found = terms_of(Full(), listed, ranks, metric).value()
            np.testing.assert_equal(found, wanted[metric][0], err_msg=f"{metric}, {ties}")


@examples(20)
@given(world=worlds())
def test_strict_rank_is_the_number_that_score_at_least_as_high(world: World) -> None:
    _, ranks = ranked(world, ties=Ties.STRICT)
    wanted = (world.scores[:, None, :] >= world.scores[:, :, None]).sum(axis=2).astype(np.float64)
    np.testing.assert_array_equal(ranks.above + 1, np.where(np.isfinite(world.scores), wanted, np.inf).ravel())
    assert (ranks.tied == 0).all()


@pytest.mark.parametrize("name", sorted(n for n, each in METRICS.items() if isinstance(each[0], Additive)))
@examples(20)
@given(world=worlds(never=False))
def test_strict_is_never_more_than_pessimistic(name: str, world: World) -> None:
    # for metrics with a worth that falls with rank: strict gives each of several tied items the last rank
    strict, worst = (values_of(name, world, ties=ties) for ties in (Ties.STRICT, Ties.PESSIMISTIC))
    for metric in strict:
        known = ~np.isnan(strict[metric])
        assert (strict[metric][known] <= worst[metric][known] + TOLERANCE).all(), str(metric)


@every_metric
@examples(20)
@given(world=worlds(users=1), seed=st.integers(0, 2**31))
def test_random_is_one_of_the_orders_and_fixed_by_the_seed(name: str, world: World, seed: int) -> None:
    each = in_every_order(name, world)
    found, again = (values_of(name, world, ties=Ties.RANDOM, seed=seed) for _ in range(2))
    same_bits(found, again)
    _, ranks = ranked(world, ties=Ties.RANDOM, seed=seed)
    # one order for all metrics: the ranks that it gives are among the listed orders
    listed = np.isfinite(world.scores[0]).sum()
    place = listed - 1 - orders(world.scores[0])
    matching = [at for at, row in enumerate(place) if np.array_equal(row, ranks.above)]
    assert len(matching) == 1
    for metric, values in found.items():
        np.testing.assert_array_equal(values[0], each[metric][matching[0]], err_msg=str(metric))


@every_metric
def test_random_averages_to_expected(name: str) -> None:
    # 40 seeds x 100 users with the same scores and grades; each user has an order of its own
    scores = np.tile([2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], (100, 1))
    grades = np.tile([0.0, 2.0, 0.0, 3.0, 0.0, 2.0, 0.0], (100, 1))
    expected = values_of(name, World(scores[:1], grades[:1]))
    drawn = [values_of(name, World(scores, grades), ties=Ties.RANDOM, seed=seed) for seed in range(40)]
    for metric, wanted in expected.items():
        values = np.concatenate([each[metric] for each in drawn])
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - wanted[0]) <= 4 * error + TOLERANCE, str(metric)


# --------------------------------------------------------------------------------------------------------- invariance

TRANSFORMS = {
    "affine": lambda x: 2 * x + 1,
    "cube": lambda x: (x - 1) ** 3,
    "tiny": lambda x: x * 1e-300,
    "huge": lambda x: (x - 2) * 1e300,
    "float32": lambda x: x.astype(np.float32),
}


@every_metric
@examples(25)
@given(
    transform=st.sampled_from(sorted(TRANSFORMS)),
    world=worlds(),
    ties=st.sampled_from([Ties.EXPECTED, Ties.RANDOM, Ties.STRICT]),
)
def test_increasing_transforms_change_nothing(name: str, transform: str, world: World, ties: Ties) -> None:
    changed = World(TRANSFORMS[transform](world.scores), world.grades)
    same_bits(values_of(name, changed, ties=ties), values_of(name, world, ties=ties))


@pytest.mark.parametrize("name", CUT)
@examples(20)
@given(world=worlds(), level=st.sampled_from([-1.0, -math.inf]), ties=st.sampled_from([Ties.EXPECTED, Ties.STRICT]))
def test_an_irrelevant_item_below_everything_changes_nothing(name: str, world: World, level: float, ties: Ties) -> None:
    n_users = len(world.scores)
    longer = World(
        np.column_stack([world.scores, np.full(n_users, level)]),
        np.column_stack([world.grades, np.zeros(n_users)]),
    )
    before, after = values_of(name, world, ties=ties), values_of(name, longer, ties=ties)
    cut = {m for m in before if m.cutoff is not None and not (uses_list(m) and np.isfinite(level))}
    same_bits({metric: after[metric] for metric in cut}, before)


@every_metric
@examples(20)
@given(world=worlds(users=4), data=st.data(), ties=st.sampled_from([Ties.EXPECTED, Ties.STRICT]))
def test_renaming_users_and_items_changes_nothing(name: str, world: World, data: st.DataObject, ties: Ties) -> None:
    rows: Ints = np.array(data.draw(st.permutations(range(world.scores.shape[0]))))
    columns: Ints = np.array(data.draw(st.permutations(range(world.scores.shape[1]))))
    before = values_of(name, world, ties=ties)
    users = values_of(name, World(world.scores[rows], world.grades[rows]), ties=ties)
    same_bits(users, {metric: values[rows] for metric, values in before.items()})
    # new names put a user's items in another order, so sums may differ in the last bit
    items = values_of(name, World(world.scores[:, columns], world.grades[:, columns]), ties=ties)
    same(items, before, tolerance=1e-14)


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


@pytest.mark.parametrize("metric", [DCG(2, Gain.LINEAR), NDCG(2, Gain.EXPONENTIAL), ERR(2, highest=4)])
def test_negative_grades_are_refused(metric: Metric) -> None:
    log = tr.read(frame(rating=[2, -1, 4]), positive=">3")
    with refused("user 0, item 1 is -1; gains need grades of 0 or more"):
        tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[metric])
    assert tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[DCG(2)]).estimates[0].value > 0


def test_grades_beyond_the_scale_are_refused() -> None:
    log = tr.read(frame(rating=[2, 5, 4]), positive=">3")
    with refused(r"ERR@10\(highest=4\).* rating of 5.*expected at most 4.*highest=5"):
        tr.evaluate({"m": np.zeros((1, 3))}, log, metrics=[ERR(10, highest=4)])
    with refused("too large"):
        tr.evaluate({"m": np.zeros((1, 2))}, tr.read(frame(rating=[0, 2000])), metrics=[DCG(2, Gain.EXPONENTIAL)])


# ----------------------------------------------------------------------------------------------- all metrics at once


@st.composite
def rankings(draw: st.DrawFn) -> tuple[Log, Ranks]:
    """Units with none or many relevant items, some tied, some never recommended, some sharing a rank.

    Ranks fill one word of bits, or several.
    """
    n_units, n_items = draw(st.integers(1, 6)), draw(st.integers(1, 30) | st.integers(60, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    above = np.argsort(rng.random((n_units, n_items)), axis=1).astype(float)
    tied = np.zeros_like(above)
    kind = draw(st.sampled_from(["distinct", "tied", "shared"]))
    if kind != "distinct":
        group = above // 3 * 3
        size = np.minimum(n_items - group, 3)
        some = rng.random((n_units, 1)) < 0.5
        above = np.where(some, group if kind == "tied" else group + size - 1, above)
        tied = np.where(some & (kind == "tied"), size - 1, 0)
    never = rng.random(above.shape) < draw(st.sampled_from([0, 0.2]))
    above, tied = np.where(never, np.inf, above), np.where(never, 0, tied)
    label = (rng.random(above.shape) < draw(st.sampled_from([0, 0.2, 1]))).astype(float)
    user, item = (axis.ravel() for axis in np.indices(above.shape))
    log = Log(
        Ids.of(np.arange(n_units)), Ids.of(np.arange(n_items)), user, item, {"label": label.ravel()}, complete=True
    )
    size = np.full(n_units, float(n_items))
    return log, Ranks(above.ravel(), tied.ravel().astype(float), size, size, size > 0)


@given(rankings())
@examples(150)
def test_one_walk_gives_every_value(case: tuple[Log, Ranks]) -> None:
    """To the last bit; and most metrics are walked."""
    log, ranks = case
    asked = [metric for each in METRICS.values() for metric in each]
    assert sum(isinstance(metric, Walked) for metric in asked) >= 12
    found = unit_values_of(asked, log, ranks, fast=True)
    for metric in asked:
        alone: Any = unit_values(metric, log, ranks)
        assert np.array_equal(found[metric], alone, equal_nan=True), metric


# --------------------------------------------------------------------------------------------------- negative controls


def test_the_law_of_ties_catches_a_wrong_expected_value() -> None:
    # the middle rank of a tie group is not the mean over orders for a convex worth
    world = World(np.zeros((1, 3)), np.array([[2.0, 0.0, 0.0]]))
    middle = values_of("DCG", World(np.array([[1.0, 2.0, 0.0]]), world.grades))
    with pytest.raises(AssertionError):
        same(middle, {metric: np.array([each.mean()]) for metric, each in in_every_order("DCG", world).items()})


def test_orders_are_all_of_them_and_respect_scores() -> None:
    found = orders(np.array([1.0, 1.0, -np.inf, 5.0, 1.0]))
    assert len(found) == len({tuple(row) for row in found.tolist()}) == 6
    assert (found[:, 3] == 3).all()
    assert np.isneginf(found[:, 2]).all()
