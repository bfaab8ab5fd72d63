"""Which recommender is better, by how much, and how sure is that: the front of question, measure, conclude."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Asked, Estimator, Groups, Learned, Learner, clips_of, learn
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.provenance import Input, Provenance, versions
from truerank.core.ranking import JudgedChunk, Pool, Scores, Ties
from truerank.core.results import Results
from truerank.core.threads import one_blas_thread
from truerank.data.matrices import is_sparse
from truerank.engines.local import map_chunks
from truerank.evaluation.asked import DEFAULT_METRICS, Rules, interval_for, pairs
from truerank.evaluation.conclude import conclude
from truerank.evaluation.gather import gathered
from truerank.evaluation.judged_notes import about_catalogue, about_exclusions, about_inclusion, about_overlap, matching
from truerank.evaluation.judged_plan import JudgedContext, JudgedPlan, Report, settings_of
from truerank.evaluation.measure import measure
from truerank.evaluation.question import Question
from truerank.evaluation.setting import check_call, check_option, check_sizes, logs, make_setting
from truerank.exposure.kinds import BiasedExposure, Exposure, FullExposure, RandomExposure
from truerank.exposure.propensities import Fitted
from truerank.exposure.propensities.given import GivenValues
from truerank.metrics.gains import gains_of, relevant, reward_of
from truerank.ranks.candidates import Overlap, Setting, catalogue_of, chunks_of, whole_tables
from truerank.ranks.kernel.rank import Aligned
from truerank.ranks.scores.scores import Lists, dense
from truerank.ranks.scores.sparse import sparse
from truerank.ranks.scores.tables import lists
from truerank.uncertainty.intervals import Interval

PARTS = 40  # groups of users without which fitted models are fitted again


def evaluate(
    scores: Mapping[str, Any],
    labels: Any,
    *,
    exposure: Exposure | None = None,
    metrics: Sequence[Metric] | None = None,
    estimators: Sequence[Estimator] | None = None,
    clips: Sequence[float] = (float("inf"),),
    exclude: Any = None,
    overlap: Overlap = Overlap.DROP,
    candidates: Any = None,
    items: Ids | None = None,
    n_items: int | None = None,
    baseline: str | None = None,
    ties: Ties = Ties.EXPECTED,
    interval: Interval | None = None,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    block_users: int | None = None,
    progress: Report | None = None,
) -> Results:
    """Evaluate recommenders on labels, with intervals and paired comparisons.

    `scores` gives each model's name and its Scores (or a matrix, dense or sparse, or a frame). `exposure` says what
    the labels show: FullExposure() (default), RandomExposure() or BiasedExposure(). Every metric is combined with every
    estimator; a pair that has no honest answer is left out with a note, and refused if nothing is left of what was
    asked for.
    `block_users` and `threads` change speed and memory, never a bit of the results.

    >>> import polars as pl
    >>> from truerank.metrics.recall import Recall
    >>> scores = {"a": np.array([[3.0, 2, 1], [3, 2, 1]]), "b": np.array([[1.0, 2, 3], [3, 1, 2]])}
    >>> labels = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2], "label": [1, 0, 0, 1, 0, 0]}
    >>> results = evaluate(scores, pl.DataFrame(labels), metrics=[Recall(1)])
    >>> [(each.model, each.value) for each in results.estimates], results.comparisons[0].difference
    ([('a', 1.0), ('b', 0.5)], -0.5)
    """
    exposure = FullExposure() if exposure is None else exposure
    overlap, ties = check_option(Overlap, overlap), check_option(Ties, ties)
    check_call(scores, exposure, metrics, estimators, baseline=baseline, level=level)
    check_sizes(threads=threads, block_users=block_users, n_items=n_items)
    threads = threads or os.cpu_count() or 1
    items = items if items is None or isinstance(items, Ids) else Ids.of(items, where="items")
    if overlap is Overlap.KEEP and not isinstance(exposure, FullExposure):
        raise RefusedError(
            "--overlap keep makes the candidates depend on which items were judged, so a sample of them stands "
            "for nothing; use --overlap drop, or leave --exclude out."
        )
    judged, excluded, explicit = logs(labels, exclude, candidates)
    for metric in DEFAULT_METRICS if metrics is None else metrics:
        gains_of(metric, judged)  # labels or grades that it cannot use are refused before any work
    # two sources may share a name, so they are told apart by their role
    others = {f"{judged.source} (labels)": judged.items}
    others |= {} if excluded is None else {f"{excluded.source} (excluded)": excluded.items}
    given = {name: as_scores(each, name=name) for name, each in scores.items()}
    models = whole_tables(given, others=others, items=items, n_items=n_items)
    catalogue = catalogue_of(models, others=others, items=items, n_items=n_items)
    setting = make_setting(models, judged, catalogue, exposure, exclude=excluded, overlap=overlap, candidates=explicit)
    learner = exposure.learner(seed) if isinstance(exposure, BiasedExposure) else None
    interval = interval_for(interval, fitted=learner is not None and learner.refitted)
    rules = Rules(models, exposure, ties, interval, catalogue.n_items, explicit=candidates is not None)
    asked, left_out = pairs(metrics, estimators, rules)
    question = Question(
        models=tuple(models),
        asked=tuple(
            (estimator, Asked(metric, reward_of(metric, setting.labels), clip))
            for metric, estimator in asked
            for clip in clips_of(estimator, clips)
        ),
        interval=interval,
        level=level,
        baseline=baseline,
        seed=seed,
    )
    chunks = list(chunks_of(setting))
    learned = _learned(question, setting, chunks, exposure, learner)
    taken_whole = [name for name, each in models.items() if isinstance(each, Lists) and each.depth is None]
    used = any("inclusion" in estimator.about.uses for estimator, _ in question.asked)
    positives = int(relevant(setting.labels).sum())
    matched = setting.pools[Pool.CATALOGUE].exclude
    plan = JudgedPlan(
        question=question,
        learned=learned,
        exposed=exposure.exposed,
        models={
            name: Aligned.of(each, users=setting.labels.users, items=catalogue.items, name=name)
            for name, each in models.items()
        },
        users=setting.labels.users,
        catalogue=catalogue,
        ties=ties,
        record=_record(
            question,
            setting,
            exposure,
            ties=ties,
            positives=positives,
            inputs=_inputs(judged, excluded, explicit, models),
        ),
        active=_activity(setting),
        said=(
            *about_overlap(setting.dropped),
            *left_out,
            *([] if used or setting.labels.inclusion is None else about_inclusion(judged.source, len(setting.labels))),
            *(
                []
                if excluded is None
                else about_exclusions(0 if matched is None else len(matched.item), len(excluded), excluded.source)
            ),
            *matching(
                models,
                setting.labels.users,
                catalogue.items,
                n_items=catalogue.n_items,
                judged=len(setting.labels),
                positives=positives,
            ),
            *about_catalogue(models, catalogue.items, taken_whole=taken_whole),
        ),
        description=_description(exposure, learner, learned),
        threads=threads if len(chunks) == 1 else 1,
        block_users=block_users,
        progress=progress if len(chunks) == 1 else None,
    )
    work = map_chunks(partial(measure, plan), chunks, threads=threads if len(chunks) > 1 else 1)
    with gathered(work) as measured:
        return conclude(plan, measured, n_rows=len(setting.labels))


def as_scores(source: Any, *, name: str) -> Scores:
    """Scores of a matrix or a frame; what is Scores already stays."""
    if isinstance(source, Scores):
        return source
    if isinstance(source, np.ndarray):
        return dense(source, name=name)
    if is_sparse(source):
        return sparse(source, name=name)
    if callable(source):
        raise InputError(f"{name}: a function needs users and items: truerank.function(call, users=..., items=...).")
    return lists(source, name=name)


def _learned(
    question: Question, setting: Setting, chunks: Sequence[JudgedChunk], exposure: Exposure, learner: Learner | None
) -> Learned:
    """What estimators must know of all users: propensities, reward models."""
    context = {
        estimator: tuple(question.asked[number][1] for number in numbers)
        for estimator, numbers in question.by_estimator(range(len(question.asked)))
    }
    wanted = [] if learner is None else [learner]  # its fit is reported whatever is asked
    wanted += [
        needed
        for estimator, asked in context.items()
        for needed in estimator.prepare(JudgedContext(learner, asked, question.seed))
    ]
    users = setting.labels.users
    facts = {
        "rate": exposure.rate if isinstance(exposure, RandomExposure) else None,
        "propensity": learner,
        "users": users,
        "n_rows": float(len(setting.labels)),
        "n_cells": float(setting.pools[Pool.CATALOGUE].count.sum()),
    }
    if not wanted:
        return Learned(facts=facts)
    groups = Groups.of(users.keys(), n=PARTS, seed=question.seed, purpose="jackknife")
    with one_blas_thread():
        return learn(wanted, lambda: chunks, groups=groups, facts=facts)


def _record(
    question: Question, setting: Setting, exposure: Exposure, *, ties: Ties, positives: int, inputs: Sequence[Input]
) -> Provenance:
    labels = setting.labels
    n_items = setting.catalogue.n_items
    return Provenance(
        inputs=tuple(inputs),
        settings=settings_of(question, exposure=exposure, ties=ties),
        counts={
            "users": len(labels.users),
            "items": None if math.isnan(n_items) else int(n_items),
            "judged": len(labels),
            "relevant": positives,
        },
        unit="user",
        population=f"{len(labels.users):,} users of {labels.source}",
        versions=versions(),
    )


def _inputs(judged: Log, excluded: Log | None, explicit: Log | None, models: Mapping[str, Scores]) -> list[Input]:
    """What went in, by its role."""
    by_role = {"labels": judged, "exclude": excluded, "candidates": explicit}
    return [
        *(
            Input(role=role, source=log.source, rows=len(log), users=len(log.users), items=len(log.items))
            for role, log in by_role.items()
            if log is not None
        ),
        *(
            Input(role="scores", source=name, name=name, users=len(scores.users), items=len(scores.items))
            for name, scores in models.items()
        ),
    ]


def _activity(setting: Setting) -> Floats:
    """How active each user was: rows that are excluded (training), or judged where nothing is excluded."""
    pairs = setting.pools[Pool.CATALOGUE].exclude or setting.pools[Pool.JUDGED].only
    return np.zeros(len(setting.labels.users)) if pairs is None else pairs.count.astype(np.float64)


def _description(exposure: Exposure, learner: Learner | None, learned: Learned) -> str | None:
    """What was assumed of propensities, in words; None where there are none."""
    if not isinstance(exposure, BiasedExposure):
        return None
    fitted: Fitted = GivenValues() if learner is None else learned[learner]
    return fitted.description
