"""The rows that an evaluation on labels is given, and the users that a judge adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import frozen
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.ranking import Scores
from truerank.estimators.predictions import Assistance, JudgeTable, Prediction
from truerank.evaluation.label_source import Rows, rows_of
from truerank.exposure.kinds import DesignedExposure, Exposure, RandomExposure
from truerank.inference.intervals import Interval


def rows_by_role(given: Mapping[str, Any], *, progress: Progress | None) -> dict[str, Rows]:
    """The rows that were given, by their role."""
    return {
        role: rows_of(each, role=role, values=role == "labels", progress=progress)
        for role, each in given.items()
        if each is not None
    }


def judge_adds_users(exposure: Exposure, interval: Interval | None) -> bool:
    """Whether users with labels of the judge alone count.

    Not where a user without a row counts as one of whom nothing was drawn (a declared rate, a biased log), or of whom
    nothing came back (a design); nor for an interval of exactly the users with labels.
    """
    drawn_by_user = isinstance(exposure, RandomExposure) and exposure.rate is None
    by_column = isinstance(exposure, DesignedExposure) and exposure.design is None
    return (drawn_by_user or by_column) and not (interval is not None and interval.needs_rows)


def with_judge_users(labels: Rows, predictions: Mapping[Assistance, Prediction], models: Mapping[str, Scores]) -> Rows:
    """The labels with the users of whom a judge says something and a model has scores, as users without a row.

    Where the users that count were declared, these alone count.
    """
    judge = predictions.get(Assistance.JUDGE)
    if not isinstance(judge, JudgeTable) or _users_declared(labels):
        return labels
    said, where = judge.rows.users, f"{judge.rows.source}, column 'user'"
    scored = np.zeros(len(said), dtype=bool)
    for scores in models.values():
        scored |= scores.users.locate(said, where=where) >= 0
    new = scored & (labels.users.locate(said, where=where) < 0)
    if not new.any():
        return labels
    users = Ids.union({"labels": labels.users, where: Ids(said.values.filter(pl.Series(new)))})
    if isinstance(labels, Log):
        return replace(labels, users=users, user=frozen(users.locate(labels.users)[labels.user]))
    return replace(labels, users=users)


def _users_declared(labels: Rows) -> bool:
    """Whether somebody said which users count; in rows that were read, where some of these have no row."""
    if isinstance(labels, Log):
        return bool((np.bincount(labels.user, minlength=len(labels.users)) == 0).any())
    return labels.users_declared
