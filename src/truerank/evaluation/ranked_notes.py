"""What is said beside off-policy estimates, and what they were made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from truerank.core.estimator import Learned
from truerank.core.messages import Message, caution, note
from truerank.evaluation.ranked_facts import RankedFacts
from truerank.evaluation.ranked_sight import Looking
from truerank.exposure.positions.fits import Parameter
from truerank.exposure.positions.learner import from_clicks
from truerank.exposure.positions.position_models import Positions
from truerank.exposure.positions.requests import MOST_GROUPS, FittedPositions
from truerank.uncertainty.intervals import Interval


@dataclass(frozen=True, slots=True)
class FittedPosition:
    """A fitted parameter of a position model, for the record."""

    place: str
    parameter: str
    value: float
    stderr: float
    p_of_fit: float


def source_of_exposures(facts: RankedFacts, positions: Positions | None, loggers: Mapping[str, Any]) -> str:
    """Where the exposures of the logging policy come from."""
    if loggers:
        return "loggers"
    return "column propensity" if facts.propensity else f"positions, {positions}"


def about_exposures(facts: RankedFacts, positions: Positions | None, loggers: Mapping[str, Any]) -> list[Message]:
    if not facts.propensity or (positions is None and not loggers):
        return []
    if loggers:
        return [
            note(
                "propensity-unused",
                "the log has a column propensity, which is not used: the loggers give its exposures.",
            )
        ]
    return [
        note(
            "propensity-used",
            f"the log has a column propensity, which gives its exposures; the position model {positions} is used "
            "for the ranks of targets only. Drop the column to use the position model for both.",
        )
    ]


def about_independence(facts: RankedFacts) -> list[Message]:
    """What a log without users takes for granted."""
    if facts.cluster != facts.unit:
        return []
    return [
        caution(
            "independent-units",
            f"no column of users: {facts.unit}s are taken as independent of each other. Where one person has several, "
            "intervals are too short and differences too sure; name the column with "
            '{option:columns user=NAME|truerank.read_impressions(..., columns={"user": "NAME"})}.',
        )
    ]


def about_log(facts: RankedFacts, looking: Looking, learned: Learned) -> list[Message]:
    """What was read, where exposures come from, what was fitted."""
    found = [note("log-read", text) for text in facts.notes]
    found += about_independence(facts)
    found += about_exposures(facts, looking.models(learned), looking.loggers)
    if looking.learner is not None:
        found += about_fits(learned[looking.learner], looking.learner.positions, facts)
    if looking.shares is not None and not learned[looking.shares].nested:
        found.append(
            note(
                "loggers-share-users",
                "users have sessions of several loggers, so the variance is taken between users, not within loggers.",
            )
        )
    return found


def about_strata(looking: Looking, learned: Learned, interval: Interval) -> list[Message]:
    if looking.shares is None or not learned[looking.shares].nested or not interval.refits:
        return []
    return [note("loggers-fixed", "intervals take the number of sessions of each logger as given.")]


def recorded(fitted: FittedPositions) -> list[FittedPosition]:
    """Fitted parameters, for the record."""
    return [
        FittedPosition(place, each.name, each.value, each.stderr, fit.goodness.p)
        for place, fit in fitted.fits.items()
        for each in fit.parameters
    ]


def views(fitted: FittedPositions) -> list[dict[str, Any]]:
    """How many came to each position, in the log and by the model, for the record."""
    return [{"place": place, **asdict(bucket)} for place, fit in fitted.fits.items() for bucket in fit.goodness.buckets]


def about_fits(fitted: FittedPositions, asked: Positions, facts: RankedFacts) -> Iterator[Message]:
    """What was fitted, to how much, and whether it describes the log."""
    rejected, clicks = fitted.rejected(), from_clicks(asked)
    what = f"{facts.clicks}s" if clicks else "views"
    to = f"impressions and their {facts.clicks}" if clicks else "lists"
    for place, fit in fitted.fits.items():
        shown = ", ".join(map(_parameter, fit.parameters[:3]))
        yield note("position-fit", f"position model of {place}: {fit.model.name}, {shown}, from {fit.n:,} {to}.")
        for each in fit.notes:
            yield note("position-fit", f"position model of {place}: {each}")
        if fit.list_end is not None:
            yield caution(
                "list-end",
                f"position model of {place}: no list goes beyond rank {fit.list_end}, to which {fit.n_censored:,} of "
                f"{fit.n:,} lists come. truerank takes this as the end of lists, not as people who stopped (censored). "
                "Add the column candidates (how many items a list has) to the log to state where each list ends.",
                numbers={"rank": fit.list_end, "lists": fit.n, "lists_at_end": fit.n_censored},
                about=(place,),
            )
        if place in rejected:
            yield caution(
                "position-misfit",
                f"position model of {place}: its {what} differ from those in the log by more than sampling error "
                f"(p = {fit.goodness.p:.1g}). Verdicts stand only where the table of observed views gives the same. "
                f"{about_columns(facts, clicks=clicks)}.",
                numbers={"p": fit.goodness.p},
                about=(place,),
            )


def about_surfaces(requested: Positions, facts: RankedFacts) -> list[Message]:
    """That surfaces are too many for a fit of their own."""
    per_surface = any(model.per_surface and place.surface is None for place, model in requested.requests)
    if len(facts.surfaces) <= MOST_GROUPS or not per_surface or from_clicks(requested):
        return []
    return [
        caution(
            "many-surfaces",
            f"the log has more than {MOST_GROUPS} surfaces, so they share one fitted position model. Join surfaces "
            "that are scrolled alike.",
        )
    ]


def about_columns(facts: RankedFacts, *, clicks: bool) -> str:
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


def _parameter(fitted: Parameter) -> str:
    known = f" ± {fitted.stderr:.2g}" if math.isfinite(fitted.stderr) else ""
    return f"{fitted.name} = {fitted.value:.4g}{known}"


def about_target(name: str, tallies: Mapping[tuple[Any, ...], Any], facts: RankedFacts) -> Iterator[Message]:
    """Which sessions a target does not rank, or the log does not have; which items it never shows."""
    known, unlogged, never = (int(tallies.get((name, what), 0)) for what in ("known", "unlogged", "never"))
    unlogged += facts.absent.get(name, 0)
    if known < facts.n_units:
        missing = facts.n_units - known
        yield note(
            "no-ranking",
            f"{name}: {missing:,} of {facts.n_units:,} {facts.unit}s of the log have no ranking.",
            numbers={"units": missing},
            about=(name,),
        )
    if unlogged:
        yield note(
            "unlogged-sessions",
            f"{name}: it ranks {unlogged:,} sessions that the log does not have; they are left out. If "
            "nothing was viewed in them they count: declare all sessions with {option:sessions FILE}.",
            numbers={"sessions": unlogged},
            about=(name,),
        )
    if never:
        yield note(
            "never-shown",
            f"{name}: {never:,} of {facts.n_rows:,} logged items would never be shown by it: their weight is 0.",
            numbers={"rows": never},
            about=(name,),
        )


def about_refits(failures: Mapping[str, int]) -> list[Message]:
    """Why there is no interval that includes the fit."""
    return [
        note(
            "refit-failed",
            f"no interval: it needs the value without each part of the log in turn, and without {parts:,} of them "
            f"{reason}",
            numbers={"parts": parts},
        )
        for reason, parts in failures.items()
    ]


def about_choices(choices: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Which clips were chosen, and how far that moves values."""
    chosen = [
        note(
            "clip-chosen",
            f"clip {_clip(each['clip'])} chosen for {each['of']}, {each['reward']}, {each['estimator']}: "
            f"{_why(each['clip'], each['smallest_equal'])}. Its value differs by {each['against_largest_clip']:.3g} "
            "from that of the largest clip; intervals do not include the choice.",
        )
        for each in choices
        if each["by_rule"]
    ]
    fixed = dict.fromkeys(each["estimator"] for each in choices if not each["by_rule"])
    return chosen + [
        note(
            "no-clip-chosen",
            f"no clip is chosen for {name}: a ratio of clipped sums can move either way as the clip falls, so the rule "
            "would see no bias; the largest clip is taken.",
        )
        for name in fixed
    ]


def _why(clip: float | None, smallest_equal: float | None) -> str:
    """By which rule a clip was chosen, in words."""
    but = "" if smallest_equal == clip else f", but for those from {_clip(smallest_equal)} on that give the same,"
    return (
        f"the smallest{but} whose value differs from that of no larger clip by more than the standard error of that "
        "difference"
    )


def _clip(clip: float | None) -> str:
    return "inf" if clip is None else format(clip, "g")


def details_of(
    *,
    cluster: str,
    chosen: Sequence[Mapping[str, Any]],
    diagnostics: Sequence[Mapping[str, Any]],
    fits: Sequence[FittedPosition],
    views: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What an off-policy evaluation alone can tell: clips it chose, weights, position fits and their data."""
    return {
        "cluster": cluster,
        "chosen": list(chosen),
        "diagnostics": list(diagnostics),
        "fits": [asdict(each) for each in fits],
        "views": list(views),
    }


def limit(clip: float) -> float | None:
    """A clip for the record: none is None."""
    return None if math.isinf(clip) else clip
