"""What an evaluation of judged rows learns from all of them, and what it was made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truerank.core.errors import RefusedError
from truerank.core.estimator import Asked, Groups, Learned, Learner, learn
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.provenance import Input
from truerank.core.ranking import JudgedChunk, Pool
from truerank.core.wording import option
from truerank.engines.engine import Workers, map_chunks
from truerank.estimators.assisted import Assisted
from truerank.estimators.predictions import Assistance, JudgeTable, Prediction, ScoredPairs
from truerank.evaluation.label_source import JudgedSource
from truerank.evaluation.question import Question
from truerank.exposure.kinds import BiasedExposure, DesignedExposure, Exposure, RandomExposure
from truerank.exposure.propensities import Fitted, GivenValues
from truerank.io.batches import LazyTable
from truerank.io.columns import VALUE_NAMES
from truerank.io.read import read
from truerank.metrics.listed import ListFacts
from truerank.ranking.scores.tables import as_scores

PARTS = 40  # groups of users without which fitted models are fitted again
PROBABILITY = "probability"


@dataclass(frozen=True, slots=True)
class JudgedContext:
    """What an estimator may want to learn with: the propensities of rows, and what it is asked."""

    propensity: Any
    asked: tuple[Asked, ...]
    seed: int
    predictions: Mapping[Assistance, Prediction] = field(default_factory=dict)


def learned_of(
    question: Question,
    source: JudgedSource,
    exposure: Exposure,
    learner: Learner | None,
    *,
    users: Ids,
    lists: ListFacts,
    predictions: Mapping[Assistance, Prediction],
    workers: Workers,
    progress: Progress | None = None,
) -> Learned:
    """What estimators must know of all users: propensities, reward models."""
    context = {
        estimator: tuple(question.asked[number][1] for number in numbers)
        for estimator, numbers in question.by_estimator(range(len(question.asked)))
    }
    wanted = [] if learner is None else [learner]  # its fit is reported whatever is asked
    wanted += [
        needed
        for estimator, asked in context.items()
        for needed in estimator.prepare(JudgedContext(learner, asked, question.seed, predictions))
    ]
    facts: dict[str, Any] = {
        "rate": exposure.rate if isinstance(exposure, RandomExposure) else None,
        "propensity": learner,
        "exposed": exposure.exposed,
        "users": users,
        "lists": lists,
        "predictions": predictions,
        "exactly_these": question.interval.needs_rows,
    }
    if not wanted:
        return Learned(facts=facts)

    sizes = list(map_chunks(workers, _sizes, source, progress=progress, what="counting candidates", ordered=True))
    facts |= {"n_rows": float(sum(rows for rows, _ in sizes)), "n_cells": math.fsum(cells for _, cells in sizes)}
    groups = Groups.of(users.keys(), n=PARTS, seed=question.seed, purpose="jackknife")

    def mapped(work: Callable[[JudgedChunk], list[Any]]) -> Iterator[list[Any]]:
        return map_chunks(workers, work, source, progress=progress, what="learning", ordered=True)

    return learn(wanted, mapped, groups=groups, facts=facts)


def _sizes(chunk: JudgedChunk) -> tuple[int, float]:
    """How many judged rows and candidates a chunk has."""
    return len(chunk.labels), float(chunk.pools[Pool.CATALOGUE].count.sum())


def predictions_of(
    assist: Any, judge: Any, exposure: Exposure
) -> tuple[dict[Assistance, Prediction], tuple[Input, ...]]:
    """What assists, by what it is, and the record of it; a judge comes as a Log or anything that one is read from."""
    given: dict[Assistance, Prediction] = {}
    inputs = []
    if (assist is not None or judge is not None) and exposure.exposed not in Assisted.about.exposures:
        raise RefusedError(
            f"with {option(f'exposure {exposure.exposed}')} every label is there, or taken to be, so that nothing is "
            f"left to predict; leave {option('judge')} and {option('assist')} out."
        )
    if judge is not None:
        rows = read_judge(judge)
        given[Assistance.JUDGE] = JudgeTable(rows)
        inputs.append(
            Input(role="judge", source=rows.source, rows=len(rows), users=len(rows.users), items=len(rows.items))
        )
    if assist is not None:
        scores = as_scores(assist, name="assist")
        given[Assistance.SCORES] = ScoredPairs(scores)
        inputs.append(
            Input(role="assist", source="assist", name="assist", users=len(scores.users), items=len(scores.items))
        )
    return given, tuple(inputs)


def read_judge(source: Any, *, columns: Mapping[str, str] | None = None) -> Log:
    """Rows of what a judge says; its value may be called probability."""
    if isinstance(source, Log):
        return source
    named = dict(columns or {})
    table = () if isinstance(source, Mapping) else LazyTable.of(source).columns
    if PROBABILITY in table and not any(name in named or name in table for name in VALUE_NAMES):
        named["value"] = PROBABILITY
    return read(source, columns=named, name=None if isinstance(source, str | Path) else "judge")


def description_of(exposure: Exposure, learner: Learner | None, learned: Learned) -> str | None:
    """What was assumed of propensities, in words; None where there are none."""
    if isinstance(exposure, DesignedExposure):
        return exposure.description(learned)
    if not isinstance(exposure, BiasedExposure):
        return None
    fitted: Fitted = GivenValues() if learner is None else learned[learner]
    return fitted.description
