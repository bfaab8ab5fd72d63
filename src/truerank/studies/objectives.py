"""What tuning makes as large as it can: a metric on rows that the model has not learnt from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from truerank.core.arrays import frozen
from truerank.core.errors import InputError
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Scores
from truerank.data.split import split_per_user, split_random
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import Exposure, FullExposure, RandomExposure, Unlisted
from truerank.metrics.recall import Recall
from truerank.models import Labels, Side

DEFAULT: Metric = Recall(50)

Judge = Callable[[Scores], float]


@dataclass(frozen=True, slots=True)
class Task:
    """What a model learns from, and how its scores are judged."""

    log: Log
    side: Side
    judge: Judge


class TuningObjective(Protocol):
    """How to judge settings; its text form stands in the folder of the search."""

    def task(self, log: Log, side: Side, *, labels: Labels, seed: int) -> Task: ...


@dataclass(frozen=True, slots=True)
class HoldOut:
    """A metric on a share of each user's rows, drawn at random and kept from learning; unlisted pairs are negative.

    What a log does not list is not all disliked, so values are good for choosing settings and for nothing else.
    """

    metric: Metric = DEFAULT
    fraction: float = 0.2

    def task(self, log: Log, side: Side, *, labels: Labels, seed: int) -> Task:
        train, held = split_per_user(_labelled(log), self.fraction, seed=seed)
        if not (len(train) and len(held)):
            raise InputError(
                f"{log.source}: of {len(log):,} rows, {len(held):,} are held out for tuning and {len(train):,} learnt "
                f"from, no rows in one of them; expected some in both. Change "
                f"{{option:fraction}} {self.fraction:g}, or the log."
            )
        judge = _judge(self.metric, None, held, exclude=train, exposure=FullExposure(Unlisted.NEGATIVE))
        return Task(train if log.rewards else replace(train, rewards={}), side, judge)

    def __str__(self) -> str:
        return f"{self.metric} on {float(self.fraction)!r} of each user's rows, held out"


@dataclass(frozen=True, slots=True)
class RandomSlice:
    """A metric estimated from the randomly exposed slice of Side, pairs of the log excluded: what the truth would say.

    Models that learn from both classes may learn from the slice too: these get a random half of its rows, and are
    judged on the other half.
    """

    metric: Metric = DEFAULT
    estimator: Estimator | None = None

    def task(self, log: Log, side: Side, *, labels: Labels, seed: int) -> Task:
        if side.random is None:
            raise InputError("tuning on a random slice needs one: {option:random MAR|side=Side(random=...)}.")
        judged = side.random
        if labels is Labels.BOTH:
            learnt, judged = split_random(side.random, 0.5, seed=seed)
            side = replace(side, random=learnt)
        if not len(judged):
            raise InputError(f"{judged.source}: no rows to judge settings on; expected a random slice with rows.")
        judge = _judge(self.metric, self.estimator, judged, exclude=log, exposure=RandomExposure())
        return Task(log, side, judge)

    def __str__(self) -> str:
        how = "the default estimator" if self.estimator is None else repr(self.estimator)  # with its settings
        return f"{self.metric} by {how} on the random slice"


def _judge(metric: Metric, estimator: Estimator | None, judged: Log, *, exclude: Log, exposure: Exposure) -> Judge:
    def judge(scores: Scores) -> float:
        found = evaluate(
            {"model": scores},
            judged,
            exposure=exposure,
            metrics=[metric],
            estimators=None if estimator is None else [estimator],
            exclude=exclude,
        )
        value = found.estimates[0].value
        if math.isnan(value):
            raise InputError(f"{judged.source}: {metric} is undefined on the rows kept for tuning: none is relevant.")
        return value

    return judge


def _labelled(log: Log) -> Log:
    """The same with labels: in a log without a value column all rows are positive."""
    return log if log.rewards else replace(log, rewards={"label": frozen(np.ones(len(log)))})
