"""Power of the data at hand: the smallest detectable difference, and how much more the observed one needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.messages import DETECTABLE, Message, message
from truerank.core.record import record
from truerank.core.results import NOT_SHOWN, Comparison
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Pair, Plan
from truerank.inference.intervals import common
from truerank.inference.power import (
    Components,
    Sure,
    rows_for,
    smallest_difference,
    users_for,
)
from truerank.inference.variance_components import components_of, components_of_sessions

MOST_MESSAGES = 4  # at the end of an evaluation
USUAL = 0.8


@record
class PlannedPair:
    """Two models and one question: what the difference varies by, and the data at hand, where there are some.

    `seen` is the difference in these data; `row` and `cluster` name its rows and clusters.
    """

    metric: str
    estimator: str
    model: str
    baseline: str
    components: Components
    row: str = "labelled item"
    cluster: str = "user"
    users: int | None = None
    seen: float | None = None
    reward: str = ""

    @property
    def name(self) -> str:
        reward = f", {self.reward}" if self.reward not in ("", "label") else ""
        return f"{self.metric}, {self.estimator}{reward}"

    @property
    def varies_by_rows(self) -> bool:
        """Whether more rows of each user tell more."""
        return self.components.within > 0

    def detectable(self, sure: Sure, rows: float) -> float | None:
        """The smallest difference that the users at hand show with so many rows of each; None without data."""
        return (
            None if self.users is None else smallest_difference(self.components, users=self.users, rows=rows, sure=sure)
        )


def planned_pair(plan: Plan[Any], measured: Measured, pair: Pair, number: int) -> PlannedPair | None:
    """What a pair varies by in what was measured; None where it has no spread."""
    planned = plan.estimates[number]
    if not all((model, number) in measured.terms for model in pair):
        return None
    both = common(*(measured.terms[model, number] for model in pair))
    users = int(np.count_nonzero(both[0].clusters.has(both[0].defined & both[1].defined)))
    design = plan.question.interval.needs_rows
    components = components_of(*both, users=users, design=design)
    if components is None:
        return None
    if measured.single is not None and not design:
        singles = [part.whole for part in common(*(measured.single.terms[model, number] for model in pair))]
        components = components_of_sessions(singles[0], singles[1], components, users=users)
    difference = both[0].value() - both[1].value()
    return PlannedPair(
        metric=planned.name,
        estimator=planned.estimator.info.name,
        model=pair[0],
        baseline=pair[1],
        components=components.towards(difference),
        row="labelled item" if plan.unit == plan.cluster == "user" else plan.unit,
        cluster=plan.cluster,
        users=users,
        seen=difference,
        reward=planned.request.reward,
    )


def check_detectable(
    plan: Plan[Any], measured: Measured, comparisons: Sequence[Comparison], numbers: Sequence[int]
) -> list[Message]:
    """For each question with a comparison that is not shown: what could have been seen; of the pair nearest to it.

    `numbers` are the questions of the comparisons.
    """
    nearest: dict[int, Comparison] = {}
    for comparison, number in zip(comparisons, numbers, strict=True):
        if comparison.verdict != NOT_SHOWN or math.isnan(comparison.p_adjusted):
            continue
        if number not in nearest or comparison.p < nearest[number].p:
            nearest[number] = comparison
    messages: list[Message] = []
    for number, comparison in nearest.items():
        if len(messages) == MOST_MESSAGES:
            break
        pair = planned_pair(plan, measured, (comparison.model, comparison.baseline), number)
        if pair is not None:
            messages += sentence_of(pair, Sure(USUAL, comparison.level, comparison.family))
    further = len(nearest) - len(messages)
    if len(messages) == MOST_MESSAGES and further > 0:
        messages.append(message(DETECTABLE[1], further=further))
    return messages


def sentence_of(pair: PlannedPair, sure: Sure) -> list[Message]:
    """What the data at hand could have shown, and what the difference that they have would need."""
    users, rows, smallest = pair.users, pair.components.rows, pair.detectable(sure, pair.components.rows)
    if users is None or smallest is None or not math.isfinite(smallest):
        return []
    by_rows = f" x {rows:.3g} {pair.row}s" if pair.varies_by_rows else ""
    first, second = (pair.model, pair.baseline) if (pair.seen or 0) >= 0 else (pair.baseline, pair.model)
    text = (
        f"{users:,} {pair.cluster}s{by_rows} detect a difference between {first} and {second} of at least "
        f"{smallest:.2g} ({sure.power:.0%} power)"
    )
    numbers: dict[str, float | int | str | None] = {
        "detectable": smallest, "power": sure.power, "users": users, "rows": rows, "comparisons": sure.family,
        "difference": pair.seen,
    }  # fmt: skip
    if pair.seen:
        more_users = users_for(pair.components, pair.seen, rows=rows, sure=sure)
        more_rows = rows_for(pair.components, pair.seen, users=users, sure=sure) if pair.varies_by_rows else None
        numbers |= {"users_needed": more_users, "rows_needed": more_rows}
        if more_users is None or more_users > users:
            text += f". The estimated difference, {abs(pair.seen):.2g}, {_needed(pair, more_users, more_rows)}"
    subjects = (pair.model, pair.baseline, pair.metric)
    return [message(DETECTABLE[0], question=pair.name, detection=text, numbers=numbers, subjects=subjects)]


def _needed(pair: PlannedPair, more_users: int | None, more_rows: int | None) -> str:
    many = "" if more_users is None or pair.components.by_rows else f"{more_users:,} {pair.cluster}s like these"
    if more_rows is not None:
        more = max(math.ceil(more_rows - pair.components.rows), 1)
        text = f"needs about {more:,} more {pair.row}s per {pair.cluster}"
        return f"{text}, or {many}" if many else text
    return (
        f"needs about {many}"
        if many
        else f"is too small for any number of {pair.row if pair.components.by_rows else pair.cluster}s"
    )
