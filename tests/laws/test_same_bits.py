"""Terms and results are the same bits whatever the order of users, the threads and the chunks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import truerank as tr
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Scores, Ties
from truerank.estimators.full import Traditional
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.exposure.kinds import RandomExposure
from truerank.metrics.additive import DCG, Precision, Recall
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
    ("interval", "ties"), list(zip(INTERVALS, (Ties.EXPECTED, Ties.RANDOM, Ties.STRICT), strict=True)), ids=str
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
