"""Ranked logs for tests: how targets look at a log, and what an estimator makes of that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

import truerank as tr
from truerank.core.estimator import Learned, Request
from truerank.core.log import Log, Logged
from truerank.core.ranking import Pool
from truerank.core.terms import Smooth
from truerank.estimators.impressions import Exposures
from truerank.evaluation.impression_rows import ImpressionRows
from truerank.evaluation.impression_source import chunks_of, held_source
from truerank.evaluation.impressions import ImpressionQuestion, prepare_impressions
from truerank.evaluation.question import Plan

EXTRA = ("new", "other", "prediction", "by_a", "by_b")


def read(frame: pl.DataFrame, *, logged: Logged = Logged.VIEWED, **options: Any) -> Log:
    """A log with all columns that tests give targets and models."""
    extra = [name for name in frame.columns if name in EXTRA]
    return tr.read_impressions(frame, extra=extra, logged=logged, **options)


def plan_of(log: Log, targets: Mapping[str, Any], *, chunks: int | None = None, **options: Any) -> Any:
    """The plan of an evaluation and its chunks."""
    parts = chunks_of(log, targets, n=chunks or 1)
    return prepare_impressions(ImpressionQuestion(**options), held_source(log, parts), targets), parts


def views_of(log: Log, targets: Mapping[str, Any], **options: Any) -> dict[str, Exposures]:
    """How each target looks at a log."""
    plan, (chunk,) = plan_of(log, targets, **options)
    return {name: plan.rows.views(plan, chunk)[name][Pool.CATALOGUE] for name in targets}


def terms_of(
    estimator: Any, view: Exposures, *, reward: str = "reward", clip: float = math.inf, learned: Learned | None = None
) -> Smooth:
    """The terms of one reward at one clip."""
    (found,) = estimator.terms(
        None, view, requests=[Request(None, reward, clip)], learned=Learned() if learned is None else learned
    )
    whole: Smooth = found.whole
    return whole


def numerator(terms: Smooth) -> Any:
    return terms.sums[:, 0]


def denominator(terms: Smooth) -> Any:
    return terms.sums[:, 1]


def learned_of(plan: Plan[ImpressionRows]) -> Learned:
    return plan.learned
