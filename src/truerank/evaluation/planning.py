"""How much data a comparison needs: from a pilot, or from a few assumed figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.language import as_values
from truerank.core.messages import Message
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.record import record
from truerank.core.validation import ANYTHING, COUNT, NAMED, NUMBER, POSITIVE, SHARE, checked_arguments
from truerank.core.wording import either
from truerank.engines.engine import CORES, Local
from truerank.estimators import ESTIMATORS
from truerank.estimators.refitting import RankedEstimator
from truerank.evaluation.compatibility import LabelQuestion
from truerank.evaluation.conclude import gathered
from truerank.evaluation.evaluation_checks import check_selected_users
from truerank.evaluation.impression_source import source_of
from truerank.evaluation.impressions import ImpressionQuestion, prepare_impressions
from truerank.evaluation.labels import prepare_labels
from truerank.evaluation.measure import Evaluation, Measured, measured_by
from truerank.evaluation.power import PlannedPair, planned_pair, sentence_of
from truerank.evaluation.question import POPULATION, Plan
from truerank.exposure.kinds import RandomExposure
from truerank.inference.intervals import Interval
from truerank.inference.power import Sure, assumed_lists, assumed_sessions, users_for
from truerank.io.spill import scratch
from truerank.metrics import METRICS

STEPS = (1, 2, 5)
CURVE: dict[str, Any] = {
    **dict.fromkeys(("metric", "estimator", "reward", "model", "baseline"), pl.String),
    "per_user": pl.Float64, "users": pl.Int64, "rows": pl.Int64, "detectable": pl.Float64, "at_hand": pl.Boolean,
}  # fmt: skip
MOST_STEPS = 10_000.0
NORMALISED = ("hajek", "snips", "post-stratified")
Report = Callable[[str, int, int], None]


@record
class SamplePlan:
    """How many users, with how many rows each (judged items or sessions), show a difference with the power asked for.

    `pairs` are the comparisons and what they vary by; `table()` is the curve, `at_hand` what the pilot itself shows.
    `messages` are reasons not to rely on the plan: what takes verdicts away from comparisons in the pilot.
    """

    difference: float
    sure: Sure
    pairs: tuple[PlannedPair, ...]
    messages: tuple[Message, ...] = ()

    def table(self) -> pl.DataFrame:
        """Users needed for each number of rows per user, and what the users at hand would show with as many.

        `users` is null where no number of users would do, `detectable` where there is no pilot.
        """
        rows = [row for pair in self.pairs for row in self._curve(pair)]
        return pl.DataFrame(rows, schema=CURVE, orient="row")

    def _curve(self, pair: PlannedPair) -> Iterator[tuple[Any, ...]]:
        parts = pair.components
        names = (pair.metric, pair.estimator, pair.reward, pair.model, pair.baseline)
        for n in per_user(pair):
            users = users_for(parts, self.difference, rows=n, sure=self.sure)
            smallest = pair.detectable(self.sure, rows=n)
            total = None if users is None else math.ceil(users * n)
            yield *names, n, users, total, smallest, n == parts.rows and pair.users is not None

    @property
    def at_hand(self) -> tuple[Message, ...]:
        """What the data of the pilot could have shown, in words; nothing without a pilot."""
        return tuple(message for pair in self.pairs for message in sentence_of(pair, self.sure))


def per_user(pair: PlannedPair) -> list[float]:
    """Numbers of rows per user to plan for: 1, 2, 5, 10, ... as many as a user can have, and that of the pilot."""
    rows, most = pair.components.rows, pair.components.most_rows
    if not pair.varies_by_rows:
        return [rows]
    most = min(most, MOST_STEPS if math.isfinite(most) else 100.0)
    steps = {float(step * 10**power) for power in range(5) for step in STEPS}
    return sorted({step for step in steps if step <= most} | {rows})


@checked_arguments(
    scores=NAMED, exclude=ANYTHING, difference=POSITIVE, power=SHARE, value=NUMBER, relevant=NUMBER, shared=NUMBER,
    n_users=COUNT,
)  # fmt: skip
def plan_exposure(
    pilot: Any = None,
    scores: Mapping[str, Any] | None = None,
    *,
    difference: float,
    power: float = 0.8,
    metrics: Sequence[Metric | str] | None = None,
    estimators: Sequence[Estimator | str] | None = None,
    exclude: Any = None,
    items: Ids | None = None,
    n_items: int | None = None,
    baseline: str | None = None,
    interval: Interval | None = None,
    level: float = 0.95,
    value: float | None = None,
    relevant: float | None = None,
    shared: float = 0.0,
    seed: int = 0,
    threads: int | None = None,
    progress: Report | None = None,
) -> SamplePlan:
    """How many users with how many randomly exposed items each a difference of two models needs.

    From a pilot of labelled rows and the scores of the models, or from assumed figures: one metric with a cut-off,
    `n_items`, `value`, for a recall `relevant`, and `shared`.

    Parameters
    ----------
    pilot
        Labelled, randomly exposed rows, as for `evaluate`.
    scores
        By the name of each model, its scores: a matrix (dense or sparse), a frame or file user, item, score or rank, a
        TREC run, or a fitted model.
    difference
        The smallest difference that matters.
    power
        Probability to detect a difference of that size.
    metrics
        Metrics or their texts, such as "Recall@50" or "Recall@{1,5,50}", which costs one ranking. Default by exposure.
    estimators
        Default by metric, as in `evaluate`.
    exclude
        Pairs to remove from the candidates, such as training interactions.
    items
        The catalogue, where the scores do not give it.
    n_items
        Number of candidates of each user; needed without a pilot.
    baseline
        Compare every model with this one instead of all pairs.
    interval
        `tr.Population()` (default) or `tr.Design()`.
    level
        Confidence level of the intervals.
    value
        Without a pilot: approximate value of the metric for both models.
    relevant
        Without a pilot, for Recall: the share of items that are relevant to a user.
    shared
        Without a pilot: share of list items in common.
    seed
        The same seed gives the same results.
    threads
        Number of threads; by default all cores. Results do not depend on it.
    progress
        True shows a progress bar; a function is called with (what, done, of how much).

    Returns
    -------
    SamplePlan
        `plan.table()` has the users needed for each number of labelled items.

    Examples
    --------
    >>> plan = plan_exposure(difference=0.02, metrics=["Precision@10"], n_items=1000, value=0.1)
    >>> plan.table().filter(pl.col("per_user") == 20)["users"].to_list()
    [17696]
    """
    sure = Sure(power, level)
    if pilot is None:
        pairs = _assumed(metrics, estimators, n_items=n_items, value=value, relevant=relevant, shared=shared)
        return SamplePlan(float(difference), sure, pairs)
    _check_pilot(scores, "models with scores", value=value, relevant=relevant, shared=shared or None)
    question = LabelQuestion(
        exposure=RandomExposure(),
        metrics=metrics,
        estimators=estimators,
        items=items,
        n_items=n_items,
        baseline=baseline,
        interval=interval or POPULATION,
        level=level,
        seed=seed,
    )
    workers = Local(threads or CORES)
    with scratch() as space:
        tables = {"labels": pilot, "exclude": exclude}
        plan, source = prepare_labels(question, scores or {}, tables, space=space, progress=progress)
        with gathered(measured_by(workers, plan, source, progress=progress)) as measured:
            selected = tuple(check_selected_users(Evaluation(plan, measured)))
            return replace(_planned(plan, measured, float(difference), sure), messages=selected)


@checked_arguments(
    pilot=ANYTHING, targets=NAMED, difference=POSITIVE, power=SHARE, reward=NUMBER, effective=NUMBER,
    per_user=NUMBER, alike=NUMBER,
)  # fmt: skip
def plan_sessions(
    pilot: Any = None,
    targets: Mapping[str, Any] | None = None,
    *,
    difference: float,
    power: float = 0.8,
    position: Any = None,
    estimators: Sequence[RankedEstimator | str] | None = None,
    rewards: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    reward: float | None = None,
    effective: float | None = None,
    per_user: float = 1.0,
    alike: float = 0.0,
    seed: int = 0,
    threads: int | None = None,
    progress: Report | None = None,
) -> SamplePlan:
    """How many sessions of how many users a difference of two ranking policies needs.

    From a pilot log and at least two targets (one may be the logging policy), or from assumed figures for a target
    against the logging policy: `reward`, `effective`, `per_user` and `alike`.

    Parameters
    ----------
    pilot
        A log of impressions, as for `off_policy`.
    targets
        As for `off_policy`.
    difference
        The smallest difference that matters.
    power
        Probability to detect a difference of that size.
    position
        A position model, as for `off_policy`.
    estimators
        Default: ips and snips.
    rewards
        Reward columns; by default the one value column.
    columns
        Column names of the table by the names of this library, as {"user": "user_id"}; usual names are recognised.
    baseline
        Compare every target with this one instead of all pairs.
    level
        Confidence level of the intervals.
    reward
        Without a pilot: the mean reward of a session, between 0 and 1.
    effective
        Without a pilot: effective sample size divided by sessions.
    per_user
        Without a pilot: sessions per user.
    alike
        Without a pilot: correlation between sessions of a user.
    seed
        The same seed gives the same results.
    threads
        Number of threads; by default all cores. Results do not depend on it.
    progress
        True shows a progress bar; a function is called with (what, done, of how much).

    Returns
    -------
    SamplePlan
        `plan.table()` has the sessions and users needed with each estimator.

    Examples
    --------
    >>> plan = plan_sessions(difference=0.01, reward=0.2, effective=0.5)
    >>> plan.table().select("estimator", "per_user", "users").row(0)
    ('ips', 1.0, 15701)
    """
    sure = Sure(power, level)
    question = ImpressionQuestion(
        estimators=estimators, position=position, columns=columns, level=level, baseline=baseline, seed=seed
    )
    if pilot is None:
        pairs = _assumed_sessions(question.estimators, reward, effective, per_user, alike)
        return SamplePlan(float(difference), sure, pairs)
    logger = f"""targets (the policy that logged is one of them, {either("log=@position", "RankColumn('position')")})"""
    _check_pilot(targets, logger, reward=reward, effective=effective)
    workers = Local(threads or CORES)
    with scratch() as space:
        source = source_of(
            pilot, targets or {}, others=question.columns_read, rewards=rewards, columns=columns, space=space,
            workers=workers, progress=progress,
        )  # fmt: skip
        plan = prepare_impressions(question, source, targets or {})
        with gathered(measured_by(workers, plan, source.chunks, progress=progress)) as measured:
            return _planned(plan, measured, float(difference), sure)


# --------------------------------------------------------------------------------------------------------------- pieces


def _check_pilot(models: Mapping[str, Any] | None, what: str, **assumed: float | None) -> None:
    """Two models to compare, and nothing assumed that the pilot shows."""
    for name, value in assumed.items():
        if value is not None:
            raise InputError(f"{name} {value:g} is assumed where there is no pilot. Leave one of the two out.")
    if not models or len(models) < 2:
        raise InputError(f"{len(models or {})} {what}; expected at least two, whose difference is planned.")


def _planned(plan: Plan[Any], measured: Measured, difference: float, sure: Sure) -> SamplePlan:
    """The plan of every pair, each question's p adjusted over its pairs."""
    pairs = plan.question.pairs(plan.models)
    every = [planned_pair(plan, measured, pair, number) for number in range(len(plan.estimates)) for pair in pairs]
    varying = tuple(pair for pair in every if pair is not None)
    if not varying:
        raise RefusedError(
            "the pilot does not show how much the difference varies: too few users, or the models do not differ. Give "
            "a larger one, or assumed figures."
        )
    return SamplePlan(difference, replace(sure, family=max(len(pairs), 1)), varying)


def _assumed(
    metrics: Sequence[Metric | str] | None,
    estimators: Sequence[Estimator | str] | None,
    *,
    n_items: int | None,
    value: float | None,
    relevant: float | None,
    shared: float,
) -> tuple[PlannedPair, ...]:
    if not metrics or n_items is None or value is None:
        needed = {"metric": metrics or None, "n-items": n_items, "value": value}
        raise InputError(_missing(needed, "labelled rows with the scores of two models"))
    if not 0 <= shared < 1:
        raise InputError(f"shared {shared:g}; expected a share of listed items, from 0 to below 1.")
    chosen = None if estimators is None else as_values(estimators, ESTIMATORS, what="estimators")
    pairs = []
    for metric in as_values(metrics, METRICS, what="metrics"):
        if not isinstance(metric, Additive) or metric.cutoff is None or metric.cutoff > n_items:
            raise RefusedError(f"{metric} is no sum over the places of a list of at most {n_items:,} items.")
        recall = metric.denominator is Denominator.POSITIVES
        if recall is (relevant is None):
            raise InputError(
                f"{metric}: relevant is {'missing' if recall else 'not used'}; it is the share of all items that a "
                "user likes, which a recall alone needs."
            )
        supported = ("post-stratified", "pooled") if recall else ("hajek", "horvitz-thompson")
        names = supported[:1] if chosen is None else tuple(estimator.info.name for estimator in chosen)
        for name in names:
            if name not in supported:
                raise RefusedError(f"{name}: a plan of {metric} from assumed figures knows {' and '.join(supported)}.")
            discount = metric.rank_discount(np.arange(1.0, metric.cutoff + 1))
            if metric.denominator in (Denominator.CUTOFF, Denominator.LIST):
                discount = discount / metric.cutoff
            components = assumed_lists(
                discount, n_items=n_items, value=value, relevant=relevant, shared=shared, normalised=name in NORMALISED
            )
            pairs.append(PlannedPair(str(metric), name, "one", "the other", components))
    return tuple(pairs)


def _assumed_sessions(
    chosen: Sequence[RankedEstimator], reward: float | None, effective: float | None, sessions: float, alike: float
) -> tuple[PlannedPair, ...]:
    if reward is None or effective is None:
        raise InputError(_missing({"reward": reward, "effective": effective}, "a log with two targets"))
    if not sessions >= 1:
        raise InputError(f"per-user {sessions:g}; expected the number of sessions of a user, from 1.")
    normalised, pairs = {"ips": False, "snips": True}, []
    for name in (estimator.info.name for estimator in chosen):
        if name not in normalised:
            raise RefusedError(f"{name}: a plan from assumed figures knows {' and '.join(normalised)}.")
        components = assumed_sessions(
            reward=reward, effective=effective, sessions=sessions, alike=alike, normalised=normalised[name]
        )
        pairs.append(PlannedPair("reward per session", name, "target", "log", components, row="session"))
    return tuple(pairs)


def _missing(needed: Mapping[str, Any], pilot: str) -> str:
    names = ", ".join(name for name, value in needed.items() if value is None)
    return f"without a pilot these are needed: {names}. Give them, or a pilot: {pilot}."
