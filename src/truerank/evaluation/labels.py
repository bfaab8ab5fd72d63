"""Which recommender is better, by how much, and how sure is that: the front of question, measure, conclude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from truerank.core.calls import ANYTHING, checked_arguments
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Asked, Estimator, clips_of
from truerank.core.ids import Ids
from truerank.core.language import as_value, as_values
from truerank.core.messages import Message, message
from truerank.core.metric import Metric, OfLists
from truerank.core.options import ListsAre
from truerank.core.progress import Progress, Watching, watching
from truerank.core.provenance import Provenance, versions
from truerank.core.ranking import Ties
from truerank.core.results import Results
from truerank.core.wording import option
from truerank.engines.engine import ONE_THREAD, Workers, chunks_wanted
from truerank.engines.named import as_engine
from truerank.estimators import ESTIMATORS
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.compatibility import (
    DEFAULT_METRICS,
    Rules,
    assisted_by,
    check_design,
    clips_for,
    defaults_for,
    interval_for,
    pairs,
    usable,
)
from truerank.evaluation.conclude import conclude
from truerank.evaluation.gather import gathered
from truerank.evaluation.judged_learning import description_of, learned_of, predictions_of
from truerank.evaluation.judged_rows import judge_adds_users, rows_by_role, with_judge_users
from truerank.evaluation.label_checks import (
    check_catalogue,
    check_holdout,
    check_ids,
    check_scores,
    check_without_exclusions,
)
from truerank.evaluation.label_rows import JudgedPlan
from truerank.evaluation.label_source import (
    CatalogueLayout,
    JudgedSource,
    check_call,
    check_rows,
    check_sizes,
    check_users,
    chunked,
    first_rows,
    inputs_of,
    n_rows_of,
    notes_of,
    source_of,
)
from truerank.evaluation.list_facts import known_facts, list_facts
from truerank.evaluation.numbering import check_numbers
from truerank.evaluation.presets import Tool, tool_named
from truerank.evaluation.question import Adjust, Question, settings_of
from truerank.evaluation.serialization import measured_by
from truerank.evaluation.units import items_by_group
from truerank.exposure.kinds import EXPOSURES, BiasedExposure, DesignedExposure, Exposure, FullExposure, HoldoutExposure
from truerank.inference.intervals import Interval
from truerank.io.spill import Scratch, scratch
from truerank.metrics import METRICS
from truerank.metrics.worth import reward_of
from truerank.ranking.candidates import Overlap, catalogue_of, whole_tables
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.scores.tables import as_scores


@checked_arguments(exclude=ANYTHING)
def evaluate(
    scores: Mapping[str, Any],
    labels: Any,
    *,
    exposure: Exposure | str | None = None,
    metrics: Sequence[Metric | str] | None = None,
    estimators: Sequence[Estimator | str] | None = None,
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

    `scores` gives each model's name and its Scores (or a matrix, dense or sparse, or a frame). `exposure` says what
    the labels show: "full" (default), "holdout" (other pairs count as irrelevant), "random", "designed" (drawn with
    known chances) or "biased", or such a value. `lists="complete"` says that lists of recommended items are all a model
    would ever show (default with "holdout"); else a cut-off beyond their length is refused. `like` names a tool, as
    "trec_eval" or "rectools", whose forms of the metrics and whose users are taken, so that numbers equal its own.
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
    >>> [(each.model, each.value) for each in results.estimates], results.comparisons[0].difference
    ([('a', 1.0), ('b', 0.5)], -0.5)
    """
    usual: Exposure = FullExposure() if like is None else HoldoutExposure()
    call = JudgedCall(
        exposure=usual if exposure is None else as_value(exposure, EXPOSURES),
        metrics=None if metrics is None else as_values(metrics, METRICS, what="metrics"),
        estimators=None if estimators is None else as_values(estimators, ESTIMATORS, what="estimators"),
        clips=None if clips is None else tuple(clips),
        overlap=as_value(overlap, Overlap),
        items=items if items is None or isinstance(items, Ids) else Ids.of(items, where="items"),
        n_items=n_items,
        lists=None if lists is None else as_value(lists, ListsAre),
        like=None if like is None else tool_named(like),
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
    check_call(scores, baseline=baseline, level=level)
    check_sizes(threads=threads, block_users=block_users, n_items=n_items)
    given: dict[str, Any] = {"labels": labels, "exclude": exclude, "candidates": candidates}
    with watching(progress) as say, scratch() as space:
        rows = rows_by_role(given, progress=say)
        known = {name: as_scores(each, name=name) for name, each in scores.items()}
        with as_engine(engine, threads=threads).open() as workers:
            plan, source = prepare_judged(
                known, rows.get("labels"), call, exclude=rows.get("exclude"), candidates=rows.get("candidates"),
                space=space, workers=workers, progress=say,
            )  # fmt: skip
            plan = replace(plan, block_users=block_users)
            alone = workers.here and source.n_chunks == 1  # threads are within the only chunk, or over chunks
            if alone:
                plan = replace(plan, threads=workers.threads, progress=say)
            with gathered(measured_by(workers, plan, source, progress=None if alone else say)) as measured:
                return conclude(plan, measured, n_rows=plan.n_judged, n_units=len(plan.users))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCall:
    """What is asked of judged rows, as values."""

    exposure: Exposure
    metrics: Sequence[Metric] | None = None
    estimators: Sequence[Estimator] | None = None
    clips: tuple[float, ...] | None = None
    overlap: Overlap = Overlap.DROP
    items: Ids | None = None
    n_items: int | None = None
    lists: ListsAre | None = None
    like: Tool | None = None
    item_groups: Any = None
    item_features: Any = None
    judge: Any = None
    assist: Any = None
    baseline: str | None = None
    ties: Ties = Ties.EXPECTED
    interval: Interval | None = None
    level: float = 0.95
    adjust: Adjust = Adjust.ESTIMAND
    seed: int = 0

    def __post_init__(self) -> None:
        if self.overlap is Overlap.KEEP and not isinstance(self.exposure, FullExposure | HoldoutExposure):
            raise RefusedError(
                f"{option('overlap keep')} makes the candidates depend on which items were judged, so a sample of them "
                f"stands for nothing; use {option('overlap drop')}, or leave {option('exclude')} out."
            )
        if self.like is not None and not (isinstance(self.exposure, HoldoutExposure) and self.estimators is None):
            raise RefusedError(
                f"{option(f'like {self.like.name}')} chooses metrics and users as that tool does, for "
                f"{option('exposure holdout')} alone; leave {option('estimator', 'estimators=')} out, or "
                f"{option('like')}."
            )

    @property
    def chosen_metrics(self) -> Sequence[Metric]:
        """The metrics that are asked for, or usual, in the form of the tool that is followed."""
        asked = DEFAULT_METRICS[self.exposure.exposed] if self.metrics is None else self.metrics
        return asked if self.like is None else [self.like.form(metric) for metric in asked]


def prepare_judged(
    scores: Mapping[str, Any],
    labels: Any,
    call: JudgedCall,
    *,
    exclude: Any = None,
    candidates: Any = None,
    space: Scratch,
    workers: Workers = ONE_THREAD,
    progress: Progress | None = None,
) -> tuple[JudgedPlan, JudgedSource]:
    """prepare(Question, sources) -> Plan, and the rows in chunks of whole users."""
    rows = rows_by_role({"labels": labels, "exclude": exclude, "candidates": candidates}, progress=progress)
    judged = rows.get("labels")
    if judged is None:
        raise InputError("labels: no rows; expected judged pairs of users and items.")
    check_rows(judged)
    rows["labels"], relevant_rows = (judged, []) if call.like is None else call.like.labelled(judged)
    judged = rows["labels"]
    sample = call.exposure.labelled(first_rows(judged))
    metrics, without_labels = usable(call.chosen_metrics, sample)
    # two sources may share a name, so they are told apart by their role
    others = {f"{source_of(part)} ({role})": part.items for role, part in rows.items() if role != "candidates"}
    known = {name: as_scores(each, name=name) for name, each in scores.items()}
    beside = {role: part for role, part in rows.items() if role != "labels"}
    numbered = check_numbers(known, {source_of(judged): judged, **beside}, items=call.items)
    models = whole_tables(
        known if call.like is None else {name: call.like.scores(each) for name, each in known.items()},
        others=others,
        items=call.items,
        n_items=call.n_items,
    )
    held_out = isinstance(call.exposure, HoldoutExposure)
    design = call.exposure.design if isinstance(call.exposure, DesignedExposure) else None
    catalogue = catalogue_of(models, others=others, items=call.items, n_items=call.n_items, union=held_out)
    check_users(models, judged.users, source_of(judged))
    predictions, predicted_from = predictions_of(call.assist, call.judge, call.exposure)
    labelled_users = judged.users
    if judge_adds_users(call.exposure, call.interval):
        judged = rows["labels"] = with_judge_users(judged, predictions, models)
    layout = CatalogueLayout(catalogue, call.exposure, call.overlap)
    source = chunked(layout, rows, space=space, progress=progress, n_chunks=chunks_wanted(workers))
    learner = call.exposure.learner(call.seed) if isinstance(call.exposure, BiasedExposure) else None
    interval = interval_for(call.interval, fitted=learner is not None and learner.refitted)
    check_design(design, interval)
    complete = held_out if call.lists is None else call.lists is ListsAre.COMPLETE
    rules = Rules(
        models,
        call.exposure,
        call.ties,
        interval,
        catalogue.n_items,
        explicit=candidates is not None,
        complete_lists=frozenset(models if complete else ()),
        facts=known_facts(exclude, call.item_features, n_items=catalogue.n_items, exposed=call.exposure.exposed),
        usual=defaults_for(call.exposure.exposed, call.clips),
    )
    if call.like is None:
        asked, left_out = pairs(metrics, assisted_by(predictions, call.estimators), rules)
    else:
        labelled = any(not isinstance(metric, OfLists) for metric in metrics)
        asked, left_out = pairs(metrics, [call.like.users] if labelled else None, rules)
        left_out += call.like.said(DEFAULT_METRICS[call.exposure.exposed] if call.metrics is None else call.metrics)
    clips = clips_for(call.clips, asked)
    segments = items_by_group(call.item_groups, catalogue.items)
    question = Question(
        models=tuple(models),
        asked=tuple(
            (estimator, Asked(metric, reward_of(metric, sample), clip, segment))
            for metric, estimator in asked
            for clip in clips_of(estimator, clips)
            for segment in (None, *(() if estimator.about.predicts or estimator.about.of_lists else segments))
        ),
        interval=interval,
        level=call.level,
        baseline=call.baseline,
        seed=call.seed,
        adjust=call.adjust,
    )
    check_pairs(question)
    metrics = [each.metric for _, each in question.asked]
    lists = list_facts(metrics, source, catalogue, train=rows.get("exclude"), features=call.item_features)
    learned = learned_of(
        question,
        source,
        call.exposure,
        learner,
        users=judged.users,
        lists=lists,
        predictions=predictions,
        workers=workers,
        progress=progress,
    )
    used = any("inclusion" in estimator.about.uses for estimator, _ in question.asked)
    tables = [*rows.values(), *models.values()]
    plan = JudgedPlan(
        question=question,
        learned=learned,
        exposed=call.exposure.exposed,
        models={
            name: Aligned.of(each, users=judged.users, items=catalogue.items, name=name)
            for name, each in models.items()
        },
        users=judged.users,
        n_items=catalogue.n_items,
        n_judged=n_rows_of(judged),
        excluded=None if exclude is None else (source_of(rows["exclude"]), n_rows_of(rows["exclude"])),
        ties=call.ties,
        record=Provenance(
            inputs=(*inputs_of(rows, models), *predicted_from),
            settings=settings_of(question, exposure=call.exposure, ties=call.ties),
            unit="user",
            population=f"{len(judged.users):,} users of {source_of(judged)}"
            + (" and of the judge" if len(judged.users) > len(labelled_users) else ""),
            versions=versions(),
        ),
        input_messages=(
            *(message("columns", sentence=text) for part in tables for text in notes_of(part)),
            *(message("chunks", sentence=text) for text in source.notes),
            *without_labels,
            *left_out,
            *relevant_rows,
            *(check_holdout(source_of(judged), first_rows(judged)) if held_out else ()),
            *_absent_users(len(labelled_users), judged.users, design),
            *(check_without_exclusions(models, call.exposure.exposed) if exclude is None else ()),
            *(
                [message("inclusion-unused", source=source_of(judged), rows=n_rows_of(judged))]
                if sample.inclusion is not None and not used
                else ()
            ),
            *numbered,
            *check_scores(models, judged.users, catalogue.items),
            *check_ids(models, judged.users, judged.items, source=source_of(judged)),
            *check_catalogue(models, catalogue.items),
        ),
        segments=segments,
        judge_users=len(judged.users) - len(labelled_users),
        description=description_of(call.exposure, learner, learned),
    )
    return plan, source


def _absent_users(n_labelled: int, users: Ids, design: Any) -> Iterator[Message]:
    """Users of whom only the judge labelled something, and users of the design without any row."""
    if len(users) > n_labelled:
        yield message("judge-only-users", users=len(users) - n_labelled, of=len(users))
    absent = 0 if design is None else design.users_unheard(users)
    if absent:
        yield message("users-not-returned", users=absent, of=len(design.users))
