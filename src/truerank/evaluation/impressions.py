"""Would the new ranker win? From a log of the old one, without showing the new one to anyone."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import polars as pl

from truerank.core.errors import RefusedError
from truerank.core.estimator import Clipping, Learner, Request
from truerank.core.language import Kind, as_value
from truerank.core.log import Log, Logged
from truerank.core.messages import Message, message
from truerank.core.progress import Progress, Watching, watching
from truerank.core.provenance import Input, Provenance, versions
from truerank.core.record import record
from truerank.core.results import Results
from truerank.core.validation import ANYTHING, COUNT, NUMBER, NUMBERS, Wanted, checked_arguments
from truerank.engines.engine import ONE_THREAD, Workers
from truerank.engines.named import as_engine
from truerank.estimators import RANKED
from truerank.estimators.impressions import Limited, Normaliser, RankedContext, limited_by
from truerank.estimators.refitting import CHOSEN, FIVE, RankedEstimator
from truerank.estimators.weighted import IPS, SNIPS
from truerank.evaluation.compare import limit
from truerank.evaluation.conclude import concluded
from truerank.evaluation.impression_rows import ImpressionRows, with_tables
from truerank.evaluation.impression_source import ImpressionSource, source_of
from truerank.evaluation.input_checks import RejectedFits, check_log, checked_by_tables
from truerank.evaluation.measure import measured_by
from truerank.evaluation.prepare import EvaluationData, allowed, check_call, prepare
from truerank.evaluation.question import POPULATION, Adjust, Plan, PlannedEstimate, Question
from truerank.exposure.policies import TrafficShares
from truerank.exposure.policies.rankers import with_exposures
from truerank.exposure.policies.targets import Target, column_names, is_table
from truerank.exposure.positions import as_positions
from truerank.exposure.positions.learner import PositionLearner, for_places
from truerank.exposure.positions.position_models import Positions
from truerank.inference.clipping import AutoClip, check_clips
from truerank.inference.intervals import Interval
from truerank.io.batches import LazyTable
from truerank.io.spill import is_stream, scratch

MOST_UNITS = 2**20  # of which each is kept


@checked_arguments(
    log=ANYTHING,
    clips=Wanted("a list of numbers, or AutoClip()", lambda value: isinstance(value, AutoClip) or NUMBERS.fits(value)),
    reward_range=Wanted("two numbers", lambda value: NUMBERS.fits(value) and len(value) == 2),
    temperature=NUMBER,
    n_candidates=COUNT,
)
def off_policy(
    log: Any,
    targets: Mapping[str, Any],
    *,
    position: Any = None,
    clips: Sequence[float] | AutoClip = (math.inf,),
    estimators: Sequence[RankedEstimator | str] | None = None,
    normaliser: Normaliser | str = Normaliser.SESSION,
    rewards: Sequence[str] | None = None,
    reward_range: tuple[float, float] | None = None,
    columns: Mapping[str, str] | None = None,
    sessions: Any = None,
    logged: Logged | str = Logged.VIEWED,
    loggers: Mapping[str, Any] | None = None,
    temperature: float | None = None,
    n_candidates: int | None = None,
    baseline: str | None = None,
    interval: Interval | None = None,
    level: float = 0.95,
    adjust: Adjust | str = Adjust.ESTIMAND,
    seed: int = 0,
    threads: int | None = None,
    engine: Any = None,
    progress: Watching = None,
) -> Results:
    """Estimate the reward of other ranking policies from the impressions of the deployed one.

    Parameters
    ----------
    log : impressions: session, item, position or propensity, and rewards; see `read_impressions`
    targets : by name a table session, item, rank (or exposure, or score), or a RankColumn or ExposureColumn of the log
    position : a position model, as "exp:0.9" or "fit:yule"; without it, propensities and exposures are needed
    clips : upper limits of the weights ε/ε0 (of 1/ε0 with `ips(of=inverse)`), or AutoClip()
    estimators : default ips and snips
    normaliser : unit of the mean reward: "session" (default), "impression" or "mean-of-means"
    rewards : reward columns; by default the one value column
    reward_range : smallest and largest possible reward, where not 0 or 1, for bounds where the log has no support
    columns : names of the columns by the names of this library, as {"item": "video"}; usual names are recognised
    sessions : all sessions, including those without a view
    logged : whether rows are "viewed" (default) or all "displayed" items
    loggers : with several logging policies, the rank or exposure column of each
    temperature, n_candidates : targets with scores rank at random (Plackett-Luce; 0: in order) so many random items
    baseline, interval, level : one target against all; tr.Population() (default) or tr.Bootstrap(1000); its level
    adjust : p and intervals together over the comparisons of one reward and estimator ("estimand"), or over "all"
    seed, threads, engine, progress : as in `evaluate`

    Two sessions, views halve with every rank; the target reverses the list:

    >>> import polars as pl
    >>> from truerank.exposure.policies.targets import RankColumn
    >>> from truerank.exposure.positions.position_models import Exponential
    >>> log = pl.DataFrame({"session": [1, 1, 2, 2], "item": [1, 2, 1, 2], "position": [1, 2, 1, 2],
    ...                     "reward": [1, 0, 0, 1], "new": [2, 1, 2, 1]})
    >>> results = off_policy(log, {"new": RankColumn("new")}, position=Exponential(0.5), estimators=[IPS()])
    >>> results.estimates[0].value  # (1 · 0.5 + 1 · 2) / 2
    1.25
    """
    per = as_value(normaliser, Normaliser)
    check_call(targets, baseline=baseline, word="targets")
    targets = with_exposures(targets, position, temperature=temperature, n_candidates=n_candidates, columns=columns)
    question = ImpressionQuestion(
        estimators=estimators,
        position=position,
        normaliser=per,
        clips=tuple(check_clips(clips.grid if isinstance(clips, AutoClip) else clips)),
        chooses_clip=isinstance(clips, AutoClip),
        loggers=loggers or {},
        columns=columns,
        reward_range=reward_range,
        baseline=baseline,
        interval=interval or POPULATION,
        level=level,
        adjust=as_value(adjust, Adjust),
        seed=seed,
    )
    kind = as_value(logged, Logged)
    streams = {name: LazyTable.of(target, name=name) for name, target in targets.items() if is_stream(target)}
    log, targets = LazyTable.of(log, name="log") if is_stream(log) else log, {**targets, **streams}
    engine = as_engine(engine, threads=threads)
    with watching(progress) as say, scratch() as space, engine.open() as workers:
        source = source_of(
            log,
            targets,
            others=question.columns_read,
            rewards=rewards,
            columns=columns,
            sessions=sessions,
            logged=kind,
            space=space,
            workers=workers,
            progress=say,
        )
        plan = prepare_impressions(question, source, targets, workers=workers, progress=say)
        results = concluded(plan, measured_by(workers, plan, source.chunks, progress=say))
        learner = plan.rows.learner
        fits = {} if learner is None else plan.learned[learner].rejected()
        if learner is None or not fits:
            return results
        rejected = RejectedFits(fits, plan.rows.facts, not plan.learned[learner].depths)
        if rejected.from_clicks:
            return checked_by_tables(results, None, rejected)
        plan = with_tables(plan, fits)
        parts = measured_by(workers, plan, source.chunks, progress=say, what="checking the position model")
        return checked_by_tables(results, concluded(plan, parts), rejected)


@record(kw_only=True)
class ImpressionQuestion(Question):
    """What is requested of a log of impressions; `chooses_clip` says that one of the clips is chosen by the data.

    The default estimators are ips and snips, with rewards counted per `normaliser`.
    """

    kind: ClassVar[Kind[Any]] = RANKED

    normaliser: Normaliser = Normaliser.SESSION
    clips: tuple[float, ...] = (math.inf,)
    chooses_clip: bool = False
    position: Any = None
    loggers: Mapping[str, Target] = field(default_factory=dict)
    columns: Mapping[str, str] | None = None
    reward_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.estimators is None:
            object.__setattr__(self, "estimators", (IPS(self.normaliser), SNIPS(self.normaliser)))
        Question.__post_init__(self)
        if self.position is not None:
            object.__setattr__(self, "position", as_positions(self.position))

    @property
    def columns_read(self) -> list[str]:
        """The columns of the log that logging policies and estimators name."""
        return [
            *(name for target in self.loggers.values() for name in column_names(target)),
            *(name for estimator in self.estimators for name in estimator.columns),
        ]


# ------------------------------------------------------------------------------------------------------------- prepare


def prepare_impressions(
    question: ImpressionQuestion,
    source: ImpressionSource,
    targets: Mapping[str, Any],
    *,
    workers: Workers = ONE_THREAD,
    progress: Progress | None = None,
) -> Plan[ImpressionRows]:
    """prepare(Question, source) -> Plan, with what was learned from all chunks."""
    facts, loggers = source.facts.declaring(question.reward_range), question.loggers
    requested = None if question.position is None else Positions.everywhere(question.position)
    positions = None if requested is None else for_places(requested, surfaces=facts.surfaces, groups=facts.groups)
    learner = None
    if positions is not None and positions.requests:
        learner = PositionLearner(positions, facts.clicks, facts.source)
    rows = ImpressionRows(
        facts=facts,
        targets=targets,
        loggers=loggers,
        positions=positions,
        learner=learner,
        shares=TrafficShares(tuple(sorted(loggers))) if loggers else None,
        columns=question.columns,
        clips=question.clips,
        absent=facts.absent,
        tables={
            name: str(target) if isinstance(target, str | os.PathLike) else name
            for name, target in targets.items()
            if is_table(target)
        },
    )
    held = source.log if facts.n_units <= MOST_UNITS else None
    draft = Plan(
        question=question,
        models=tuple(targets),
        rows=rows,
        n_rows=facts.n_rows,
        n_units=facts.n_units,
        unit=facts.unit,
        cluster=facts.cluster,
        ids=None if held is None else _unit_ids(held),
        keeps_units=held is not None,
        chooses_clip=question.chooses_clip,
        record=Provenance(
            inputs=(
                Input(role="log", source=facts.source, rows=facts.n_rows, items=facts.n_items),
                *(Input(role="target", name=name, source=name) for name in targets),
            ),
            settings={
                "rewards": list(facts.rewards),
                "clips": [limit(clip) for clip in question.clips],
                "interval": type(question.interval).__name__,
                "level": question.level,
                "seed": question.seed,
            },
            counts={"rows": facts.n_rows, "units": facts.n_units, "items": facts.n_items},
            unit=facts.unit,
            versions=versions(),
        ),
    )
    data = ImpressionData(
        draft=draft,
        chunks=source.chunks,
        learner=learner,
        keys=lambda: source.keys,
        requested=requested,
        contexts=_contexts(rows, source),
    )
    return prepare(data, workers=workers, progress=progress)


@record(kw_only=True, eq=False)
class ImpressionData(EvaluationData):
    """A log of impressions, and what is known of each target; `requested` are the position models as requested."""

    instead: ClassVar[str] = "the fitted model itself, as yule:1.5"

    requested: Positions | None
    contexts: Mapping[str, RankedContext]

    def requests(self) -> tuple[list[PlannedEstimate], list[Message]]:
        """Every estimator with the rewards and targets that it can take, and messages on what is left out."""
        question, facts = self.draft.question, self.draft.rows.facts
        if question.interval.needs_rows:
            raise RefusedError("an interval for exactly these sessions is not known for ranked logs; use population.")
        targets: dict[RankedEstimator, list[str]] = {}
        able, refused = allowed(
            product(dict.fromkeys(question.estimators), self.contexts),
            self._refusal,
            lambda estimator, _: estimator.info.name,
        )
        left_out = [
            message("left-out.target", target=target, estimator=estimator.info.name, reason=reason)
            for estimator, target, reason in refused
        ]
        for estimator, target in able:
            targets.setdefault(estimator, []).append(target)

        able, refused = allowed(
            product(targets, facts.rewards),
            lambda estimator, reward: self._refusal(estimator, targets[estimator][0], reward),
            lambda estimator, _: estimator.info.name,
            source=facts.source,
        )
        left_out += [
            message("left-out.reward", estimator=estimator.info.name, reward=reward, reason=reason)
            for estimator, reward, reason in refused
        ]
        clipped = {limited_by(estimator) for estimator, _ in able if estimator.info.clipping is not Clipping.NONE}
        several = len(clipped) > 1
        return [self._planned(*pair, tuple(targets[pair[0]]), several=several) for pair in able], left_out

    def _refusal(self, estimator: RankedEstimator, target: str, reward: str | None = None) -> str | None:
        """Why an estimator cannot be had of a target, or of a reward, or None."""
        context = self.contexts[target]
        if reward is not None:
            context = replace(context, reward=reward, negative=self.draft.rows.facts.rewards[reward].minimum < 0)
        return estimator.refusal(context)

    def _planned(
        self, estimator: RankedEstimator, reward: str, models: tuple[str, ...], *, several: bool
    ) -> PlannedEstimate:
        counted, rows = estimator.metric.of(self.draft.unit), self.draft.rows
        # two forms of clips in one question are told apart in every table
        inverse = several and limited_by(estimator) is Limited.INVERSE
        base = CHOSEN if rows.positions is None and not rows.facts.sessions else FIVE
        return PlannedEstimate(
            estimator=estimator,
            request=Request(counted, reward),
            name=f"{counted}, clip of the inverse" if inverse else str(counted),
            models=models,
            assumptions=(*base, *estimator.metric.assumptions),
            refitted=self.learner is not None,
            left_out=counted.left_out,
            few_left_out=0.0,
        )

    def learners(self, planned: PlannedEstimate) -> Sequence[Learner]:
        shares = () if self.draft.rows.shares is None else (self.draft.rows.shares,)
        context = next(iter(self.contexts.values()))
        return (*shares, *planned.estimator.prepare(replace(context, reward=planned.request.reward)))

    def finish(self, plan: Plan[ImpressionRows]) -> Plan[ImpressionRows]:
        rows, learned, interval = plan.rows, plan.learned, plan.question.interval
        models, nested = rows.models(learned), rows.shares is not None and learned[rows.shares].nested
        column = "column propensity" if rows.facts.propensity else f"positions, {models}"
        settings = {
            "position": None if models is None else str(models),
            "logging": "loggers" if rows.loggers else column,
            "strata": "logger" if nested and interval.refits else None,
        }
        fits = check_log(self.requested, rows, learned, interval)
        record = replace(plan.record, settings={**settings, **plan.record.settings})
        return replace(plan, messages=(*fits, *plan.messages), record=record)


def _contexts(rows: ImpressionRows, source: ImpressionSource) -> dict[str, RankedContext]:
    """What is known of each target, from where it puts the items of one chunk."""
    chunk = source.chunks.chunk(0)
    logging = rows.logging(chunk, None)
    given = None if rows.learner is not None else rows.positions
    return {
        name: replace(
            RankedContext.of(chunk.log, rows.policy(chunk, name, logging), logging),
            positions=given,
            learner=rows.learner,
        )
        for name in rows.targets
    }


def _unit_ids(log: Log) -> tuple[Any, Any]:
    """The ids of units and of their clusters; a session without a row has no known user."""
    unit: Any = pl.Series(np.arange(log.n_units))
    if log.sessions is not None and log.session_of_unit is not None:
        unit = log.sessions.values.gather(log.session_of_unit)
    if log.cluster is None:
        return unit, unit
    observed = log.cluster < len(log.users)
    place = pl.Series(np.where(observed, log.cluster, 0)).set(pl.Series(~observed), None)
    return unit, log.users.values.gather(place)
