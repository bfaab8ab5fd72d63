"""Claims about a reliability study as rules over its table of results: cells that support a claim, and a verdict.

A claim is looked at in cells, mostly one per sampler, logger and sparsity. It holds where the share of supporting cells
is at least what its wording asks for, does not hold where it is less than half of that, and holds in part between.
Curves end at the size that stands for the paper's largest n, whatever else was computed. Two figures differ clearly
where their difference is larger than its 95 % half-width, taken from the two intervals as if they were independent (Zou
and Donner 2008). Both are of the same users, mostly positively related, so this leaves a difference undecided rather
than claim it. Where a rule asks for a clear difference, a cell that leaves it undecided does not support; rules that
ask for the highest value, for closeness or for nobody clearly above (`unbeaten`) say so, and there an undecided
difference may support. A cell in which a figure is undefined never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot, isnan

import numpy as np
import polars as pl

RESOLUTION, FIDELITY, ROBUSTNESS, POWER = "resolution", "fidelity", "robustness", "predictive_power"
FIXED = ("Full", "Exposed", "Random@e")
SIZED = ("Random", "Popularity", "Positivity", "WTD", "WTDH", "Skew")
EVERY = (*FIXED, *SIZED)
ALWAYS = 0.8  # the share of cells that a sentence asks for, plain or "consistently"
HIDDEN = (0.1, 0.3, 0.5, 0.7, 0.85, 0.9, 0.95)  # something is hidden
QUESTIONS = (RESOLUTION, FIDELITY, ROBUSTNESS, POWER)


@dataclass(frozen=True, slots=True)
class WorldScale:
    """Which figures of a world stand for those that the paper speaks of.

    `large` is where curves are compared (n = 1,000 in the paper), `half` about half of that, `moderate` its n = 200.
    """

    metric: str
    shorter: str
    cutoff: int
    large: int
    half: int
    moderate: int


@dataclass(frozen=True, slots=True)
class StudyFigure:
    value: float
    low: float
    high: float


UNDEFINED = StudyFigure(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class StudyFigures:
    """A table of results by (metric, question, logger, sparsity, sampler, size), in one reading."""

    scale: WorldScale
    loggers: tuple[str, ...]
    sparsities: tuple[float, ...]
    sizes: tuple[int, ...]
    of: dict[tuple[str, str, str, float, str, int | None], StudyFigure]

    @classmethod
    def read(cls, results: pl.DataFrame, *, scale: WorldScale, rounded: bool = False) -> StudyFigures:
        """Means over users, undefined τ excluded; ties are exact, or `rounded` to 4 decimals.

        Names are without what is in brackets: variants of a preset have those of what they stand for.
        """
        results = results.with_columns(pl.col("logger", "sampler").str.replace(r"\(.*", "")).filter(
            pl.col("metric").is_in([scale.metric, scale.shorter])
        )
        if rounded:
            results = results.filter(pl.col("question") == "resolution_rounded").with_columns(
                question=pl.lit(RESOLUTION)
            )
        columns = ("value", "low", "high")
        keys = ("metric", "question", "logger", "sparsity", "sampler", "size")
        chosen = results.select(*keys, *(pl.col(name).cast(pl.Float64).fill_null(float("nan")) for name in columns))
        return cls(
            scale,
            tuple(results["logger"].unique(maintain_order=True)),
            tuple(sorted(results["sparsity"].unique())),
            tuple(sorted(results["size"].drop_nulls().unique())),
            {(row[0], row[1], row[2], row[3], row[4], row[5]): StudyFigure(*row[6:]) for row in chosen.iter_rows()},
        )


def above(one: StudyFigure, other: StudyFigure) -> bool:
    """Whether one figure is clearly larger than another.

    >>> above(StudyFigure(0.5, 0.4, 0.6), StudyFigure(0.2, 0.1, 0.3))
    True
    >>> above(StudyFigure(0.3, 0.2, 0.4), StudyFigure(0.2, 0.1, 0.3))
    False
    """
    return exceeds([one], [other])


def exceeds(more: Sequence[StudyFigure], less: Sequence[StudyFigure]) -> bool:
    """Whether the sum of some figures is clearly larger than that of others.

    >>> one, other = StudyFigure(0.5, 0.4, 0.6), StudyFigure(0.2, 0.1, 0.3)
    >>> exceeds([one, one], [other, other]), exceeds([one, other], [one, other])
    (True, False)
    """
    lead = sum(each.value for each in more) - sum(each.value for each in less)
    return lead > hypot(*(each.value - each.low for each in more), *(each.high - each.value for each in less))


@dataclass(frozen=True, slots=True)
class LogPlace:
    """One logger and sparsity, where a sampler is looked at."""

    figures: StudyFigures
    logger: str
    sparsity: float
    sampler: str

    def at(
        self,
        question: str,
        sampler: str | None = None,
        *,
        size: int | None = None,
        sparsity: float | None = None,
        metric: str | None = None,
    ) -> StudyFigure:
        """A figure; of the place's own sampler at its large size unless another is asked for."""
        scale, name = self.figures.scale, sampler or self.sampler
        n = None if name in FIXED else size or scale.large
        where = self.sparsity if sparsity is None else sparsity
        return self.figures.of.get((metric or scale.metric, question, self.logger, where, name, n), UNDEFINED)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes up to the large one."""
        return tuple(n for n in self.figures.sizes if n <= self.figures.scale.large)

    def curve(self, question: str) -> list[StudyFigure]:
        return [self.at(question, size=n) for n in self.sizes]


ClaimTest = Callable[[LogPlace], tuple[float, bool]]  # the figure that is looked at, and whether it supports the claim


@dataclass(frozen=True, slots=True)
class SamplerClaim:
    """A sentence of the paper (`source`), in our words, and the rule that it is tested by.

    `test` is applied at each of `samplers` x loggers x `sparsities` (None: all); `measure` says what its figure is.
    """

    name: str
    source: str
    sentence: str
    rule: str
    measure: str
    test: ClaimTest
    samplers: tuple[str, ...]
    sparsities: tuple[float, ...] | None = None
    loggers: tuple[str, ...] | None = None
    needed: float = ALWAYS

    def support(self, figures: StudyFigures) -> tuple[int, int, float]:
        """How many cells support the claim, of how many, and the median of what is measured."""
        tested = [
            self.test(LogPlace(figures, logger, sparsity, sampler))
            for sampler in self.samplers
            for logger in self.loggers or figures.loggers
            for sparsity in figures.sparsities
            if self.sparsities is None or sparsity in self.sparsities
        ]
        defined = [figure for figure, _ in tested if not isnan(figure)]
        supporting = sum(supports for _, supports in tested) if defined else 0
        return supporting, len(tested), float(np.median(defined)) if defined else float("nan")


def beats(question: str, *rivals: str) -> ClaimTest:
    """Clearly above every rival; the figure is the smallest lead."""

    def test(place: LogPlace) -> tuple[float, bool]:
        own, others = _own_and(place, question, rivals, place.figures.scale.large)
        return own.value - _largest(others), all(above(own, rival) for rival in others)

    return test


def trails(question: str, *rivals: str, moderate: bool = False) -> ClaimTest:
    """Clearly below every rival, at the large or the moderate size; the figure is the smallest distance, negative."""

    def test(place: LogPlace) -> tuple[float, bool]:
        scale = place.figures.scale
        own, others = _own_and(place, question, rivals, scale.moderate if moderate else scale.large)
        return own.value - min(rival.value for rival in others), all(above(rival, own) for rival in others)

    return test


def unbeaten(question: str, *rivals: str) -> ClaimTest:
    """No rival clearly above: one may be higher within the noise. The figure is the distance to the best of them."""

    def test(place: LogPlace) -> tuple[float, bool]:
        own, others = _own_and(place, question, rivals, place.figures.scale.large)
        gap = own.value - _largest(others)
        return gap, not isnan(gap) and not any(above(each, own) for each in others)

    return test


def highest(question: str, *rivals: str) -> ClaimTest:
    """The largest value of all, clearly or not; the figure is the lead over the next."""

    def test(place: LogPlace) -> tuple[float, bool]:
        own, others = _own_and(place, question, rivals, place.figures.scale.large)
        lead = own.value - _largest(others)
        return lead, lead > 0

    return test


def gains_less(question: str, rival: str) -> ClaimTest:
    """Clearly less is gained from the smallest to the large size than by a rival; the figure is the difference."""

    def test(place: LogPlace) -> tuple[float, bool]:
        small = place.sizes[0]
        own, other = ((place.at(question, each), place.at(question, each, size=small)) for each in (None, rival))
        lead = (own[0].value - own[1].value) - (other[0].value - other[1].value)
        return lead, exceeds([other[0], own[1]], [other[1], own[0]])

    return test


def close(question: str, rival: str, *, within: float = 0.05) -> ClaimTest:
    """As large as a rival, up to a tolerance; the figure is the difference."""

    def test(place: LogPlace) -> tuple[float, bool]:
        gap = place.at(question).value - place.at(question, rival).value
        return gap, abs(gap) <= within

    return test


def rises(question: str) -> ClaimTest:
    """Clearly more at the large size than at the smallest, and no clear fall from a size to the next."""

    def test(place: LogPlace) -> tuple[float, bool]:
        curve = place.curve(question)
        falls = any(above(before, after) for before, after in pairwise(curve))
        return curve[-1].value - curve[0].value, above(curve[-1], curve[0]) and not falls

    return test


def dips(question: str) -> ClaimTest:
    """Clearly less at some size between than at the smallest and at the large one; the figure is that least value."""

    def test(place: LogPlace) -> tuple[float, bool]:
        curve = place.curve(question)
        bottom = min(curve, key=lambda each: each.value)
        return bottom.value, above(curve[0], bottom) and above(curve[-1], bottom)

    return test


def _own_and(place: LogPlace, question: str, rivals: Sequence[str], size: int) -> tuple[StudyFigure, list[StudyFigure]]:
    others = [place.at(question, each, size=size) for each in rivals if each != place.sampler]
    return place.at(question, size=size), others


def _largest(figures: Sequence[StudyFigure]) -> float:
    return float(np.max([each.value for each in figures]))


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
