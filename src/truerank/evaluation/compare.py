"""Comparisons of models: what each pair rests on, adjusted p, and the verdict that follows.

Made for many pairs: what is the same for all pairs of a question is made once, and each comparison is built once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from truerank.core.estimator import Asked, Clipping, Estimator
from truerank.core.messages import Message, message
from truerank.core.results import Comparison, Evidence
from truerank.core.sizes import check_size
from truerank.core.terms import Terms
from truerank.evaluation.families import AdjustedFamily
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Pair, Plan, Question
from truerank.inference.intervals import common
from truerank.inference.linearization import Spread
from truerank.inference.verdicts import UnseenExposure, doubts, verdict_of

Made = TypeVar("Made")

COMPARISON_BYTES = 800.0  # with its evidence and spread
NOTHING = Evidence()  # known of lists and weights
NOT_CHOSEN = message("clip-not-chosen")


class Judged(NamedTuple):
    """What a difference rests on, and why it may carry no verdict."""

    units: int
    clusters: int
    evidence: Evidence
    reasons: tuple[Message, ...]


def check_pairs(question: Question) -> None:
    """Refuse comparisons that cannot be held, before anything is ranked."""
    n_pairs = len(question.models) * (len(question.models) - 1) // 2 if question.baseline is None else 0
    check_size(
        f"{len(question.models):,} models in all {n_pairs:,} pairs, for each of {len(question.asked):,} questions,",
        memory=COMPARISON_BYTES * n_pairs * len(question.asked),
        instead="Name the model that all are compared with (baseline), or leave models out.",
    )


@dataclass(frozen=True, slots=True)
class OneModel:
    """What one model brings into every comparison."""

    units: bytes  # which it defines
    evidence: Evidence
    doubts: tuple[Message, ...]
    unseen: UnseenExposure


@dataclass(frozen=True, slots=True)
class ComparedTerms:
    """The terms of all models of one question, side by side."""

    plan: Plan
    measured: Measured
    terms: Mapping[str, Terms]
    models: Mapping[str, OneModel]
    counted: dict[tuple[bytes, bytes], tuple[int, int]] = field(default_factory=dict)  # units and clusters of both

    @classmethod
    def of(cls, plan: Plan, measured: Measured, number: int, terms: Mapping[str, Terms]) -> ComparedTerms:
        of_lists = {name: plan.evidence((name, number), Spread.unknown(math.nan), measured) for name in terms}
        models = {
            name: OneModel(
                np.packbits(part.defined).tobytes(),
                NOTHING if of_lists[name] == NOTHING else of_lists[name],
                plan.doubts((name, number), measured),
                plan.unseen((name, number), part, measured),
            )
            for name, part in terms.items()
        }
        return cls(plan, measured, terms, models)

    def both(self, pair: Pair) -> tuple[Terms, Terms]:
        """The terms of a pair on the units that both define."""
        first, second = pair
        own, other = self.terms[first], self.terms[second]
        return (own, other) if self.models[first].units == self.models[second].units else common(own, other)

    def judged(self, pair: Pair, both: tuple[Terms, Terms], spread: Spread, *, level: float) -> Judged:
        """What the difference rests on; `level` is that of its interval."""
        first, second = self.models[pair[0]], self.models[pair[1]]
        key = (first.units, second.units)
        if key not in self.counted:
            defined = both[0].defined & both[1].defined
            clusters = int(np.count_nonzero(both[0].clusters.has(defined)))
            self.counted[key] = int(self.measured.size[defined].sum()), clusters
        reasons = doubts(
            *both,
            spread,
            reasons=tuple(dict.fromkeys(first.doubts + second.doubts)) if first.doubts or second.doubts else (),
            unseen=(first.unseen, second.unseen),
            cluster=self.plan.cluster,
            level=level,
        )
        return Judged(*self.counted[key], weaker(spread, first.evidence, second.evidence), reasons)


def weaker(spread: Spread, first: Evidence, second: Evidence) -> Evidence:
    """What a difference rests on: its own spread, and of what concerns lists and weights the worse of both models."""
    if first is NOTHING and second is NOTHING:
        return Evidence(informative=spread.informative, df=spread.df, largest=spread.largest)
    least = first if _far(first) >= _far(second) else second
    return Evidence(
        informative=spread.informative,
        df=spread.df,
        largest=spread.largest,
        balance=least.balance,
        balance_z=least.balance_z,
        lost=_larger(first.lost, second.lost),
        unsupported=_larger(first.unsupported, second.unsupported),
    )


def _far(evidence: Evidence) -> float:
    """How far rows are from standing for the whole list; below 0 where that cannot be checked."""
    return -1.0 if evidence.balance is None else abs(evidence.balance - 1.0)


def _larger(first: float | None, second: float | None) -> float | None:
    """
    >>> _larger(None, 0.5), _larger(0.7, 0.5), _larger(None, None)
    (0.5, 0.7, None)
    """
    if first is None or second is None:
        return second if first is None else first
    return max(first, second)


def compared(
    plan: Plan,
    families: Mapping[int, AdjustedFamily],
    judged: Mapping[tuple[Pair, int], Judged],
    *,
    untested: frozenset[tuple[Pair, int]],
) -> tuple[Comparison, ...]:
    """The comparisons in the order of output: p, interval and verdict by the one adjustment of the family."""
    of_cell = {cell: family for family in families.values() for cell in family.differences}
    named = _once(lambda number: _named(plan, *plan.question.asked[number]))
    directed = _once(lambda number: plan.directed(*plan.question.asked[number]))
    level = plan.question.level

    def comparison(cell: tuple[Pair, int]) -> Comparison:
        (model, baseline), number = cell
        family, of = of_cell[cell], judged[cell]
        spread, p = family.differences[cell], family.p_adjusted[cell]
        reasons = (*of.reasons, NOT_CHOSEN) if cell in untested else of.reasons
        return Comparison(
            model=model,
            baseline=baseline,
            difference=spread.value,
            stderr=spread.stderr,
            low=spread.low,
            high=spread.high,
            level=level,
            interval_level=family.level_alone,
            p=spread.p,
            p_adjusted=p,
            family=family.n_tests,
            units=of.units,
            clusters=of.clusters,
            evidence=of.evidence,
            verdict=verdict_of(spread.value, p, level=level, reasons=reasons, directed=directed(number)),
            reasons=reasons,
            **named(number),
        )

    return tuple(comparison(cell) for cell in in_order(plan, of_cell))


def _named(plan: Plan, estimator: Estimator, asked: Asked) -> dict[str, Any]:
    """What all comparisons of one question have in common."""
    return {
        "metric": plan.named(estimator, asked)[0],
        "estimator": estimator.about.name,
        "reward": asked.reward,
        "clip": clip_of(estimator, asked),
        "segment": asked.segment,
    }


def _once(make: Callable[[int], Made]) -> Callable[[int], Made]:
    """The same function, which is called once for each number."""
    known: dict[int, Made] = {}

    def made(number: int) -> Made:
        if number not in known:
            known[number] = make(number)
        return known[number]

    return made


def in_order(plan: Plan, cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Cells in the order of output: by what is asked, then by model (or pair) in the order given, then by clip."""
    place = {who: at for at, who in enumerate(dict.fromkeys(who for who, _ in cells))}
    order = _once(plan.order)

    def key(cell: tuple[Any, int]) -> tuple[int, ...]:
        first, *last = order(cell[1])
        return first, place[cell[0]], *last

    return sorted(cells, key=key)


def clip_of(estimator: Estimator, asked: Asked) -> float | None:
    """Where weights were cut, None where they were not."""
    return None if estimator.about.clipping is Clipping.NONE or math.isinf(asked.clip) else asked.clip
