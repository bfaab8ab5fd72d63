"""Results question by question: one clip of each, the highest values first. Summaries, charts and pages start here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from truerank.core.results import BETTER, HIGHER, Comparison, Estimate, Results

MOST_MODELS = 20  # in a picture or a table
MOST_DIFFERENCES = 30

Key = tuple[str, str, str]
Entry = TypeVar("Entry", Estimate, Comparison)


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """One metric, estimator and reward: an estimate of each model, highest first, and all differences.

    Where there are several clips, those of the clip that the data chose, or else of the largest. `label` is the metric
    with what tells it from other questions, `title` names the estimator too.
    """

    label: str
    title: str
    metric: str
    estimator: str
    reward: str
    estimand: str
    estimates: tuple[Estimate, ...]
    differences: tuple[Comparison, ...]

    @property
    def key(self) -> Key:
        return self.metric, self.estimator, self.reward

    @property
    def leader(self) -> Estimate | None:
        """The highest value; none where none is defined."""
        return self.estimates[0] if self.estimates and not math.isnan(self.estimates[0].value) else None

    @property
    def directed(self) -> bool:
        """Whether a larger value is better, not only higher."""
        return all(estimate.directed for estimate in self.estimates)

    @property
    def word(self) -> str:
        return BETTER if self.directed else HIGHER

    @property
    def family(self) -> str:
        """The metric without its cut-off."""
        k = self.estimates[0].k
        return self.metric if k is None else self.metric.replace(f"@{k}", "", 1)

    @property
    def baseline(self) -> str | None:
        """The model that all others are compared with, where it is one."""
        names = {comparison.baseline for comparison in self.differences}
        return names.pop() if len(names) == 1 else None

    def difference(self, model: str, baseline: str) -> Comparison | None:
        """The difference model - baseline."""
        for comparison in self.differences:
            if (comparison.model, comparison.baseline) == (model, baseline):
                return comparison
            if (comparison.baseline, comparison.model) == (model, baseline):
                return comparison.turned()
        return None

    def top(self, most: int = MOST_MODELS) -> tuple[Estimate, ...]:
        """The highest values, and that of the baseline."""
        rest = self.estimates[most:]
        return (*self.estimates[:most], *(estimate for estimate in rest if estimate.model == self.baseline))

    def top_differences(self, most: int = MOST_DIFFERENCES) -> tuple[Comparison, ...]:
        """Differences that a picture can hold: all, or those of the highest values with the leader or the baseline."""
        turned = [comparison if comparison.difference >= 0 or self.baseline is not None else comparison.turned()
                  for comparison in self.differences]  # fmt: skip
        if len(turned) > most:
            rank = {estimate.model: place for place, estimate in enumerate(self.estimates)}
            centre = self.baseline or (None if self.leader is None else self.leader.model)
            turned = [comparison for comparison in turned if centre in (comparison.model, comparison.baseline)]
            turned.sort(key=lambda pair: min(rank.get(pair.model, 0) + rank.get(pair.baseline, 0), len(rank) * 2))
        return tuple(sorted(turned[:most], key=lambda comparison: -comparison.difference))


def questions_of(results: Results, *, segment: str | None = None) -> list[ShownQuestion]:
    """Every question of the whole, or of one group of items, in the order of the results."""
    estimates = _by_key(estimate for estimate in results.estimates if estimate.segment == segment)
    differences = _by_key(comparison for comparison in results.comparisons if comparison.segment == segment)
    chosen = {
        (choice["of"], choice["estimator"], choice["reward"]): choice["clip"]
        for choice in results.provenance.details.get("chosen", ())
    }
    rewards = len({reward for _, _, reward in estimates}) > 1
    estimators = len({estimator for _, estimator, _ in estimates})
    several = estimators > 1 and len({(metric, reward) for metric, _, reward in estimates}) < len(estimates)
    return [
        ShownQuestion(
            ", ".join((metric, *([estimator] if several else []), *([reward] if rewards else []))),
            ", ".join((metric, estimator, *([reward] if rewards else []))),
            metric,
            estimator,
            reward,
            entries[0].estimand,
            tuple(sorted(_main_clip(entries, chosen), key=_descending)),
            tuple(_main_clip(differences.get((metric, estimator, reward), ()), chosen)),
        )
        for (metric, estimator, reward), entries in estimates.items()
    ]


def item_groups(results: Results) -> dict[str, Results]:
    """Results of each group of items, as if it had been asked about alone."""
    names = dict.fromkeys(estimate.segment for estimate in results.estimates if estimate.segment is not None)
    return {
        name: replace(
            results,
            estimates=tuple(replace(entry, segment=None) for entry in results.estimates if entry.segment == name),
            comparisons=tuple(replace(entry, segment=None) for entry in results.comparisons if entry.segment == name),
        )
        for name in names
    }


def _by_key(entries: Iterable[Entry]) -> dict[Key, list[Entry]]:
    by_key: dict[Key, list[Entry]] = {}
    for entry in entries:
        by_key.setdefault((entry.metric, entry.estimator, entry.reward), []).append(entry)
    return by_key


def _main_clip(entries: Sequence[Entry], chosen: Mapping[Key, float | None]) -> list[Entry]:
    """Those of the clip that the data chose for a model or a difference, else of the largest."""
    largest = max((_limit(entry.clip) for entry in entries), default=math.inf)

    def wanted(entry: Entry) -> float:
        name = entry.model if isinstance(entry, Estimate) else f"{entry.model} - {entry.baseline}"
        key = name, entry.estimator, entry.reward
        return _limit(chosen[key]) if key in chosen else largest

    return [entry for entry in entries if _limit(entry.clip) == wanted(entry)]


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else clip


def _descending(estimate: Estimate) -> float:
    return math.inf if math.isnan(estimate.value) else -estimate.value
