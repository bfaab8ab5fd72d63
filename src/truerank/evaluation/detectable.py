"""What data could have shown: the smallest difference, and how much more is needed for the one that was seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.estimator import Asked, Estimator
from truerank.core.messages import DETECTABLE, Message, message
from truerank.core.results import NOT_SHOWN, Comparison
from truerank.core.terms import Smooth
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


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """Two models and one question: what the difference varies by, and the data at hand, where there are some.

    `seen` is the difference in these data; `row` and `cluster` are what there are several of for each what.
    """

    metric: str
    estimator: str
    model: str
    baseline: str
    components: Components
    row: str = "judged item"
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

    def detectable(self, sure: Sure) -> float:
        """The smallest difference that the data at hand show with the power asked for; NaN without data."""
        if self.users is None:
            return math.nan
        return smallest_difference(self.components, users=self.users, rows=self.components.rows, sure=sure)


def planned_pair(plan: Plan, measured: Measured, pair: Pair, number: int) -> PlannedPair | None:
    """What a pair varies by in what was measured; None where it has no spread."""
    estimator, asked = plan.question.asked[number]
    if not all((model, number) in measured.terms for model in pair):
        return None
    both = common(*(measured.terms[model, number] for model in pair))
    users = int(np.count_nonzero(both[0].clusters.has(both[0].defined & both[1].defined)))
    design = plan.question.interval.needs_rows
    found = components_of(*both, users=users, design=design)
    if found is None:
        return None
    if measured.single is not None and not design:
        singles = common(*(measured.single.terms[model, number].whole for model in pair))
        if isinstance(singles[0], Smooth) and isinstance(singles[1], Smooth):
            found = components_of_sessions(singles[0], singles[1], found, users=users)
    seen = both[0].value() - both[1].value()
    return PlannedPair(
        **_named(plan, estimator, asked),
        model=pair[0],
        baseline=pair[1],
        components=found.towards(seen),
        row="judged item" if plan.unit == plan.cluster == "user" else plan.unit,
        cluster=plan.cluster,
        users=users,
        seen=seen,
    )


def _named(plan: Plan, estimator: Estimator, asked: Asked) -> dict[str, str]:
    return {
        "metric": plan.named(estimator, asked)[0],
        "estimator": estimator.about.name,
        "reward": asked.reward,
    }


def check_detectable(
    plan: Plan, measured: Measured, comparisons: Sequence[Comparison], numbers: Sequence[int]
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
    said: list[Message] = []
    for number, comparison in nearest.items():
        if len(said) == MOST_MESSAGES:
            break
        found = planned_pair(plan, measured, (comparison.model, comparison.baseline), number)
        if found is not None:
            said += sentence_of(found, Sure(USUAL, comparison.level, comparison.family))
    further = len(nearest) - len(said)
    if len(said) == MOST_MESSAGES and further > 0:
        said.append(message(DETECTABLE[1], further=further))
    return said


def sentence_of(pair: PlannedPair, sure: Sure) -> Iterable[Message]:
    """What the data at hand could have shown, and what the difference that they have would need."""
    users = pair.users
    smallest = pair.detectable(sure)
    if users is None or not math.isfinite(smallest):
        return []
    text = (
        f"with these {at_hand(pair)} a difference of {pair.model} and {pair.baseline} is seen with "
        f"{sure.power:.0%} power from {smallest:.2g} on"
    )
    numbers: dict[str, float | int | str | None] = {
        "detectable": smallest, "power": sure.power, "users": users, "rows": pair.components.rows,
        "comparisons": sure.family, "difference": pair.seen,
    }  # fmt: skip
    if pair.seen:
        more_users = users_for(pair.components, pair.seen, rows=pair.components.rows, sure=sure)
        more_rows = rows_for(pair.components, pair.seen, users=users, sure=sure) if pair.varies_by_rows else None
        numbers |= {"users_needed": more_users, "rows_needed": more_rows}
        if more_users is None or more_users > users:
            text += f"; if they differ by {abs(pair.seen):.2g}, as here, {_needed(pair, users, more_users, more_rows)}"
    about = (pair.model, pair.baseline, pair.metric)
    return [message(DETECTABLE[0], question=pair.name, detection=text, numbers=numbers, about=about)]


def at_hand(pair: PlannedPair) -> str:
    """The size of the data at hand in words."""
    rows = pair.components.rows
    by = f" x {rows:.3g} {pair.row}s" if pair.varies_by_rows else ""
    return f"{pair.users or 0:,} {pair.cluster}s{by}"


def _needed(pair: PlannedPair, users: int, more_users: int | None, more_rows: int | None) -> str:
    many = "no number of users would show it" if more_users is None else f"{more_users:,} {pair.cluster}s like these"
    if pair.components.by_rows:
        return (
            "not even all items of these users would show it"
            if more_rows is None
            else f"about {_further(pair, more_rows)} would"
        )
    if more_rows is None:
        return f"it takes about {many}" if more_users is not None else many
    return f"about {_further(pair, more_rows)} would show it, or {many}"


def _further(pair: PlannedPair, rows: int) -> str:
    more = max(math.ceil(rows - pair.components.rows), 1)
    return f"{more:,} more {pair.row}s per {pair.cluster}"
