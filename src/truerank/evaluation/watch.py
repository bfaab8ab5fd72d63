"""Interim analyses while data arrive: the comparison of all users so far, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator, Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.metric import Metric
from truerank.core.progress import Watching, watching
from truerank.core.record import record
from truerank.core.requirements import Outcome, Requirement
from truerank.core.results import Comparison
from truerank.core.rng import cell_keys
from truerank.core.terms import Smooth
from truerank.core.validation import ANYTHING, COUNT, NAMED, POSITIVE, checked_arguments, shown
from truerank.datasets.split import restrict
from truerank.engines.engine import CORES, Local
from truerank.evaluation.compatibility import LabelQuestion
from truerank.evaluation.conclude import conclude, gathered
from truerank.evaluation.counts import ByPlace
from truerank.evaluation.evaluation_checks import unequal_labelling
from truerank.evaluation.label_rows import LabelRows
from truerank.evaluation.label_source import rows_of
from truerank.evaluation.labels import prepare_labels
from truerank.evaluation.measure import Measured, MeasuredEstimate, measured_by
from truerank.evaluation.prepare import check_call
from truerank.evaluation.question import Plan
from truerank.exposure.kinds import Exposure
from truerank.inference.intervals import common
from truerank.inference.linearization import difference_of
from truerank.inference.sequences import FIRST, UNSEEN, ConfidenceSequence
from truerank.io.spill import scratch
from truerank.io.times import about_missing_times, time_ranks, with_times

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


@record
class WatchLook:
    """The difference of all users so far, with its interval, NaN where it is too early for one."""

    users: int
    informative: int
    difference: float
    low: float
    high: float


@record
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


@record(eq=False)
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
    scores=NAMED, exclude=ANYTHING, require=ANYTHING, difference=POSITIVE, planned=COUNT, estimators=ANYTHING
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
    """Monitor a comparison while data arrive; call it as often as you like.

    Each call analyses all users so far, with all their rows. Users must arrive in random order; the times of their
    first rows test that. Stop when it is decided: 0 lies outside the interval, or the interval is narrower than
    twice `difference`. Stopping at the first decided analysis is wrong with a probability of about 1 - `level`, however
    often you look.

    Parameters
    ----------
    scores
        By the name of each model, its scores: a matrix (dense or sparse), a frame or file user, item, score or rank, a
        TREC run, or a fitted model.
    labels
        As for `evaluate`, with a column time.
    require
        Rules such as "a > b: Precision@10".
    exposure
        As for `evaluate`.
    metrics
        Metrics or their texts, such as "Recall@50" or "Recall@{1,5,50}", which costs one ranking. Default by exposure.
    estimators
        Every metric is estimated by each; a pair that cannot be estimated is left out with a message. Default by
        exposure and metric.
    exclude
        Pairs to remove from the candidates, such as training interactions.
    items
        The catalogue, where the scores do not give it.
    n_items
        Size of the catalogue, where scores are top lists.
    difference
        Stop also when the models are equivalent within this margin.
    planned
        Expected number of users, chosen before the first analysis; about there the interval is narrowest.
    drop_missing_times
        Drop rows without a time, and users without other rows; a message counts them.
    level
        Confidence level of the intervals.
    seed
        The same seed gives the same results.
    threads
        Number of threads; by default all cores. Results do not depend on it.
    progress
        True shows a progress bar; a function is called with (what, done, of how much).

    Returns
    -------
    Watched
        The state of each comparison.
    """
    rules = _rules(require)
    check_call(scores)
    for rule in rules:
        rule.check(list(scores))
    rows = rows_of(labels, role="labels")
    if not isinstance(rows, Log):
        raise RefusedError("watch needs labels that fit into memory; watch a part of the users, drawn at random.")
    rows, dropped = with_arrival_times(rows) if drop_missing_times else (rows, [])
    question = LabelQuestion(
        exposure="full" if exposure is None else exposure,
        metrics=metrics,
        estimators=estimators,
        items=items,
        n_items=n_items,
        level=level,
        seed=seed,
    )
    arrival = arrivals(rows, seed=seed)
    with watching(progress) as say, scratch() as space:
        tables = {"labels": rows, "exclude": exclude}
        plan, source = prepare_labels(question, scores, tables, space=space, progress=say)
        with gathered(measured_by(Local(threads or CORES), plan, source, progress=say)) as measured:
            results = conclude(plan, measured)
            comparisons = [comparison for rule in rules for comparison in rule.comparisons(results)]
            sequence = ConfidenceSequence(planned, (1 - level) / len(comparisons))
            unequal = unequal_labelling(measured.counts)
            if plan.rows.exposed in (Exposed.BIASED, Exposed.DESIGNED):
                unequal = rows.propensity is None or bool(np.ptp(rows.propensity) > 0)
            # with unequal weights of rows the error of repeated looks is only about what the level says
            cautions = (message("approximate-level"),) if unequal else ()
            pairs = tuple(
                replace(
                    _watched(plan, measured, comparison, arrival=arrival, sequence=sequence, difference=difference),
                    cautions=cautions,
                )
                for comparison in comparisons
            )
    together = f" in any of the {len(pairs)} comparisons" if len(pairs) > 1 else ""
    messages = (
        *dropped,
        *(remark for remark in results.messages if remark.code != "detectable"),  # of a fixed number of users
        message("every-look", together=together, error=1 - level, first=FIRST),
        *cautions,
        *(reason for pair in pairs for reason in pair.reasons if reason.code == "drift"),
    )
    return Watched(pairs, level, planned, difference, messages)


def _rules(require: str | Sequence[str]) -> list[Requirement]:
    texts = [require] if isinstance(require, str) else require
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"require is {shown(require)}; expected a rule such as 'a > b', or a list of rules.")
    if not texts:
        raise InputError("nothing is required; expected at least one rule, such as 'a > b'.")
    return [Requirement.parse(text) for text in texts]


# ----------------------------------------------------------------------------------------------------------------- look


def _watched(
    plan: Plan[LabelRows],
    measured: Measured,
    compared: Comparison,
    *,
    arrival: Ints,
    sequence: ConfidenceSequence,
    difference: float | None,
) -> WatchedPair:
    number, planned = next(
        (number, planned)
        for number, planned in enumerate(plan.estimates)
        if (planned.name, planned.estimator.info.name) == (compared.metric, compared.estimator)
    )
    pair = (compared.model, compared.baseline)
    both = common(*(measured.terms[model, number] for model in pair))
    first, second = (terms.whole for terms in both)
    if any(terms.cluster_sums() is None for terms in both):
        raise RefusedError(
            f"{compared.metric}, {compared.estimator}: no mean of users and no ratio of two, so that no interval for "
            "every look is known; watch Precision, DCG or Recall, with exposure whose chances are not fitted."
        )
    order = np.argsort(arrival[measured.place], kind="stable")
    order = order[first.defined[order]]
    if len(order) < 2:
        raise InputError(f"{len(order)} users have come; expected at least 2.")
    estimates = [MeasuredEstimate(plan, (model, number), measured, first) for model in pair]
    weights = [estimate.lists.weights for estimate in estimates]
    look = _look(first, second, max(map(_largest, (first, second), weights)), sequence)
    reasons = [
        *(reason for reason in compared.reasons if reason.code not in EARLY),
        *_drift(first, second, order, compared),
    ]
    return WatchedPair(
        model=compared.model,
        baseline=compared.baseline,
        metric=compared.metric,
        estimator=compared.estimator,
        estimand=planned.estimator.estimand(planned.request, plan.unit),
        state=WatchState.REFUSED if reasons else _state(look, difference),
        look=look,
        reasons=tuple(reasons),
    )


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


def _look(first: Smooth, second: Smooth, largest: float, sequence: ConfidenceSequence) -> WatchLook:
    """The difference of all users so far, by what each adds to it: of a mean exactly, of a ratio linearised.

    Two users besides, who contribute a part of the `largest` possible contribution to either side, make the interval
    wider while rows that weigh much are few. Users tell models apart by what is relevant in their lists: labelled rows
    and predictions alone, by which steadier estimators divide, are none of the events that an interval waits for.
    """
    users = int(np.count_nonzero(first.defined))
    informative = int(np.count_nonzero((first.sums[:, 0] != second.sums[:, 0])[first.defined]))
    apart = difference_of(first, second)
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


def _drift(first: Smooth, second: Smooth, order: Ints, compared: Comparison) -> list[Message]:
    """Whether earlier and later users differ by more than chance: then they did not come in random order."""
    effect = first.form.influence(first.sums, first.totals()) - second.form.influence(second.sums, second.totals())
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


def with_arrival_times(log: Log) -> tuple[Log, list[Message]]:
    """The rows that have a time, without the users of whom no row is left; and how many were dropped."""
    timed, timed_rows = with_times(log, drop_missing=True)
    had, has = (np.bincount(log.user[rows], minlength=log.n_units) > 0 for rows in (slice(None), timed_rows))
    messages = [
        message(
            "missing-times",
            sentence=sentence,
            numbers={"rows": int(np.count_nonzero(~timed_rows)), "users": int(np.count_nonzero(had & ~has))},
        )
        for sentence in about_missing_times(timed_rows, log.source)
    ]
    users = replace(log.users, values=log.users.values.filter(pl.Series(has | ~had)))
    return restrict(timed, users=users, items=log.items), messages


def arrivals(log: Log, *, seed: int) -> Ints:
    """The place of each user in the order of their first rows; at one time in an order of their own."""
    first = np.full(log.n_units, np.iinfo(np.int64).max)  # those without a row come last
    np.minimum.at(first, log.user, time_ranks(log))
    keys = log.users.keys()
    tie = cell_keys(seed, "arrival", keys, np.zeros(len(keys), dtype=np.uint64))
    order = np.lexsort((tie, first))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
