"""Which metric goes with which estimator in an evaluation, and why others do not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Scores, Ties
from truerank.estimators.biased.propensity import SNIPS
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.random_exposure import HorvitzThompson, Pooled
from truerank.exposure.kinds import BiasedExposure, Exposure, FullExposure, RandomExposure, Unlisted
from truerank.exposure.propensities import Fitted
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.uncertainty.intervals import Bootstrap, Interval, Population

DEFAULT_METRICS: tuple[Metric, ...] = (Recall(10), Recall(50), Precision(10), DCG(10))

Asked = tuple[Metric, Estimator]


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides whether a metric can be had from an estimator in this evaluation."""

    models: Mapping[str, Scores]
    exposure: Exposure
    ties: Ties
    interval: Interval
    n_items: float
    explicit: bool

    def refusal(self, metric: Metric, estimator: Estimator) -> str | None:
        """Why not, and what to use instead; None if it can."""
        if estimator.pool is Pool.JUDGED and self.exposure == FullExposure(Unlisted.NEGATIVE):
            return "it ranks the listed items only, and here those are the relevant ones; use full."
        if estimator.needs_size and math.isnan(self.n_items):
            return (
                "top lists do not tell how many candidates there are, which it needs. "
                "Give the catalogue: --items FILE or --n-items N."
            )
        reason = self._other_exposure(estimator)
        if reason is not None:
            return reason
        if self.interval.needs_rows and not estimator.design:
            return (
                "an interval for exactly these users is known for pooled, horvitz-thompson, hajek and full; "
                "use --interval population."
            )
        if self.ties not in estimator.ties:
            usable = ", ".join(sorted(estimator.ties))
            return f"ties {self.ties.value} would make ranks depend on what is unknown; use {usable}."
        return estimator.refusal(metric) or self._too_shallow(metric, estimator)

    def _other_exposure(self, estimator: Estimator) -> str | None:
        if isinstance(self.exposure, BiasedExposure):
            if estimator.biased:
                return None
            return "it does not correct for unequal exposure; use snips, ips or doubly-robust (naive, to compare)."
        if estimator.biased:
            return "it is for logs with propensities; say --exposure biased (Python: exposure=BiasedExposure())."
        if estimator.complete and isinstance(self.exposure, RandomExposure):
            return "it needs a label for every candidate, and randomly exposed labels are partial; use pooled."
        return None

    def _too_shallow(self, metric: Metric, estimator: Estimator) -> str | None:
        for name, each in self.models.items():
            if each.depth is None:
                continue
            if estimator.pool is Pool.JUDGED or self.explicit:
                return f"{name} gives top lists, but ranking within a set needs the score of every member."
            if metric.cutoff is None or metric.cutoff > each.depth:
                return (
                    f"{name} lists at most {each.depth} items per user, which is not deep enough; "
                    f"use a cut-off up to {each.depth}, or longer lists."
                )
        return None


def pairs(
    metrics: Sequence[Metric] | None,
    estimators: Sequence[Estimator] | None,
    rules: Rules,
    *,
    fitted: Fitted | None = None,
) -> tuple[list[Asked], list[str]]:
    """Every metric with every estimator that can give it; notes on the pairs left out."""
    asked: list[Asked] = []
    reasons: dict[tuple[int, int], tuple[str, str]] = {}
    chosen = DEFAULT_METRICS if metrics is None else tuple(dict.fromkeys(metrics))
    given = None if estimators is None else tuple(dict.fromkeys(estimators))
    for i, metric in enumerate(chosen):
        options = informed(given or defaults(metric, rules.exposure), rules.exposure, fitted)
        for j, estimator in enumerate(options):
            reason = rules.refusal(metric, estimator)
            if reason is None:
                asked.append((metric, estimator))
            else:
                reasons[i, j] = (f"{metric} with {estimator.name}", reason)
    used_metrics = {str(metric) for metric, _ in asked}
    used_estimators = {estimator.name for _, estimator in asked}
    for i, metric in enumerate(chosen):
        if metrics is not None and str(metric) not in used_metrics:
            raise RefusedError(_together(reason for (at, _), reason in reasons.items() if at == i))
    for j, estimator in enumerate(given or ()):
        if estimator.name not in used_estimators:
            raise RefusedError(_together(reason for (_, at), reason in reasons.items() if at == j))
    if not asked:
        raise RefusedError(_together(reasons.values()))
    return asked, [f"left out: {what}: {reason}" for what, reason in reasons.values()]


def _together(reasons: Iterable[tuple[str, str]]) -> str:
    """Each reason once, after all it refuses."""
    found: dict[str, list[str]] = {}
    for what, reason in reasons:
        found.setdefault(reason, []).append(what)
    return " ".join(f"{', '.join(whats)}: {reason}" for reason, whats in found.items())


def informed(estimators: Sequence[Estimator], exposure: Exposure, fitted: Fitted | None) -> list[Estimator]:
    """The same estimators with what the exposure knows: a declared rate, or propensities.

    A rate of an estimator's own that is another is an error.
    """
    declared = exposure.rate if isinstance(exposure, RandomExposure) else None
    found: list[Estimator] = []
    for each in estimators:
        own = getattr(each, "rate", None)
        if own not in (None, declared):
            raise InputError(f"{each.name} has rate {own}, the exposure has {declared}; declare it in RandomExposure.")
        made: Any = each
        if hasattr(each, "rate"):
            made = replace(made, rate=declared)
        found.append(replace(made, fitted=fitted) if hasattr(each, "fitted") else made)
    return found


def defaults(metric: Metric, exposure: Exposure) -> tuple[Estimator, ...]:
    """The estimators that are taken where none is asked for."""
    if isinstance(exposure, FullExposure):
        return (Full(),)
    if isinstance(exposure, BiasedExposure):
        return (SNIPS(),)
    pooled, expanded = Pooled(exposure.rate), HorvitzThompson(exposure.rate)
    return (pooled,) if pooled.refusal(metric) is None else (expanded,)


def interval_for(given: Interval | None, fitted: Fitted | None, *, seed: int) -> Interval:
    """The interval asked for; where propensities were fitted, one that fits them again."""
    if fitted is None or not fitted.fitted:
        return Population() if given is None else given
    if isinstance(given, Population):
        raise RefusedError(
            "the propensities were fitted to the same users, which a linearised interval does not know; "
            "use --bootstrap 1000 (Python: interval=Bootstrap(1000)), which fits them again in every replicate."
        )
    if given is not None and given.needs_rows:
        raise RefusedError(
            "an interval for exactly these users is not known where propensities were fitted to them; "
            "use --bootstrap 1000 (Python: interval=Bootstrap(1000)), for the population they come from."
        )
    return Bootstrap(seed=seed) if given is None else given


def clip_of(estimator: Estimator) -> float | None:
    """Where weights are cut, None where they are not."""
    clip = getattr(estimator, "clip", math.inf)
    return None if math.isinf(clip) else float(clip)
