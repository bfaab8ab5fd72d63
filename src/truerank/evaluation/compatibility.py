"""What is requested of labels, the defaults, which metric goes with which estimator, and why others do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

from truerank import estimators
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Clipping, Estimator, EstimatorInfo, Exposed
from truerank.core.ids import Ids
from truerank.core.language import Kind, as_value
from truerank.core.log import Log
from truerank.core.messages import RULE, Message, message
from truerank.core.metric import ListNeed, Metric, OfLists
from truerank.core.options import ListsAre
from truerank.core.ranking import Pool, Scores, Ties
from truerank.core.record import record
from truerank.core.wording import option
from truerank.estimators import ESTIMATORS
from truerank.estimators.assisted import Assisted, JudgeAlone
from truerank.estimators.full import Full, Holdout
from truerank.estimators.lists import RecommendedLists
from truerank.estimators.predictions import Assistance
from truerank.estimators.ratios import ExpandedPairs, PostStratified
from truerank.estimators.rows import check_clip
from truerank.estimators.weighted import SNIPS, Hajek, HorvitzThompson, Pooled
from truerank.evaluation.prepare import allowed
from truerank.evaluation.presets import ToolPreset
from truerank.evaluation.question import Question
from truerank.exposure.kinds import EXPOSURES, Exposure, FullExposure, Unlisted
from truerank.inference.balance import FEWEST_ROWS
from truerank.metrics import METRICS
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.listwise import NDCG, HitRate, ReciprocalRank
from truerank.ranking.candidates import Overlap

PARTIAL: tuple[Metric, ...] = (Recall(10), Recall(50), Precision(10), DCG(10))
HELD_OUT: tuple[Metric, ...] = (Recall(10), Precision(10), NDCG(10), HitRate(10), ReciprocalRank(10))
DEFAULT_METRICS: Mapping[Exposed, tuple[Metric, ...]] = {
    exposed: HELD_OUT if exposed is Exposed.HOLDOUT else PARTIAL for exposed in Exposed if exposed is not Exposed.RANKED
}

# the first that can give a metric is the default: post-stratified for recall, Hájek's ratio (snips) for sums over
# lists; those after it are for what it cannot do (strict ties, lists of an unknown catalogue, clipped weights). Not
# by the number of rows: with such a rule one more row would change the value and the verdict
DEFAULT_ESTIMATORS: Mapping[Exposed, tuple[Estimator, ...]] = {
    Exposed.FULL: (Full(),),
    Exposed.HOLDOUT: (Holdout(),),
    Exposed.RANDOM: (PostStratified(), Hajek(), ExpandedPairs(), Pooled(), HorvitzThompson()),
    Exposed.DESIGNED: (PostStratified(), Hajek(), Pooled(), HorvitzThompson()),
    Exposed.BIASED: (PostStratified(), SNIPS()),
}

MetricWith = tuple[Metric, Estimator]


@record(kw_only=True)
class LabelQuestion(Question):
    """What is requested of labels."""

    kind: ClassVar[Kind[Any]] = ESTIMATORS

    exposure: Any
    metrics: Any = None
    overlap: Overlap = Overlap.DROP
    items: Any = None
    n_items: int | None = None
    lists: ListsAre | None = None
    preset: ToolPreset | None = None
    item_groups: Any = None
    item_features: Any = None
    judge: Any = None
    assist: Any = None
    ties: Ties = Ties.EXPECTED

    def __post_init__(self) -> None:
        Question.__post_init__(self)
        self._parse(metrics=METRICS)
        object.__setattr__(self, "exposure", as_value(self.exposure, EXPOSURES))
        if self.items is not None and not isinstance(self.items, Ids):
            object.__setattr__(self, "items", Ids.of(self.items, where="items"))
        if self.overlap is Overlap.KEEP and self.exposed not in (Exposed.FULL, Exposed.HOLDOUT):
            raise RefusedError(
                f"{option('overlap keep')} makes the candidates depend on which items were judged, so a sample of them "
                f"stands for nothing; use {option('overlap drop')}, or leave {option('exclude')} out."
            )
        if self.preset is not None and not (self.exposed is Exposed.HOLDOUT and self.estimators is None):
            raise RefusedError(
                f"{option(f'like {self.preset.name}')} chooses metrics and users as that tool does, for "
                f"{option('exposure holdout')} alone; leave {option('estimator', 'estimators=')} out, or "
                f"{option('like')}."
            )
        design = getattr(self.exposure, "design", None)
        if design is not None and design.n_batches > 1 and self.interval.needs_rows:
            raise RefusedError(
                f"{design.source} has {design.n_batches} batches, for which an interval for exactly these users is not "
                f"known; use {option('interval population', 'interval=Population()')}."
            )

    @property
    def exposed(self) -> Exposed:
        exposure: Exposure = self.exposure
        return exposure.exposed

    @property
    def requested_metrics(self) -> Sequence[Metric]:
        return DEFAULT_METRICS[self.exposed] if self.metrics is None else self.metrics

    @property
    def default_estimators(self) -> Sequence[Estimator]:
        """Those of this kind of labels, in order of preference; where weights are to be clipped, those that clip."""
        defaults = DEFAULT_ESTIMATORS[self.exposed]
        clipping = [estimator for estimator in defaults if estimator.info.clipping is not Clipping.NONE]
        return defaults if self.clips is None or not clipping else clipping


@record
class Compatibility:
    """Which estimators can give a metric, with the tables of these `roles`."""

    question: LabelQuestion
    models: Mapping[str, Scores]
    n_items: float
    roles: Collection[str]

    @property
    def facts(self) -> set[ListNeed]:
        """What is known beside lists."""
        has = {
            ListNeed.CATALOGUE: not math.isnan(self.n_items),
            ListNeed.POPULARITY: "exclude" in self.roles,
            ListNeed.FEATURES: self.question.item_features is not None,
            ListNeed.LABELS: self.question.exposed in (Exposed.FULL, Exposed.HOLDOUT),
        }
        return {need for need, there in has.items() if there}

    def default(self, metric: Metric) -> Estimator:
        """The default estimator of a metric: the first that is able, else the one whose refusal says best why not."""
        defaults = self.question.default_estimators
        gives = [estimator for estimator in defaults if estimator.refusal(metric) is None] or defaults[-1:]
        return next((estimator for estimator in gives if self.refusal(metric, estimator) is None), gives[-1])

    def refusal(self, metric: Metric, estimator: Estimator) -> str | None:
        """Why not, and what to use instead; None if it can."""
        return next(self._reasons(metric, estimator), None)

    def _reasons(self, metric: Metric, estimator: Estimator) -> Iterator[str]:
        info, question = estimator.info, self.question
        exposure, here, ties = question.exposure, question.exposed, question.ties
        if info.pool is Pool.JUDGED and exposure == FullExposure(Unlisted.NEGATIVE):
            yield "it ranks the listed items only, and here those are the relevant ones; use full."
        if info.needs_size and math.isnan(self.n_items):
            yield (
                "top lists do not tell how many candidates there are, which it needs. "
                f"Give the catalogue: {option('items FILE')} or {option('n_items N')}; or the pool from which "
                f"labels were sampled: {option('candidates FILE')}."
            )
        if here not in info.exposures:
            if Exposed.BIASED in info.exposures:
                yield f"it is for logs with propensities; say {option('exposure biased')}."
            elif here is Exposed.BIASED:
                yield f"it does not correct for unequal exposure; use {', '.join(names_for(here))}."
            elif info.complete:
                use = ", ".join(names_for(here))
                yield f"it needs a label for every candidate, and randomly exposed labels are partial; use {use}."
            yield f"it is not for {here} exposure; use {', '.join(names_for(here))}."
        if info.needs_scale and not exposure.scaled:  # sums of inverse propensities mean nothing up to a factor
            unscaled = _named(
                lambda other: (
                    Exposed.BIASED in other.info.exposures
                    and other.info.weighs
                    and not other.info.needs_scale
                    and other().refusal(metric) is None
                )
            )
            yield (
                "it needs propensities that are probabilities, and these are known only up to a factor; "
                f"use {' or '.join(unscaled)}, which divides by the weights."
            )
        if question.interval.needs_rows and not (info.design and here is not Exposed.BIASED):
            able = ", ".join(_named(lambda other: other.info.design))
            yield (
                f"an interval for exactly these users is known for {able} of uniform draws; "
                f"use {option('interval population', 'interval=Population()')}."
            )
        if ties not in info.ties:
            usable = ", ".join(sorted(info.ties))
            yield f"ties {ties.value} would make ranks depend on what is unknown; use {usable}."
        missing = lacking(metric, self.facts) if isinstance(metric, OfLists) else None
        reason = estimator.refusal(metric) or missing
        if reason is not None:
            yield reason
        yield from self._too_shallow(metric, info)

    def _too_shallow(self, metric: Metric, info: EstimatorInfo) -> Iterator[str]:
        # within a set, members beyond a list have no order; complete lists are all that a model would ever display
        judged = info.pool is Pool.JUDGED
        within = judged or "candidates" in self.roles  # of a user's own
        default = ListsAre.COMPLETE if self.question.exposed is Exposed.HOLDOUT else None
        complete = (self.question.lists or default) is ListsAre.COMPLETE
        for name, scores in self.models.items():
            if scores.depth is None or (complete and not within):
                continue
            deep = metric.cutoff is not None and metric.cutoff <= scores.depth
            if judged and not info.of_lists:
                yield f"{name} gives top lists, but ranking the labelled items needs the score of each of them."
            if within and not info.of_lists and not deep:
                yield (
                    f"{name} lists only {scores.depth} candidates of some user; use a cut-off up to "
                    f"{scores.depth}, longer lists, or candidates that the models list."
                )
            if not deep:
                yield (
                    f"{name} lists at most {scores.depth} items per user, which is not deep enough; "
                    f"use a cut-off up to {scores.depth}, or longer lists; if these are all it would ever display, use "
                    f"{option('lists complete')}."
                )


def _named(able: Callable[[type[Estimator]], bool]) -> list[str]:
    """The names of the estimators that are so."""
    return [cls.info.name for cls in estimators.catalogue().values() if able(cls)]


def usable(metrics: Sequence[Metric], sample: Log) -> tuple[list[Metric], list[Message]]:
    """The metrics for which rows have labels or grades, and what to say of the others; refused if all are others."""
    able: list[Metric] = []
    refused: dict[Metric, InputError] = {}
    for metric in metrics:
        try:
            if not isinstance(metric, OfLists) or ListNeed.LABELS in metric.needs:
                metric.gains(sample)
            able.append(metric)
        except InputError as error:
            refused[metric] = error
    if not able:
        raise next(iter(refused.values()), InputError("no metrics given; expected at least one."))
    return able, [
        message("left-out-question", question=metric, reason=error.marked) for metric, error in refused.items()
    ]


def metrics_with_estimators(
    metrics: Sequence[Metric], chosen: Sequence[Estimator] | None, compatibility: Compatibility
) -> tuple[list[MetricWith], list[Message]]:
    """Every metric with every estimator that can give it; messages on the pairs left out; refused if none is left.

    Where no estimator is chosen, the default one, which is reported.
    """
    requested = None if chosen is None else tuple(dict.fromkeys(chosen))
    pairs: list[MetricWith] = []
    for metric in dict.fromkeys(metrics):
        candidates = requested or (compatibility.default(metric),)
        if isinstance(metric, OfLists) and not any(estimator.info.of_lists for estimator in requested or ()):
            candidates = (RecommendedLists(),)  # metrics of lists have one way, whatever is requested of labels
        pairs += product([metric], candidates)

    def question(metric: Metric, estimator: Estimator) -> str:
        return f"{metric} with {estimator.info.name}" if requested else str(metric)

    able, refused = allowed(pairs, compatibility.refusal, question)
    reasons = [(question(metric, estimator), reason) for metric, estimator, reason in refused]
    unused = f"nothing that is asked for looks at labels; leave {option('estimator', 'estimators=')} out."
    tried = {estimator for _, estimator in pairs}
    reasons += [(estimator.info.name, unused) for estimator in requested or () if estimator not in tried]
    defaults = check_defaults(able, compatibility.question.default_estimators) if requested is None else ()
    return able, [*defaults, *(message("left-out-question", question=name, reason=reason) for name, reason in reasons)]


def check_defaults(chosen: Sequence[MetricWith], defaults: Sequence[Estimator]) -> tuple[Message, ...]:
    """Which estimators are the defaults here; nothing where every label is known or taken as known."""
    by_name: dict[str, list[str]] = {}
    for metric, estimator in chosen:
        if estimator in defaults:
            by_name.setdefault(estimator.info.name, []).append(str(metric))
    if not by_name or all(estimator.info.complete for estimator in defaults):
        return ()
    texts = ", ".join(f"{name} ({', '.join(metrics)})" for name, metrics in by_name.items())
    return (message(RULE, defaults=texts, fewest=FEWEST_ROWS),)


def assisted_by(kinds: Collection[Assistance], chosen: Sequence[Estimator] | None) -> Sequence[Estimator] | None:
    """The chosen estimators, or those that predictions are for; the judge alone is always beside them."""
    if not kinds:
        return chosen
    requested = (Assisted(),) if chosen is None else tuple(chosen)
    return (*requested, JudgeAlone()) if Assistance.JUDGE in kinds else requested


def names_for(exposed: Exposed) -> list[str]:
    """The estimators that are for a kind of log, by name: first the defaults, last those for comparison alone."""
    first = [estimator.info.name for estimator in DEFAULT_ESTIMATORS[exposed]]
    every = (cls.info for cls in estimators.catalogue().values())
    able = {info.name: info for info in every if exposed in info.exposures and not info.of_lists}
    others = [name for name in able if name not in first]
    return [*first, *sorted(others, key=lambda name: bool(able[name].caution) or able[name].pool is Pool.JUDGED)]


def check_clips(question: LabelQuestion, requested: Sequence[MetricWith]) -> None:
    """Refuse clips where no estimator has weights to cut."""
    if question.clips is None:
        return
    if not question.clips:
        raise InputError("no clips given; expected at least one, or none at all for weights as they are.")
    for clip in question.clips:
        check_clip(clip)
    used = dict.fromkeys(estimator.info for _, estimator in requested)
    if all(info.clipping is Clipping.NONE for info in used):
        able = _named(lambda estimator: estimator.info.clipping is not Clipping.NONE)
        names = ", ".join(info.name for info in used)
        raise InputError(f"{option('clip', 'clips=')} cuts weights, which {names} has not; add {' or '.join(able)}.")


# ------------------------------------------------------------------------------------------ what metrics of lists need


def needed(metrics: Collection[Metric]) -> frozenset[ListNeed]:
    """What these metrics need of lists."""
    return frozenset(need for metric in metrics if isinstance(metric, OfLists) for need in metric.needs)


def lacking(metric: OfLists, facts: Collection[ListNeed]) -> str | None:
    """Why a metric cannot be had from what is known, and what to give; None if it can."""
    return next((LACKING[need] for need in ListNeed if need in metric.needs and need not in facts), None)


LACKING = {
    ListNeed.CATALOGUE: (
        "top lists do not tell how many items there are, which it needs. Give the catalogue: "
        f"{option('items FILE')} or {option('n_items N')}."
    ),
    ListNeed.POPULARITY: f"it needs to know how popular items are; give the training log: {option('exclude TRAIN')}.",
    ListNeed.FEATURES: f"it needs features of the items; give them: {option('item_features FILE')}.",
    ListNeed.LABELS: (
        "it needs to know which listed items are relevant, and these labels are partial; use it with "
        f"{option('exposure full')} or {option('exposure holdout')}, or Novelty, which needs no labels."
    ),
}
