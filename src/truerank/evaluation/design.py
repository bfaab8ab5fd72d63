"""Which items to expose at random, and with what probability, so that a few exposures tell most about some models.

An item is wished for by g = √(Σ d² max(p (1 - p), .02)), d what a label of it adds to each metric of each model, p a
guess from the log of how likely it is relevant. Probabilities are min(1, f_U n / N + f_P n √p / Σ √p + c g): one share
for every item alike, which protects unknown models, one for what is likely to be relevant, the rest by wish.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.ids import Ids
from truerank.core.language import as_value, as_values
from truerank.core.log import Log, Pairs
from truerank.core.metric import Additive, Metric
from truerank.core.options import Denominator
from truerank.core.progress import Progress, Watching, watching
from truerank.core.ranking import Candidates, Pool, Scores, TopLists
from truerank.core.record import record
from truerank.core.rng import cell_keys, generator
from truerank.core.sizes import check_size
from truerank.core.validation import ANYTHING, COUNT, NAMED, NUMBER, checked_arguments
from truerank.core.wording import option
from truerank.evaluation.prepare import check_call
from truerank.exposure.kinds import COLUMNS, ExposureDesign
from truerank.io.log_schema import LogSchema
from truerank.io.read import read
from truerank.metrics import METRICS
from truerank.ranking.candidates import catalogue_of, lay_out, whole_tables
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.kernel.top import top_lists
from truerank.ranking.scores.files import as_scores
from truerank.sampling.unequal import DrawBy, allocate

SHARE = 0.25  # of the items that are exposed: to every item alike, and to what is likely to be relevant
LEAST_SPREAD = 0.02  # of a label, whatever the guess
LEAST_RELEVANT, MOST_RELEVANT = 0.005, 0.5  # between which the guess is held
BLOCK_USERS = 4096
CELL_SECONDS = 4e-9  # that a pair takes at least


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
class PlannedDesign:
    """A design of exposure, and what it is expected to save."""

    design: ExposureDesign
    savings: tuple[Saving, ...]
    per_user: int
    uniform: float

    def table(self) -> pl.DataFrame:
        """A row for each pair to be exposed: user, item, batch, propensity."""
        return self.design.table()

    def saved(self) -> pl.DataFrame:
        """A row for each metric of each model and each difference: variance over that of uniform exposure."""
        kinds = {entry.name: pl.String if entry.type == "str" else pl.Float64 for entry in fields(Saving)}
        return pl.DataFrame([asdict(saving) for saving in self.savings], schema=kinds)

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """The folder that `evaluate` takes as the design of labels."""
        self.design.write(path, force=force)


@checked_arguments(scores=NAMED, exclude=ANYTHING, uniform=NUMBER, likely=NUMBER, per_user=COUNT, batches=COUNT)
def design_exposure(
    scores: Mapping[str, Any],
    *,
    metrics: Sequence[Metric | str],
    per_user: int = 20,
    exclude: Any = None,
    users: Any = None,
    items: Any = None,
    uniform: float = SHARE,
    likely: float = SHARE,
    batches: int = 1,
    draw: DrawBy | str = DrawBy.SYSTEMATIC,
    seed: int = 0,
    threads: int | None = None,
    progress: Watching = None,
) -> PlannedDesign:
    """Choose items to expose to each user, with known probabilities that suit the metrics of these models.

    Parameters
    ----------
    scores, metrics : as in `evaluate`
    per_user : items to expose to each user
    exclude : the training log: its pairs are not exposed, and popularity is counted in it
    users, items : by default those of the scores
    uniform, likely : shares of exposures for all items alike, and for items likely to be relevant
    batches, draw : number of batches, and "systematic", "pivotal" or "conditional-poisson"
    seed, threads, progress : as in `evaluate`

    >>> scores = {"a": np.arange(20.0).reshape(1, 20), "b": np.arange(20.0)[None, ::-1].copy()}
    >>> planned = design_exposure(scores, metrics=["Precision@2"], per_user=4)
    >>> len(planned.table()), [round(saving.variance_ratio, 2) for saving in planned.savings]
    (4, [0.17, 0.17, 0.17])
    """
    way = as_value(draw, DrawBy)
    if not (0 < uniform <= 1 and likely >= 0 and uniform + likely <= 1):
        raise InputError(
            f"a uniform share of {uniform:g} and {likely:g} to what is likely to be relevant; expected the first above "
            "0, so that every item can be shown, and no more than 1 together."
        )
    wished = designed_metrics(as_values(metrics, METRICS, what="metrics"))
    check_call(scores)
    if not 1 <= batches <= per_user:
        raise InputError(f"{batches} batches of {per_user} items per user; expected 1 to {per_user}.")
    with watching(progress) as say:
        data = design_data(scores, exclude=exclude, users=users, items=items)
        check_size(
            f"a design for {len(data.users):,} users and {len(data.items):,} items",
            memory=8.0 * (per_user * 4 + sum(metric.cutoff or 0 for metric in wished)) * len(data.users),
            seconds=CELL_SECONDS * len(data.users) * len(data.items),
            instead="Take fewer users.",
        )
        goal = design_goal(data, wished, seed=seed, threads=threads or os.cpu_count() or 1, progress=say)
        sizes = [per_user // batches + (batch < per_user % batches) for batch in range(batches)]
        totals = np.zeros((len(wished), len(goal.contrasts), 5))
        rows = list(_draws(data, goal, totals, sizes=sizes, shares=(uniform, likely), way=way, seed=seed, progress=say))
    pairs = pl.DataFrame(dict(zip(COLUMNS, map(np.concatenate, zip(*rows, strict=True)), strict=True)))
    settings = {
        "models": list(data.models), "metrics": [str(metric) for metric in wished], "per_user": per_user,
        "uniform": uniform, "likely": likely, "batches": batches, "draw": str(way), "seed": seed,
        "users": len(data.users), "items": len(data.items),
    }  # fmt: skip
    design = ExposureDesign(data.users, data.items, pairs, settings)
    return PlannedDesign(design, _savings(data, goal, totals, per_user), per_user, uniform)


def designed_metrics(metrics: Sequence[Metric]) -> list[Additive]:
    """The metrics that a design is made for; others are refused."""
    sums: list[Additive] = []
    for metric in metrics:
        if not isinstance(metric, Additive) or metric.cutoff is None or metric.denominator is Denominator.SMALLER:
            raise RefusedError(
                f"{metric}: a design is made for sums over the top K and for recall; expected metrics such as "
                "Precision@50, DCG@10 or Recall@50."
            )
        sums.append(metric)
    return sums


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

    def excluded(self, user: int) -> Ints:
        """The places of what is excluded for a user."""
        return self.place[self.exclude.of_unit(user)] if self.exclude is not None else np.zeros(0, dtype=np.int64)

    def likely(self, user: int) -> Floats:
        """√ of the guess of how likely each item is relevant."""
        scaled = self.active[user] * self.popular
        return np.asarray(np.clip(scaled, math.sqrt(LEAST_RELEVANT), math.sqrt(MOST_RELEVANT)))


def design_data(scores: Mapping[str, Any], *, exclude: Any = None, users: Any = None, items: Any = None) -> DesignData:
    train = exclude.read(exclude.table.read(exclude.needed)) if isinstance(exclude, LogSchema) else exclude
    if train is not None and not isinstance(train, Log):
        train = read(exclude, name=None if isinstance(exclude, str | Path) else "exclude", values=False)
    tables = {name: as_scores(model, name=name) for name, model in scores.items()}
    catalogued: dict[str, Any] = {
        "others": {} if train is None else {f"{train.source} (exclude)": train.items},
        "items": items if items is None or isinstance(items, Ids) else Ids.of(items, where="items"),
    }
    models = whole_tables(tables, **catalogued, n_items=None)
    catalogue = catalogue_of(models, **catalogued)
    if math.isnan(catalogue.n_items):
        raise InputError(
            f"top lists do not tell which items could be shown; give the catalogue with {option('items FILE')}."
        )
    if users is None:
        users = Ids.union({f"{name}, users": model.users for name, model in models.items()})
    people = users if isinstance(users, Ids) else Ids.of(users, where="users")
    none = np.zeros(0, dtype=np.int64)
    setting = lay_out(Log(people, catalogue.items, none, none, {}), catalogue, exclude=train)
    items, excluded = catalogue.items, setting.pools[Pool.CATALOGUE].exclude
    keys = items.keys()
    order = np.argsort(cell_keys(0, "order of a design", np.zeros_like(keys), keys), kind="stable")
    popular, active = _guess(train, people, items)
    return DesignData(people, items, order, np.argsort(order), models, excluded, popular[order], active)


def _guess(train: Log | None, users: Ids, items: Ids) -> tuple[Floats, Floats]:
    """√ of how often users of a log met items, and of how active users are; of others none, and 1 as on average."""
    if train is None or len(train) == 0:
        return np.sqrt(np.full(len(items), LEAST_RELEVANT)), np.ones(len(users))
    of_item = np.bincount(train.item, minlength=len(train.items))
    of_user = np.bincount(train.user, minlength=len(train.users))
    item, user = train.items.locate(items), train.users.locate(users)
    popular = np.where(item >= 0, of_item[item] / max(len(train.users), 1), 0.0)
    active = np.where(user >= 0, of_user[user] / max(float(of_user.mean()), 1e-12), 1.0)
    return np.sqrt(popular), np.sqrt(active)


def _lists(data: DesignData, k: int, *, seed: int, threads: int, progress: Progress | None) -> list[TopLists]:
    """The top of every user's list of each model, items by their place."""
    lists, none = [], np.zeros(0, dtype=np.int64)
    for name, scores in data.models.items():
        aligned = Aligned.of(scores, users=data.users, items=data.items, name=name)
        parts = []
        for first in range(0, len(data.users), BLOCK_USERS):
            last = min(first + BLOCK_USERS, len(data.users))
            log = Log(Ids(data.users.values[first:last]), data.items, none, none, {})
            exclude = None if data.exclude is None else data.exclude.of_units(first, last)
            pool = Candidates(last - first, float(len(data.items)), exclude=exclude)
            block = aligned.of_units(np.arange(first, last))
            parts.append(top_lists(block, log, pool=pool, k=k, seed=seed, name=name, threads=threads))
            if progress is not None:
                progress(f"ranking {name}", last, len(data.users))
        start = np.cumsum([0, *np.concatenate([part.length for part in parts])])
        item = data.place[np.concatenate([part.item for part in parts])].astype(np.int32)
        lists.append(TopLists(start, item, np.zeros(0, dtype=bool)))
    return lists


@record(eq=False)
class DesignGoal:
    """What a design is for: metrics by the discount of each rank, of the lists of each model, and of their differences.

    `recall` is the guessed recall of each metric and model, 0 of other metrics: [metrics x models]. `contrasts` are the
    models and pairs of models: [contrasts x models].
    """

    metrics: Sequence[Additive]
    lists: Sequence[TopLists]
    discounts: Sequence[Floats]
    recall: Floats
    contrasts: Floats

    @property
    def recalls(self) -> Ints:
        return np.flatnonzero([metric.denominator is Denominator.POSITIVES for metric in self.metrics])

    def top(self, user: int) -> list[Ints]:
        """The places of the lists of a user."""
        return [lists.item[lists.start[user] : lists.start[user + 1]] for lists in self.lists]


def design_goal(
    data: DesignData, metrics: Sequence[Additive], *, seed: int = 0, threads: int = 1, progress: Progress | None = None
) -> DesignGoal:
    """The lists of all users; recall is the share of what is likely to be relevant that lists hold."""
    cutoffs = [metric.cutoff or 0 for metric in metrics]
    lists = _lists(data, max(cutoffs), seed=seed, threads=threads, progress=progress)
    n_models = len(data.models)
    differences = np.zeros((n_models * (n_models - 1) // 2, n_models))
    for row, (first, second) in zip(differences, combinations(range(n_models), 2), strict=True):
        row[[first, second]] = 1.0, -1.0
    discounts = [metric.rank_discount(np.arange(1.0, k + 1)) for metric, k in zip(metrics, cutoffs, strict=True)]
    recall = np.zeros((len(metrics), n_models))
    goal = DesignGoal(metrics, lists, discounts, recall, np.concatenate([np.eye(n_models), differences]))
    if not len(goal.recalls):
        return goal
    every = 0.0
    for user in range(len(data.users)):
        guess = data.likely(user) ** 2
        every += float(guess.sum() - guess[data.excluded(user)].sum())
        for model, top in enumerate(goal.top(user)):
            for metric in goal.recalls:
                recall[metric, model] += float(guess[top[: cutoffs[metric]]].sum())
    recall /= every
    return goal


def effects_of(goal: DesignGoal, user: int, n_items: int) -> tuple[Ints, Ints, Floats]:
    """Places in the lists of a user, all that matter, and what a label there adds: [metrics x models x places].

    Of a recall every item matters, of sums over lists those in a list.
    """
    tops = goal.top(user)
    listed = np.unique(np.concatenate(tops))
    places = np.arange(n_items) if len(goal.recalls) else listed
    effects = np.zeros((*goal.recall.shape, len(places))) - goal.recall[:, :, None]
    for metric, discount in enumerate(goal.discounts):
        for model, top in enumerate(tops):
            rows = np.searchsorted(places, top[: len(discount)])
            effects[metric, model, rows] += discount[: len(rows)]
    return listed, places, effects


def wishes(effects: Floats, places: Ints, guess: Floats) -> Floats:
    """g of every item."""
    squares = effects**2
    spread = np.maximum(guess[places] * (1 - guess[places]), LEAST_SPREAD)
    wish = np.zeros(len(guess))
    wish[places] = np.sqrt((squares / np.maximum(squares.sum(axis=2, keepdims=True), 1e-300)).sum(axis=(0, 1)) * spread)
    return wish


def exposure_probabilities(
    likely: Floats, wish: Floats, excluded: Ints, n: int, shares: tuple[float, float] = (SHARE, SHARE)
) -> Floats:
    """π of every item but those that are excluded, of which n are drawn."""
    (uniform, by_guess), n_items = shares, len(likely) - len(excluded)
    likely, wish = likely.copy(), wish.copy()
    likely[excluded] = wish[excluded] = 0.0
    base = (by_guess * n / max(float(likely.sum()), 1e-300)) * likely + uniform * n / max(n_items, 1)
    base[excluded] = 0.0
    return allocate(base, wish, min(n, n_items))


def _draws(
    data: DesignData, goal: DesignGoal, totals: Floats, *, sizes: Sequence[int], shares: tuple[float, float],
    way: DrawBy, seed: int, progress: Progress | None,
) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:  # fmt: skip
    """Users, items, batches and probabilities of what is exposed, user after user; `totals` of variances grow."""
    keys = data.users.keys()
    for user in range(len(data.users)):
        likely, gone = data.likely(user), data.excluded(user)
        listed, places, effects = effects_of(goal, user, len(data.items))
        wish = wishes(effects, places, likely**2)
        probability = exposure_probabilities(likely, wish, gone, sum(sizes), shares)
        share = min(sum(sizes) / max(len(data.items) - len(gone), 1), 1.0)
        if share < 1:
            totals += _variances(goal, effects, likely[places] ** 2, probability[places], share)
        rng = generator(seed, f"design for {keys[user]}")
        for batch, n in enumerate(sizes, start=1):
            if len(sizes) > 1:
                probability = exposure_probabilities(likely, wish, gone, n, shares)
            rows = drawn_places(probability, listed, way, rng)
            gone = np.concatenate([gone, rows])
            yield np.full(len(rows), user), data.order[rows], np.full(len(rows), batch), probability[rows]
        if progress is not None and (user + 1) % BLOCK_USERS == 0:
            progress("choosing what to expose", user + 1, len(data.users))


def drawn_places(probability: Floats, listed: Ints, way: DrawBy, rng: np.random.Generator) -> Ints:
    """Places that are drawn: what is in lists first, in an order drawn for this user; then the others as laid out."""
    first = rng.permutation(listed)
    rest = probability.copy()
    rest[first] = 0.0
    picked = way.pick(np.concatenate([probability[first], rest]), rng)
    return np.concatenate([first, np.arange(len(rest))])[picked]


def _variances(goal: DesignGoal, effects: Floats, guess: Floats, probability: Floats, share: float) -> Floats:
    """Σ c p, Σ c and Σ c' p of the design and of uniform exposure, Σ w p and Σ w: [metrics x contrasts x 5]."""
    possible = probability > 0
    odds = np.divide(1 - probability, probability, out=np.zeros(len(probability)), where=possible)
    squares = np.matmul(goal.contrasts, effects) ** 2
    sums = np.zeros((*squares.shape[:2], 5))
    sums[..., 0], sums[..., 1] = squares @ (odds * guess), squares @ odds
    sums[..., 2] = squares @ (possible * guess) * ((1 - share) / share)
    lists = np.delete(np.arange(len(goal.metrics)), goal.recalls)
    alone = slice(effects.shape[1])
    sums[lists, alone, 3], sums[lists, alone, 4] = effects[lists] @ guess, effects[lists].sum(axis=2)
    return sums


def _savings(data: DesignData, goal: DesignGoal, totals: Floats, per_user: int) -> tuple[Saving, ...]:
    """Variances over those of uniform exposure; of single sums that of Hájek's estimate, y around its mean."""
    savings, n_items = [], len(data.items)
    pairs = [*((model, "") for model in data.models), *combinations(data.models, 2)]
    for metric, of_metric in zip(goal.metrics, totals, strict=True):
        for pair, (by_guess, alone, uniform, earned, discount) in zip(pairs, of_metric, strict=True):
            mean = earned / discount if discount > 0 else 0.0
            variance = by_guess * (1 - 2 * mean) + alone * mean**2
            ratio = float(variance / uniform) if uniform > 0 else math.nan
            # a uniform sample of f' has that part of the variance: (1 - f') / f' = ratio (1 - f) / f
            fewer = ratio > 0 and per_user < n_items
            items = n_items / (1 + ratio * (n_items / per_user - 1)) if fewer else float(n_items)
            savings.append(Saving(str(metric), *pair, ratio, items))
    return tuple(savings)
