"""Checks of an off-policy evaluation: of the log, of its position models, of a target, of one estimate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.estimator import Clipping, Learned
from truerank.core.log import Logged
from truerank.core.messages import DETECTABLE, Message, message
from truerank.core.record import record
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Comparison, Estimate, Results
from truerank.core.wording import columns_option
from truerank.estimators.impressions import Limited, limited_by
from truerank.evaluation.counts import TargetCounts
from truerank.evaluation.impression_source import LogFacts
from truerank.evaluation.measure import MeasuredEstimate
from truerank.exposure.positions.fits import Parameter, PositionFit
from truerank.exposure.positions.learner import MOST_GROUPS, FittedPositions, from_clicks
from truerank.exposure.positions.position_models import Positions
from truerank.inference.intervals import Interval
from truerank.inference.tails import check_rewards, check_tails
from truerank.inference.verdicts import UnseenExposure
from truerank.inference.weights import WeightDiagnostics, check_unseen, unseen_of

if TYPE_CHECKING:
    from truerank.evaluation.impression_rows import ImpressionRows

FEW_UNITS = 30
FEW_PAYING = 20


# -------------------------------------------------------------------------------------------------------------- the log


def check_log(data: ImpressionRows, learned: Learned) -> Iterator[Message]:
    """What was read, where exposures come from, what was fitted."""
    facts = data.facts
    for sentence in facts.notes:
        yield message("log-read", sentence=sentence)
    if facts.cluster == facts.unit:
        columns = columns_option("user", by="truerank.read_impressions")
        yield message("independent-units", unit=facts.unit, columns=columns)
    positions = data.models(learned)
    if facts.propensity and data.loggers:
        yield message("propensity-unused")
    elif facts.propensity and positions is not None:
        yield message("propensity-used", positions=positions)
    if data.learner is not None:
        yield from check_fits(learned[data.learner], data.learner.positions, facts)
    if data.shares is not None and not learned[data.shares].nested:
        yield message("loggers-share-users")


def check_fits(fitted: FittedPositions, requested: Positions, facts: LogFacts) -> Iterator[Message]:
    """What was fitted, to how much, and whether it describes the log."""
    rejected, clicks = fitted.rejected(), from_clicks(requested)
    rows = f"impressions and their {facts.clicks}" if clicks else "lists"
    for place, fit in fitted.fits.items():
        parameters = ", ".join(map(_parameter, fit.parameters[:3]))
        yield message("position-fit", place=place, model=fit.model.name, parameters=parameters, n=fit.n, rows=rows)
        for sentence in fit.notes:
            yield message("position-fit.detail", place=place, sentence=sentence)
        if fit.list_end is not None:
            rank, at_end = fit.list_end, fit.n_censored
            yield message("list-end", place=place, rank=rank, lists=fit.n, lists_at_end=at_end, subjects=(place,))
        if place in rejected:
            observed = f"{facts.clicks}s" if clicks else "views"
            remedy = position_remedy(facts, clicks=clicks)
            yield message(
                "position-misfit", place=place, observed=observed, p=fit.goodness.p, remedy=remedy, subjects=(place,)
            )


def _parameter(fitted: Parameter) -> str:
    error = f" ± {fitted.stderr:.2g}" if math.isfinite(fitted.stderr) else ""
    return f"{fitted.name} = {fitted.value:.4g}{error}"


def position_remedy(facts: LogFacts, *, clicks: bool) -> str:
    """What to do about a position model that does not describe the log: the table, and the columns that it lacks."""
    surface = [] if facts.surfaces else ["surface (where in the product a list is scrolled)"]
    viewed = "viewed (which of the displayed items were viewed)"
    if clicks:
        wanted = [viewed, *surface]
    elif facts.ends_known:
        wanted = surface
    else:
        wanted = [*surface, "candidates (how many items a list has)", viewed]
    columns = f", and add to the log the column{'s' if len(wanted) > 1 else ''} {', '.join(wanted)}" if wanted else ""
    return f"Use the position model fit:table{columns}"


def check_question(
    requested: Positions | None, data: ImpressionRows, learned: Learned, interval: Interval
) -> Iterator[Message]:
    """Surfaces that are too many for a fit of their own, and logging policies whose number of sessions is fixed."""
    requests = () if requested is None or from_clicks(requested) else requested.requests
    per_surface = any(model.per_surface and place.surface is None for place, model in requests)
    if len(data.facts.surfaces) > MOST_GROUPS and per_surface:
        yield message("many-surfaces", most=MOST_GROUPS)
    if data.shares is not None and learned[data.shares].nested and interval.refits:
        yield message("loggers-fixed")


# ------------------------------------------------------------------------------------------------------------ a target


def check_target(name: str, counts: TargetCounts, facts: LogFacts) -> Iterator[Message]:
    """Sessions that a target does not rank, or the log does not have; items that it never exposes."""
    unlogged, never = counts.unlogged + facts.absent.get(name, 0), counts.never
    missing = facts.n_units - counts.ranked
    if missing > 0:
        yield message(
            "no-ranking", target=name, units=missing, n_units=facts.n_units, unit=facts.unit, subjects=(name,)
        )
    if unlogged:
        yield message("unlogged-sessions", target=name, sessions=unlogged, subjects=(name,))
    if never:
        yield message("never-shown", target=name, rows=never, n_rows=facts.n_rows, subjects=(name,))


def check_clips(choices: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Which clips were chosen, and how far that moves values."""
    for choice in choices:
        if choice["by_rule"]:
            clip, equal = ("inf" if choice[key] is None else f"{choice[key]:g}" for key in ("clip", "smallest_equal"))
            yield message(
                "clip-chosen",
                clip=clip,
                subject=choice["of"],
                reward=choice["reward"],
                estimator=choice["estimator"],
                equal="" if equal == clip else f", but for those from {equal} on that give the same,",
                change=choice["against_largest_clip"],
            )
    for name in dict.fromkeys(choice["estimator"] for choice in choices if not choice["by_rule"]):
        yield message("no-clip-chosen", estimator=name)


# --------------------------------------------------------------------------------------------------------- one estimate


@lru_cache(maxsize=4096)
def diagnostics_of(counts: TargetCounts, clip: float, limits: Limited) -> WeightDiagnostics:
    """The weights of a target where they are cut there."""
    unsupported, error = counts.support.share()
    return counts.weights[limits].diagnostics(clip, unsupported=unsupported, error=error)


def weight_diagnostics(estimate: MeasuredEstimate) -> WeightDiagnostics:
    clip = math.inf if estimate.info.clipping is Clipping.NONE else estimate.request.clip
    return diagnostics_of(estimate.counts, clip, limited_by(estimate.estimator))


def unseen_exposure(estimate: MeasuredEstimate) -> UnseenExposure:
    """What of a value the log cannot show."""
    request, counts = estimate.request, estimate.counts
    return unseen_of(
        weight_diagnostics(estimate),
        n_units=counts.ranked,
        weight=counts.weights[limited_by(estimate.estimator)].total,
        total=counts.support.total,
        value=estimate.terms.value(),
        beyond=estimate.info.beyond,
        per=request.metric.per,
        rewards=estimate.plan.rows.facts.rewards[request.reward].between,
    )


def check_units(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Units that are excluded, how many clusters have a reward, and whether a few of them carry the value."""
    facts, terms, request = estimate.plan.rows.facts, estimate.terms, estimate.request
    sums, cluster = terms.whole, facts.cluster
    missing = facts.n_units - int(estimate.measured.size[terms.defined].sum())
    if missing > 0:
        reason = request.metric.left_out
        yield message("left-out", units=missing, of=facts.n_units, unit=facts.unit, reason=reason)
    paying = int(np.count_nonzero(sums.clusters.sums(np.abs(sums.sums[:, 0]))))
    if not paying:
        yield message("no-reward")
    elif paying < FEW_PAYING:
        yield message("few-rewards", units=paying, cluster=cluster)
    used = terms.clusters.has(terms.defined)
    n_used, strata = int(np.count_nonzero(used)), terms.strata
    linear = estimate.plan.question.interval.refits
    if n_used == 1:
        yield message("no-interval.single", cluster=cluster)
    elif linear and strata is not None and (np.bincount(strata[used]) == 1).any():
        yield message("no-interval.stratum", cluster=cluster)
    elif 0 < n_used < FEW_UNITS:
        yield message("few-units", units=n_used, cluster=cluster)
    yield from check_tails(sums, cluster=cluster)
    yield from check_rewards(estimate.measured.counts.rewards.get(request.reward))


def check_weights(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Weights that make a value unreliable, and the bounds of what the log cannot show."""
    facts, info, request = estimate.plan.rows.facts, estimate.info, estimate.request
    if info.clipping is not Clipping.NONE:
        kind = "viewed rows" if facts.logged is Logged.VIEWED else "displayed rows"
        yield from weight_diagnostics(estimate).check(request.clip, kind=kind, beyond=info.beyond)
        between = facts.rewards[request.reward].between
        yield from check_unseen(estimate.terms.value(), unseen_exposure(estimate), between)
    if info.caution:
        yield message("for-comparison", reason=info.caution)


ESTIMATE_CHECKS: tuple[Callable[[MeasuredEstimate], Iterator[Message]], ...] = (check_units, check_weights)


# ------------------------------------------------------------------------------------------- rejected position models


@record
class RejectedFits:
    """Fitted position models that do not describe the log (goodness of fit, p < .01), by place; and what to do."""

    fits: Mapping[str, PositionFit]
    facts: LogFacts
    from_clicks: bool

    def message(self, key: str, *subjects: str, **fields: Any) -> Message:
        """Why a comparison carries no verdict, or that a value is another one with the table."""
        return message(
            f"position-model-rejected{key}",
            fits=", ".join(f"{fit.model.name} of {place}" for place, fit in self.fits.items()),
            observed="clicks" if self.from_clicks else "scroll depths",
            p=min(fit.goodness.p for fit in self.fits.values()),
            remedy=position_remedy(self.facts, clicks=self.from_clicks),
            subjects=subjects,
            **fields,
        )


def checked_by_tables(results: Results, by_table: Results | None, rejected: RejectedFits) -> Results:
    """The results with every verdict taken away that is not the same with the table of observed views.

    `by_table` are the same results with the table (Kaplan-Meier) at the places whose fit is rejected (statistics 11.6);
    None where the log has no scroll depths. An estimate whose interval does not contain its value with the table
    carries a caution.
    """
    tables = {} if by_table is None else {_key(comparison): comparison for comparison in by_table.comparisons}
    values = {} if by_table is None else {_key(estimate): estimate.value for estimate in by_table.estimates}

    def compared(fitted: Comparison) -> Comparison:
        table = tables.get(_key(fitted))
        if fitted.verdict == INSUFFICIENT or (table is not None and table.verdict == fitted.verdict):
            return fitted
        pair = (fitted.model, fitted.baseline)
        if table is None:
            reason = rejected.message("", *pair, numbers={"difference": fitted.difference})
        else:
            reason = rejected.message(
                ".table",
                *pair,
                verdict=fitted.verdict,
                difference=fitted.difference,
                verdict_by_table=table.verdict,
                difference_by_table=table.difference,
            )
        return replace(fitted, verdict=INSUFFICIENT, reasons=(reason,))

    def estimated(estimate: Estimate) -> Estimate:
        value = values.get(_key(estimate), estimate.value)
        if not (value < estimate.low or value > estimate.high):
            return estimate
        caution = rejected.message(".value", estimate.model, value_by_table=value)
        return replace(estimate, warnings=(*estimate.warnings, caution))

    comparisons = tuple(map(compared, results.comparisons))
    messages = results.messages
    if all(comparison.verdict != NOT_SHOWN for comparison in comparisons):
        messages = tuple(message for message in messages if message.code not in DETECTABLE)
    return replace(
        results, estimates=tuple(map(estimated, results.estimates)), comparisons=comparisons, messages=messages
    )


def _key(result: Estimate | Comparison) -> tuple[Any, ...]:
    baseline = result.baseline if isinstance(result, Comparison) else None
    return result.model, baseline, result.metric, result.estimator, result.reward, result.clip, result.segment
