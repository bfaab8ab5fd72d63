"""Comparisons of models: what each pair rests on, adjusted p, and the verdict that follows.

Made for many pairs: what is the same for all pairs of an estimate is made once, and each comparison is built once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from truerank.core.estimator import Clipping
from truerank.core.messages import message
from truerank.core.record import record
from truerank.core.results import Comparison, Evidence
from truerank.core.sizes import check_size
from truerank.core.terms import Terms
from truerank.evaluation.families import AdjustedFamily, Difference
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Cell, Examined, Pair, Plan, PlannedEstimate, Question
from truerank.inference.intervals import common
from truerank.inference.linearization import Spread
from truerank.inference.verdicts import doubts, verdict_of

COMPARISON_BYTES = 800.0  # with its evidence and spread
NOT_CHOSEN = message("clip-not-chosen")


def check_pairs(question: Question, models: Sequence[str], n_estimates: int) -> None:
    """Refuse comparisons that cannot be held, before anything is ranked."""
    n_pairs = len(models) * (len(models) - 1) // 2 if question.baseline is None else 0
    check_size(
        f"{len(models):,} models in all {n_pairs:,} pairs, for each of {n_estimates:,} questions,",
        memory=COMPARISON_BYTES * n_pairs * n_estimates,
        instead="Name the model that all are compared with (baseline), or leave models out.",
    )


@record
class PairedTerms:
    """The terms of all models of one estimate, two of them at a time on the units that both define."""

    terms: Mapping[str, Terms]
    units: dict[str, bytes] = field(default_factory=dict)  # which each model defines
    sizes: dict[tuple[bytes, bytes], tuple[int, int]] = field(default_factory=dict)  # units and clusters of both

    def __post_init__(self) -> None:
        self.units.update({model: np.packbits(part.defined).tobytes() for model, part in self.terms.items()})

    def both(self, pair: Pair) -> tuple[Terms, Terms]:
        first, second = pair
        terms = self.terms[first], self.terms[second]
        return terms if self.units[first] == self.units[second] else common(*terms)

    def size(self, pair: Pair, both: tuple[Terms, Terms], measured: Measured) -> tuple[int, int]:
        """How many units and clusters both define."""
        key = self.units[pair[0]], self.units[pair[1]]
        if key not in self.sizes:
            defined = both[0].defined & both[1].defined
            clusters = int(np.count_nonzero(both[0].clusters.has(defined)))
            self.sizes[key] = int(measured.size[defined].sum()), clusters
        return self.sizes[key]


def compare(
    plan: Plan[Any],
    measured: Measured,
    examined: Mapping[Cell, Examined],
    families: Sequence[AdjustedFamily],
    *,
    untested: frozenset[Difference],
) -> dict[Difference, Comparison]:
    """The comparisons, estimate by estimate: p, interval and verdict by the one adjustment of the family."""
    by_number: dict[int, list[tuple[Pair, AdjustedFamily]]] = {}
    for family in families:
        for pair, number in family.differences:
            by_number.setdefault(number, []).append((pair, family))
    comparisons: dict[Difference, Comparison] = {}
    for number, pairs in by_number.items():
        planned, level = plan.estimates[number], plan.question.level
        models = {model for pair, _ in pairs for model in pair}
        paired = PairedTerms({model: measured.terms[model, number] for model in plan.models if model in models})
        shared: dict[str, Any] = {
            "metric": planned.name, "estimator": planned.estimator.info.name, "reward": planned.request.reward,
            "clip": clip_of(planned), "segment": planned.request.segment, "level": level,
        }  # fmt: skip
        for pair, family in pairs:
            spread, p = family.differences[pair, number], family.p_adjusted[pair, number]
            both, (first, second) = paired.both(pair), (examined[model, number] for model in pair)
            reasons = doubts(
                *both,
                spread,
                reasons=tuple(dict.fromkeys(first.reasons + second.reasons)),
                unseen=(first.unseen, second.unseen),
                cluster=plan.cluster,
                level=family.level_alone,
            )
            if (pair, number) in untested:
                reasons = (*reasons, NOT_CHOSEN)
            units, clusters = paired.size(pair, both, measured)
            comparisons[pair, number] = Comparison(
                model=pair[0],
                baseline=pair[1],
                difference=spread.value,
                stderr=spread.stderr,
                low=spread.low,
                high=spread.high,
                interval_level=family.level_alone,
                p=spread.p,
                p_adjusted=p,
                family=family.n_tests,
                units=units,
                clusters=clusters,
                evidence=weaker(spread, first.evidence, second.evidence),
                verdict=verdict_of(spread.value, p, level=level, reasons=reasons, directed=planned.directed),
                reasons=reasons,
                **shared,
            )
    return comparisons


def weaker(spread: Spread, first: Evidence, second: Evidence) -> Evidence:
    """What a difference rests on: its own spread, and of what concerns lists and weights the worse of both models."""
    # below 0 where the balance of a list cannot be checked
    far = [-1.0 if part.balance is None else abs(part.balance - 1.0) for part in (first, second)]
    least = first if far[0] >= far[1] else second
    return Evidence(
        informative=spread.informative,
        df=spread.df,
        largest=spread.largest,
        balance=least.balance,
        balance_z=least.balance_z,
        lost=_larger(first.lost, second.lost),
        unsupported=_larger(first.unsupported, second.unsupported),
    )


def _larger(first: float | None, second: float | None) -> float | None:
    """
    >>> _larger(None, 0.5), _larger(0.7, 0.5), _larger(None, None)
    (0.5, 0.7, None)
    """
    return max((value for value in (first, second) if value is not None), default=None)


def in_order(plan: Plan[Any], cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Cells in the order of output: by estimator and metric, then by model (or pair), then by clip."""
    place = {subject: number for number, subject in enumerate(dict.fromkeys(subject for subject, _ in cells))}
    return sorted(cells, key=lambda cell: (plan.estimates[cell[1]].block, place[cell[0]], cell[1]))


def clip_of(planned: PlannedEstimate) -> float | None:
    """Where weights were cut, None where they were not."""
    clip = planned.request.clip
    return None if planned.estimator.info.clipping is Clipping.NONE or math.isinf(clip) else clip
