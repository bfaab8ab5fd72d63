"""Which recommender is better, by how much, and how sure is that: rows from labels in front of the one pipeline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from truerank.core.errors import InputError
from truerank.core.estimator import Estimator, Exposed, Learner, Request
from truerank.core.ids import Ids
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.metric import Metric, OfLists, is_directed
from truerank.core.options import ListsAre
from truerank.core.progress import Progress, Watching, watching
from truerank.core.provenance import Provenance, versions
from truerank.core.ranking import Scores, Ties
from truerank.core.record import record
from truerank.core.results import Results
from truerank.core.validation import ANYTHING, NAMED, checked_arguments
from truerank.engines.engine import ONE_THREAD, Workers, chunks_wanted
from truerank.engines.named import as_engine
from truerank.estimators.predictions import Assistance, Prediction
from truerank.estimators.rows import DESIGNED, UNIFORM
from truerank.evaluation.compatibility import (
    Compatibility,
    LabelQuestion,
    assisted_by,
    check_clips,
    metrics_with_estimators,
    usable,
)
from truerank.evaluation.conclude import concluded
from truerank.evaluation.input_checks import (
    check_absent_users,
    check_holdout,
    check_scores,
    check_without_exclusions,
)
from truerank.evaluation.label_facts import (
    LearningContext,
    catalogued,
    check_judge,
    check_numbers,
    list_facts,
    predictions_of,
    read_judge,
    sizes_of,
    with_judge_users,
)
from truerank.evaluation.label_rows import LabelRows, with_scores
from truerank.evaluation.label_source import (
    CatalogueLayout,
    LabelSource,
    Rows,
    check_users,
    chunked,
    first_rows,
    inputs_of,
    rows_of,
    training_rows,
)
from truerank.evaluation.measure import measured_by
from truerank.evaluation.prepare import EvaluationData, check_call, prepare
from truerank.evaluation.presets import preset_named
from truerank.evaluation.question import POPULATION, Adjust, Plan, PlannedEstimate
from truerank.evaluation.units import items_by_group
from truerank.exposure.kinds import Exposure, FullExposure, HoldoutExposure
from truerank.inference.intervals import Interval
from truerank.io.columns import RULE, PositiveRule
from truerank.io.read import scan
from truerank.io.spill import Scratch, scratch
from truerank.metrics.discounts import bounds_of, reward_of
from truerank.ranking.candidates import Catalogue, Overlap
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

    Parameters
    ----------
    scores : by the name of each model a matrix, frame, file, TREC run or fitted model
    labels : rows of user, item and label: a frame, a file, a Log
    exposure : how labels were collected: "full" (default), "holdout", "random", "designed", "biased", or a tr.exposure
    positive : which values are positive, as ">3"; not needed for 0/1
    metrics, estimators : such as "Recall@50" or "Recall@{1,5,50}", and "hajek"; default by exposure and metric
    clips : upper limits of the weights of rows that were unlikely to be exposed
    exclude, overlap : training pairs, which are no candidates; labelled ones are "drop" (default), "keep" or "error"
    candidates, items, n_items : pairs of each user; else the catalogue or its size, where scores do not give it
    lists : "complete" (default with "holdout"): lists are all that a model would display; "top": of a longer ranking
    like : a tool, as "trec_eval" or "rectools", whose metrics and users are used, so that values equal its own
    item_groups, item_features : also the metrics of each group of items; features for the distances of Diversity@K
    judge, assist : labels or probabilities of a judge, or scores: they predict missing labels for "assisted"
    baseline : compare every model with this one instead of all pairs
    ties : order of equal scores: "expected" (default), "random", "optimistic", "pessimistic" or "strict"
    interval : tr.Population() (default), tr.Design() (for exactly these users) or tr.Bootstrap(1000)
    level, seed : confidence level; the same seed gives the same results
    adjust : p and intervals together over the comparisons of one metric and estimator ("estimand"), or over "all"
    threads, block_users, engine, progress : "local", "dask", "dask:ADDRESS", "spark"; results do not depend on them

    >>> import numpy as np, polars as pl
    >>> scores = {"a": np.array([[3.0, 2, 1], [3, 2, 1]]), "b": np.array([[1.0, 2, 3], [3, 1, 2]])}
    >>> labels = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2], "label": [1, 0, 0, 1, 0, 0]}
    >>> results = evaluate(scores, pl.DataFrame(labels), metrics=["Recall@1"])
    >>> [(estimate.model, estimate.value) for estimate in results.estimates], results.comparisons[0].difference
    ([('a', 1.0), ('b', 0.5)], -0.5)
    """
    default: Exposure = FullExposure() if like is None else HoldoutExposure()
    question = LabelQuestion(
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
        judge=None if judge is None else read_judge(judge, positive=positive),
        assist=assist,
        baseline=baseline,
        ties=as_value(ties, Ties),
        interval=interval or POPULATION,
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
        alone = workers.here and source.n_chunks == 1  # threads are within the only chunk, or over chunks
        within: dict[str, Any] = {"threads": workers.threads, "progress": say} if alone else {}
        plan = replace(plan, rows=replace(plan.rows, block_users=block_users, **within))
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
    data = label_data(question, scores, tables, space=space, progress=progress, n_chunks=chunks_wanted(workers))
    plan = prepare(data, workers=workers, progress=progress)
    users, items = data.tables["labels"].users, data.catalogue.items
    aligned = {name: Aligned.of(part, users=users, items=items, name=name) for name, part in data.scores.items()}
    return plan, with_scores(data.chunks, aligned)


@record(kw_only=True, eq=False)
class LabelData(EvaluationData):
    """Labels laid over the catalogue, and the scores of models; `tables` by their role.

    `metrics` are those for which rows have labels, `sample` some of the rows; `predictions` are what assists.
    """

    instead: ClassVar[str] = "propensities in a column"

    question: LabelQuestion
    tables: Mapping[str, Rows]
    scores: Mapping[str, Scores]
    sample: Log
    metrics: Sequence[Metric]
    catalogue: Catalogue
    predictions: Mapping[Assistance, Prediction]

    def requests(self) -> tuple[list[PlannedEstimate], list[Message]]:
        """Every estimator with every metric that it can give, and messages on what is left out."""
        question, rows, preset = self.question, self.draft.rows, self.question.preset
        estimators = assisted_by(self.predictions, question.estimators)
        compatibility = Compatibility(question, self.scores, rows.n_items, self.tables)
        if preset is not None:
            estimators = [preset.users] if any(not isinstance(metric, OfLists) for metric in self.metrics) else None
        able, left_out = metrics_with_estimators(self.metrics, estimators, compatibility)
        if preset is not None:
            left_out += preset.messages(question.requested_metrics)
        check_clips(question, able)
        if self.sample.inclusion is not None and not any("inclusion" in made.info.uses for _, made in able):
            left_out.append(message("inclusion-unused", source=self.tables["labels"].source, rows=self.draft.n_rows))
        return [self._planned(*pair) for pair in able], left_out

    def _planned(self, metric: Metric, estimator: Estimator) -> PlannedEstimate:
        info, rows = estimator.info, self.draft.rows
        assumptions = info.assumptions
        if rows.exposed is Exposed.DESIGNED:
            assumptions = tuple(DESIGNED if text == UNIFORM else text for text in assumptions)
        return PlannedEstimate(
            estimator=estimator,
            request=Request(metric, reward_of(metric, self.sample)),
            name=str(metric),
            models=self.draft.models,
            cutoff=metric.cutoff,
            directed=is_directed(metric),
            bounds=bounds_of(metric, n_items=math.inf if math.isnan(rows.n_items) else rows.n_items),
            assumptions=assumptions,
            refitted=info.weighs,
            left_out=info.left_out,
        )

    def learners(self, planned: PlannedEstimate) -> Sequence[Learner]:
        return planned.estimator.prepare(LearningContext(self.learner, (planned.request,), self.predictions))

    def finish(self, plan: Plan[LabelRows]) -> Plan[LabelRows]:
        estimates, exposed = plan.estimates, plan.rows.exposed
        description = self.question.exposure.description(plan.learned)
        if description is not None and exposed is not Exposed.DESIGNED:
            estimates = tuple(
                replace(planned, assumptions=(*planned.assumptions, description)) if planned.refitted else planned
                for planned in estimates
            )
        # of uniform draws also for what more of them would show, as long as they are few
        few = exposed is Exposed.RANDOM and plan.n_rows * len(plan.models) * len(estimates) <= MOST_ROWS
        rows = replace(plan.rows, description=description)
        return replace(plan, estimates=estimates, rows=rows, keeps_rows=plan.keeps_rows or few)


def label_data(
    question: LabelQuestion,
    scores: Mapping[str, Any],
    tables: Mapping[str, Any],
    *,
    space: Scratch,
    progress: Progress | None,
    n_chunks: int,
) -> LabelData:
    """Labels, exclusions and candidates as they were read, laid over the catalogue of the models."""
    rows = {role: rows_of(table, role=role, progress=progress) for role, table in tables.items() if table is not None}
    labels = rows.get("labels")
    if labels is None or len(labels) == 0:
        where = "labels" if labels is None else labels.source
        raise InputError(f"{where}: no rows; expected labelled pairs of users and items.")
    exposed, preset, learner = question.exposed, question.preset, question.exposure.learner(question.seed)
    requested, relevant_rows = question.requested_metrics, list[Message]()
    given_scores = {name: as_scores(part, name=name) for name, part in scores.items()}
    if preset is not None:
        labels, relevant_rows = preset.labelled(labels)
        requested = [preset.form(metric) for metric in requested]
    rows["labels"], where, labelled_users = labels, labels.source, labels.users
    sample = question.exposure.labelled(first_rows(labels))
    metrics, without_labels = usable(requested, sample)
    # two sources may share a name, so they are told apart by their role
    others = {f"{part.source} ({role})": part.items for role, part in rows.items() if role != "candidates"}
    beside = {role: part for role, part in rows.items() if role != "labels"}
    numbered = check_numbers(given_scores, {where: labels, **beside}, items=question.items)
    if preset is not None:
        given_scores = {name: preset.scores(part) for name, part in given_scores.items()}
    models, catalogue = catalogued(question, given_scores, others, rows.get("candidates"))
    check_users(models, labels.users, where)
    predictions, predicted_from = predictions_of(question)
    check_judge(predictions, sample)
    labels = rows["labels"] = with_judge_users(question, labels, predictions, models)
    layout = CatalogueLayout(catalogue, question.exposure, question.overlap)
    chunks, on_disk = chunked(layout, rows, space=space, progress=progress, n_chunks=n_chunks)
    excluded = rows.get("exclude")
    notes = [text for part in (*rows.values(), *models.values()) for text in getattr(part, "notes", ())]
    n_users, n_items, added = len(labels.users), catalogue.n_items, len(labels.users) - len(labelled_users)
    return LabelData(
        draft=Plan(
            question=question,
            models=tuple(models),
            rows=LabelRows(
                exposed=exposed,
                n_items=n_items,
                ties=question.ties,
                excluded=None if excluded is None else (excluded.source, len(excluded)),
                segments=items_by_group(question.item_groups, catalogue.items),
                judge_users=added,
            ),
            n_rows=len(labels),
            n_units=n_users,
            ids=(labels.users.values, labels.users.values),
            record=Provenance(
                inputs=(*inputs_of(rows, models), *predicted_from),
                settings={
                    "models": list(models),
                    "exposure": str(question.exposure),
                    "ties": question.ties.value,
                    "interval": str(question.interval),
                    "level": question.level,
                    "baseline": question.baseline,
                    "seed": question.seed,
                },
                counts={"users": n_users, "items": None if math.isnan(n_items) else int(n_items)},
                unit="user",
                population=f"{n_users:,} users of {where}{' and of the judge' if added else ''}",
                versions=versions(),
            ),
            messages=(
                *(message("columns", sentence=text) for text in notes),
                *without_labels,
                *relevant_rows,
                *(check_holdout(where, first_rows(labels)) if exposed is Exposed.HOLDOUT else ()),
                *check_absent_users(len(labelled_users), labels.users, question.exposure),
                *(check_without_exclusions(models, exposed, where) if excluded is None else ()),
                *numbered,
                *check_scores(models, labels, catalogue.items, source=where),
            ),
        ),
        question=question,
        chunks=chunks,
        keys=labels.users.keys,
        learner=learner,
        facts={
            "users": labels.users,
            "lists": list_facts(question, metrics, catalogue, training_rows(on_disk, excluded)),
            "predictions": predictions,
            "propensity": learner,
            "rate": question.exposure.rate,
            "exposed": exposed,
            "exactly_these": question.interval.needs_rows,
        },
        sizes=sizes_of,
        tables=rows,
        scores=models,
        sample=sample,
        metrics=metrics,
        catalogue=catalogue,
        predictions=predictions,
    )
