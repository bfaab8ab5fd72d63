"""Laws of every estimator with every metric it does not refuse, found through the catalogues.

The checks are functions of terms, so that the negative controls at the end can show that each of them can fail.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from cases import instances, labelled
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from terms import all_items, all_terms_of, chunks_of, facts_of

from truerank import estimators, metrics
from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.clusters import Clusters, Once
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, Groups, Request, learn
from truerank.core.forms import slopes
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates, Pool, Ranks, Scores, Ties
from truerank.core.terms import Smooth, Terms, known_total, ratio
from truerank.estimators.assistance import AssistedMean, AssistedShare
from truerank.estimators.assisted import Assisted, DoublyRobust
from truerank.estimators.full import Full
from truerank.estimators.predictions import Assistance, GivenRewards, ItemRates, JudgeTable
from truerank.estimators.ratios import ExpandedPairs
from truerank.estimators.refusals import is_recall
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.metrics.additive import Precision, Recall
from truerank.ranking.kernel.rank import rank
from truerank.ranking.scores.scores import dense

CUTOFFS = (1, 3, 10)
TOLERANCE = 1e-12


class Way(NamedTuple):
    """An estimator, the rate of Bernoulli exposure that is declared, if one is, and what the log is, if both can be."""

    estimator: Estimator
    rate: float | None = None
    exposed: Exposed | None = None

    @property
    def info(self) -> EstimatorInfo:
        return self.estimator.info


def ways(cls: type[Any]) -> list[Way]:
    """As it comes, and with Bernoulli exposure declared where it can be; one that needs more must be added here."""
    if cls is Assisted:  # where there is something to fit
        fitted, doubted = cls(fewest=0, doubt=0), Way(cls(fewest=0, doubt=0.5))
        return [Way(fitted), Way(fitted, rate=0.4), Way(fitted, exposed=Exposed.BIASED), doubted, Way(cls())]
    clipped = [cls(clip=2.0)] if "clip" in {field.name for field in dataclasses.fields(cls)} else []
    rates = [0.4, 1.0] if Exposed.RANDOM in cls.info.exposures else []
    unequal = [Way(cls(), exposed=Exposed.BIASED)] if rates and Exposed.BIASED in cls.info.exposures else []
    return [*(Way(each) for each in (cls(), *clipped)), *(Way(cls(), rate) for rate in rates), *unequal]


METRICS: list[Metric] = [m for cls in labelled().values() for m in instances(cls, CUTOFFS)]
LOOK_AT_LABELS = {
    name: cls
    for name, cls in estimators.catalogue().items()
    if not cls.info.of_lists and not cls.info.fits  # else test_lists, test_corrected
}
WAYS = [way for cls in LOOK_AT_LABELS.values() for way in ways(cls)]


def named(way: Way) -> str:
    exposed = "" if way.exposed is None else f", {way.exposed}"
    return repr(way.estimator) + ("" if way.rate is None else f" at {way.rate}") + exposed


every_way = pytest.mark.parametrize("way", WAYS, ids=named)


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


def for_way(world: World, way: Way) -> World:
    return fully_judged(world) if way.info.complete else world


class Ranked(NamedTuple):
    """Judged rows with their ranks, and what these were made from."""

    log: Log
    ranks: Ranks
    candidates: Candidates
    scores: Scores
    ties: Ties = Ties.EXPECTED


def ranked(
    world: World,
    pool: Pool,
    *,
    ties: Ties = Ties.EXPECTED,
    users: Ints | None = None,
    unlisted: bool = False,
    surely: bool = False,
) -> Ranked:
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
        unit=user,
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
    scores = dense(world.scores[known], users=known)
    (ranks,) = rank(scores, log, pools=[candidates], ties=ties, seed=3)
    return Ranked(log, ranks, candidates, scores, ties)


def terms_of(
    way: Way, given_rows: Ranked, chosen: Sequence[Metric], *, clip: float = math.inf, keep_rows: bool = False
) -> list[Smooth]:
    """The terms of each metric; a reward model says something else of every item, and is not fitted."""
    log, ranks, candidates, scores, ties = given_rows
    estimator = way.estimator
    if isinstance(estimator, DoublyRobust):
        foreseen = np.tile(0.3 + 0.1 * np.arange(len(log.items)), (log.n_units, 1))
        guess = GivenRewards(dense(foreseen, users=log.users.values, items=log.items.values))
        estimator = replace(estimator, reward=guess)
    return all_terms_of(
        estimator,
        log,
        ranks,
        [Request(metric, clip=clip) for metric in chosen],
        candidates=candidates,
        scores=scores,
        ties=ties,
        seed=3,
        keep_rows=keep_rows,
        rate=way.rate,
        exposed=way.exposed,
        predictions={Assistance.JUDGE: JudgeTable(judge_of(log))},
    )


def judge_of(log: Log) -> Log:
    """What a judge says of most pairs, a function of the pair alone."""
    user, item = (each.ravel() for each in np.indices((log.n_units, len(log.items))))
    place = log.users.values.to_numpy()[user]
    known = (place + item) % 5 > 0
    said = ((3 * place + 2 * item) % 7 / 7)[known]
    return Log(log.users, log.items, user[known], item[known], {"label": said}, source="judge")


def one_terms(estimator: Estimator, given_rows: Ranked, metric: Metric, *, rate: float | None = None) -> Smooth:
    (terms,) = terms_of(Way(estimator, rate), given_rows, [metric])
    return terms


def usable(estimator: Estimator) -> list[Metric]:
    return [metric for metric in METRICS if estimator.refusal(metric) is None]


def one_unit(whole: Ranked, unit: int) -> Ranked:
    """One user's rows, with that user as the whole population."""
    log, ranks, pool = whole.log, whole.ranks, whole.candidates
    rows = np.flatnonzero(log.user == unit)
    part = replace(log.select(rows), users=Ids.of(log.users.values[[unit]]), unit=np.zeros(len(rows), dtype=np.int64))
    at = slice(unit, unit + 1)
    only, exclude = (None if pairs is None else pairs.of_units(unit, unit + 1) for pairs in (pool.only, pool.exclude))
    return Ranked(
        part,
        Ranks(ranks.above[rows], ranks.tied[rows], ranks.n_candidates[at], ranks.n_recommended[at], ranks.scored[at]),
        replace(pool, n_units=1, only=only, exclude=exclude),
        whole.scores,
        whole.ties,
    )


# --------------------------------------------------------------------------------------------------------- the checks


def close(found: float, wanted: float, *, scale: float = 1.0) -> bool:
    if math.isnan(found) or math.isnan(wanted):
        return math.isnan(found) and math.isnan(wanted)
    return abs(found - wanted) <= TOLERANCE * max(1.0, abs(wanted), scale)


def check_value(terms: Terms) -> None:
    """The value is that of unit weights."""
    assert close(float(terms.values(np.ones((1, len(terms.clusters))))[0]), terms.value())


def check_scaling(terms: Terms, weights: Ints) -> None:
    """Only the proportions of weights matter."""
    given_weights = weights.astype(np.float64)
    for factor in (0.25, 3.0, 1e6):
        found, wanted = terms.values(np.stack([factor * given_weights, given_weights]))
        assert close(float(found), float(wanted))


def check_repetition(whole: Terms, parts: Sequence[Terms], weights: Ints) -> None:
    """A whole weight is that many copies of the unit, and weight zero is its removal."""
    copies = [part for part, n in zip(parts, weights, strict=True) for _ in range(n)]
    found = float(whole.values(weights.astype(np.float64)[None])[0])
    wanted = copies[0].join(copies[1:]).value() if copies else math.nan
    assert close(found, wanted)


def check_merging(whole: Smooth, parts: Sequence[Smooth]) -> None:
    """Parts put together are the whole, to the bit, and every part keeps its clusters to itself."""
    merged = parts[0].join(parts[1:])
    np.testing.assert_equal(merged.value(), whole.value())
    np.testing.assert_array_equal(merged.influence(), whole.influence())
    assert (merged.n_defined, merged.exact) == (whole.n_defined, whole.exact)
    assert len(merged.clusters) == sum(len(part.clusters) for part in parts)
    np.testing.assert_array_equal(merged.clusters.key, whole.clusters.key)
    np.testing.assert_array_equal(merged.clusters.of_row, whole.clusters.of_row)


def check_influence(terms: Terms) -> None:
    """The influence sums to zero, is zero for units left out, and is the slope of the value in a unit's weight."""
    effect = terms.influence()
    if math.isnan(terms.value()):
        assert np.isnan(effect).all()
        return
    scale = max(1.0, float(np.abs(effect).sum()))
    assert abs(math.fsum(effect)) <= TOLERANCE * max(scale, summands(terms))
    assert (effect[~terms.defined] == 0).all()
    step = 1e-5 / max(1.0, float(np.abs(effect).max()))  # where a value changes quickly, it also bends sooner
    each = step * np.eye(len(effect))
    up, twice_up, down, twice_down = np.split(terms.values(1 + np.concatenate([each, 2 * each, -each, -2 * each])), 4)
    # the mean of the slopes on both sides, each to second order: a form may bend where it is
    slope = (4 * (up - down) - (twice_up - twice_down)) / (4 * step)
    # values are rounded as their parts are, which a short step makes larger
    rounded = np.finfo(float).eps * summands(terms) / step
    np.testing.assert_allclose(slope, effect, rtol=0, atol=1e-8 * scale + rounded)


def summands(terms: Terms) -> float:
    """How large the parts of an influence are that must cancel: a line through rows whose predictions hardly differ has
    steep slopes in each of its sums, which are rounded."""
    if not isinstance(terms, Smooth) or not isinstance(terms.form, AssistedMean | AssistedShare):
        return 0.0
    return float(np.abs(terms.sums * slopes(terms.form.function, terms.totals())).sum())


# ------------------------------------------------------------------------------------------------------------ coverage


def test_every_estimator_of_the_catalogue_is_tested() -> None:
    assert {way.info.name for way in WAYS} == set(LOOK_AT_LABELS)
    assert {type(way.estimator) for way in WAYS} == set(LOOK_AT_LABELS.values())
    for way in WAYS:
        assert usable(way.estimator), f"{way.estimator} refuses every metric"


def test_every_metric_has_an_estimator_on_full_and_an_answer_on_partial_labels() -> None:
    for metric in METRICS:
        partial = [way for way in WAYS if not way.info.complete and way.info.pool is Pool.CATALOGUE]
        answers = [way for way in partial if way.estimator.refusal(metric) is None]
        assert Full().refusal(metric) is None
        additive = isinstance(metric, Additive) and metric.denominator is not Denominator.SMALLER
        others = {way.info.name for way in answers} <= OTHER  # bounds, pairs: another quantity, or another way
        assert bool(answers) == additive or (not additive and others), str(metric)


# ------------------------------------------------------------------------------------------------------------- weights


def part_of(whole: Terms, alone: Terms) -> Terms:
    """The terms of one unit as a part of all: how many rows are expected in lists is known of all units beforehand."""
    return dataclasses.replace(alone, form=whole.form) if isinstance(alone, Smooth) else alone  # type: ignore[attr-defined]


@every_way
@examples(20)
@given(world=worlds(), data=st.data())
def test_weights(way: Way, world: World, data: st.DataObject) -> None:
    everyone = ranked(for_way(world, way), way.info.pool)
    weights = data.draw(arrays(np.int64, world.n_users, elements=st.integers(0, 3)))
    chosen = usable(way.estimator)
    of_each_unit = [terms_of(way, one_unit(everyone, unit), chosen) for unit in range(world.n_users)]
    for at, whole in enumerate(terms_of(way, everyone, chosen)):
        parts = [part_of(whole, terms[at]) for terms in of_each_unit]
        check_value(whole)
        # what asks for enough rows, or for a slope that enough of them support, counts copies as rows
        if not (isinstance(way.estimator, Assisted) and (way.estimator.fewest or way.estimator.doubt)):
            check_scaling(whole, weights)
        check_repetition(whole, parts, weights)
        for left_out in range(world.n_users):
            check_repetition(whole, parts, (np.arange(world.n_users) != left_out).astype(np.int64))


@every_way
@examples(20)
@given(world=worlds())
def test_influence(way: Way, world: World) -> None:
    for terms in terms_of(way, ranked(for_way(world, way), way.info.pool), usable(way.estimator)):
        check_influence(terms)


@every_way
@examples(15)
@given(world=worlds(), data=st.data())
def test_parts_ranked_apart_merge_to_the_whole(way: Way, world: World, data: st.DataObject) -> None:
    # as workers would do it: each ranks its own users and nothing else
    ties = data.draw(st.sampled_from(sorted(way.info.ties)))
    asked = for_way(world, way)
    cut = data.draw(st.integers(0, world.n_users - 1))
    chunks = [chunk for chunk in np.split(np.arange(world.n_users), [cut]) if len(chunk)]
    chosen = usable(way.estimator)
    whole = terms_of(way, ranked(asked, way.info.pool, ties=ties), chosen)
    parts = [terms_of(way, ranked(asked, way.info.pool, ties=ties, users=chunk), chosen) for chunk in chunks]
    for at, terms in enumerate(whole):
        check_merging(terms, [part[at] for part in parts])


@every_way
@examples(5)
@given(world=worlds())
def test_questions_do_not_depend_on_each_other(way: Way, world: World) -> None:
    everyone, chosen = ranked(for_way(world, way), way.info.pool), usable(way.estimator)
    for metric, together in zip(chosen, terms_of(way, everyone, chosen), strict=True):
        (alone,) = terms_of(way, everyone, [metric])
        np.testing.assert_array_equal(alone.sums, together.sums, err_msg=str(metric))


@pytest.mark.parametrize("way", [way for way in WAYS if getattr(way.estimator, "clip", None)], ids=named)
@examples(10)
@given(world=worlds())
def test_a_clip_of_its_own_goes_before_that_of_the_question(way: Way, world: World) -> None:
    everyone, chosen = ranked(world, way.info.pool), usable(way.estimator)
    own, clip = way.estimator, float(way.estimator.clip)  # type: ignore[attr-defined]
    plain = way._replace(estimator=replace(own, clip=None))  # type: ignore[type-var]
    for first, second in zip(
        terms_of(way, everyone, chosen, clip=1.5), terms_of(plain, everyone, chosen, clip=clip), strict=True
    ):
        np.testing.assert_array_equal(first.sums, second.sums)


def test_rates_of_an_item_do_not_look_at_the_fold_they_are_for() -> None:
    """And the negative control: they do look at the others."""
    rng = np.random.default_rng(4)
    user, item = np.nonzero(rng.random((60, 30)) < 0.5)
    label = rng.integers(0, 2, len(user)).astype(np.float64)
    log = Log(Ids.of(np.arange(60)), Ids.of(np.arange(30)), user, item, {"label": label}, propensity=np.ones(len(user)))
    learner = ItemRates().learner(Recall(5), clip=math.inf, propensity=None)

    def rates(rows: Log) -> Any:
        chunks = list(chunks_of(rows, part=np.zeros(60, np.int64)))
        facts = facts_of(rows, all_items(rows))
        found: Any = learn([learner], lambda work: map(work, chunks), groups=Groups(0, "one"), facts=facts)[learner]
        return found

    before, folds = rates(log)
    fold = folds.at(log.users.keys())
    after, _ = rates(log.select(fold[log.unit] == 1))
    assert np.array_equal(after[0], before[0])
    assert not np.array_equal(after[1], before[1])


@every_way
@examples(15)
@given(world=worlds())
def test_terms_are_finite_and_silent_where_undefined(way: Way, world: World) -> None:
    chosen = usable(way.estimator)
    everyone = ranked(for_way(world, way), way.info.pool)
    for metric, terms in zip(chosen, terms_of(way, everyone, chosen), strict=True):
        assert np.isfinite(terms.sums).all(), str(metric)
        assert (terms.sums[~terms.defined] == 0).all(), str(metric)
        assert not terms.defined[~world.scored].any()
        # what a reward model foresaw too much of is taken back, so that a single user's part may fall below zero
        # and pairs of a relevant and another item are counted without bias, which can take more away than there are
        assert isinstance(way.estimator, DoublyRobust | ExpandedPairs) or (terms.sums[:, 1] >= 0).all()


@every_way
@examples(10)
@given(world=worlds())
def test_rows_for_a_design_interval_change_no_value(way: Way, world: World) -> None:
    # and they add up to the terms they belong to
    everyone, chosen = ranked(for_way(world, way), way.info.pool), usable(way.estimator)
    both = (terms_of(way, everyone, chosen, keep_rows=keep) for keep in (False, True))
    for plain, kept in zip(*both, strict=True):
        np.testing.assert_array_equal(plain.sums, kept.sums)
        assert plain.rows is None
        if kept.rows is None:
            assert kept.exact or not way.info.design or way.exposed is Exposed.BIASED
            continue
        assert way.info.design
        n = np.bincount(kept.rows.unit, kept.rows.num, minlength=world.n_users)
        expansion = kept.rows.n_candidates / np.maximum(kept.rows.n_judged, 1)
        expansion = expansion if kept.rows.rate is None else np.full(world.n_users, 1 / kept.rows.rate)
        np.testing.assert_allclose((expansion * n)[kept.defined], kept.sums[kept.defined, 0], rtol=0, atol=TOLERANCE)


# ----------------------------------------------------------------------------------------- with every candidate judged


def fully_judged_value(estimator: Estimator, world: World, metric: Metric, reference: Ranked) -> float:
    """What the estimator must give when nothing is left to estimate, from the full labels alone."""
    full, info = one_terms(Full(), reference, metric), estimator.info
    if info.name in ("pooled", "intervened-pooled") or (Exposed.BIASED in info.exposures and is_recall(metric)):
        # ΣM / ΣN⁺: a user's recall times the number of the user's relevant candidates is M
        relevant = (world.labels * ~world.excluded).sum(axis=1)[full.defined]
        return math.fsum(full.sums[full.defined, 0] * relevant) / total if (total := math.fsum(relevant)) else math.nan
    if Exposed.HOLDOUT in info.exposures:
        # one population for every metric: users with a relevant candidate
        some = full.defined & ((world.labels * ~world.excluded).sum(axis=1) > 0)
        return math.fsum(full.sums[some, 0]) / count if (count := np.count_nonzero(some)) else math.nan
    return full.value()


def check_fully_judged(way: Way, world: World, chosen: Sequence[Metric], *, ties: Ties, unlisted: bool) -> None:
    assert (world.judged == ~world.excluded).all()
    asked = ranked(world, way.info.pool, ties=ties, unlisted=unlisted, surely=True)
    reference = ranked(world, Pool.CATALOGUE, ties=ties)
    for metric, terms in zip(chosen, terms_of(way, asked, chosen), strict=True):
        assert close(terms.value(), fully_judged_value(way.estimator, world, metric, reference)), str(metric)


# with rate < 1 a judged item stands for 1 / rate, whatever the number judged: another design
# another quantity than the metric, also with every label; tests/exact/test_random_exposure.py has their sums
OTHER = {"pairs", "post-normalised", "judge-alone"}
FULLY_JUDGED = [way for way in WAYS if way.rate in (None, 1.0) and way.info.name not in OTHER]


@pytest.mark.parametrize("way", FULLY_JUDGED, ids=named)
@examples(50)
@given(world=worlds(), data=st.data())
def test_every_candidate_judged_gives_the_full_value(way: Way, world: World, data: st.DataObject) -> None:
    # pooled gives ΣM / ΣN⁺; published, horvitz-thompson, hajek and traditional the mean over users.
    # The metrics include cut-offs beyond the number of candidates and one without a cut-off; what is never recommended
    # is a miss, and known negatives need no rows
    world.scores[0, 0] = 1.0  # a ratio of discounts is undefined only where no list has any
    world.excluded[0, 0] = False
    ties = data.draw(st.sampled_from(sorted(way.info.ties)))
    unlisted = data.draw(st.booleans()) and way.info.pool is Pool.CATALOGUE
    unlisted = unlisted and Exposed.BIASED not in way.info.exposures
    check_fully_judged(way, fully_judged(world), usable(way.estimator), ties=ties, unlisted=unlisted)


@pytest.mark.parametrize("estimator", [Pooled(), HorvitzThompson(), Hajek()], ids=repr)
def test_labels_of_everything_are_exact_unless_a_rate_is_declared(estimator: Estimator) -> None:
    # all candidates drawn at a rate is one outcome of many, and 1 / rate is still what an item represents
    world, metric = World(*worlds_by_hand()), usable(estimator)[0]
    everyone = ranked(fully_judged(world), Pool.CATALOGUE)
    assert one_terms(estimator, everyone, metric).exact
    assert not one_terms(estimator, everyone, metric, rate=0.5).exact
    assert not one_terms(estimator, ranked(world, Pool.CATALOGUE), metric).exact


def worlds_by_hand() -> tuple[Floats, Floats, Bools, Bools, Bools]:
    scores = np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    labels = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    judged = np.array([[True, True, False, False], [True, False, True, True]])
    return scores, labels, np.zeros((2, 4), dtype=bool), judged, np.ones(2, dtype=bool)


def test_estimators_by_hand() -> None:
    # user 0: 4 candidates, 2 judged, relevant at rank 1; user 1: 4 candidates, 3 judged, relevant at ranks 1 and 2
    whole = ranked(World(*worlds_by_hand()), Pool.CATALOGUE)
    assert one_terms(Published(), whole, Recall(1)).value() == (1 / 1 + 1 / 2) / 2
    assert one_terms(Pooled(), whole, Recall(1)).value() == pytest.approx((2 + 4 / 3) / (2 + 2 * 4 / 3))
    assert one_terms(HorvitzThompson(), whole, Precision(1)).value() == pytest.approx((2 + 4 / 3) / 2)
    assert one_terms(HorvitzThompson(), whole, Precision(1), rate=0.5).value() == (2 + 2) / 2
    assert one_terms(Hajek(), whole, Precision(1)).value() == 1  # every judged item at rank 1 is relevant


# ------------------------------------------------------------------------------------------------------------- in words

NAMES = {*estimators.catalogue(), *metrics.catalogue()}


@every_way
def test_a_refusal_says_why_and_what_to_use(way: Way) -> None:
    for metric in METRICS:
        reason = way.estimator.refusal(metric)
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
                assert any(e.estimator.refusal(other) is None for e in WAYS if not e.info.complete), reason


# --------------------------------------------------------------------------------------------------- negative controls


class ForgetsWeights(Smooth):
    """Counts a unit once, however often it was drawn."""

    __slots__ = ()

    def values(self, weights: Floats) -> Floats:
        return Smooth.values(self, (weights > 0).astype(np.float64))


class DividesByUnits(Smooth):
    """Divides by the number of units, not by their weights."""

    __slots__ = ()

    def values(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self.sums[:, 0] / len(self.sums))


class OffByALittle(Smooth):
    __slots__ = ()

    def value(self) -> float:
        return Smooth.value(self) * (1 + 1e-9)


class ForgetsTheTotal(Smooth):
    """Centred, but without the part of the known total."""

    __slots__ = ()

    def influence(self) -> Floats:
        totals = self.totals()
        return np.asarray(ratio(self.sums[:, 0], self.sums[:, 1]).influence() * totals[2] / totals[3])


class SharesClusters(Smooth):
    """Takes the first cluster of one part for the first of the next."""

    __slots__ = ()

    def join(self, others: Any, once: Once | None = None) -> Any:
        merged = Smooth.join(self, others, once)
        return replace(merged, clusters=Clusters(np.zeros(len(merged.sums), dtype=np.int64), self.clusters.key))


NUM, DEN, TOTAL = np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 5.0]), np.array([1.0, 2.0, 6.0])


def broken(cls: type[Smooth], *, total: bool = False) -> Smooth:
    sound = known_total(NUM, DEN, TOTAL) if total else ratio(NUM, DEN)
    return cls(sound.form, sound.sums, sound.defined, sound.clusters)


def apart(terms: Smooth) -> list[Smooth]:
    return [
        replace(
            terms, sums=terms.sums[u : u + 1], defined=terms.defined[u : u + 1],
            clusters=Clusters.alone(terms.clusters.key[u : u + 1]),
        )
        for u in range(len(terms.sums))
    ]  # fmt: skip


@pytest.mark.parametrize("total", [False, True])
def test_sound_terms_pass_every_check(total: bool) -> None:
    sound, weights = broken(Smooth, total=total), np.array([2, 0, 3])
    check_value(sound)
    check_scaling(sound, weights)
    check_repetition(sound, apart(sound), weights)
    check_merging(sound, apart(sound))
    check_influence(sound)


REPEATED = np.array([2, 0, 3])
CAN_FAIL: list[tuple[type[Smooth], Callable[[Smooth], None]]] = [
    (ForgetsWeights, lambda terms: check_repetition(terms, apart(terms), REPEATED)),
    (DividesByUnits, lambda terms: check_scaling(terms, REPEATED)),
    (OffByALittle, check_value),
    (ForgetsTheTotal, check_influence),
    (SharesClusters, lambda terms: check_merging(broken(Smooth, total=True), apart(terms))),
    (OffByALittle, lambda terms: check_merging(broken(Smooth, total=True), apart(terms))),
]


@pytest.mark.parametrize(("cls", "check"), CAN_FAIL)
def test_each_law_can_fail(cls: type[Smooth], check: Callable[[Smooth], None]) -> None:
    with pytest.raises(AssertionError):
        check(broken(cls, total=cls is not DividesByUnits))


def test_the_law_of_full_labels_can_fail() -> None:
    world = fully_judged(World(*worlds_by_hand()))
    check_fully_judged(Way(HorvitzThompson()), world, [Precision(1)], ties=Ties.EXPECTED, unlisted=False)
    with pytest.raises(AssertionError):
        check_fully_judged(Way(HorvitzThompson(), 0.5), world, [Precision(1)], ties=Ties.EXPECTED, unlisted=False)
