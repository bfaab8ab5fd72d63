"""Results question by question, as pictures and the report show them: one clip of each, the highest values first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from truerank.core.results import BETTER, HIGHER, Comparison, Estimate, Results

MOST_MODELS = 20  # in a picture
MOST_DIFFERENCES = 30

Key = tuple[str, str, str]
Shown = TypeVar("Shown", Estimate, Comparison)


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """One metric, estimator and reward: an estimate of each model, highest first, and all differences.

    Where there are several clips, those of the clip that the data chose, or else of the largest.
    """

    label: str
    at: str  # the same in a sentence
    metric: str
    estimator: str
    reward: str
    estimand: str
    estimates: tuple[Estimate, ...]
    differences: tuple[Comparison, ...]

    @property
    def leader(self) -> Estimate | None:
        """The highest value; none where none is defined."""
        return self.estimates[0] if self.estimates and not math.isnan(self.estimates[0].value) else None

    @property
    def word(self) -> str:
        """What a larger value is: better, or of a metric without a better side only higher."""
        return BETTER if all(each.directed for each in self.estimates) else HIGHER

    @property
    def baseline(self) -> str | None:
        """The model that all others are compared with, where it is one."""
        names = {each.baseline for each in self.differences}
        return names.pop() if len(names) == 1 else None

    def top(self, most: int = MOST_MODELS) -> tuple[Estimate, ...]:
        """The highest values, and that of the baseline."""
        kept = self.estimates[:most]
        return (*kept, *(each for each in self.estimates[most:] if each.model == self.baseline))

    def told(self, most: int = MOST_DIFFERENCES) -> tuple[Comparison, ...]:
        """Differences that a picture can hold: all, or those of the highest values with the leader or the baseline."""
        turned = [each if each.difference >= 0 or self.baseline is not None else each.turned()
                  for each in self.differences]  # fmt: skip
        if len(turned) > most:
            place = {each.model: at for at, each in enumerate(self.estimates)}
            leader = None if self.leader is None else self.leader.model
            centre = self.baseline or leader
            turned = [each for each in turned if centre in (each.model, each.baseline)]
            turned.sort(key=lambda each: min(place.get(each.model, 0) + place.get(each.baseline, 0), len(place) * 2))
        return tuple(sorted(turned[:most], key=lambda each: -each.difference))


def shown_questions(results: Results, *, segment: str | None = None) -> list[ShownQuestion]:
    """Every question of the whole, or of one group of items, in the order of the results."""
    estimates: dict[Key, list[Estimate]] = {}
    for estimate in results.estimates:
        if estimate.segment == segment:
            estimates.setdefault(_key(estimate), []).append(estimate)
    differences: dict[Key, list[Comparison]] = {}
    for comparison in results.comparisons:
        if comparison.segment == segment:
            differences.setdefault(_key(comparison), []).append(comparison)
    chosen = {
        (choice["of"], choice["estimator"], choice["reward"]): choice["clip"]
        for choice in results.provenance.details.get("chosen", ())
    }
    rewards, metrics = len({key[2] for key in estimates}), [key[0] for key in estimates]
    return [
        ShownQuestion(
            ", ".join((key[0], key[1], *([key[2]] if rewards > 1 else []))),
            key[0] if metrics.count(key[0]) == 1 else f"{key[0]} ({', '.join(key[1 : 3 if rewards > 1 else 2])})",
            *key,
            every[0].estimand,
            _highest_first(_main(every, key, chosen)),
            tuple(_main(differences.get(key, ()), key, chosen)),
        )
        for key, every in estimates.items()
    ]


def segments_of(results: Results) -> list[str]:
    """The groups of items that were asked about, in their order."""
    return [name for name in dict.fromkeys(each.segment for each in results.estimates) if name is not None]


def _key(shown: Estimate | Comparison) -> Key:
    return shown.metric, shown.estimator, shown.reward


def _of(shown: Estimate | Comparison) -> str:
    """The model, or the difference, as chosen clips name it."""
    return shown.model if isinstance(shown, Estimate) else f"{shown.model} - {shown.baseline}"


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else clip


def _main(every: Sequence[Shown], key: Key, chosen: Mapping[tuple[str, str, str], float | None]) -> list[Shown]:
    """Those of the clip that the data chose for a model or a difference, else of the largest."""
    largest = max((_limit(each.clip) for each in every), default=math.inf)
    wanted = {of: _limit(clip) for (of, estimator, reward), clip in chosen.items() if (estimator, reward) == key[1:]}
    return [each for each in every if _limit(each.clip) == wanted.get(_of(each), largest)]


def _highest_first(estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
    return tuple(sorted(estimates, key=lambda each: math.inf if math.isnan(each.value) else -each.value))
