"""Which recommender is better, by how much, and how sure is that: rows from labels in front of the one pipeline."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator, Exposed, Request, clips_of
from truerank.core.ids import Ids
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.metric import Metric, OfLists, is_directed
from truerank.core.options import ListsAre
from truerank.core.progress import Progress, Watching, watching
from truerank.core.provenance import Provenance, versions
from truerank.core.ranking import Scores, Ties
from truerank.core.results import Results
from truerank.core.validation import ANYTHING, NAMED, checked_arguments
from truerank.core.wording import either, option
from truerank.engines.engine import ONE_THREAD, Workers, chunks_wanted
from truerank.engines.named import as_engine
from truerank.estimators.rows import DESIGNED, UNIFORM
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.compatibility import (
    Compatibility,
    LabelQuestion,
    assisted_by,
    clips_for,
    label_question,
    metrics_with_estimators,
    usable,
)
from truerank.evaluation.gather import concluded
from truerank.evaluation.input_checks import (
    check_catalogue,
    check_holdout,
    check_ids,
    check_scores,
    check_without_exclusions,
)
from truerank.evaluation.label_facts import (
    check_numbers,
    learn_from_labels,
    list_facts,
    predictions_of,
    with_judge_users,
)
from truerank.evaluation.label_rows import LabelRows, measured_by
from truerank.evaluation.label_source import (
    CatalogueLayout,
    LabelSource,
    check_users,
    chunked,
    first_rows,
    inputs_of,
    n_rows_of,
    rows_of,
    source_of,
    training_rows,
)
from truerank.evaluation.presets import preset_named
from truerank.evaluation.question import Adjust, Plan, PlannedEstimate
from truerank.evaluation.sources import check_call
from truerank.evaluation.units import items_by_group
from truerank.exposure.kinds import Exposure, FullExposure, HoldoutExposure
from truerank.inference.intervals import Interval
from truerank.io.columns import RULE, PositiveRule
from truerank.io.log_schema import LogSchema
from truerank.io.read import scan
from truerank.io.spill import Scratch, scratch
from truerank.metrics.discounts import bounds_of, reward_of
from truerank.ranking.candidates import Catalogue, Overlap, catalogue_of, whole_tables, whole_within
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.scores.files import as_scores

MOST_ROWS = 5_000_000  # labelled rows of all models and estimates, of which what they add is kept


@checked_arguments(scores=NAMED, exclude=ANYTHING, positive=RULE)
def evaluate(
    scores: Mapping[str, Any],
    labels: Any,
    *,
    exposure: Exposure | str | None = None,
    positive: str | PositiveRule | None = None,
    metrics: str | Sequence[Metric | str] | None = None,
    estimators: str | Sequence[Estimator | str] | None = None,
    clips: Sequence[float] | None = None,
    exclude: Any = None,
    overlap: Overlap | str = Overlap.DROP,
    candidates: Any = None,
    items: Ids | None = None,
    n_items: int | None = None,
    lists: ListsAre | str | None = None,
    like: str | None = None,
    item_groups: Any = None,
    item_features: Any = None,
    judge: Any = None,
    assist: Any = None,
    baseline: str | None = None,
    ties: Ties | str = Ties.EXPECTED,
    interval: Interval | None = None,
    level: float = 0.95,
    adjust: Adjust | str = Adjust.ESTIMAND,
    seed: int = 0,
    threads: int | None = None,
    block_users: int | None = None,
    engine: Any = None,
    progress: Watching = None,
) -> Results:
    """Evaluate recommenders on labels, with intervals and paired comparisons.

    `scores` gives each model's name and its Scores (or a matrix, dense or sparse, or a frame). `exposure` says how the
    labels were collected: "full" (default), "holdout" (other pairs count as irrelevant), "random", "designed" (drawn
    with known probabilities) or "biased", or such a value. `positive` is the rule of positive values, as ">3".
    `lists="complete"` says that lists of recommended items are all a model would ever show (default with "holdout");
    else a cut-off beyond their length is refused. `like` names a tool, as "trec_eval" or "rectools", whose forms of the
    metrics and whose users are taken, so that numbers equal its own.
    Metrics and estimators are values or their texts, such as "Recall@50" or "Recall@{1,5,50}", which costs one ranking.
    Every metric is combined with every estimator; a pair that has no honest answer is left out with a note, and the
    call is refused if none is left. Weights of rows that were unlikely to be shown are cut at each of `clips`,
    where an estimator has no clip of its own.
    `item_groups` (a mapping from item to group, or a frame of both) asks everything again for each group of items: only
    its items earn, ranks stay among all candidates.
    Metrics of lists, such as "Coverage@10" or "Novelty@10", look at what is recommended instead of labels; popularity
    is counted in `exclude`, the training log, and `item_features` (a frame or a file) tell how different items are.
    `judge` (a frame or a file of user, item and label or probability) and `assist` (scores) predict labels that nobody
    has, for the estimator "assisted"; what the judge says alone is shown beside it.
    p and intervals of differences are adjusted together over the comparisons of one metric and estimator, or over all
    (`adjust="all"`): a difference is significant where its interval is without 0.
    `block_users`, `threads` and `engine` change speed and memory, never a bit of the results. An engine is "local"
    (threads of this process), "dask", "dask:ADDRESS", "spark" or "spark:URL", a Dask `Client` or a `SparkSession`.
    `progress=True` shows how far it is, as a bar in a terminal or a notebook; a function is told (what, done, of how
    much).

    >>> import numpy as np, polars as pl
    >>> scores = {"a": np.array([[3.0, 2, 1], [3, 2, 1]]), "b": np.array([[1.0, 2, 3], [3, 1, 2]])}
    >>> labels = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2], "label": [1, 0, 0, 1, 0, 0]}
    >>> results = evaluate(scores, pl.DataFrame(labels), metrics=["Recall@1"])
    >>> [(estimate.model, estimate.value) for estimate in results.estimates], results.comparisons[0].difference
    ([('a', 1.0), ('b', 0.5)], -0.5)
    """
    default: Exposure = FullExposure() if like is None else HoldoutExposure()
    question = label_question(
        exposure=default if exposure is None else exposure,
        metrics=metrics,
        estimators=estimators,
        clips=None if clips is None else tuple(clips),
        overlap=as_value(overlap, Overlap),
        items=items,
        n_items=n_items,
        lists=None if lists is None else as_value(lists, ListsAre),
        preset=None if like is None else preset_named(like),
        item_groups=item_groups,
        item_features=item_features,
        judge=judge,
        assist=assist,
        baseline=baseline,
        ties=as_value(ties, Ties),
        interval=interval,
        level=level,
        adjust=as_value(adjust, Adjust),
        seed=seed,
    )
    check_call(scores, baseline=baseline)
    with watching(progress) as say, scratch() as space, as_engine(engine, threads=threads).open() as workers:
        if positive is not None:
            labels = scan(labels, positive=positive, progress=say)
        tables = {"labels": labels, "exclude": exclude, "candidates": candidates}
        plan, source = prepare_labels(question, scores, tables, space=space, workers=workers, progress=say)
        rows = replace(plan.rows, block_users=block_users)
        alone = workers.here and source.n_chunks == 1  # threads are within the only chunk, or over chunks
        if alone:
            rows = replace(rows, threads=workers.threads, progress=say)
        plan = replace(plan, rows=rows)
        return concluded(plan, measured_by(workers, plan, source, progress=None if alone else say))


def prepare_labels(
    question: LabelQuestion,
    scores: Mapping[str, Any],
    tables: Mapping[str, Any],
    *,
    space: Scratch,
    workers: Workers = ONE_THREAD,
    progress: Progress | None = None,
) -> tuple[Plan[LabelRows], LabelSource]:
    """prepare(Question, sources) -> Plan, and the rows in chunks of whole users; `tables` by their role."""
    rows = {role: rows_of(table, role=role, progress=progress) for role, table in tables.items() if table is not None}
    labels = rows.get("labels")
    if labels is None or n_rows_of(labels) == 0:
        where = "labels" if labels is None else source_of(labels)
        raise InputError(f"{where}: no rows; expected labelled pairs of users and items.")
    exposed, preset, learner = question.exposed, question.preset, question.exposure.learner(question.seed)
    requested = question.requested_metrics
    relevant_rows: list[Message] = []
    given_scores = {name: as_scores(part, name=name) for name, part in scores.items()}
    if preset is not None:
        labels, relevant_rows = preset.labelled(labels)
        requested = [preset.form(metric) for metric in requested]
    rows["labels"], where = labels, source_of(labels)
    sample = question.exposure.labelled(first_rows(labels))
    metrics, without_labels = usable(requested, sample)
    # two sources may share a name, so they are told apart by their role
    others = {f"{source_of(part)} ({role})": part.items for role, part in rows.items() if role != "candidates"}
    beside = {role: part for role, part in rows.items() if role != "labels"}
    numbered = check_numbers(given_scores, {where: labels, **beside}, items=question.items)
    if preset is not None:
        given_scores = {name: preset.scores(part) for name, part in given_scores.items()}
    models, catalogue = _catalogued(question, given_scores, others, rows.get("candidates"))
    n_items = catalogue.n_items
    check_users(models, labels.users, where)
    predictions, predicted_from = predictions_of(question)
    labelled_users = labels.users
    labels = rows["labels"] = with_judge_users(question, labels, predictions, models)
    layout = CatalogueLayout(catalogue, question.exposure, question.overlap)
    source, on_disk = chunked(layout, rows, space=space, progress=progress, n_chunks=chunks_wanted(workers))
    design = getattr(question.exposure, "design", None)
    _check_interval(question.interval, design, fitted=learner is not None and learner.refitted)
    compatibility = Compatibility.of(question, models, n_items, rows)
    segments = items_by_group(question.item_groups, catalogue.items)
    requests, left_out = _requests(
        compatibility, metrics, sample, assisted_by(predictions, question.estimators), segments
    )
    check_pairs(question, list(models), len(requests))
    train = training_rows(on_disk, rows.get("exclude"))
    lists = list_facts(question, [request.metric for _, request in requests], catalogue, train)
    learned = learn_from_labels(
        question, requests, source,
        {"users": labels.users, "lists": lists, "predictions": predictions, "propensity": learner},
        workers=workers, progress=progress,
    )  # fmt: skip
    description = question.exposure.description(learned)
    n_users, n_rows = len(labels.users), n_rows_of(labels)
    used = any("inclusion" in estimator.info.uses for estimator, _ in requests)
    unused = [message("inclusion-unused", source=where, rows=n_rows)] if sample.inclusion is not None else []
    notes = [text for part in (*rows.values(), *models.values()) for text in getattr(part, "notes", ())]
    excluded, added = rows.get("exclude"), " and of the judge" if n_users > len(labelled_users) else ""
    plan = Plan(
        question=question,
        models=tuple(models),
        estimates=_planned(question, requests, tuple(models), n_items, description),
        learned=learned,
        rows=LabelRows(
            exposed=exposed,
            models={
                name: Aligned.of(part, users=labels.users, items=catalogue.items, name=name)
                for name, part in models.items()
            },
            users=labels.users,
            n_items=n_items,
            ties=question.ties,
            excluded=None if excluded is None else (source_of(excluded), n_rows_of(excluded)),
            segments=segments,
            judge_users=n_users - len(labelled_users),
            description=description,
        ),
        n_rows=n_rows,
        n_units=n_users,
        ids=(labels.users.values, labels.users.values),
        # of uniform draws also for what more of them would show, as long as they are few
        keeps_rows=question.interval.needs_rows
        or (exposed is Exposed.RANDOM and n_rows * len(models) * len(requests) <= MOST_ROWS),
        record=replace(
            _record(question, tuple(models), f"{n_users:,} users of {where}{added}"),
            inputs=(*inputs_of(rows, models), *predicted_from),
        ),
        messages=(
            *(message("columns", sentence=text) for text in notes),
            *(message("chunks", sentence=text) for text in source.notes),
            *without_labels,
            *left_out,
            *relevant_rows,
            *(check_holdout(where, first_rows(labels)) if exposed is Exposed.HOLDOUT else ()),
            *_absent_users(len(labelled_users), labels.users, design),
            *(check_without_exclusions(models, exposed) if excluded is None else ()),
            *(() if used else unused),
            *numbered,
            *check_scores(models, labels.users, catalogue.items),
            *check_ids(models, labels.users, labels.items, source=where),
            *check_catalogue(models, catalogue.items),
        ),
    )
    return plan, source


def _requests(
    compatibility: Compatibility,
    metrics: Sequence[Metric],
    sample: Log,
    estimators: Sequence[Estimator] | None,
    segments: Collection[str],
) -> tuple[list[tuple[Estimator, Request]], list[Message]]:
    """Every estimator with every metric, clip and segment that it can give, and messages on what is left out."""
    question, preset = compatibility.question, compatibility.question.preset
    if preset is not None:
        estimators = [preset.users] if any(not isinstance(metric, OfLists) for metric in metrics) else None
    able, left_out = metrics_with_estimators(metrics, estimators, compatibility)
    if preset is not None:
        left_out += preset.messages(question.requested_metrics)
    clips = clips_for(question, able)
    requests = [
        (estimator, Request(metric, reward_of(metric, sample), clip, segment))
        for metric, estimator in able
        for clip in clips_of(estimator, clips)
        for segment in (None, *(() if estimator.info.predicts or estimator.info.of_lists else segments))
    ]
    return requests, left_out


def _catalogued(
    question: LabelQuestion, scores: Mapping[str, Scores], others: Mapping[str, Ids], candidates: Log | LogSchema | None
) -> tuple[dict[str, Scores], Catalogue]:
    """The models, and the catalogue: what is declared, else the items of candidate sets, else what models have."""
    items = question.items
    lists = all(model.depth is not None for model in scores.values())
    if items is None and question.n_items is None and candidates is not None and lists:
        parts = {f"{name}, items": model.items for name, model in scores.items()}
        items = Ids.union({**parts, **others, "candidates": candidates.items})
    catalogued: dict[str, Any] = {"others": others, "items": items, "n_items": question.n_items}
    models = whole_tables(scores, **catalogued)
    if isinstance(candidates, Log):
        models = whole_within(models, candidates)
    return models, catalogue_of(models, **catalogued, union=question.exposed is Exposed.HOLDOUT)


def _check_interval(interval: Interval, design: Any, *, fitted: bool) -> None:
    """Refuse intervals that take a fit of propensities as given, or are not known for a design."""
    if fitted and not interval.refits:
        raise RefusedError(
            "the propensities are fitted to the same users, which this interval would take as given. Leave "
            f"{either('--bootstrap and --interval', 'interval=')} out: the interval then fits them again without each "
            "part of the users; or give propensities in a column."
        )
    if design is not None and design.n_batches > 1 and interval.needs_rows:
        raise RefusedError(
            f"{design.source} has {design.n_batches} batches, for which an interval for exactly these users is not "
            f"known; use {option('interval population', 'interval=Population()')}."
        )


def _planned(
    question: LabelQuestion,
    requests: Sequence[tuple[Estimator, Request]],
    models: tuple[str, ...],
    n_items: float,
    description: str | None,
) -> tuple[PlannedEstimate, ...]:
    estimates = []
    for number, (estimator, request) in enumerate(requests):
        info, metric = estimator.info, request.metric
        assumptions = info.assumptions
        if question.exposed is Exposed.DESIGNED:
            assumptions = tuple(DESIGNED if text == UNIFORM else text for text in assumptions)
        elif description is not None and info.weighs:
            assumptions = (*assumptions, description)
        estimates.append(
            PlannedEstimate(
                estimator=estimator,
                request=request,
                name=str(metric),
                models=models,
                block=number,
                cutoff=metric.cutoff,
                directed=is_directed(metric),
                bounds=bounds_of(metric, n_items=math.inf if math.isnan(n_items) else n_items),
                assumptions=assumptions,
                refitted=info.weighs,
                left_out=info.left_out,
            )
        )
    return tuple(estimates)


def _record(question: LabelQuestion, models: tuple[str, ...], population: str) -> Provenance:
    settings = {
        "models": list(models),
        "exposure": str(question.exposure),
        "ties": question.ties.value,
        "interval": str(question.interval),
        "level": question.level,
        "baseline": question.baseline,
        "seed": question.seed,
    }
    return Provenance(settings=settings, unit="user", population=population, versions=versions())


def _absent_users(n_labelled: int, users: Ids, design: Any) -> Iterator[Message]:
    """Users of whom only the judge labelled something, and users of the design without any row."""
    if len(users) > n_labelled:
        yield message("judge-only-users", users=len(users) - n_labelled, of=len(users))
    absent = 0 if design is None else design.absent_users(users)
    if absent:
        yield message("users-not-returned", users=absent, of=len(design.users))
