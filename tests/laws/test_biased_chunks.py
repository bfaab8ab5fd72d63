"""Estimators for biased logs in chunks of users: the same bits whatever the chunks, and all questions at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from terms import Context, chunks_of, facts_of

import truerank as tr
from truerank.core.arrays import Ints
from truerank.core.estimator import Estimator, Groups, Learned, Learner, Request, learn
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.options import Gain
from truerank.core.ranking import Candidates, JudgedChunk, Pool, RankView
from truerank.core.terms import Smooth
from truerank.estimators import listed_predictions
from truerank.estimators.doubly_robust import DoublyRobust
from truerank.estimators.predictions import GivenRewards, ItemRates
from truerank.estimators.weighted import IPS, SNIPS, Naive
from truerank.exposure.propensities import PropensityLearner
from truerank.exposure.propensities.counted import PopularityPower
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.ranking.kernel.rank import rank

N_USERS, N_ITEMS = 60, 30
RNG = np.random.default_rng(4)
SCORES = tr.scores.dense(RNG.normal(size=(N_USERS, N_ITEMS)).round(1))
GUESS = tr.scores.dense(RNG.random((N_USERS, N_ITEMS)))
CHANCE = 0.05 + 0.9 * RNG.random((N_USERS, N_ITEMS)) ** 2
USER, ITEM = np.nonzero(RNG.random((N_USERS, N_ITEMS)) < CHANCE)
GRADE = RNG.integers(0, 4, len(USER)).astype(np.float64)
LOG = Log(
    Ids.of([f"user {u}" for u in range(N_USERS)]),
    Ids.of(range(N_ITEMS)),
    USER,
    ITEM,
    {"label": (GRADE > 1).astype(np.float64), "grade": GRADE},
    propensity=CHANCE[USER, ITEM],
)
EXCLUDED = Pairs.of(*np.nonzero((CHANCE < 0.06) & (np.arange(N_ITEMS) > 20)), n_units=N_USERS)
KEPT = ~np.isin(USER * N_ITEMS + ITEM, np.repeat(np.arange(N_USERS), EXCLUDED.count) * N_ITEMS + EXCLUDED.item)
JUDGED = LOG.select(KEPT)
CANDIDATES = Candidates(N_USERS, float(N_ITEMS), exclude=EXCLUDED)
MODEL = tr.scores.dense(SCORES.block(np.arange(N_USERS)), users=LOG.users.values, items=np.arange(N_ITEMS))
REWARDS = GivenRewards(
    tr.scores.dense(GUESS.block(np.arange(N_USERS)), users=LOG.users.values, items=np.arange(N_ITEMS))
)

ASKED = [
    Request(metric, clip=clip)
    for metric in (Recall(5), Recall(10), Precision(5), DCG(10), DCG(5, Gain.EXPONENTIAL))
    for clip in (math.inf, 3.0)
]
ESTIMATORS: list[Estimator] = [
    IPS(), SNIPS(), Naive(), DoublyRobust(), DoublyRobust(ItemRates(3)), DoublyRobust(REWARDS),
]  # fmt: skip
LEARNERS = {"column": None, "power": PropensityLearner(PopularityPower())}
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: each.info.name)


def questions(estimator: Estimator) -> list[Request]:
    return [asked for asked in ASKED if estimator.refusal(asked.metric) is None]


def view_of(chunk: JudgedChunk) -> RankView:
    (ranks,) = rank(MODEL, chunk.labels, pools=[chunk.pools[Pool.CATALOGUE]], name="m")
    return RankView(ranks, MODEL, "m")


def learned_of(estimator: Estimator, part: Ints, propensity: Learner | None, *, groups: int = 4) -> Learned:
    facts = facts_of(JUDGED, CANDIDATES, propensity=propensity)
    learners = estimator.prepare(Context(propensity, tuple(questions(estimator))))
    keyed = Groups.of(JUDGED.users.keys(), n=groups, seed=0, purpose="parts")
    return learn(learners, lambda work: map(work, chunks_of(JUDGED, CANDIDATES, part=part)), groups=keyed, facts=facts)


def measured(estimator: Estimator, part: Ints, learned: Learned, asked: Sequence[Request]) -> list[Smooth]:
    """The terms of all chunks, joined in the order of users."""
    chunks = list(chunks_of(JUDGED, CANDIDATES, part=part))
    parts = [estimator.terms(chunk, view_of(chunk), requests=asked, learned=learned) for chunk in chunks]
    order = np.argsort(np.concatenate([chunk.unit for chunk in chunks]))
    joined = [first.join([other[place] for other in parts[1:]]) for place, first in enumerate(parts[0])]
    return [terms.take(order, terms.clusters.take(order)).whole for terms in joined]


@every_estimator
def test_questions_do_not_depend_on_each_other(estimator: Estimator) -> None:
    one = np.zeros(N_USERS, np.int64)
    learned = learned_of(estimator, one, None)
    together = measured(estimator, one, learned, questions(estimator))
    for asked, expected in zip(questions(estimator), together, strict=True):
        (alone,) = measured(estimator, one, learned, [asked])
        assert np.array_equal(alone.sums, expected.sums)


@pytest.mark.parametrize("kind", [IPS, SNIPS, DoublyRobust])
def test_a_clip_of_its_own_goes_before_that_of_the_question(kind: type[IPS]) -> None:
    one = np.zeros(N_USERS, np.int64)
    plain, own = kind(), kind(clip=3.0)
    asked = [asked for asked in questions(plain) if asked.metric == DCG(10)]
    _, clipped = measured(plain, one, learned_of(plain, one, None), asked)
    both = measured(own, one, learned_of(own, one, None), asked)
    for terms in both:
        assert np.array_equal(terms.sums, clipped.sums)
    assert clipped.weighting is not None
    assert clipped.weighting.lost > 0


def test_rates_of_an_item_do_not_look_at_the_fold_they_are_for() -> None:
    """And the negative control: they do look at the others."""
    learner = ItemRates().learner(Recall(5), clip=math.inf, propensity=None)
    facts = facts_of(JUDGED, CANDIDATES)

    def rates(log: Log) -> Any:
        chunks = list(chunks_of(log, part=np.zeros(N_USERS, np.int64)))
        found: Any = learn([learner], lambda work: map(work, chunks), groups=Groups(0, "one"), facts=facts)[learner]
        return found

    before, folds = rates(JUDGED)
    fold = folds.at(JUDGED.users.keys())
    assert np.bincount(fold).tolist() == [30, 30]
    other = JUDGED.select(fold[JUDGED.user] == 1)
    after, _ = rates(other)
    assert np.array_equal(after[0], before[0])
    assert not np.array_equal(after[1], before[1])


def test_lists_are_ranked_once_for_all_metrics_clips_and_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return rank(*given, **named)

    monkeypatch.setattr(listed_predictions, "rank", counted)
    estimator, one = DoublyRobust(), np.zeros(N_USERS, np.int64)
    learned = learned_of(estimator, one, LEARNERS["power"])
    (chunk,) = chunks_of(JUDGED, CANDIDATES, part=one)
    view = view_of(chunk)
    asked = questions(estimator)
    whole = estimator.terms(chunk, view, requests=asked, learned=learned)
    assert len(learned.refits) == 4
    for group in range(4):
        refit = estimator.terms(chunk, view, requests=asked, learned=learned.without(group))
        assert refit[0].value() != whole[0].value()
    assert len(calls) == 1
