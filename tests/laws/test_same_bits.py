"""Terms and results are the same bits whatever the order of users, the threads and the chunks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from terms import terms_of

import truerank as tr
from truerank import estimators
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Candidates, Scores, Ties
from truerank.core.terms import Smooth
from truerank.estimators.assisted import DoublyRobust
from truerank.estimators.full import Traditional
from truerank.estimators.predictions import Assistance, GivenRewards, JudgeTable, ScoredPairs
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.exposure.kinds import RandomExposure
from truerank.inference.intervals import Interval, around
from truerank.metrics.auc import AUC
from truerank.metrics.dcg import DCG
from truerank.metrics.hit_rate import HitRate
from truerank.metrics.ndcg import NDCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.ranking.kernel.rank import rank
from truerank.ranking.scores.scores import product
from truerank.simulation.dataset import DatasetSettings, simulate_dataset

METRICS: list[Metric] = [Recall(3), Recall(20), Precision(5), DCG(10)]
INTERVALS = [tr.Population(), tr.Bootstrap(50, seed=3), tr.Design()]


@cache
def parts() -> tuple[Log, Log, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A small world, factors with an awkward dimension, and a matrix with many ties."""
    world = simulate_dataset(DatasetSettings(users=150, items=90, shown=12, judged=9), seed=7)
    rng = np.random.default_rng(11)
    user, item = rng.normal(size=(150, 13)).astype(np.float32), rng.normal(size=(90, 13)).astype(np.float32)
    return world.random, world.train, user, item, rng.integers(0, 6, size=(150, 90)).astype(np.float64)


def models(users: np.ndarray[Any, Any]) -> dict[str, Scores]:
    """Every shape of scores, its users stored in the given order."""
    _, _, p, q, tied = parts()
    row, column = np.repeat(users, 90), np.tile(np.arange(90), len(users))
    table = pl.DataFrame({"user": row, "item": column, "score": tied[row, column]})
    bias = np.linspace(-1, 1, 90)
    return {
        "dense": tr.scores.dense(tied[users], users=users, items=np.arange(90)),
        "factors": tr.scores.factors(p[users], q, item_bias=bias, users=users, items=np.arange(90)),
        "lists": tr.scores.lists(table),
        "function": tr.scores.function(lambda rows: p[users[rows]] @ q.T, users=users, items=np.arange(90)),
        "product": product(csr_array(p[users]), q.T.copy(), users=users, items=np.arange(90)),
        "sparse product": product(csr_array(p[users]), csr_array(q.T), users=users, items=np.arange(90)),
        "callable": tr.models.from_callable(lambda user, items: tied[user], users=users, items=np.arange(90)),
    }


def run(
    users: np.ndarray[Any, Any],
    labels: Log,
    *,
    interval: Any,
    ties: Ties = Ties.EXPECTED,
    **options: Any,
) -> bytes:
    chosen: list[Estimator] = [Pooled(), HorvitzThompson()]
    if ties is not Ties.STRICT:
        chosen.append(Hajek())
    if not isinstance(interval, tr.Design):
        chosen += [Published(), Traditional()]
    return tr.evaluate(
        models(users),
        labels,
        exposure=RandomExposure(),
        exclude=parts()[1],
        metrics=METRICS,
        estimators=chosen,
        interval=interval,
        ties=ties,
        seed=5,
        **options,
    ).json()


@pytest.mark.parametrize(
    ("interval", "ties"), zip(INTERVALS, (Ties.EXPECTED, Ties.RANDOM, Ties.STRICT), strict=True), ids=str
)
def test_threads_chunks_and_the_order_of_files(interval: Any, ties: Ties) -> None:
    labels = parts()[0]
    expected = run(np.arange(150), labels, interval=interval, ties=ties, threads=1)
    shuffled = np.random.default_rng(2).permutation(len(labels))
    frame = pl.DataFrame({"user": labels.user, "item": labels.item, "label": labels.label})
    again = tr.read(frame[shuffled], users=labels.users, items=labels.items, name=labels.source)
    for threads, block_users in ((1, 37), (2, 150), (2, 1)):
        order = np.random.default_rng(block_users).permutation(150)
        how = {"threads": threads, "block_users": block_users}
        assert run(order, again, interval=interval, ties=ties, **how) == expected


def _renamed(order: np.ndarray[Any, Any]) -> tuple[Log, Scores]:
    """The same users under permuted names, so that they come in another order inside."""
    labels, _, p, q, _ = parts()
    propensity = (1 + (labels.user + labels.item) % 7) / 8
    inclusion = 0.1 + 0.9 * ((labels.user * 7 + labels.item * 3) % 10) / 9
    pairs = {"user": order[labels.user], "item": labels.item, "label": labels.label}
    frame = pl.DataFrame({**pairs, "propensity": propensity, "inclusion": inclusion})
    scores = tr.scores.factors(p, q, users=order, items=np.arange(90))
    return tr.read(frame, users=labels.users, items=labels.items), scores


def _said(log: Log) -> Log:
    """What a judge says of the pairs of a log, which goes with them whatever users are called."""
    return replace(log, rewards={"label": (log.item * 3 % 7) / 7 + 0.2 * log.label}, source="judge")


@pytest.mark.parametrize(
    "estimator",
    [cls() for cls in estimators.catalogue().values() if not cls.info.of_lists],  # lists: tests/laws/test_lists.py
    ids=lambda each: each.info.name,
)
def test_terms_move_with_their_users(estimator: Estimator) -> None:
    """Terms of renamed users are the same bits in another order, and so are value and linearised interval."""

    def terms(order: np.ndarray[Any, Any]) -> Smooth:
        log, scores = _renamed(order)
        if estimator.info.complete:
            log = replace(log, complete=True)
        pool = Candidates(150, 90.0)
        usual: list[Metric] = [Recall(20), DCG(20), AUC(), HitRate(20), NDCG(20)]
        metric = next(each for each in usual if estimator.refusal(each) is None)
        # item rates put users into folds by name; a model given from outside does not
        rewards = GivenRewards(tr.scores.dense(parts()[2] @ parts()[3].T, users=order, items=np.arange(90)))
        way = DoublyRobust(rewards) if isinstance(estimator, DoublyRobust) else estimator
        (ranks,) = rank(scores, log, pools=[pool])
        said = {Assistance.SCORES: ScoredPairs(rewards.scores), Assistance.JUDGE: JudgeTable(_said(log))}
        return terms_of(
            way, log, ranks, metric, candidates=pool, scores=scores, seed=1, keep_rows=True, predictions=said
        )

    order = np.random.default_rng(3).permutation(150)
    plain, moved = terms(np.arange(150)), terms(order)
    for name in ("sums", "defined"):
        assert (getattr(plain, name) == getattr(moved, name)[order]).all()
    intervals: list[Interval] = [tr.Population(), *([tr.Design()] if estimator.info.design else [])]
    for interval in intervals:
        assert repr(around(interval, plain, level=0.95)) == repr(around(interval, moved, level=0.95))
