"""Laws of every estimator with every metric it does not refuse, found through the catalogues.

The checks are functions of terms, so that the negative controls at the end can show that each of them can fail.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from cases import instances
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from truerank.estimators.biased.propensity import Rows, is_recall

from truerank import estimators, metrics
from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates, Pool, Ranks, Ties
from truerank.core.terms import Terms
from truerank.estimators.biased.doubly_robust import DoublyRobust, Listed
from truerank.estimators.biased.rewards import ListSums
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.published import Published
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.ranks.kernel.rank import rank
from truerank.ranks.scores.scores import dense

CUTOFFS = (1, 3, 10)
TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Harmonic:
    """An additive metric that every rank counts in, which the catalogue may not have: the sum of 1 / rank."""

    name: ClassVar[str] = "Harmonic"
    on_full_labels: ClassVar[str] = "users"
    denominator: ClassVar[Denominator] = Denominator.NOTHING
    cutoff: ClassVar[None] = None

    def __str__(self) -> str:
        return self.name

    def worth(self, rank: Floats) -> Floats:
        return 1.0 / rank


def estimator_instances(cls: type[Any]) -> list[Estimator]:
    """As it comes, and with Bernoulli exposure declared where it can be; one that needs more must be added here."""
    fields = {field.name for field in dataclasses.fields(cls)}
    rates = [cls(rate=0.4), cls(rate=1.0)] if "rate" in fields else []
    return [cls(), *rates, *([cls(clip=2.0)] if "clip" in fields else [])]


METRICS: list[Metric] = [m for cls in metrics.catalogue().values() for m in instances(cls, CUTOFFS)] + [Harmonic()]
ESTIMATORS: list[Estimator] = [e for cls in estimators.catalogue().values() for e in estimator_instances(cls)]

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def law(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True)


# ------------------------------------------------------------------------------------------------------------- worlds


class World(NamedTuple):
    """Scores and labels [users x items], which pairs are excluded, which were judged, which users have scores."""

    scores: Floats
    labels: Floats
    excluded: Bools
    judged: Bools
    scored: Bools

    @property
    def n_users(self) -> int:
        return len(self.scores)


@st.composite
def worlds(draw: st.DrawFn, *, users: int = 5, items: int = 6, never: bool = True) -> World:
    """Ties, users without a judged item, without a relevant one, without candidates and without scores all occur."""
    shape = (draw(st.integers(1, users)), draw(st.integers(1, items)))
    level = st.sampled_from([0.0, 1.0, 2.0, 3.0, *([-math.inf] if never else [])])
    often, seldom = st.sampled_from([True, True, False]), st.sampled_from([False, False, False, False, True])
    excluded = draw(arrays(np.bool_, shape, elements=seldom))
    scored = ~draw(arrays(np.bool_, shape[0], elements=seldom))
    scored[0] = True  # a model without any user is an error of input
    return World(
        scores=draw(arrays(np.float64, shape, elements=level)),
        labels=draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0]))),
        excluded=excluded,
        judged=draw(arrays(np.bool_, shape, elements=often)) & ~excluded,
        scored=scored,
    )


def fully_judged(world: World) -> World:
    return world._replace(judged=~world.excluded)


def for_estimator(world: World, estimator: Estimator) -> World:
    return fully_judged(world) if estimator.complete else world


def ranked(
    world: World,
    pool: Pool,
    *,
    ties: Ties = Ties.EXPECTED,
    users: Ints | None = None,
    unlisted: bool = False,
    surely: bool = False,
) -> tuple[Log, Ranks]:
    """The judged rows of the chosen users (all by default) and their ranks; ids stay what they are in the world.

    With `unlisted` only relevant rows are listed and the others are known negatives. Propensities differ by user and
    item, unless each pair was `surely` shown.
    """
    chosen = np.arange(world.n_users) if users is None else users
    n_items = world.scores.shape[1]
    judged = world.judged[chosen]
    user, item = np.nonzero(judged & (world.labels[chosen] == 1) if unlisted else judged)
    label = world.labels[chosen][user, item]
    propensity = np.ones(len(user)) if surely else (1 + (3 * chosen[user] + item) % 4) / 4
    # what a row of an intervened test set needs, a function of the pair alone
    inclusion = np.ones(len(user)) if surely else 0.1 + 0.9 * ((chosen[user] * 7 + item * 3) % 10) / 9
    log = Log(
        users=Ids.of(chosen),
        items=Ids.of(np.arange(n_items)),
        user=user,
        item=item,
        rewards={"label": label},
        propensity=propensity,
        inclusion=inclusion,
        complete=unlisted,
    )
    known = np.flatnonzero(world.scored)
    only = Pairs.of(*np.nonzero(judged), n_units=len(chosen)) if pool is Pool.JUDGED else None
    exclude = Pairs.of(*np.nonzero(world.excluded[chosen]), n_units=len(chosen)) if only is None else None
    candidates = Candidates(len(chosen), float(n_items), only=only, exclude=exclude)
    (ranks,) = rank(dense(world.scores[known], users=known), log, pools=[candidates], ties=ties, seed=3)
    return log, ranks


def terms_of(estimator: Estimator, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
    """The terms of an estimator; one with a reward model gets one that says 0.3 of every candidate that was judged."""
    if isinstance(estimator, DoublyRobust):
        assert isinstance(metric, Additive)
        rows = Rows.of(log, ranks, metric)
        sums = (sums_by(log.unit, 0.3 * each, n=log.n_units) for each in (rows.hit, np.ones(len(log))))
        estimator = replace(estimator, listed={metric: Listed(np.full(len(log), 0.3), ListSums(*sums))})
    return estimator.terms(log, ranks, metric=metric, keep_rows=keep_rows)


def usable(estimator: Estimator) -> list[Metric]:
    return [metric for metric in METRICS if estimator.refusal(metric) is None]


def one_unit(log: Log, ranks: Ranks, unit: int) -> tuple[Log, Ranks]:
    """One user's rows, with that user as the whole population."""
    rows = np.flatnonzero(log.user == unit)
    part = replace(log.select(rows), users=Ids.of(log.users.values[[unit]]), user=np.zeros(len(rows), dtype=np.int64))
    at = slice(unit, unit + 1)
    return part, Ranks(
        ranks.above[rows], ranks.tied[rows], ranks.n_candidates[at], ranks.n_recommended[at], ranks.scored[at]
    )


# --------------------------------------------------------------------------------------------------------- the checks


def close(found: float, wanted: float, *, scale: float = 1.0) -> bool:
    if math.isnan(found) or math.isnan(wanted):
        return math.isnan(found) and math.isnan(wanted)
    return abs(found - wanted) <= TOLERANCE * max(1.0, abs(wanted), scale)


def check_value(terms: Terms) -> None:
    """The value is that of unit weights."""
    assert close(float(terms.values(np.ones((1, len(terms.num))))[0]), terms.value())


def check_scaling(terms: Terms, weights: Ints) -> None:
    """Only the proportions of weights matter."""
    given_weights = weights.astype(np.float64)
    for factor in (0.25, 3.0, 1e6):
        found, wanted = terms.values(np.stack([factor * given_weights, given_weights]))
        assert close(float(found), float(wanted))


def check_repetition(whole: Terms, parts: list[Terms], weights: Ints) -> None:
    """A whole weight is that many copies of the unit, and weight zero is its removal."""
    copies = [part for part, n in zip(parts, weights, strict=True) for _ in range(n)]
    found = float(whole.values(weights.astype(np.float64)[None])[0])
    wanted = type(whole).concatenate(copies).value() if copies else math.nan
    assert close(found, wanted)


def check_merging(whole: Terms, parts: list[Terms]) -> None:
    """Parts put together are the whole, to the bit, and every part keeps its clusters to itself."""
    merged = type(whole).concatenate(parts)
    np.testing.assert_equal(merged.value(), whole.value())
    np.testing.assert_array_equal(merged.influence(), whole.influence())
    assert (merged.n_defined, merged.exact) == (whole.n_defined, whole.exact)
    assert len(np.unique(merged.cluster)) == sum(len(np.unique(part.cluster)) for part in parts)


def check_influence(terms: Terms) -> None:
    """The influence sums to zero, is zero for units left out, and is the slope of the value in a unit's weight."""
    effect = terms.influence()
    if math.isnan(terms.value()):
        assert np.isnan(effect).all()
        return
    scale = max(1.0, float(np.abs(effect).sum()))
    assert abs(math.fsum(effect)) <= TOLERANCE * scale
    assert (effect[~terms.defined] == 0).all()
    step = 1e-5
    nudges = np.concatenate([1 + step * np.eye(len(effect)), 1 - step * np.eye(len(effect))])
    up, down = np.split(terms.values(nudges), 2)
    np.testing.assert_allclose((up - down) / (2 * step), effect, rtol=0, atol=1e-8 * scale)


# ------------------------------------------------------------------------------------------------------------ coverage


def test_every_estimator_of_the_catalogue_is_tested() -> None:
    assert {estimator.name for estimator in ESTIMATORS} == set(estimators.catalogue())
    assert {type(estimator) for estimator in ESTIMATORS} == set(estimators.catalogue().values())
    for estimator in ESTIMATORS:
        assert usable(estimator), f"{estimator} refuses every metric"


def test_every_metric_has_an_estimator_on_full_and_an_answer_on_partial_labels() -> None:
    for metric in METRICS:
        partial = [e for e in ESTIMATORS if not e.complete and e.pool is Pool.CATALOGUE]
        answers = [e for e in partial if e.refusal(metric) is None]
        assert Full().refusal(metric) is None
        additive = isinstance(metric, Additive) and metric.denominator is not Denominator.SMALLER
        assert bool(answers) == additive, str(metric)


# ------------------------------------------------------------------------------------------------------------- weights


@every_estimator
@law(20)
@given(world=worlds(), data=st.data())
def test_weights(estimator: Estimator, world: World, data: st.DataObject) -> None:
    log, ranks = ranked(for_estimator(world, estimator), estimator.pool)
    weights = data.draw(arrays(np.int64, world.n_users, elements=st.integers(0, 3)))
    units = [one_unit(log, ranks, unit) for unit in range(world.n_users)]
    for metric in usable(estimator):
        whole = terms_of(estimator, log, ranks, metric=metric)
        parts = [terms_of(estimator, *unit, metric=metric) for unit in units]
        check_value(whole)
        check_scaling(whole, weights)
        check_repetition(whole, parts, weights)
        for left_out in range(world.n_users):
            check_repetition(whole, parts, (np.arange(world.n_users) != left_out).astype(np.int64))


@every_estimator
@law(20)
@given(world=worlds())
def test_influence(estimator: Estimator, world: World) -> None:
    log, ranks = ranked(for_estimator(world, estimator), estimator.pool)
    for metric in usable(estimator):
        check_influence(terms_of(estimator, log, ranks, metric=metric))


@every_estimator
@law(15)
@given(world=worlds(), data=st.data())
def test_parts_ranked_apart_merge_to_the_whole(estimator: Estimator, world: World, data: st.DataObject) -> None:
    # as workers would do it: each ranks its own users and nothing else
    ties = data.draw(st.sampled_from(sorted(estimator.ties)))
    asked = for_estimator(world, estimator)
    cut = data.draw(st.integers(0, world.n_users - 1))
    chunks = [chunk for chunk in np.split(np.arange(world.n_users), [cut]) if len(chunk)]
    whole = ranked(asked, estimator.pool, ties=ties)
    parts = [ranked(asked, estimator.pool, ties=ties, users=chunk) for chunk in chunks]
    for metric in usable(estimator):
        apart = [terms_of(estimator, *part, metric=metric) for part in parts]
        check_merging(terms_of(estimator, *whole, metric=metric), apart)


@every_estimator
@law(15)
@given(world=worlds())
def test_terms_are_finite_and_silent_where_undefined(estimator: Estimator, world: World) -> None:
    log, ranks = ranked(for_estimator(world, estimator), estimator.pool)
    for metric in usable(estimator):
        terms = terms_of(estimator, log, ranks, metric=metric)
        left_out = ~terms.defined
        columns = [terms.num, terms.den, *([] if terms.total is None else [terms.total])]
        for column in columns:
            assert np.isfinite(column).all(), str(metric)
            assert (column[left_out] == 0).all(), str(metric)
        assert not terms.defined[~world.scored].any()
        # what a reward model foresaw too much of is taken back, so that a single user's part may fall below zero
        assert isinstance(estimator, DoublyRobust) or (terms.den >= 0).all()


@every_estimator
@law(10)
@given(world=worlds())
def test_rows_for_a_design_interval_change_no_value(estimator: Estimator, world: World) -> None:
    # and they add up to the terms they belong to
    log, ranks = ranked(for_estimator(world, estimator), estimator.pool)
    for metric in usable(estimator):
        plain, kept = (terms_of(estimator, log, ranks, metric=metric, keep_rows=keep) for keep in (False, True))
        np.testing.assert_array_equal(plain.num, kept.num)
        np.testing.assert_array_equal(plain.den, kept.den)
        assert plain.rows is None
        if kept.rows is None:
            assert kept.exact or not estimator.design
            continue
        assert estimator.design
        n = np.bincount(kept.rows.unit, kept.rows.num, minlength=world.n_users)
        expansion = kept.rows.n_candidates / np.maximum(kept.rows.n_judged, 1)
        expansion = expansion if kept.rows.rate is None else np.full(world.n_users, 1 / kept.rows.rate)
        np.testing.assert_allclose((expansion * n)[kept.defined], kept.num[kept.defined], rtol=0, atol=TOLERANCE)


# ----------------------------------------------------------------------------------------- with every candidate judged


Ranked = tuple[Log, Ranks]


def fully_judged_value(estimator: Estimator, world: World, metric: Metric, reference: Ranked) -> float:
    """What the estimator must give when nothing is left to estimate, from the full labels alone."""
    full = Full().terms(*reference, metric=metric)
    if estimator.name in ("pooled", "intervened-pooled") or (estimator.biased and is_recall(metric)):
        # ΣM / ΣN⁺: a user's recall times the number of the user's relevant candidates is M
        relevant = (world.labels * ~world.excluded).sum(axis=1)[full.defined]
        return math.fsum(full.num[full.defined] * relevant) / total if (total := math.fsum(relevant)) else math.nan
    return full.value()


def check_fully_judged(estimator: Estimator, world: World, chosen: list[Metric], *, ties: Ties, unlisted: bool) -> None:
    assert (world.judged == ~world.excluded).all()
    asked = ranked(world, estimator.pool, ties=ties, unlisted=unlisted, surely=True)
    reference = ranked(world, Pool.CATALOGUE, ties=ties)
    for metric in chosen:
        found = terms_of(estimator, *asked, metric=metric).value()
        assert close(found, fully_judged_value(estimator, world, metric, reference)), str(metric)


def nothing_left_to_chance(estimator: Estimator) -> bool:
    """With rate < 1 a judged item stands for 1 / rate, whatever the number judged: another design."""
    return getattr(estimator, "rate", None) in (None, 1.0)


FULLY_JUDGED = [estimator for estimator in ESTIMATORS if nothing_left_to_chance(estimator)]


@pytest.mark.parametrize("estimator", FULLY_JUDGED, ids=repr)
@law(30)
@given(world=worlds(never=False), data=st.data())
def test_every_candidate_judged_gives_the_full_value(estimator: Estimator, world: World, data: st.DataObject) -> None:
    # pooled gives ΣM / ΣN⁺; published, horvitz-thompson, hajek and traditional the mean over users.
    # The metrics include cut-offs beyond the number of candidates and one without a cut-off
    ties = data.draw(st.sampled_from(sorted(estimator.ties)))
    check_fully_judged(estimator, fully_judged(world), usable(estimator), ties=ties, unlisted=False)


@pytest.mark.parametrize("estimator", [e for e in FULLY_JUDGED if e.pool is Pool.CATALOGUE and not e.biased], ids=repr)
@law(20)
@given(world=worlds(never=False), data=st.data())
def test_unlisted_negatives_give_the_full_value(estimator: Estimator, world: World, data: st.DataObject) -> None:
    ties = data.draw(st.sampled_from(sorted(estimator.ties)))
    check_fully_judged(estimator, fully_judged(world), usable(estimator), ties=ties, unlisted=True)


@pytest.mark.parametrize("estimator", FULLY_JUDGED, ids=repr)
@law(20)
@given(world=worlds())
def test_never_recommended_items_are_misses_in_every_estimator(estimator: Estimator, world: World) -> None:
    world.scores[0, 0] = 1.0  # a ratio of worths is undefined only where no list has any
    world.excluded[0, 0] = False
    check_fully_judged(estimator, fully_judged(world), usable(estimator), ties=Ties.EXPECTED, unlisted=False)


@law(40)
@given(world=worlds(never=False))
def test_full_recall_is_counted_from_the_lists(world: World) -> None:
    # the reference itself, against sorting by hand, on scores without ties
    untied = world._replace(scores=world.scores + np.linspace(0, 0.5, world.scores.shape[1]))
    judged = fully_judged(untied)
    asked = ranked(judged, Pool.CATALOGUE)
    for k in CUTOFFS:
        hits, relevant, shares = 0.0, 0.0, []
        for user in np.flatnonzero(world.scored):
            items = np.flatnonzero(~world.excluded[user])
            best_first = items[np.argsort(-untied.scores[user, items])]
            n, m = world.labels[user, items].sum(), world.labels[user, best_first[:k]].sum()
            hits, relevant = hits + m, relevant + n
            shares += [m / n] if n else []
        for estimator in (Full(), Published()):
            found = estimator.terms(*asked, metric=Recall(k)).value()
            assert close(found, float(np.mean(shares)) if shares else math.nan)
        pooled = Pooled().terms(*asked, metric=Recall(k)).value()
        assert close(pooled, hits / relevant if relevant else math.nan)


def test_fully_judged_labels_are_exact_and_partial_ones_are_not() -> None:
    world = World(*worlds_by_hand())
    for estimator in (Pooled(), HorvitzThompson(), Hajek()):
        metric = usable(estimator)[0]
        assert estimator.terms(*ranked(fully_judged(world), Pool.CATALOGUE), metric=metric).exact
        assert not estimator.terms(*ranked(world, Pool.CATALOGUE), metric=metric).exact


@pytest.mark.parametrize("cls", [Pooled, HorvitzThompson, Hajek])
def test_a_declared_rate_below_one_is_never_exact(cls: type[Any]) -> None:
    # all candidates drawn is one outcome of many, and 1 / rate is still what an item stands for
    estimator = cls(rate=0.5)
    terms = estimator.terms(
        *ranked(fully_judged(World(*worlds_by_hand())), Pool.CATALOGUE), metric=usable(estimator)[0]
    )
    assert not terms.exact


def worlds_by_hand() -> tuple[Floats, Floats, Bools, Bools, Bools]:
    scores = np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    labels = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    judged = np.array([[True, True, False, False], [True, False, True, True]])
    return scores, labels, np.zeros((2, 4), dtype=bool), judged, np.ones(2, dtype=bool)


def test_estimators_by_hand() -> None:
    # user 0: 4 candidates, 2 judged, relevant at rank 1; user 1: 4 candidates, 3 judged, relevant at ranks 1 and 2
    whole = ranked(World(*worlds_by_hand()), Pool.CATALOGUE)
    assert Published().terms(*whole, metric=Recall(1)).value() == (1 / 1 + 1 / 2) / 2
    assert Pooled().terms(*whole, metric=Recall(1)).value() == pytest.approx((2 + 4 / 3) / (2 + 2 * 4 / 3))
    assert HorvitzThompson().terms(*whole, metric=Precision(1)).value() == pytest.approx((2 + 4 / 3) / 2)
    assert HorvitzThompson(rate=0.5).terms(*whole, metric=Precision(1)).value() == (2 + 2) / 2
    assert Hajek().terms(*whole, metric=Precision(1)).value() == 1  # every judged item at rank 1 is relevant


# ------------------------------------------------------------------------------------------------------------- in words

NAMES = {*estimators.catalogue(), *metrics.catalogue()}


@every_estimator
def test_a_refusal_says_why_and_what_to_use(estimator: Estimator) -> None:
    for metric in METRICS:
        reason = estimator.refusal(metric)
        if reason is None:
            continue
        assert reason.endswith("."), reason
        assert "use " in reason, reason
        advice = reason.rsplit("use ", maxsplit=1)[1].replace(",", " ").rstrip(".").split()
        offered = [word for word in advice if word in NAMES]
        assert offered, f"no name of a metric or an estimator after 'use' in: {reason}"
        # advice that would be refused again is none
        for word in offered:
            if word in estimators.catalogue():
                assert estimators.named(word)().refusal(metric) is None, reason
            else:
                other = instances(metrics.catalogue()[word], CUTOFFS)[0]
                assert any(e.refusal(other) is None for e in ESTIMATORS if not e.complete), reason


@every_estimator
def test_estimand_and_assumptions_are_said(estimator: Estimator) -> None:
    for metric in usable(estimator):
        assert str(metric) in estimator.estimand(metric)
    assert estimator.assumptions
    assert all(text and not text.endswith(".") for text in estimator.assumptions)
    assert estimator.ties
    assert Ties.EXPECTED in estimator.ties


def test_estimators_of_different_things_say_different_things() -> None:
    said = {estimator.name: estimator.estimand(Recall(3)) for estimator in (Full(), Published(), Pooled())}
    assert len(set(said.values())) == 3
    assert HorvitzThompson().estimand(DCG(3)) == Hajek().estimand(DCG(3)) == Full().estimand(DCG(3))


# --------------------------------------------------------------------------------------------------- negative controls


class ForgetsWeights(Terms):
    """Counts a unit once, however often it was drawn."""

    def values(self, weights: Floats) -> Floats:
        return Terms.values(self, (weights > 0).astype(np.float64))


class DividesByUnits(Terms):
    """Divides by the number of units, not by their weights."""

    def values(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self.num / len(self.num))


class KeepsTheRemoved(Terms):
    """Lets a unit of weight zero into the mean."""

    def values(self, weights: Floats) -> Floats:
        return Terms.values(self, weights + 1e-6)


class OffByALittle(Terms):
    def value(self) -> float:
        return Terms.value(self) * (1 + 1e-9)


class Uncentred(Terms):
    def influence(self) -> Floats:
        return np.asarray(self.num / self.den.sum())


class ForgetsTheTotal(Terms):
    """Centred, but without the part of the known total."""

    def influence(self) -> Floats:
        return Terms.ratio(self.num, self.den).influence() * self.mean_total()


class LosesTotals(Terms):
    @staticmethod
    def concatenate(parts: Any) -> Terms:
        return replace(Terms.concatenate(parts), total=None)


def broken(cls: type[Terms], *, total: bool = False) -> Terms:
    num, den = np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 5.0])
    return cls(num, den, np.ones(3, dtype=bool), np.arange(3), np.array([1.0, 2.0, 6.0]) if total else None)


def apart(terms: Terms) -> list[Terms]:
    return [
        Terms(
            terms.num[u : u + 1],
            terms.den[u : u + 1],
            terms.defined[u : u + 1],
            np.zeros(1, dtype=np.int64),
            None if terms.total is None else terms.total[u : u + 1],
        )
        for u in range(len(terms.num))
    ]


@pytest.mark.parametrize("total", [False, True])
def test_sound_terms_pass_every_check(total: bool) -> None:
    sound, weights = broken(Terms, total=total), np.array([2, 0, 3])
    check_value(sound)
    check_scaling(sound, weights)
    check_repetition(sound, apart(sound), weights)
    check_merging(sound, apart(sound))
    check_influence(sound)


@pytest.mark.parametrize("cls", [ForgetsWeights, DividesByUnits, KeepsTheRemoved])
def test_the_law_of_weights_can_fail(cls: type[Terms]) -> None:
    with pytest.raises(AssertionError):
        check_repetition(broken(cls), apart(broken(cls)), np.array([2, 0, 3]))


@pytest.mark.parametrize("cls", [DividesByUnits, KeepsTheRemoved])
def test_the_law_of_scaling_can_fail(cls: type[Terms]) -> None:
    with pytest.raises(AssertionError):
        check_scaling(broken(cls), np.array([2, 0, 3]))


@pytest.mark.parametrize("cls", [OffByALittle, DividesByUnits])
def test_the_law_of_unit_weights_can_fail(cls: type[Terms]) -> None:
    with pytest.raises(AssertionError):
        check_value(broken(cls))


@pytest.mark.parametrize("cls", [Uncentred, ForgetsTheTotal])
def test_the_law_of_influence_can_fail(cls: type[Terms]) -> None:
    with pytest.raises(AssertionError):
        check_influence(broken(cls, total=True))


@pytest.mark.parametrize("cls", [LosesTotals, OffByALittle])
def test_the_law_of_merging_can_fail(cls: type[Terms]) -> None:
    with pytest.raises(AssertionError):
        check_merging(broken(cls, total=True), apart(broken(Terms, total=True)))


@dataclass(frozen=True, slots=True)
class OneTooMany:
    """Horvitz-Thompson that takes the sample for one larger than it is."""

    name: ClassVar[str] = "one-too-many"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = frozenset({Ties.EXPECTED})
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = True
    biased: ClassVar[bool] = False
    left_out: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ()

    def refusal(self, metric: Metric) -> str | None:
        return HorvitzThompson().refusal(metric)

    def estimand(self, metric: Metric) -> str:
        return f"{metric}, wrongly"

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        terms = HorvitzThompson().terms(log, ranks, metric=metric)
        return replace(terms, num=terms.num * ranks.n_candidates / (ranks.n_candidates + 1))


def test_the_law_of_full_labels_can_fail() -> None:
    world = fully_judged(World(*worlds_by_hand()))
    check_fully_judged(HorvitzThompson(), world, [Precision(1)], ties=Ties.EXPECTED, unlisted=False)
    with pytest.raises(AssertionError):
        check_fully_judged(OneTooMany(), world, [Precision(1)], ties=Ties.EXPECTED, unlisted=False)
