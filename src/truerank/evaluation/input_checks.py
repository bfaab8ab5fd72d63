"""Checks of what goes into an evaluation: of labels and scores, of a log of impressions and the models fitted to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.estimator import Exposed, Learned
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.messages import DETECTABLE, Message, message
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, Comparison, Estimate, Results
from truerank.core.wording import columns_option
from truerank.evaluation.impression_source import LogFacts
from truerank.exposure.kinds import Exposure
from truerank.exposure.positions.fits import Parameter, PositionFit
from truerank.exposure.positions.learner import MOST_GROUPS, FittedPositions, from_clicks
from truerank.exposure.positions.position_models import Positions
from truerank.inference.intervals import Interval
from truerank.io.text import are_qrels
from truerank.ranking.scores.scores import Lists

if TYPE_CHECKING:
    from truerank.evaluation.impression_rows import ImpressionRows

FEW = 0.5  # of the users, below which ids may be those of other data


# -------------------------------------------------------------------------------------------------------------- labels


def check_holdout(source: str, rows: Log) -> Iterator[Message]:
    """What a hold-out takes as relevant, and that the rest is taken as irrelevant."""
    if not rows.rewards:
        yield message("relevant-rows", source=source)
    yield message("holdout.pooled" if are_qrels(source) else "holdout")


def check_without_exclusions(models: Mapping[str, Scores], exposed: Exposed, source: str) -> Iterator[Message]:
    """That training pairs are candidates, where none are excluded; queries have none."""
    if exposed is not Exposed.FULL and not are_qrels(source):
        lists = all(isinstance(scores, Lists) and scores.depth is not None for scores in models.values())
        yield message("no-exclusions.lists" if lists else "no-exclusions")


def check_scores(models: Mapping[str, Scores], labels: Any, items: Ids, *, source: str) -> Iterator[Message]:
    """How many users and items each model has scores for, ids that hardly match (those of other data, or places in a
    matrix taken for ids), items that are no candidates, and tables that are taken as the whole catalogue."""
    for name, scores in models.items():
        missing = np.flatnonzero(scores.users.locate(labels.users) < 0)
        n_users, n_scored = len(labels.users), len(labels.users) - len(missing)
        without = int(np.count_nonzero(scores.items.locate(items) < 0)) if scores.depth is None else 0
        without_labels = len(scores.users) - n_scored
        about: dict[str, Any] = {"model": name, "subjects": (name,)}
        yield message(
            "scored.partly" if without_labels or without else "scored",
            **about,
            users=n_scored,
            of=n_users,
            without_labels=without_labels,
            items_without_score=without,
        )
        if len(missing) > FEW * n_users:
            yield message(
                "few-users-in-common",
                **about,
                source=source,
                users=n_users,
                missing=len(missing),
                examples=", ".join(labels.users.texts(missing[:3])),
                model_examples=_first(scores.users),
            )
        if (scores.items.locate(labels.items) < 0).all():
            first, own = _first(labels.items), _first(scores.items)
            yield message("no-item-in-common", **about, source=source, examples=first, model_examples=own)
        outside = len(scores.items) - int(np.count_nonzero(scores.items.locate(items) >= 0))
        if outside and scores.depth is None:
            yield message("scored-outside", **about, items=outside)
        if isinstance(scores, Lists) and scores.depth is None and scores.every_pair:
            yield message("taken-as-catalogue", **about, n_items=len(scores.items))


def check_absent_users(n_labelled: int, users: Ids, exposure: Exposure) -> Iterator[Message]:
    """Users of whom only the judge labelled something, and users of the design without any row."""
    if len(users) > n_labelled:
        yield message("judge-only-users", users=len(users) - n_labelled, of=len(users))
    design = getattr(exposure, "design", None)
    if design is not None and (absent := design.absent_users(users)):
        yield message("users-not-returned", users=absent, of=len(design.users))


def _first(ids: Ids) -> str:
    return ", ".join(ids.texts(np.arange(min(3, len(ids)))))


# --------------------------------------------------------------------------------------------------------- impressions


def check_log(
    requested: Positions | None, data: ImpressionRows, learned: Learned, interval: Interval
) -> Iterator[Message]:
    """What was read, where exposures come from, what was fitted; surfaces that are too many for a fit of their own, and
    logging policies whose number of sessions is fixed."""
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
    elif data.shares is not None and interval.refits:
        yield message("loggers-fixed")
    requests = () if requested is None or from_clicks(requested) else requested.requests
    many = len(data.facts.surfaces) > MOST_GROUPS
    if many and any(model.per_surface and place.surface is None for place, model in requests):
        yield message("many-surfaces", most=MOST_GROUPS)


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
