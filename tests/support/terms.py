"""The terms of one estimator and metric, without an evaluation around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.estimator import Estimator, Groups, Learned, Learner, Request, learn
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Metric
from truerank.core.ranking import Candidates, JudgedChunk, Pool, Ranks, RankView, Scores, Ties
from truerank.core.terms import Smooth
from truerank.estimators.predictions import Assistance, Prediction


@dataclass(frozen=True)
class Context:
    """What estimators prepare with."""

    propensity: Learner | None
    requests: tuple[Request, ...]
    seed: int = 0
    predictions: Mapping[Assistance, Prediction] = field(default_factory=dict)


def facts_of(log: Log, candidates: Candidates, *, propensity: Learner | None = None, **others: Any) -> dict[str, Any]:
    """What an evaluation knows of the whole."""
    return {
        "propensity": propensity,
        "users": log.users,
        "n_rows": float(len(log)),
        "n_cells": float(candidates.count.sum()),
        **others,
    }


def all_items(log: Log) -> Candidates:
    return Candidates(log.n_units, float(len(log.items)))


def terms_of(
    estimator: Estimator,
    log: Log,
    ranks: Ranks,
    metric: Metric,
    *,
    clip: float = math.inf,
    reward: str = "label",
    **how: Any,
) -> Smooth:
    """The terms of a whole log as one chunk; what the estimator needs is learned from the same log."""
    (terms,) = all_terms_of(estimator, log, ranks, [Request(metric, reward, clip)], **how)
    return terms


def all_terms_of(
    estimator: Estimator,
    log: Log,
    ranks: Ranks,
    requests: Sequence[Request],
    *,
    candidates: Candidates | None = None,
    scores: Scores | None = None,
    ties: Ties = Ties.EXPECTED,
    propensity: Learner | None = None,
    groups: Groups | None = None,
    seed: int = 0,
    keep_rows: bool = False,
    **facts: Any,
) -> list[Smooth]:
    """The same for several questions at once."""
    pool = all_items(log) if candidates is None else candidates
    chunk = JudgedChunk(log, {Pool.CATALOGUE: pool, Pool.JUDGED: pool})
    known = facts_of(log, pool, propensity=propensity, **facts)
    known.setdefault("predictions", {})
    learners = estimator.prepare(Context(propensity, tuple(requests), seed, known["predictions"]))
    learned = Learned(facts=known)
    if learners:
        of = Groups(seed, "groups") if groups is None else groups
        learned = learn(learners, lambda work: [work(chunk)], groups=of, facts=known)
    view = RankView(ranks, scores, "m", ties=ties, seed=seed)
    made = estimator.terms(chunk, view, requests=requests, learned=learned, keep_rows=keep_rows)
    terms = [part if isinstance(part, Smooth) else part.whole for part in made]  # what is fitted has shares of users
    assert len(terms) == len(requests)
    return terms


def chunks_of(log: Log, candidates: Candidates | None = None, *, part: Ints) -> Iterator[JudgedChunk]:
    """The same log in chunks of whole users: user u is in chunk part[u]."""
    pool = all_items(log) if candidates is None else candidates
    yield from split(JudgedChunk(log, {Pool.CATALOGUE: pool}), part)


def split(chunk: JudgedChunk, part: Ints) -> Iterator[JudgedChunk]:
    """A chunk in smaller ones: user u goes to chunk part[u]; what was dropped is counted in the first."""
    log, dropped = chunk.labels, chunk.dropped
    for number in np.unique(part).tolist():
        users = np.flatnonzero(part == number)
        place = np.full(log.n_units, -1)
        place[users] = np.arange(len(users))
        rows = log.select(place[log.user] >= 0)
        own = replace(rows, users=Ids(log.users.values[users]), unit=place[rows.user])
        pools = {
            kind: replace(pool, n_units=len(users), only=_of(pool.only, users), exclude=_of(pool.exclude, users))
            for kind, pool in chunk.pools.items()
        }
        yield JudgedChunk(own, pools, chunk.unit[users], dropped, models=chunk.models)
        dropped = 0


def _of(pairs: Pairs | None, users: Ints) -> Pairs | None:
    if pairs is None:
        return None
    item = [pairs.of_unit(int(user)) for user in users]
    unit = np.repeat(np.arange(len(users)), [len(items) for items in item])
    return Pairs.of(unit, np.concatenate(item) if item else np.zeros(0, np.int64), n_units=len(users))
