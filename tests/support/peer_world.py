"""One generated world for the comparisons with other tools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl
from terms import terms_of

import truerank as tr
from truerank.core.arrays import Bools, Floats
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Candidates, Ties
from truerank.estimators.full import Full
from truerank.exposure.kinds import FullExposure
from truerank.ranks.kernel.rank import rank

N_USERS, N_ITEMS = 200, 60
CUTOFFS = (1, 5, 10, 60)
SEEDS = (0, 1, 2)
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class World:
    """Full labels of 200 users x 60 items with scores; every tenth user has no relevant item."""

    labels: Floats
    grades: Floats  # 0 where the label is 0, else 1, 2 or 3
    free: Floats  # all scores of a user differ
    tied: Floats  # five distinct scores per user
    short: Floats  # as `free`, but some items are never recommended (-inf)
    log: Log

    @property
    def relevant(self) -> Floats:
        return np.asarray(self.labels.sum(axis=1), dtype=np.float64)

    @property
    def empty(self) -> Bools:
        return np.asarray(self.relevant == 0)


@cache
def world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    share = rng.beta(1, 6, size=(N_USERS, 1))
    share[::10] = 0.0
    labels = (rng.random((N_USERS, N_ITEMS)) < share).astype(np.float64)
    # whole numbers: trec_eval keeps scores as 32-bit floats, which would invent ties among close 64-bit ones
    free = rng.permuted(np.tile(np.arange(N_ITEMS, dtype=np.float64), (N_USERS, 1)), axis=1)
    tied = rng.integers(0, 5, size=(N_USERS, N_ITEMS)).astype(np.float64)
    short = np.where(free < rng.integers(0, 58, size=(N_USERS, 1)), -np.inf, free)
    user, item = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    frame = pl.DataFrame({"user": user, "item": item, "label": labels.ravel()})
    log = tr.read(frame)
    grades = labels * rng.integers(1, 4, size=labels.shape)
    return World(labels, grades, free, tied, short, replace(log, rewards={**log.rewards, "rating": grades.ravel()}))


def per_user(metric: Metric, given: World, scores: Floats, *, ties: Ties = Ties.EXPECTED) -> Floats:
    """The value of each user, NaN where undefined."""
    pool = Candidates(N_USERS, float(N_ITEMS))
    (ranks,) = rank(tr.scores.dense(scores), given.log, pools=[pool], ties=ties)
    terms = terms_of(Full(), given.log, ranks, metric)
    return np.where(terms.defined, terms.sums[:, 0], np.nan)


def reported(metric: Metric, given: World, scores: Floats, *, ties: Ties = Ties.EXPECTED) -> tr.Results:
    return tr.evaluate({"model": scores}, given.log, exposure=FullExposure(), metrics=[metric], ties=ties)


def same(ours: Floats, theirs: Floats) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)
