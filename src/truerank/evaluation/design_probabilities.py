"""How likely each item is shown: probabilities user by user, what they start from, and what they are expected to save.

An item is wished for by g = √(Σ d² max(p (1 - p), .02)), d what a label of it adds to each metric of each model, p a
guess from the log of how likely it is relevant. Chances are min(1, f_U n / N + f_P n √p / Σ √p + c g): a share for
every item alike, which protects models that are not known yet, one for what is likely to be relevant, the rest by wish.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.progress import Progress
from truerank.core.ranking import Candidates, Pool, Scores, TopLists
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.wording import option
from truerank.io.read import LogSchema, read
from truerank.ranking.candidates import Catalogue, catalogue_of, lay_out, whole_tables
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.kernel.top import top_lists
from truerank.ranking.scores.tables import as_scores
from truerank.sampling.unequal import allocate

SHARE = 0.25  # of the items that are shown: to every item alike, and to what is likely to be relevant
LEAST_SPREAD = 0.02  # of a label, whatever the guess
Name = tuple[str, str, str]  # metric, model, and the model it is compared with, or nothing
LEAST_RELEVANT, MOST_RELEVANT = 0.005, 0.5  # between which the guess is held
BLOCK_USERS = 4096


@record(eq=False)
class DesignData:
    """Users, the catalogue in an order of its own (keyed, the same for all users), models, and a guess of relevance."""

    users: Ids
    items: Ids
    order: Ints  # items in the order in which they are laid out
    place: Ints  # of each item in it
    models: dict[str, Scores]
    exclude: Pairs | None
    popular: Floats  # √ of the popularity of items, laid out
    active: Floats  # √ of the activity of users, 1 on average

    def seen(self, user: int) -> Ints:
        """The places of what is excluded for a user."""
        return self.place[self.exclude.of_unit(user)] if self.exclude is not None else np.zeros(0, dtype=np.int64)

    def likely(self, user: int) -> Floats:
        """√ of the guess of how likely each item is relevant."""
        scaled = self.active[user] * self.popular
        return np.asarray(np.clip(scaled, math.sqrt(LEAST_RELEVANT), math.sqrt(MOST_RELEVANT)))


def design_data(scores: Mapping[str, Any], *, exclude: Any, users: Any, items: Any) -> DesignData:
    train = _pairs(exclude)
    others = {} if train is None else {f"{train.source} (exclude)": train.items}
    catalogue_ids = items if items is None or isinstance(items, Ids) else Ids.of(items, where="items")
    tables = {name: as_scores(model, name=name) for name, model in scores.items()}
    models = whole_tables(tables, others=others, items=catalogue_ids, n_items=None)
    catalogue = catalogue_of(models, others=others, items=catalogue_ids)
    if math.isnan(catalogue.n_items):
        raise InputError(
            f"top lists do not tell which items could be shown; give the catalogue with {option('items FILE')}."
        )
    if users is None:
        users = Ids.union({f"{name}, users": model.users for name, model in models.items()})
    people = users if isinstance(users, Ids) else Ids.of(users, where="users")
    none = np.zeros(0, dtype=np.int64)
    setting = lay_out(Log(people, catalogue.items, none, none, {}), catalogue, exclude=train)
    popular, active = _guess(train, people, catalogue)
    keys = catalogue.items.keys()
    order = np.argsort(cell_keys(0, "order of a design", np.zeros_like(keys), keys), kind="stable")
    return DesignData(
        people,
        catalogue.items,
        order,
        np.argsort(order),
        models,
        setting.pools[Pool.CATALOGUE].exclude,
        np.sqrt(popular)[order],
        np.sqrt(active),
    )


def _pairs(exclude: Any) -> Log | None:
    if exclude is None or isinstance(exclude, Log):
        return exclude
    if isinstance(exclude, LogSchema):
        return exclude.read(exclude.table.read(exclude.needed))
    return read(exclude, name=None if isinstance(exclude, str | Path) else "exclude", values=False)


def _guess(train: Log | None, users: Ids, catalogue: Catalogue) -> tuple[Floats, Floats]:
    """How often items were met by the users of a log, and how active users are; 1 on average, and for others."""
    if train is None or len(train) == 0:
        return np.full(len(catalogue.items), LEAST_RELEVANT), np.ones(len(users))
    of_item, of_user = (
        np.bincount(train.item, minlength=len(train.items)),
        np.bincount(train.user, minlength=len(train.users)),
    )
    item, user = train.items.locate(catalogue.items), train.users.locate(users)
    popular = np.where(item >= 0, of_item[item] / max(len(train.users), 1), 0.0)
    return popular, np.where(user >= 0, of_user[user] / max(float(of_user.mean()), 1e-12), 1.0)


def lists_of(world: DesignData, k: int, *, seed: int, threads: int, progress: Progress | None) -> dict[str, TopLists]:
    """The top of every user's list of each model, items by their place."""
    lists: dict[str, TopLists] = {}
    n_users, none = len(world.users), np.zeros(0, dtype=np.int64)
    for name, scores in world.models.items():
        aligned = Aligned.of(scores, users=world.users, items=world.items, name=name)
        parts = []
        for first in range(0, n_users, BLOCK_USERS):
            last = min(first + BLOCK_USERS, n_users)
            log = Log(Ids(world.users.values[first:last]), world.items, none, none, {})
            exclude = None if world.exclude is None else world.exclude.of_units(first, last)
            pool = Candidates(last - first, float(len(world.items)), exclude=exclude)
            block = aligned.of_units(np.arange(first, last))
            parts.append(top_lists(block, log, pool=pool, k=k, seed=seed, name=name, threads=threads))
            if progress is not None:
                progress(f"ranking {name}", last, n_users)
        length = np.concatenate([part.length for part in parts])
        item = world.place[np.concatenate([part.item for part in parts])].astype(np.int32)
        lists[name] = TopLists(np.concatenate([[0], np.cumsum(length)]), item, np.zeros(0, dtype=bool))
    return lists


def designed_metrics(metrics: Sequence[Metric]) -> list[Additive]:
    sums: list[Additive] = []
    for metric in dict.fromkeys(metrics):
        if not isinstance(metric, Additive) or metric.cutoff is None or metric.denominator is Denominator.SMALLER:
            raise RefusedError(
                f"{metric}: a design is made for sums over the top K and for recall; expected metrics such as "
                "Precision@50, DCG@10 or Recall@50."
            )
        sums.append(metric)
    if not sums:
        raise InputError("no metrics given; expected at least one, such as Precision@50.")
    return sums


@record
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


@record(eq=False)
class DesignProbabilities:
    """Chances of one user after the other, and sums of what they are expected to give."""

    world: DesignData
    lists: dict[str, TopLists]
    metrics: list[Additive]
    discount: dict[str, Floats]  # by rank, of each metric
    guessed: dict[tuple[str, str], float]  # recall of each metric and model
    per_user: int
    shares: tuple[float, float]
    sums: dict[Name, Floats]  # of variances: Σ c p, Σ c and Σ c' p of both designs, and Σ w p and Σ w

    @classmethod
    def of(
        cls,
        world: DesignData,
        lists: dict[str, TopLists],
        metrics: list[Additive],
        *,
        per_user: int,
        shares: tuple[float, float],
    ) -> DesignProbabilities:
        discount = {str(metric): metric.rank_discount(np.arange(1.0, (metric.cutoff or 0) + 1)) for metric in metrics}
        recalls = [metric for metric in metrics if _is_recall(metric)]
        pairs = [*((model, "") for model in lists), *combinations(lists, 2)]
        sums: dict[Name, Floats] = {(str(metric), *pair): np.zeros(5) for metric in metrics for pair in pairs}
        guessed = _guessed_recalls(world, lists, recalls) if recalls else {}
        return cls(world, lists, metrics, discount, guessed, per_user, shares, sums)

    def _listed(self, user: int, metric: Additive, model: str) -> tuple[Ints, Floats]:
        """The places of a user's list of a model, and the discount of each."""
        lists, discount = self.lists[model], self.discount[str(metric)]
        rows = lists.item[lists.start[user] : lists.start[user + 1]][: len(discount)]
        return rows, discount[: len(rows)]

    def wishes(self, user: int, guess: Floats) -> tuple[Floats, Ints]:
        """g of every item, and the places of those in lists."""
        squares = np.zeros(len(guess))
        listed = []
        for metric in self.metrics:
            for model in self.lists:
                rows, discount = self._listed(user, metric, model)
                listed.append(rows)
                if _is_recall(metric):
                    around = self.guessed[str(metric), model]
                    d = np.full(len(guess), -around)
                    d[rows] = 1.0 - around
                    squares += d**2 / max(float(d @ d), 1e-300)
                else:
                    squares[rows] += discount**2 / max(float(discount @ discount), 1e-300)
        rows = np.unique(np.concatenate(listed))
        wished = slice(None) if self.guessed else rows  # without a recall only what is listed is wished for
        spread = np.maximum(guess[wished] * (1 - guess[wished]), LEAST_SPREAD)
        squares[wished] = np.sqrt(squares[wished] * spread)
        return squares, rows

    def chances(self, likely: Floats, wish: Floats, gone: Ints, n: int) -> Floats:
        """π of every item but those that are gone, of which n are drawn."""
        likely = likely.copy()
        likely[gone] = 0.0
        n_items = len(likely) - len(gone)
        uniform, by_guess = self.shares
        base = (by_guess * n / max(float(likely.sum()), 1e-300)) * likely
        base += uniform * n / max(n_items, 1)
        wish = wish.copy()
        base[gone], wish[gone] = 0.0, 0.0
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
                    rows, d, discount = self._effects(metric, name, lists, guess, gone)
                    p, c = guess[rows], d**2 * (1 - chance[rows]) / chance[rows]
                    same = d**2 * (1 - share) / share
                    self.sums[name] += (c @ p, c.sum(), same @ p, discount @ p, discount.sum())

    def _effects(
        self, metric: Additive, name: Name, lists: Mapping[str, tuple[Ints, Floats]], guess: Floats, gone: Ints
    ) -> tuple[Ints, Floats, Floats]:
        """Places, what a label there adds to the value or the difference, and the discounts of the list."""
        _, model, baseline = name
        if not baseline and not _is_recall(metric):
            return *lists[model], lists[model][1]
        d = np.zeros(len(guess))
        d[lists[model][0]] += lists[model][1]
        if baseline:
            d[lists[baseline][0]] -= lists[baseline][1]
        if _is_recall(metric):
            d -= self.guessed[str(metric), model] - (self.guessed[str(metric), baseline] if baseline else 0.0)
            d[gone] = 0.0
            rows: Ints = np.flatnonzero(d)
        else:
            rows = np.unique(np.concatenate([lists[model][0], lists[baseline][0]]))
        return rows, d[rows], np.zeros(len(rows))

    def savings(self) -> tuple[Saving, ...]:
        """Variances over those of uniform exposure; of single sums that of Hájek's estimate, y around its mean."""
        savings, n_items, per_user = [], len(self.world.items), self.per_user
        for name, (by_guess, alone, uniform, earned, discount) in self.sums.items():
            mean = earned / discount if discount > 0 else 0.0
            variance = by_guess * (1 - 2 * mean) + alone * mean**2 if discount > 0 else by_guess
            ratio = float(variance / uniform) if uniform > 0 else math.nan
            # a uniform sample of f' has that part of the variance: (1 - f') / f' = ratio (1 - f) / f
            fewer = ratio > 0 and per_user < n_items
            items = n_items / (1 + ratio * (n_items / per_user - 1)) if fewer else float(n_items)
            savings.append(Saving(*name, ratio, items))
        return tuple(savings)


def _is_recall(metric: Additive) -> bool:
    return metric.denominator is Denominator.POSITIVES


def _guessed_recalls(
    world: DesignData, lists: Mapping[str, TopLists], metrics: Sequence[Additive]
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
