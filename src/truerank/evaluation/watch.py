"""Looking while data arrive: an interval that holds at every look, and when to stop."""

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
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.language import as_value, as_values
from truerank.core.log import Log
from truerank.core.messages import Message, caution, note, warning
from truerank.core.metric import Metric
from truerank.core.progress import Watching, watching
from truerank.core.requirements import Outcome, Requirement
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.terms import Smooth, Terms
from truerank.data.spill import scratch
from truerank.data.split import restrict
from truerank.data.times import about_missing_times, time_ranks, with_times
from truerank.engines.engine import map_chunks
from truerank.engines.local import Threads
from truerank.estimators import ESTIMATORS
from truerank.evaluation.conclude import conclude
from truerank.evaluation.gather import gathered
from truerank.evaluation.judged import JudgedCall, prepare_judged
from truerank.evaluation.judged_plan import JudgedPlan
from truerank.evaluation.judged_source import check_call, rows_of
from truerank.evaluation.measure import Measured, measure
from truerank.evaluation.usual import PLAIN
from truerank.exposure.kinds import EXPOSURES, Exposure
from truerank.metrics import METRICS
from truerank.uncertainty.intervals import common
from truerank.uncertainty.sequences import FIRST, ConfidenceSequence

PLANNED = 10_000  # users, about whom intervals are narrowest where nothing is said
LOOKS = 250  # that are made of all users so far, the later ones further apart
DRIFTS = 0.001  # p below which users did not come in random order
EARLY = ("few-informative", "no-spread")  # reasons that more users take away


class WatchState(StrEnum):
    """How it stands: what was shown stays shown, as the interval holds at every look."""

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
    """The difference after so many users, with its interval, NaN where it is too early for one."""

    users: int
    informative: int
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WatchedPair:
    """One comparison over time; `stopped` is the number of users at which it was decided, None while it is not."""

    model: str
    baseline: str
    metric: str
    estimator: str
    estimand: str
    state: WatchState
    stopped: int | None
    looks: tuple[WatchLook, ...]
    reasons: tuple[str, ...] = ()

    @property
    def last(self) -> WatchLook:
        return self.looks[-1]

    def __str__(self) -> str:
        return f"{self.model} > {self.baseline}: {self.metric}, {self.estimator}"


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """All comparisons that are watched: their intervals hold at every look and together, with this level."""

    pairs: tuple[WatchedPair, ...]
    level: float
    planned: int
    difference: float | None
    messages: tuple[Message, ...]

    def table(self) -> pl.DataFrame:
        """A row for each look of each comparison."""
        rows = [
            (pair.metric, pair.estimator, pair.estimand, pair.model, pair.baseline, look.users, look.informative,
             look.difference, look.low, look.high, pair.stopped is not None and look.users >= pair.stopped)
            for pair in self.pairs for look in pair.looks
        ]  # fmt: skip
        schema = {"metric": pl.String, "estimator": pl.String, "estimand": pl.String, "model": pl.String,
                  "baseline": pl.String, "users": pl.Int64, "informative": pl.Int64, "difference": pl.Float64,
                  "low": pl.Float64, "high": pl.Float64, "decided": pl.Boolean}  # fmt: skip
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

    `labels` have a column time, by which users came; a user counts when the last of its rows is there. `require` are
    rules such as "a > b: Precision@10", as for `evaluate`. Stop when it is decided: 0 lies outside the interval, or the
    interval is narrower than twice the smallest `difference` that matters. `planned` is about how many users are
    expected, chosen before the first look; the interval holds whatever comes, and is narrowest there.
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
    rows, dropped = _with_times(rows) if drop_missing_times else (rows, [])
    call = JudgedCall(
        exposure=as_value("full" if exposure is None else exposure, EXPOSURES),
        metrics=None if metrics is None else as_values(metrics, METRICS, what="metrics"),
        estimators=None if estimators is None else as_values(estimators, ESTIMATORS, what="estimators"),
        items=items if items is None or isinstance(items, Ids) else Ids.of(items, where="items"),
        n_items=n_items,
        level=level,
        seed=seed,
        usual=PLAIN,  # means, of which it is proved that intervals hold at every look
    )
    came = _arrivals(rows, seed=seed)
    with watching(progress) as say, scratch() as space:
        plan, source = prepare_judged(scores, rows, call, exclude=exclude, space=space, progress=say)
        work = map_chunks(Threads(threads or os.cpu_count() or 1), partial(measure, plan), source, progress=say)
        with gathered(work) as measured:
            results = conclude(plan, measured)
            compared = [(rule, each) for rule in rules for each in rule.comparisons(results)]
            sequence = ConfidenceSequence(planned, (1 - level) / len(compared))
            found = [
                _watched(
                    plan,
                    measured,
                    each,
                    estimates=results.estimates,
                    came=came,
                    sequence=sequence,
                    difference=difference,
                )
                for _, each in compared
            ]
    said = tuple(message for _, messages in found for message in messages)
    return Watched(
        tuple(pair for pair, _ in found),
        level,
        planned,
        difference,
        (*dropped, *_kept(results), *_about(len(found)), *said),
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


def _about(pairs: int) -> tuple[Message, ...]:
    together = f" and for all {pairs} comparisons together" if pairs > 1 else ""
    return (
        note(
            "every-look",
            f"the intervals hold at every look{together} if users come in random order and enough of them tell the "
            f"models apart (from {FIRST} on); rare large losses that were not seen yet are in no interval.",
        ),
    )


# -------------------------------------------------------------------------------------------------------------- arrival


def _with_times(log: Log) -> tuple[Log, list[Message]]:
    """The rows that have a time, without the users of whom no row is left; and how many were dropped."""
    timed, kept = with_times(log, drop_missing=True)
    had, has = (np.bincount(log.user[rows], minlength=log.n_units) > 0 for rows in (slice(None), kept))
    messages = [
        caution(
            "missing-times",
            sentence,
            numbers={"rows": int(np.count_nonzero(~kept)), "users": int(np.count_nonzero(had & ~has))},
        )
        for sentence in about_missing_times(kept, log.source)
    ]
    users = replace(log.users, values=log.users.values.filter(pl.Series(has | ~had)))
    return restrict(timed, users=users, items=log.items), messages


def _arrivals(log: Log, *, seed: int) -> Ints:
    """The place of each user in the order of their last rows; at one time in an order of their own."""
    last = np.zeros(log.n_units, dtype=np.int64)
    np.maximum.at(last, log.user, time_ranks(log))
    keys = log.users.keys()
    tie = cell_keys(seed, "arrival", keys, np.zeros(len(keys), dtype=np.uint64))
    order = np.lexsort((tie, np.where(last == 0, np.iinfo(np.int64).max, last)))  # those without a row come last
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


# ---------------------------------------------------------------------------------------------------------------- looks


def _watched(
    plan: JudgedPlan,
    measured: Measured,
    compared: Comparison,
    *,
    estimates: Sequence[Estimate],
    came: Ints,
    sequence: ConfidenceSequence,
    difference: float | None,
) -> tuple[WatchedPair, list[Message]]:
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
    looks = _looks(own, other, order, sequence)
    drifting = _drift(own, other, order, compared)
    reasons = [*(reason for reason in compared.reasons if reason.code not in EARLY), *drifting]
    state, stopped = (WatchState.REFUSED, None) if reasons else _state(looks, difference)
    pair = WatchedPair(
        model=compared.model,
        baseline=compared.baseline,
        metric=compared.metric,
        estimator=compared.estimator,
        estimand=estimand,
        state=state,
        stopped=stopped,
        looks=looks,
        reasons=tuple(str(reason) for reason in reasons),
    )
    return pair, drifting


def _smooth(terms: Terms, compared: Comparison) -> Smooth:
    if not isinstance(terms, Smooth):
        raise RefusedError(
            f"{compared.metric}, {compared.estimator}: no mean of users and no ratio of two, so that no interval for "
            "every look is known; watch Precision, DCG or Recall, with exposure whose chances are not fitted."
        )
    return terms


def _looks(own: Smooth, other: Smooth, order: Ints, sequence: ConfidenceSequence) -> tuple[WatchLook, ...]:
    """After 1, 2, ... users, further apart later: value, and how far it may be off, by what each user adds to it.

    Of a mean that is exactly the difference of its users; a ratio is linearised at every look. Users tell models apart
    by what was found in their lists: judged rows and predictions alone, by which steadier estimators divide, are none
    of the events that an interval waits for.
    """
    n = len(order)
    if n < 2:
        raise InputError(f"{n} users have come; expected at least 2.")
    found = []
    for t in np.unique(np.round(np.geomspace(2, n, min(LOOKS, n - 1))).astype(np.int64)).tolist():
        here = np.sort(order[:t])
        one, two = (_of(terms, here) for terms in (own, other))
        totals = one.totals(), two.totals()
        values = one.value() - two.value()
        if math.isnan(values):
            continue
        effect = one.form.influence(one.sums, totals[0]) - two.form.influence(two.sums, totals[1])
        informative = int(np.count_nonzero(one.sums[:, 0] != two.sums[:, 0]))
        sd = math.sqrt(t * float(effect @ effect) * t / (t - 1))
        half = float(sequence.half_width(sd, np.array([float(t)]))[0]) if informative >= FIRST and sd > 0 else math.nan
        found.append(WatchLook(t, informative, values, values - half, values + half))
    return tuple(found) if found else (WatchLook(n, 0, math.nan, math.nan, math.nan),)


def _of(terms: Smooth, rows: Ints) -> Smooth:
    return Smooth(terms.form, terms.sums[rows], terms.defined[rows], terms.clusters.take(rows))


def _state(looks: Sequence[WatchLook], difference: float | None) -> tuple[WatchState, int | None]:
    """What the first look that decides says."""
    for look in looks:
        if look.low > 0:
            return WatchState.SHOWN, look.users
        if look.high < 0:
            return WatchState.OPPOSITE, look.users
        if difference is not None and (look.high - look.low) / 2 < difference:
            return WatchState.CLOSE, look.users
    return (WatchState.EARLY if math.isnan(looks[-1].low) else WatchState.GOING_ON), None


def _drift(own: Smooth, other: Smooth, order: Ints, compared: Comparison) -> list[Message]:
    """Whether earlier and later users differ by more than chance: then they did not come in random order."""
    effect = own.form.influence(own.sums, own.totals()) - other.form.influence(other.sums, other.totals())
    halves: list[Floats] = np.array_split(effect[order], 2)
    n = min(len(half) for half in halves)
    if n < FIRST:
        return []
    error = math.sqrt(sum(float(half.var(ddof=1)) / len(half) for half in halves))
    z = (float(halves[1].mean()) - float(halves[0].mean())) / error if error > 0 else 0.0
    p = math.erfc(abs(z) / math.sqrt(2))
    if p >= DRIFTS:
        return []
    return [
        warning(
            "drift",
            f"{compared.model}, {compared.baseline}: the users of the second half differ from those of the first by "
            f"more than chance (p {f'{p:.1g}' if p > 0 else 'below 1e-300'}): they did not come in random order, and "
            "what earlier ones show may not hold for later ones",
            numbers={"z": z, "p": p},
        )
    ]
