"""Would the new ranker win? From a log of the old one, without showing the new one to anyone."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from truerank.core.calls import ANYTHING, COUNT, NUMBER, NUMBERS, Wanted, checked_arguments
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Asked, Estimator, Groups, Learned, Learner, clips_of, learn
from truerank.core.language import as_value, as_values
from truerank.core.messages import Message, message
from truerank.core.progress import Progress, Watching, watching
from truerank.core.results import Results
from truerank.core.wording import either, option
from truerank.engines.engine import ONE_THREAD, Workers, map_chunks
from truerank.engines.named import as_engine
from truerank.estimators import RANKED
from truerank.estimators.impressions import Normaliser, RankedContext
from truerank.estimators.refitting import RankedEstimator
from truerank.estimators.weighted import IPS, SNIPS
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.conclude import conclude
from truerank.evaluation.gather import gathered
from truerank.evaluation.impression_checks import check_log, check_question, checked_by_tables
from truerank.evaluation.impression_rows import RankedPlan
from truerank.evaluation.impression_source import HeldLog, RankedSource, check_common, source_of
from truerank.evaluation.impression_views import Looking
from truerank.evaluation.log_facts import RankedFacts
from truerank.evaluation.measure import measure
from truerank.evaluation.question import Adjust, Question
from truerank.evaluation.unit_ids import unit_ids
from truerank.exposure.policies.mixtures import LoggerShares
from truerank.exposure.policies.rankers import with_exposures
from truerank.exposure.policies.targets import is_table
from truerank.exposure.positions import as_positions
from truerank.exposure.positions.learner import PositionLearner, for_places
from truerank.exposure.positions.position_models import Positions
from truerank.inference.clipping import AutoClip, check_clips
from truerank.inference.intervals import Interval, Population
from truerank.io.batches import LazyTable
from truerank.io.impressions import Logged, RankedChunk
from truerank.io.spill import scratch
from truerank.io.streams import is_stream

PARTS = 40  # groups of clusters without which position models are fitted again
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
    """Estimate the reward that other ranking policies would earn, from the impressions of the deployed one.

    `log` has the impressions (see `read_impressions`); `targets` gives each policy's name and a table session, item,
    rank (or exposure) of all the items it would rank, or a RankColumn or ExposureColumn of the log;
    RankColumn("position") is the logging policy. `position` is a position model; without it the log needs a column
    propensity and targets need exposures. Where the log rejects a fitted model (goodness of fit, p < .01), a verdict
    stands only if it is the same with the table of observed views. The default estimators are ips and snips, with
    rewards counted per `normaliser`; what of them cannot be had is left out with a note. Each clip limits ε/ε0
    (`ips(of=inverse)`: 1/ε0, as in the paper); AutoClip() chooses one and reports the whole curve. `reward_range`
    declares what every reward lies between where they are not 0 or 1: then values that the log cannot show have bounds.
    A table may also give the score of every item (session, item, score), to be ranked at random (`temperature`,
    Plackett-Luce; 0: in order) and after `n_candidates` were drawn (see `exposure.exposures`). `engine` and `progress`
    are as in `evaluate`.

    Two sessions, views halve with every rank; the target turns the list round:

    >>> import polars as pl
    >>> from truerank.exposure.policies.targets import RankColumn
    >>> from truerank.exposure.positions.position_models import Exponential
    >>> log = pl.DataFrame({"session": [1, 1, 2, 2], "item": [1, 2, 1, 2], "position": [1, 2, 1, 2],
    ...                     "reward": [1, 0, 0, 1], "new": [2, 1, 2, 1]})
    >>> found = off_policy(log, {"new": RankColumn("new")}, position=Exponential(0.5), estimators=[IPS()])
    >>> found.estimates[0].value  # (1 · 0.5 + 1 · 2) / 2
    1.25
    """
    per = as_value(normaliser, Normaliser)
    default = (IPS(per), SNIPS(per))
    chosen = default if estimators is None else as_values(estimators, RANKED, what="estimators")
    _check(targets, baseline=baseline, level=level)
    targets = with_exposures(targets, position, temperature=temperature, n_candidates=n_candidates, columns=columns)
    grid = check_clips(clips.grid if isinstance(clips, AutoClip) else clips)
    models = None if position is None else as_positions(position)
    kind, over = as_value(logged, Logged), as_value(adjust, Adjust)
    once = {name: LazyTable.of(each, name=name) for name, each in targets.items() if is_stream(each)}
    log, targets = LazyTable.of(log, name="log") if is_stream(log) else log, {**targets, **once}
    chosen_engine = as_engine(engine, threads=threads)
    with watching(progress) as say, scratch() as space, chosen_engine.open() as workers:
        source = source_of(
            log,
            targets,
            loggers or {},
            chosen,
            rewards=rewards,
            columns=columns,
            sessions=sessions,
            logged=kind,
            scratch=space,
            workers=workers,
            progress=say,
        )
        plan = prepare(
            source,
            targets,
            position=models,
            loggers=loggers or {},
            columns=columns,
            estimators=chosen,
            grid=grid,
            auto=isinstance(clips, AutoClip),
            reward_range=reward_range,
            interval=interval,
            level=level,
            baseline=baseline,
            seed=seed,
            workers=workers,
            progress=say,
        )
        plan = replace(plan, question=replace(plan.question, adjust=over))
        work = map_chunks(workers, partial(measure, plan), source, progress=say)
        with gathered(work) as measured:
            for name, target in targets.items():
                if is_table(target):
                    where = os.fspath(target) if isinstance(target, str | os.PathLike) else name
                    check_common(where, int(measured.tallies[name, "known"]), source.facts)
            results = conclude(plan, measured, n_rows=source.facts.n_rows, n_units=source.facts.n_units)
        rejected = plan.rejected_fits()
        if rejected is None:
            return results
        if rejected.from_clicks:
            return checked_by_tables(results, None, rejected)
        by_table = plan.with_tables(rejected.fits)
        work = map_chunks(workers, partial(measure, by_table), source, progress=say, what="checking the position model")
        with gathered(work) as measured:
            return checked_by_tables(results, conclude(by_table, measured), rejected)


# ------------------------------------------------------------------------------------------------------------- prepare


def prepare(
    source: RankedSource,
    targets: Mapping[str, Any],
    *,
    position: Any = None,
    loggers: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    estimators: Sequence[RankedEstimator] = (IPS(),),
    grid: Sequence[float] = (math.inf,),
    auto: bool = False,
    reward_range: tuple[float, float] | None = None,
    interval: Interval | None = None,
    level: float = 0.95,
    baseline: str | None = None,
    seed: int = 0,
    workers: Workers = ONE_THREAD,
    progress: Progress | None = None,
) -> RankedPlan:
    """The plan of an evaluation: what is asked of each target, with what was learned from all chunks."""
    facts = source.facts.declaring(reward_range)
    requested = None if position is None else Positions.everywhere(position)
    asked = None if requested is None else for_places(requested, surfaces=facts.surfaces, groups=facts.groups)
    learner = None
    if asked is not None and asked.requests:
        learner = PositionLearner(asked, level, facts.clicks, facts.source)
    interval = _interval(interval, fitted=learner is not None)
    shares = LoggerShares(tuple(sorted(loggers))) if loggers else None
    looking = Looking(targets, loggers or {}, asked, learner, shares, columns, facts.only)
    contexts = _contexts(source.chunk(0), looking)
    possible, left_out = _possible(estimators, contexts)
    todo, unfit = _todo(possible, contexts, facts)
    question = Question(
        models=tuple(targets),
        asked=tuple(
            (estimator, Asked(estimator.metric.of(facts.unit), reward, clip))
            for estimator, reward in todo
            for clip in clips_of(estimator, grid)
        ),
        interval=interval,
        level=level,
        baseline=baseline,
        seed=seed,
    )
    check_pairs(question)
    learned = _learned(question, source, looking, contexts, workers=workers, progress=progress)
    return RankedPlan(
        question=question,
        learned=learned,
        facts=facts,
        looking=looking,
        grid=tuple(grid),
        auto=auto,
        answered={
            name: tuple(number for number, (each, _) in enumerate(question.asked) if name in possible[each])
            for name in targets
        },
        ids_of_units=unit_ids(source.log) if isinstance(source, HeldLog) and facts.n_units <= MOST_UNITS else None,
        first=(*(message("chunks", sentence=text) for text in source.notes), *check_log(facts, looking, learned)),
        last=(
            *check_question(requested, facts, looking, learned, interval),
            *left_out,
            *unfit,
        ),
    )


def _contexts(chunk: RankedChunk, looking: Looking) -> dict[str, RankedContext]:
    """What is known of each target, from where it puts the items of one chunk."""
    logging = looking.logging(chunk, None)
    given = None if looking.learner is not None else looking.positions
    return {
        name: replace(
            RankedContext.of(chunk.log, looking.policy(chunk, name, logging), logging),
            positions=given,
            learner=looking.learner,
        )
        for name in looking.targets
    }


def _learned(
    question: Question,
    source: RankedSource,
    looking: Looking,
    contexts: Mapping[str, RankedContext],
    *,
    workers: Workers,
    progress: Progress | None,
) -> Learned:
    """What must be known of the whole log: position models, shares of loggers, reward models."""
    wanted: list[Learner] = [each for each in (looking.learner, looking.shares) if each is not None]
    context = next(iter(contexts.values()))
    for estimator, asked in question.asked:
        wanted += estimator.prepare(replace(context, reward=asked.reward))
    if not wanted:
        return Learned()
    groups = Groups(question.seed, "jackknife")
    if looking.learner is not None:
        groups = Groups.of(source.cluster_keys(), n=PARTS, seed=question.seed, purpose="jackknife")

    def mapped(work: Callable[[RankedChunk], list[Any]]) -> Iterator[list[Any]]:
        return map_chunks(workers, work, source, progress=progress, what="learning", ordered=True)

    return learn(list(dict.fromkeys(wanted)), mapped, groups=groups, facts={})


# --------------------------------------------------------------------------------------------------------------- checks


def _check(targets: Any, *, baseline: str | None, level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    if not isinstance(targets, Mapping) or not targets:
        raise InputError(
            f"no targets given; expected at least one, as {either('NAME=FILE or NAME=@COLUMN', '{name: table}')}."
        )
    if baseline is not None and baseline not in targets:
        raise InputError(f"baseline {baseline!r} is not among the targets; expected one of {', '.join(targets)}.")


def _interval(asked: Interval | None, *, fitted: bool) -> Interval:
    if asked is None:
        return Population()
    if asked.needs_rows:
        raise RefusedError("an interval for exactly these sessions is not known for ranked logs; use population.")
    if fitted and not asked.refits:
        raise RefusedError(
            "a bootstrap does not go with a fitted position model: it would take the fit as given. Leave "
            f"{option('bootstrap', 'interval=')} out (the interval then refits the model without each part of the "
            "log), or give the fitted model itself, as yule:1.5."
        )
    return asked


def _possible(
    estimators: Sequence[RankedEstimator], contexts: Mapping[str, RankedContext]
) -> tuple[dict[Estimator, list[str]], list[Message]]:
    """The targets of each estimator; a note on what is left out, an error where nothing is left."""
    possible: dict[Estimator, list[str]] = {}
    notes, reasons = [], []
    for estimator in estimators:
        for name, context in contexts.items():
            reason = estimator.refusal(context)
            if reason is None:
                possible.setdefault(estimator, []).append(name)
            else:
                reasons.append(f"{estimator.about.name}: {reason}")
                notes.append(message("left-out.target", target=name, estimator=estimator.about.name, reason=reason))
    if not possible:
        raise RefusedError(" ".join(dict.fromkeys(reasons)))
    return possible, notes


def _todo(
    estimators: Mapping[Estimator, Sequence[str]], contexts: Mapping[str, RankedContext], facts: RankedFacts
) -> tuple[list[tuple[Any, str]], list[Message]]:
    """Estimators with the rewards that each can take, and a note on every pair that is left out; refused if all are."""
    todo, notes, refused = [], [], []
    for estimator, names in estimators.items():
        reasons = {
            name: estimator.refusal(replace(contexts[names[0]], reward=name, negative=reward.negative))
            for name, reward in facts.rewards.items()
        }
        todo += [(estimator, name) for name, reason in reasons.items() if reason is None]
        notes += [
            message("left-out.reward", estimator=estimator.about.name, reward=name, reason=reason)
            for name, reason in reasons.items()
            if reason is not None
        ]
        refused += [f"{estimator.about.name}: {reason}" for reason in reasons.values()]
    if not todo:
        raise RefusedError(f"{facts.source}: {' '.join(dict.fromkeys(refused))}")
    return todo, notes
