"""How the claims of the sampler paper look at a log: one figure, and whether it supports the sentence."""

from __future__ import annotations

from math import isnan

from truerank.uncertainty.agreement import rank_correlation
from truerank_research.papers.reliability.figures import (
    FIDELITY,
    FIXED,
    POWER,
    RESOLUTION,
    ROBUSTNESS,
    SIZED,
    ClaimTest,
    LogPlace,
    StudyFigures,
    above,
    beats,
    exceeds,
)

LOW, MODERATE, HIGH = (0.0, 0.1, 0.3, 0.5), (0.1, 0.3, 0.5), (0.9, 0.95)
HIDDEN = (0.1, 0.3, 0.5, 0.7, 0.85, 0.9, 0.95)  # something is hidden
PLAIN, LIKED, AWARE = ("Random", "WTD", "WTDH"), ("Popularity", "Positivity"), ("WTD", "WTDH", "Skew")
# the share of cells that a sentence asks for: plain or "consistently"; "generally", "mostly", "often"; identities
ALWAYS, MOSTLY, EXACTLY = 0.8, 0.5, 1.0
EVERY = (*FIXED, *SIZED)
QUESTIONS = (RESOLUTION, FIDELITY, ROBUSTNESS, POWER)
SAME = 1e-6  # identities hold but for rounding


def least_at_cutoff(place: LogPlace) -> tuple[float, bool]:
    """The size with the fewest ties is from half the cut-off to the cut-off."""
    sizes, curve = place.sizes, place.curve(RESOLUTION)
    if any(isnan(each.value) for each in curve):
        return float("nan"), False
    n = min(zip(curve, sizes, strict=True), key=lambda each: each[0].value)[1]
    return float(n), place.figures.scale.cutoff / 2 <= n <= place.figures.scale.cutoff


def few_ties(place: LogPlace) -> tuple[float, bool]:
    """At most 2 % of pairs tie at some size up to twice the cut-off."""
    sizes = [n for n in place.figures.sizes if n <= 2 * place.figures.scale.cutoff]
    least = min(place.at(RESOLUTION, size=n).value for n in sizes)
    return least, least <= 0.02


def more_than_before(place: LogPlace) -> tuple[float, bool]:
    """Clearly more ties than at the sparsity before."""
    before = max(each for each in place.figures.sparsities if each < place.sparsity)
    now, then = place.at(RESOLUTION), place.at(RESOLUTION, sparsity=before)
    return now.value - then.value, above(now, then)


def more_than_at_half(place: LogPlace) -> tuple[float, bool]:
    now, then = place.at(RESOLUTION), place.at(RESOLUTION, sparsity=0.5)
    return now.value - then.value, above(now, then)


def finer_than_shorter(place: LogPlace) -> tuple[float, bool]:
    """Clearly fewer ties than with the shorter cut-off."""
    long, short = place.at(RESOLUTION), place.at(RESOLUTION, metric=place.figures.scale.shorter)
    return long.value - short.value, above(short, long)


def same_order_with_shorter(place: LogPlace) -> tuple[float, bool]:
    """τ-b between the order of the nine samplers under both cut-offs is at least 0.5."""
    both = (
        [place.at(POWER, each, metric=metric).value for each in EVERY]
        for metric in (place.figures.scale.metric, place.figures.scale.shorter)
    )
    first, second = both
    if any(map(isnan, (*first, *second))):
        return float("nan"), False
    found = rank_correlation(first, second).tau
    return found, found >= 0.5


def skew_falls_behind(place: LogPlace) -> tuple[float, bool]:
    """Skew's distance to Random has grown clearly since sparsity 10 %."""
    ends = (place.at(FIDELITY, each, sparsity=at) for at in (0.1, place.sparsity) for each in ("Random", "Skew"))
    (early, early_skew, late, late_skew) = ends
    growth = (late.value - late_skew.value) - (early.value - early_skew.value)
    return growth, exceeds([late, early_skew], [early, late_skew])


def at_moderate_at_least(question: str, least: float) -> ClaimTest:
    """At the moderate size and all larger ones, up to the large one."""

    def test(place: LogPlace) -> tuple[float, bool]:
        scale = place.figures.scale
        found = [place.at(question, size=n).value for n in place.sizes if n >= scale.moderate]
        return found[0], all(each > least for each in found)

    return test


def near_plateau(place: LogPlace) -> tuple[float, bool]:
    """At the moderate size within 0.05 of the large one."""
    gap = place.at(FIDELITY).value
    gap -= place.at(FIDELITY, size=place.figures.scale.moderate).value
    return gap, gap <= 0.05


def differ_markedly(place: LogPlace) -> tuple[float, bool]:
    """Sized samplers are apart by at least 0.05, and all clearly below 1."""
    found = [place.at(FIDELITY, each) for each in SIZED]
    apart = max(each.value for each in found) - min(each.value for each in found)
    return apart, apart >= 0.05 and all(each.high < 0.99 for each in found)


def is_one(place: LogPlace) -> tuple[float, bool]:
    value = place.at(ROBUSTNESS).value
    return value, abs(value - 1) < SAME


def same_for_full(place: LogPlace) -> tuple[float, bool]:
    gap = place.at(ROBUSTNESS).value - place.at(POWER).value
    return gap, abs(gap) < SAME


def same_at_0(place: LogPlace) -> tuple[float, bool]:
    gap = place.at(FIDELITY).value - place.at(POWER).value
    return gap, abs(gap) < SAME


def above_random_and_unbeaten(place: LogPlace) -> tuple[float, bool]:
    lead, _ = beats(ROBUSTNESS, "Random")(place)
    own = place.at(ROBUSTNESS)
    best = not any(above(place.at(ROBUSTNESS, each), own) for each in SIZED)
    return lead, above(own, place.at(ROBUSTNESS, "Random")) and best


def comparable_to_weighted(place: LogPlace) -> tuple[float, bool]:
    """At most 0.05 below the best of WTD, WTDH and Skew."""
    gap = place.at(POWER).value - max(place.at(POWER, each).value for each in AWARE)
    return gap, gap >= -0.05


def much_below_random(place: LogPlace) -> tuple[float, bool]:
    gap = place.at(POWER).value - place.at(POWER, "Random").value
    return gap, gap <= -0.05


def below_half_of_random(place: LogPlace) -> tuple[float, bool]:
    """Clearly below Random with about half as many candidates."""
    own, other = place.at(POWER), place.at(POWER, "Random", size=place.figures.scale.half)
    return own.value - other.value, above(other, own)


def tight(place: LogPlace) -> tuple[float, bool]:
    own = place.at(POWER)
    half = (own.high - own.low) / 2
    return half, half <= 0.01


def open_questions(sampler: str) -> tuple[str, ...]:
    """What a sampler can be good at: Full is what fidelity compares with, and agrees with itself."""
    return tuple(each for each in QUESTIONS if (sampler, each) != ("Full", FIDELITY))


def excelling(figures: StudyFigures) -> tuple[str, ...]:
    """The samplers that no other clearly beats in most logs, in every question that is open to them."""
    logs = [(logger, sparsity) for logger in figures.loggers for sparsity in HIDDEN if sparsity in figures.sparsities]
    found = []
    for name in EVERY:
        places = [LogPlace(figures, logger, sparsity, name) for logger, sparsity in logs]
        good = (sum(_unbeaten(each, question) for each in places) for question in open_questions(name))
        if all(each > len(places) / 2 for each in good):
            found.append(name)
    return tuple(found)


def nobody_excels(place: LogPlace) -> tuple[float, bool]:
    """No sampler excels; the figure is how many do. Undefined where a question has no figures, as ties of means."""
    here = [(each, at) for each in EVERY for at in place.figures.sparsities]
    if any(all(isnan(place.at(q, each, sparsity=at).value) for each, at in here) for q in QUESTIONS):
        return float("nan"), False
    n = len(excelling(place.figures))
    return float(n), n == 0


def _unbeaten(place: LogPlace, question: str) -> bool:
    own = place.at(question)
    others = (
        place.at(question, each) for each in EVERY if each != place.sampler and (each, question) != ("Full", FIDELITY)
    )
    return not isnan(own.value) and not any(
        above(own, each) if question == RESOLUTION else above(each, own) for each in others
    )
