"""Which metric goes with which estimator in an evaluation, and why others do not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from truerank import estimators
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import About, Clipping, Estimator, Exposed
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.metric import ListNeed, Metric, OfLists
from truerank.core.ranking import Pool, Scores, Ties
from truerank.core.wording import either, option
from truerank.estimators.assisted import Assisted, JudgeAlone
from truerank.estimators.lists import RecommendedLists
from truerank.estimators.predictions import Assistance, Prediction
from truerank.estimators.rows import check_clip
from truerank.evaluation.defaults import USUAL, check_defaults
from truerank.evaluation.list_facts import lacking
from truerank.exposure.design import ExposureDesign
from truerank.exposure.kinds import Exposure, FullExposure, Unlisted
from truerank.inference.intervals import Interval, Population
from truerank.metrics.dcg import DCG
from truerank.metrics.hit_rate import HitRate
from truerank.metrics.ndcg import NDCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.metrics.reciprocal_rank import ReciprocalRank
from truerank.metrics.worth import gains_of

PARTIAL: tuple[Metric, ...] = (Recall(10), Recall(50), Precision(10), DCG(10))
HELD_OUT: tuple[Metric, ...] = (Recall(10), Precision(10), NDCG(10), HitRate(10), ReciprocalRank(10))
DEFAULT_METRICS: Mapping[Exposed, tuple[Metric, ...]] = {
    Exposed.FULL: PARTIAL,
    Exposed.HOLDOUT: HELD_OUT,
    Exposed.RANDOM: PARTIAL,
    Exposed.DESIGNED: PARTIAL,
    Exposed.BIASED: PARTIAL,
}

MetricWith = tuple[Metric, Estimator]


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides whether a metric can be had from an estimator in this evaluation."""

    models: Mapping[str, Scores]
    exposure: Exposure
    ties: Ties
    interval: Interval
    n_items: float
    explicit: bool
    usual: Sequence[Estimator]  # the defaults, in order of preference
    complete_lists: frozenset[str] = frozenset()  # models whose lists are all they would ever show
    facts: frozenset[ListNeed] = frozenset(ListNeed)  # what is known beside lists

    def default(self, metric: Metric) -> Estimator:
        """The default estimator of a metric: the first that is able, else the one whose refusal says best why not."""
        gives = [estimator for estimator in self.usual if estimator.refusal(metric) is None] or self.usual[-1:]
        return next((estimator for estimator in gives if self.refusal(metric, estimator) is None), gives[-1])

    def refusal(self, metric: Metric, estimator: Estimator) -> str | None:
        """Why not, and what to use instead; None if it can."""
        if estimator.about.pool is Pool.JUDGED and self.exposure == FullExposure(Unlisted.NEGATIVE):
            return "it ranks the listed items only, and here those are the relevant ones; use full."
        if estimator.about.needs_size and math.isnan(self.n_items):
            return (
                "top lists do not tell how many candidates there are, which it needs. "
                f"Give the catalogue: {option('items FILE')} or {option('n_items N')}."
            )
        reason = self._other_exposure(estimator) or self._without_scale(metric, estimator)
        if reason is not None:
            return reason
        if self.interval.needs_rows and not (estimator.about.design and self.exposure.exposed is not Exposed.BIASED):
            return (
                f"an interval for exactly these users is known for {', '.join(with_design())} of uniform draws; "
                f"use {option('interval population', 'interval=Population()')}."
            )
        if self.ties not in estimator.about.ties:
            usable = ", ".join(sorted(estimator.about.ties))
            return f"ties {self.ties.value} would make ranks depend on what is unknown; use {usable}."
        missing = lacking(metric, self.facts) if isinstance(metric, OfLists) else None
        return estimator.refusal(metric) or missing or self._too_shallow(metric, estimator)

    def _other_exposure(self, estimator: Estimator) -> str | None:
        here, able = self.exposure.exposed, estimator.about.exposures
        if here in able:
            return None
        use = ", ".join(names_for(here))
        if Exposed.BIASED in able:
            return f"it is for logs with propensities; say {option('exposure biased')}."
        if here is Exposed.BIASED:
            return f"it does not correct for unequal exposure; use {use}."
        if estimator.about.complete:
            return f"it needs a label for every candidate, and randomly exposed labels are partial; use {use}."
        return f"it is not for {here} exposure; use {use}."

    def _without_scale(self, metric: Metric, estimator: Estimator) -> str | None:
        """Sums of inverse propensities mean nothing where propensities are known only up to a factor."""
        if not estimator.about.needs_scale or self.exposure.scaled:
            return None
        unscaled = [
            cls.about.name
            for cls in estimators.catalogue().values()
            if Exposed.BIASED in cls.about.exposures
            and cls.about.weighs
            and not cls.about.needs_scale
            and cls().refusal(metric) is None
        ]
        use = " or ".join(unscaled)
        return (
            "it needs propensities that are probabilities, and these are known only up to a factor; "
            f"use {use}, which divides by the weights."
        )

    def _too_shallow(self, metric: Metric, estimator: Estimator) -> str | None:
        for name, each in self.models.items():
            if each.depth is None or (name in self.complete_lists and not self._within(estimator)):
                continue
            if self._within(estimator) and not estimator.about.of_lists:
                return f"{name} gives top lists, but ranking within a set needs the score of every member."
            if metric.cutoff is None or metric.cutoff > each.depth:
                return (
                    f"{name} lists at most {each.depth} items per user, which is not deep enough; "
                    f"use a cut-off up to {each.depth}, or longer lists; if these are all it would ever show, say "
                    f"{option('lists complete')}."
                )
        return None

    def _within(self, estimator: Estimator) -> bool:
        """Whether items are ranked within a set, each of which needs a score."""
        return estimator.about.pool is Pool.JUDGED or self.explicit


def usable(metrics: Sequence[Metric], sample: Log) -> tuple[list[Metric], list[Message]]:
    """The metrics for which rows have labels or grades, and what to say of the others; refused if all are others."""
    able: list[Metric] = []
    refused: dict[Metric, InputError] = {}
    for metric in metrics:
        try:
            if not isinstance(metric, OfLists) or ListNeed.LABELS in metric.needs:
                gains_of(metric, sample)
            able.append(metric)
        except InputError as error:
            refused[metric] = error
    if not able:
        raise next(iter(refused.values()), InputError("no metrics given; expected at least one."))
    return able, [
        message("left-out-question", question=metric, reason=error.marked) for metric, error in refused.items()
    ]


def pairs(
    metrics: Sequence[Metric], given_estimators: Sequence[Estimator] | None, rules: Rules
) -> tuple[list[MetricWith], list[Message]]:
    """Every metric with every estimator that can give it; messages on the pairs left out; refused if none is left.

    Where no estimator is given, the usual one by rule, which is said.
    """
    able: list[MetricWith] = []
    tried: set[Estimator] = set()
    reasons: list[tuple[str, str]] = []
    given = None if given_estimators is None else tuple(dict.fromkeys(given_estimators))
    for metric in dict.fromkeys(metrics):
        for estimator in _chosen(metric, given, rules):
            tried.add(estimator)
            reason = rules.refusal(metric, estimator)
            if reason is None:
                able.append((metric, estimator))
            else:
                reasons.append((f"{metric} with {estimator.about.name}", reason))
    reasons += [
        (
            estimator.about.name,
            f"nothing that is asked for looks at labels; leave {option('estimator', 'estimators=')} out.",
        )
        for estimator in given or ()
        if estimator not in tried
    ]
    if not able:
        raise RefusedError(_together(reasons))
    ruled = check_defaults(able, rules.usual) if given is None else ()
    left_out = [message("left-out-question", question=question, reason=reason) for question, reason in reasons]
    return able, [*ruled, *left_out]


def _chosen(metric: Metric, given: Sequence[Estimator] | None, rules: Rules) -> Sequence[Estimator]:
    """The estimators that are asked for, or usual; metrics of lists have one way, whatever is asked of labels."""
    if isinstance(metric, OfLists) and not any(each.about.of_lists for each in given or ()):
        return (RecommendedLists(),)
    return given or (rules.default(metric),)


def assisted_by(
    predictions: Mapping[Assistance, Prediction], given: Sequence[Estimator] | None
) -> Sequence[Estimator] | None:
    """The estimators that are asked for, or what predictions are for; what a judge says alone is never missing."""
    if not predictions:
        return given
    asked = (Assisted(),) if given is None else tuple(given)
    return (*asked, JudgeAlone()) if Assistance.JUDGE in predictions else asked


def _together(reasons: Iterable[tuple[str, str]]) -> str:
    """Each reason once, after all it refuses."""
    found: dict[str, list[str]] = {}
    for what, reason in reasons:
        found.setdefault(reason, []).append(what)
    return " ".join(f"{', '.join(whats)}: {reason}" for reason, whats in found.items())


def names_for(exposed: Exposed) -> list[str]:
    """The estimators that are for a kind of log, by name: first the defaults, last those for comparison alone."""
    first = [estimator.about.name for estimator in USUAL[exposed]]
    every = (cls.about for cls in estimators.catalogue().values())
    able = {about.name: about for about in every if exposed in about.exposures and not about.of_lists}
    others = sorted((name for name in able if name not in first), key=lambda name: _weak(able[name]))
    return [*first, *others]


def _weak(about: About) -> bool:
    """Whether it says something else than what is asked: to compare with, not to decide by."""
    return bool(about.caution) or about.pool is Pool.JUDGED


def with_design() -> list[str]:
    """The estimators for which an interval for exactly these units is known."""
    return [cls.about.name for cls in estimators.catalogue().values() if cls.about.design]


def defaults_for(exposed: Exposed, clips: Sequence[float] | None) -> Sequence[Estimator]:
    """The default estimators of a kind of log; where weights are to be clipped, those that clip them."""
    clipping = [each for each in USUAL[exposed] if each.about.clipping is not Clipping.NONE]
    return USUAL[exposed] if clips is None or not clipping else clipping


def clips_for(given: Sequence[float] | None, asked: Sequence[MetricWith]) -> tuple[float, ...]:
    """Where the question cuts weights, by default nowhere; refused where no estimator has any to cut."""
    if given is None:
        return (math.inf,)
    if not given:
        raise InputError("no clips given; expected at least one, or none at all for weights as they are.")
    for clip in given:
        check_clip(clip)
    used = dict.fromkeys(estimator.about for _, estimator in asked)
    if all(about.clipping is Clipping.NONE for about in used):
        able = [cls.about.name for cls in estimators.catalogue().values() if cls.about.clipping is not Clipping.NONE]
        names = ", ".join(about.name for about in used)
        raise InputError(f"{option('clip', 'clips=')} cuts weights, which {names} has not; add {' or '.join(able)}.")
    return tuple(dict.fromkeys(float(clip) for clip in given))


def check_design(design: ExposureDesign | None, interval: Interval) -> None:
    """An interval for exactly these users is known for designs of one batch."""
    if design is not None and design.n_batches > 1 and interval.needs_rows:
        raise RefusedError(
            f"{design.source} has {design.n_batches} batches, for which an interval for exactly these users is not "
            f"known; use {option('interval population', 'interval=Population()')}."
        )


def interval_for(given: Interval | None, *, fitted: bool) -> Interval:
    """The interval asked for; where propensities are fitted, one that takes account of the fit."""
    chosen = Population() if given is None else given
    if fitted and not chosen.refits:
        raise RefusedError(
            "the propensities are fitted to the same users, which this interval would take as given. Leave "
            f"{either('--bootstrap and --interval', 'interval=')} out: the interval then fits them again without each "
            "part of the users; or give propensities in a column."
        )
    return chosen
