"""Interim analyses while data arrive: the comparison of all users so far, and when to stop."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.calls import ANYTHING, COUNT, NUMBER, checked_arguments, shown
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator, Exposed
from truerank.core.ids import Ids
from truerank.core.language import as_value, as_values
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.metric import Metric
from truerank.core.progress import Watching, watching
from truerank.core.requirements import Outcome, Requirement
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.terms import Smooth, Terms
from truerank.engines.engine import Threads, map_chunks
from truerank.estimators import ESTIMATORS
from truerank.evaluation.arrivals import arrivals, with_arrival_times
from truerank.evaluation.conclude import conclude
from truerank.evaluation.gather import gathered
from truerank.evaluation.label_checks import unequal_labelling
from truerank.evaluation.label_rows import JudgedPlan
from truerank.evaluation.label_source import check_call, rows_of
from truerank.evaluation.labels import JudgedCall, prepare_judged
from truerank.evaluation.measure import ByPlace, Measured, measure
from truerank.exposure.kinds import EXPOSURES, Exposure
from truerank.inference.intervals import common
from truerank.inference.linearization import difference_of
from truerank.inference.sequences import FIRST, UNSEEN, ConfidenceSequence
from truerank.io.spill import scratch
from truerank.metrics import METRICS

PLANNED = 10_000  # users, about whom intervals are narrowest where nothing is said
DRIFTS = 0.001  # p below which users did not come in random order
FEWEST_PER_HALF = 30  # users, to compare earlier with later ones
EARLY = ("few-informative", "no-spread", "few-list-rows")  # reasons that more users take away


class WatchState(StrEnum):
    """What the users so far show; with more users a later look may be inconclusive again."""

    SHOWN = "shown"
    OPPOSITE = "the opposite is shown"
    CLOSE = "known closely enough"
    GOING_ON = "go on"
    EARLY = "too early"
    REFUSED = "no promise"

    @property
    def outcome(self) -> Outcome:
        if self is WatchState.SHOWN:
            return Outcome.SHOWN
        decided = self in (WatchState.OPPOSITE, WatchState.CLOSE)
        return Outcome.NOT_SHOWN if decided else Outcome.INSUFFICIENT


@dataclass(frozen=True, slots=True)
class WatchLook:
    """The difference of all users so far, with its interval, NaN where it is too early for one."""

    users: int
    informative: int
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WatchedPair:
    """One comparison of all users so far: `reasons` take its verdict away, `cautions` stand beside it."""

    model: str
    baseline: str
    metric: str
    estimator: str
    estimand: str
    state: WatchState
    look: WatchLook
    reasons: tuple[Message, ...] = ()
    cautions: tuple[Message, ...] = ()

    def __str__(self) -> str:
        return f"{self.model} > {self.baseline}: {self.metric}, {self.estimator}"


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """All comparisons that are watched; over all of them and all looks the error is about 1 - level."""

    pairs: tuple[WatchedPair, ...]
    level: float
    planned: int
    difference: float | None
    messages: tuple[Message, ...]

    def table(self) -> pl.DataFrame:
        """A row for each comparison: append it to those of earlier looks to see how it went."""
        rows = [
            (pair.metric, pair.estimator, pair.estimand, pair.model, pair.baseline, pair.look.users,
             pair.look.informative, pair.look.difference, pair.look.low, pair.look.high, str(pair.state))
            for pair in self.pairs
        ]  # fmt: skip
        schema = {"metric": pl.String, "estimator": pl.String, "estimand": pl.String, "model": pl.String,
                  "baseline": pl.String, "users": pl.Int64, "informative": pl.Int64, "difference": pl.Float64,
                  "low": pl.Float64, "high": pl.Float64, "state": pl.String}  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def outcome(self) -> Outcome:
        """Whether all that is required is shown."""
        return max((pair.state.outcome for pair in self.pairs), key=int)


@checked_arguments(
    scores=ANYTHING, exclude=ANYTHING, require=ANYTHING, difference=NUMBER, planned=COUNT, estimators=ANYTHING
)  # fmt: skip
def watch(
    scores: Mapping[str, Any],
    labels: Any,
    *,
    require: str | Sequence[str],
    exposure: Exposure | str | None = None,
    metrics: Sequence[Metric | str] | None = None,
    estimators: Sequence[Estimator | str] | None = None,
    exclude: Any = None,
    items: Ids | None = None,
    n_items: int | None = None,
    difference: float | None = None,
    planned: int = PLANNED,
    drop_missing_times: bool = False,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: Watching = None,
) -> Watched:
    """Whether what is required is shown by the users who have come so far; call it as often as you like.

    Each call decides on all users so far, with all their rows, one cluster for each user. `labels` have a column time:
    users must arrive in random order, which the times of their first rows are tested for. `require` are rules such as
    "a > b: Precision@10", as for `evaluate`. Stop when it is decided: 0 lies outside the interval, or the interval is
    narrower than twice the smallest `difference` that matters. Stopping at the first such look is wrong with a
    probability of about 1 - `level`, however often you look. `planned` is about how many users are expected, chosen
    before the first look; about there the interval is narrowest.
    Times are numbers, dates, datetimes or padded ISO 8601 text, one in every row; `drop_missing_times` drops rows
    without one, and users who have no other rows, and a message counts them.
    """
    rules = _rules(require)
    check_call(scores, baseline=None, level=level)
    for rule in rules:
        rule.check(list(scores))
    if difference is not None and not (difference > 0 and math.isfinite(difference)):
        raise InputError(f"difference {difference:g}; expected the smallest difference that matters, above 0.")
    rows = rows_of(labels, role="labels", values=True)
    if not isinstance(rows, Log):
        raise RefusedError("watch needs labels that fit into memory; watch a part of the users, drawn at random.")
    rows, dropped = with_arrival_times(rows) if drop_missing_times else (rows, [])
    call = JudgedCall(
        exposure=as_value("full" if exposure is None else exposure, EXPOSURES),
        metrics=None if metrics is None else as_values(metrics, METRICS, what="metrics"),
        estimators=None if estimators is None else as_values(estimators, ESTIMATORS, what="estimators"),
        items=items if items is None or isinstance(items, Ids) else Ids.of(items, where="items"),
        n_items=n_items,
        level=level,
        seed=seed,
    )
    came = arrivals(rows, seed=seed)
    with watching(progress) as say, scratch() as space:
        plan, source = prepare_judged(scores, rows, call, exclude=exclude, space=space, progress=say)
        work = map_chunks(Threads(threads or os.cpu_count() or 1), partial(measure, plan), source, progress=say)
        with gathered(work) as measured:
            results = conclude(plan, measured)
            compared = [(rule, each) for rule in rules for each in rule.comparisons(results)]
            sequence = ConfidenceSequence(planned, (1 - level) / len(compared))
            cautions = _approximate(plan, measured, rows)
            pairs = tuple(
                _watched(
                    plan,
                    measured,
                    each,
                    estimates=results.estimates,
                    came=came,
                    sequence=sequence,
                    difference=difference,
                    cautions=cautions,
                )
                for _, each in compared
            )
    drifting = tuple(reason for pair in pairs for reason in pair.reasons if reason.code == "drift")
    return Watched(
        pairs,
        level,
        planned,
        difference,
        (*dropped, *_kept(results), _repeated_looks(len(pairs), level), *cautions, *drifting),
    )


def _rules(require: str | Sequence[str]) -> list[Requirement]:
    texts = [require] if isinstance(require, str) else require
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"require is {shown(require)}; expected a rule such as 'a > b', or a list of rules.")
    if not texts:
        raise InputError("nothing is required; expected at least one rule, such as 'a > b'.")
    return [Requirement.parse(text) for text in texts]


def _kept(results: Results) -> tuple[Message, ...]:
    """What an evaluation says, without what a fixed number of users could have shown."""
    return tuple(message for message in results.messages if message.code != "detectable")


def _repeated_looks(pairs: int, level: float) -> Message:
    together = f" in any of the {pairs} comparisons" if pairs > 1 else ""
    return message("every-look", together=together, error=1 - level, first=FIRST)


def _approximate(plan: JudgedPlan, measured: Measured, rows: Log) -> tuple[Message, ...]:
    """That the error of repeated looks is only about what the level says, where rows have unequal weights."""
    unequal = unequal_labelling(measured.tallies)
    if plan.exposed in (Exposed.BIASED, Exposed.DESIGNED):
        unequal = rows.propensity is None or bool(np.ptp(rows.propensity) > 0)
    return (message("approximate-level"),) if unequal else ()


# ----------------------------------------------------------------------------------------------------------------- look


def _watched(
    plan: JudgedPlan,
    measured: Measured,
    compared: Comparison,
    *,
    estimates: Sequence[Estimate],
    came: Ints,
    sequence: ConfidenceSequence,
    difference: float | None,
    cautions: tuple[Message, ...],
) -> WatchedPair:
    estimand = next(
        each.estimand
        for each in estimates
        if (each.model, each.metric, each.estimator) == (compared.model, compared.metric, compared.estimator)
    )
    number = next(
        at
        for at, (estimator, asked) in enumerate(plan.question.asked)
        if (str(asked.metric), estimator.about.name) == (compared.metric, compared.estimator) and asked.segment is None
    )
    first, second = common(measured.terms[compared.model, number], measured.terms[compared.baseline, number])
    own, other = _smooth(first, compared), _smooth(second, compared)
    arrival = came[measured.place]
    order = np.argsort(arrival, kind="stable")
    order = order[own.defined[order]]
    if len(order) < 2:
        raise InputError(f"{len(order)} users have come; expected at least 2.")
    largest = max(
        _largest(terms, plan.list_weights((model, number), measured))
        for terms, model in ((own, compared.model), (other, compared.baseline))
    )
    look = _look(own, other, largest, sequence)
    drifting = _drift(own, other, order, compared)
    reasons = [*(reason for reason in compared.reasons if reason.code not in EARLY), *drifting]
    return WatchedPair(
        model=compared.model,
        baseline=compared.baseline,
        metric=compared.metric,
        estimator=compared.estimator,
        estimand=estimand,
        state=WatchState.REFUSED if reasons else _state(look, difference),
        look=look,
        reasons=tuple(reasons),
        cautions=cautions,
    )


def _smooth(terms: Terms, compared: Comparison) -> Smooth:
    if not isinstance(terms, Smooth):
        raise RefusedError(
            f"{compared.metric}, {compared.estimator}: no mean of users and no ratio of two, so that no interval for "
            "every look is known; watch Precision, DCG or Recall, with exposure whose chances are not fitted."
        )
    return terms


def _largest(terms: Smooth, weights: ByPlace | None) -> float:
    """The largest change of the value if every labelled row of one user's list were relevant; 0 with every label.

    Known before a heavy row is relevant for the first time, when nothing in the spread tells of it.
    """
    if weights is None or not len(weights.value):
        return 0.0
    totals = terms.totals()
    sums = np.zeros((2, terms.sums.shape[1]))
    sums[1, 0] = weights.value.max()
    before, after = terms.form.influence(sums, totals)
    return abs(float(after - before)) if math.isfinite(after - before) else 0.0


def _look(own: Smooth, other: Smooth, largest: float, sequence: ConfidenceSequence) -> WatchLook:
    """The difference of all users so far, by what each adds to it: of a mean exactly, of a ratio linearised.

    Two users besides, who contribute a part of the `largest` possible contribution to either side, make the interval
    wider while rows that weigh much are few. Users tell models apart by what is relevant in their lists: labelled rows
    and predictions alone, by which steadier estimators divide, are none of the events that an interval waits for.
    """
    users = int(np.count_nonzero(own.defined))
    informative = int(np.count_nonzero((own.sums[:, 0] != other.sums[:, 0])[own.defined]))
    apart = difference_of(own, other)
    low = high = math.nan
    if informative >= FIRST and not math.isnan(apart.value):
        besides = UNSEEN * largest * np.array([1.0, -1.0])
        apart = replace(
            apart, effect=np.append(apart.effect, besides), leverage=np.append(apart.leverage, np.zeros(2))
        )  # fmt: skip
        moments = apart.moments()
        if moments is not None:
            ends = sequence.interval(apart.value, moments.stderr, moments.df, moments.skewness, users)
            low, high = (float(end) for end in ends)
    return WatchLook(users, informative, apart.value, low, high)


def _state(look: WatchLook, difference: float | None) -> WatchState:
    if look.low > 0:
        return WatchState.SHOWN
    if look.high < 0:
        return WatchState.OPPOSITE
    if difference is not None and (look.high - look.low) / 2 < difference:
        return WatchState.CLOSE
    return WatchState.EARLY if math.isnan(look.low) else WatchState.GOING_ON


def _drift(own: Smooth, other: Smooth, order: Ints, compared: Comparison) -> list[Message]:
    """Whether earlier and later users differ by more than chance: then they did not come in random order."""
    effect = own.form.influence(own.sums, own.totals()) - other.form.influence(other.sums, other.totals())
    halves: list[Floats] = np.array_split(effect[order], 2)
    n = min(len(half) for half in halves)
    if n < FEWEST_PER_HALF:
        return []
    error = math.sqrt(sum(float(half.var(ddof=1)) / len(half) for half in halves))
    change = float(halves[1].mean()) - float(halves[0].mean())
    z = change / error if error > 0 else math.copysign(math.inf, change) if change else 0.0
    p = math.erfc(abs(z) / math.sqrt(2))
    if p >= DRIFTS:
        return []
    return [message("drift", model=compared.model, baseline=compared.baseline, p=p, numbers={"z": z})]
