"""How likely each item is shown: chances of one user after the other, and what they are expected to give.

An item is wished for by g = √(Σ d² max(p (1 - p), .02)), d what a label of it adds to each metric of each model, p a
guess from the log of how likely it is relevant. Chances are min(1, f_U n / N + f_P n √p / Σ √p + c g): a share for
every item alike, which protects models that are not known yet, one for what is likely to be relevant, the rest by wish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.ranking import TopLists
from truerank.evaluation.design_world import DesignWorld
from truerank.sampling.unequal import allocate

SHARE = 0.25  # of the items that are shown: to every item alike, and to what is likely to be relevant
LEAST_SPREAD = 0.02  # of a label, whatever the guess
Name = tuple[str, str, str]  # metric, model, and the model it is compared with, or nothing


def designed_metrics(metrics: Sequence[Metric]) -> list[Additive]:
    found = []
    for metric in dict.fromkeys(metrics):
        if not isinstance(metric, Additive) or metric.cutoff is None or metric.denominator is Denominator.SMALLER:
            raise RefusedError(
                f"{metric}: a design is made for sums over the top K and for recall; expected metrics such as "
                "Precision@50, DCG@10 or Recall@50."
            )
        found.append(metric)
    if not found:
        raise InputError("no metrics given; expected at least one, such as Precision@50.")
    return found


@dataclass(frozen=True, slots=True)
class Saving:
    """What a design is expected to give for one model, or for the difference of two: its variance over that of
    Horvitz-Thompson under uniform exposure of as many items, by the guess of what is relevant.

    `uniform_items` are the items per user that uniform exposure would need for the same.
    """

    metric: str
    model: str
    baseline: str
    variance_ratio: float
    uniform_items: float


@dataclass(frozen=True, slots=True, eq=False)
class ChanceMaker:
    """Chances of one user after the other, and sums of what they are expected to give."""

    world: DesignWorld
    lists: dict[str, TopLists]
    metrics: list[Additive]
    worth: dict[str, Floats]  # by rank, of each metric
    guessed: dict[tuple[str, str], float]  # recall of each metric and model
    per_user: int
    shares: tuple[float, float]
    sums: dict[Name, Floats]  # of variances: Σ c p, Σ c and Σ c' p of both designs, and Σ w p and Σ w

    @classmethod
    def of(
        cls,
        world: DesignWorld,
        lists: dict[str, TopLists],
        metrics: list[Additive],
        *,
        per_user: int,
        shares: tuple[float, float],
    ) -> ChanceMaker:
        worth = {str(metric): metric.worth(np.arange(1.0, (metric.cutoff or 0) + 1)) for metric in metrics}
        recalls = [metric for metric in metrics if _is_recall(metric)]
        sums = {name: np.zeros(5) for name in _names(metrics, list(lists))}
        guessed = _guessed_recalls(world, lists, recalls) if recalls else {}
        return cls(world, lists, metrics, worth, guessed, per_user, shares, sums)

    def _listed(self, user: int, metric: Additive, model: str) -> tuple[Ints, Floats]:
        """The places of a user's list of a model, and what each is worth."""
        lists, worth = self.lists[model], self.worth[str(metric)]
        rows = lists.item[lists.start[user] : lists.start[user + 1]][: len(worth)]
        return rows, worth[: len(rows)]

    def wishes(self, user: int, guess: Floats) -> tuple[Floats, Ints]:
        """g of every item, and the places of those in lists."""
        squares = np.zeros(len(guess))
        listed = []
        for metric in self.metrics:
            for model in self.lists:
                rows, worth = self._listed(user, metric, model)
                listed.append(rows)
                if _is_recall(metric):
                    around = self.guessed[str(metric), model]
                    d = np.full(len(guess), -around)
                    d[rows] = 1.0 - around
                    squares += d**2 / max(float(d @ d), 1e-300)
                else:
                    squares[rows] += worth**2 / max(float(worth @ worth), 1e-300)
        rows = np.unique(np.concatenate(listed))
        at = slice(None) if self.guessed else rows  # without a recall only what is listed is wished for
        squares[at] *= np.maximum(guess[at] * (1 - guess[at]), LEAST_SPREAD)
        squares[at] = np.sqrt(squares[at])
        return squares, rows

    def chances(self, likely: Floats, wish: Floats, gone: Ints, n: int) -> Floats:
        """π of every item but those that are gone, of which n are drawn."""
        likely = likely.copy()
        likely[gone] = 0.0
        n_items = len(likely) - len(gone)
        uniform, by_guess = self.shares
        base = (by_guess * n / max(float(likely.sum()), 1e-300)) * likely
        base += uniform * n / max(n_items, 1)
        base[gone] = 0.0
        if len(gone):
            wish = wish.copy()
            wish[gone] = 0.0
        return allocate(base, wish, min(n, n_items))

    def expect(self, user: int, guess: Floats, chance: Floats, gone: Ints) -> None:
        """Add what one user is expected to add to variances, under these chances and under uniform exposure."""
        n_items = len(guess) - len(gone)
        share = min(self.per_user / max(n_items, 1), 1.0)
        if share == 1:
            return
        for metric in self.metrics:
            lists = {model: self._listed(user, metric, model) for model in self.lists}
            for name in self.sums:
                if name[0] == str(metric):
                    rows, d, worth = self._effects(metric, name, lists, guess, gone)
                    p, c = guess[rows], d**2 * (1 - chance[rows]) / chance[rows]
                    same = d**2 * (1 - share) / share
                    self.sums[name] += (c @ p, c.sum(), same @ p, worth @ p, worth.sum())

    def _effects(
        self, metric: Additive, name: Name, lists: Mapping[str, tuple[Ints, Floats]], guess: Floats, gone: Ints
    ) -> tuple[Ints, Floats, Floats]:
        """Places, what a label there adds to the value or the difference, and the worth of the list."""
        _, model, other = name
        if not other and not _is_recall(metric):
            return *lists[model], lists[model][1]
        d = np.zeros(len(guess))
        d[lists[model][0]] += lists[model][1]
        if other:
            d[lists[other][0]] -= lists[other][1]
        if not _is_recall(metric):
            rows = np.unique(np.concatenate([lists[model][0], lists[other][0]]))
            return rows, d[rows], np.zeros(len(rows))
        d -= self.guessed[str(metric), model] - (self.guessed[str(metric), other] if other else 0.0)
        d[gone] = 0.0
        rows = np.flatnonzero(d)
        return rows, d[rows], np.zeros(len(rows))

    def savings(self) -> tuple[Saving, ...]:
        """Variances over those of uniform exposure; of single sums that of Hájek's estimate, y around its mean."""
        found = []
        for (metric, model, other), (by_guess, alone, uniform, earned, worth) in self.sums.items():
            mean = earned / worth if worth > 0 else 0.0
            variance = by_guess * (1 - 2 * mean) + alone * mean**2 if worth > 0 else by_guess
            ratio = variance / uniform if uniform > 0 else math.nan
            found.append(
                Saving(metric, model, other, float(ratio), _items(float(ratio), self.per_user, len(self.world.items)))
            )
        return tuple(found)


def _items(ratio: float, per_user: int, n_items: int) -> float:
    """Items per user of which a uniform sample has that part of the variance: (1 - f') / f' = ratio (1 - f) / f."""
    if not ratio > 0 or per_user >= n_items:
        return float(n_items)
    return n_items / (1 + ratio * (n_items / per_user - 1))


def _is_recall(metric: Additive) -> bool:
    return metric.denominator is Denominator.POSITIVES


def _names(metrics: Sequence[Additive], models: Sequence[str]) -> Iterator[Name]:
    for metric in metrics:
        yield from ((str(metric), model, "") for model in models)
        yield from ((str(metric), *pair) for pair in combinations(models, 2))


def _guessed_recalls(
    world: DesignWorld, lists: Mapping[str, TopLists], metrics: Sequence[Additive]
) -> dict[tuple[str, str], float]:
    """The share of what is likely to be relevant that lists hold."""
    hits = dict.fromkeys(((metric, model) for metric in metrics for model in lists), 0.0)
    every = 0.0
    for user in range(len(world.users)):
        guess = world.likely(user) ** 2
        every += float(guess.sum() - guess[world.seen(user)].sum())
        for metric, model in hits:
            start = int(lists[model].start[user])
            last = min(start + (metric.cutoff or 0), int(lists[model].start[user + 1]))
            hits[metric, model] += float(guess[lists[model].item[start:last]].sum())
    return {(str(metric), model): hit / every for (metric, model), hit in hits.items()}
