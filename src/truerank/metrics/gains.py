"""Grades of rows and what they add."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.options import Gain


@runtime_checkable
class Graded(Metric, Protocol):
    """A metric that can use more than binary labels: `gains` says what each row adds; relevant is what adds something.

    `graded` says whether it uses grades, or the label like every other metric.
    """

    @property
    def graded(self) -> bool: ...
    def gains(self, log: Log) -> Floats: ...


def gains_of(metric: Metric, log: Log) -> Floats:
    """What each row adds: the label, or what a graded metric makes of its grade."""
    return metric.gains(log) if isinstance(metric, Graded) else log.label


def reward_of(metric: Metric, log: Log) -> str:
    """The name of the column that a metric reads."""
    return grade_column(log) if isinstance(metric, Graded) and metric.graded else "label"


def relevant(log: Log) -> Bools:
    """The rows that count as relevant where no metric is meant: by label, or a grade above 0 where there is none."""
    return log.label == 1 if "label" in log.rewards else grades(log) > 0


def gains(log: Log, gain: Gain) -> Floats:
    """The gain of each row.

    >>> from truerank.core.ids import Ids
    >>> one = np.zeros(2, dtype=np.int64)
    >>> log = Log(Ids.of(one[:1]), Ids.of(np.arange(2)), one, np.arange(2), {"rating": np.array([0.0, 3.0])})
    >>> gains(log, Gain.LINEAR).tolist(), gains(log, Gain.EXPONENTIAL).tolist()
    ([0.0, 3.0], [0.0, 7.0])
    """
    if gain is Gain.BINARY:
        return log.label
    grade = grades(log)
    if gain is Gain.LINEAR:
        return grade
    if grade.max(initial=0.0) > 1000:
        raise InputError(
            f"{log.source}: the largest {grade_column(log)} is {grade.max():g}, too large for gains of 2^grade - 1; "
            "use gain=linear."
        )
    return np.asarray(np.exp2(grade) - 1.0)


def grades(log: Log) -> Floats:
    """The grade of each row: the value as it was read, or the label where that is all there is."""
    name = grade_column(log)
    found = log.rewards[name]
    if found.min(initial=0.0) < 0:
        row = int(np.argmin(found))
        user, item = log.users.texts(log.user[[row]])[0], log.items.texts(log.item[[row]])[0]
        raise InputError(
            f"{log.source}: the {name} of user {user}, item {item} is {found[row]:g}; gains need grades of 0 or more. "
            "Shift the values, or use binary gains with a rule for what is positive."
        )
    return found


def grade_column(log: Log) -> str:
    """The name of the column that holds grades."""
    if not log.rewards:
        log.check_labels()
    names = [name for name in log.rewards if name != "label"] or ["label"]
    if len(names) > 1:
        raise InputError(f"{log.source}: several columns could be the grade ({', '.join(names)}); expected one.")
    return names[0]
