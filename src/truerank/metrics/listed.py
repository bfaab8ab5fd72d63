"""Metrics of what is recommended, the top K of every unit, and what they look at."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.counted import Covered, Inequality, equal_pairs
from truerank.core.errors import RefusedError
from truerank.core.log import Pairs
from truerank.core.metric import ListNeed, OfCounts, PerList
from truerank.core.options import CoveredItems, Denominator, Distance, InformationUnit, PopularityBase
from truerank.core.ranking import TopLists
from truerank.core.record import record
from truerank.core.values import Count
from truerank.core.wording import option


@record(eq=False)
class TrainCounts:
    """How many of `n_users` users of a training log have each item of the catalogue; repeated pairs count once."""

    users: Ints
    n_users: int

    @property
    def place(self) -> Ints:
        """1 for the items that most users have, 2 for those with the next smaller number, ...; 0 for none.

        >>> TrainCounts(np.array([5, 0, 9, 5]), 10).place.tolist()
        [2, 0, 1, 2]
        """
        seen = np.unique(self.users[self.users > 0])
        return np.where(self.users > 0, len(seen) - np.searchsorted(seen, self.users), 0)


@record(eq=False)
class ListFacts:
    """What is known of items beside lists: how many there are, who has them in the training log, their features."""

    n_items: float
    train: TrainCounts | None = None
    features: Floats | None = None  # [items x columns]

    def counts(self) -> TrainCounts:
        if self.train is None:
            raise RefusedError(f"how popular items are is not known; give the training log, {option('exclude TRAIN')}.")
        return self.train


@record(eq=False)
class ListedItems:
    """The top lists of the units of a chunk: for each listed item whether it is relevant; for each unit its history."""

    lists: TopLists
    relevant: Bools
    facts: ListFacts
    history: Pairs | None = None

    def means(self, values: Floats) -> Floats:
        """The mean of values of listed items over each unit's list, NaN where it is empty."""
        return means_of(values, self.lists.length)


def means_of(values: Floats, n: Ints) -> Floats:
    """The means of the first n[0] values, of the next n[1], ...; NaN of none.

    >>> means_of(np.array([1.0, 2.0, 6.0]), np.array([1, 0, 2])).tolist()
    [1.0, nan, 4.0]
    """
    means = np.full(len(n), math.nan)
    np.divide(sums_by(np.repeat(np.arange(len(n)), n), values, n=len(n)), n, out=means, where=n > 0)
    return means


def mean_of(values: Floats) -> tuple[Floats, Floats]:
    """Values of units as the two sums of their mean."""
    return values, np.where(np.isnan(values), math.nan, 1.0)


@record
class Novelty(PerList):
    """The mean self-information of a user's top K: -log2(users of the training log with the item / all its users).

    RecTools' MeanInvUserFreq. An item that nobody has counts as if one user had it. `unit=share` divides by log2 of the
    number of users, so that 1 is an item of one user. The mean is over the items of the list, which may be fewer than
    K; `denominator=cutoff` divides by K (both together are RePlay's Surprisal).

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    >>> train = pl.DataFrame({"user": [1, 2, 3, 4, 4], "item": ["c", "a", "a", "c", "b"]})
    >>> how = {"exposure": "holdout", "exclude": train, "metrics": ["Novelty@2", "Novelty@2(unit=share)"]}
    >>> found = tr.evaluate({"m": lists}, pl.DataFrame({"user": [1], "item": ["a"]}), **how)
    >>> [each.value for each in found.estimates]  # -log2(2 / 4) = 1 and -log2(1 / 4) = 2
    [1.5, 0.75]
    """

    k: Count
    unit: InformationUnit = InformationUnit.BITS
    denominator: Literal[Denominator.LIST, Denominator.CUTOFF] = Denominator.LIST
    name = "Novelty"
    needs = frozenset({ListNeed.POPULARITY})

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        return 0.0, 1.0 if self.unit is InformationUnit.SHARE else np.inf

    @property
    def on_lists(self) -> str:
        return f"mean self-information of the top {self.k} over users: how few users of the training log have the items"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        train = lists.facts.counts()
        users = np.maximum(train.users, 1)[lists.lists.item]
        information = -np.log2(users / train.n_users)
        if self.unit is InformationUnit.SHARE:
            most = np.log2(train.n_users)
            information = information / most if most > 0 else np.zeros(len(information))
        mean = lists.means(information)
        if self.denominator is Denominator.CUTOFF:
            mean = mean * lists.lists.length / self.k
        return mean_of(mean)


@record
class Serendipity(PerList):
    """The mean over a user's top K of max(p - p_any, 0) for relevant items, 0 for others, as RecTools has it.

    p = (n + 1 - rank) / n says how high the item stands for this user, p_any = (n + 1 - place) / n how high for
    anybody: `place` is 1 for the items that most users of the training log have, 2 for those with the next smaller
    number, ...; for an item that nobody has p_any = 0. n is the size of the catalogue. The only one of the metrics of
    lists that looks at labels, and of which more is better.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1], "item": ["b", "c"], "rank": [1, 2]})
    >>> train = pl.DataFrame({"user": [2, 3, 3], "item": ["a", "a", "b"]})
    >>> test = pl.DataFrame({"user": [1, 1], "item": ["b", "c"]})
    >>> how = {"exposure": "holdout", "exclude": train, "n_items": 4, "metrics": ["Serendipity@2"]}
    >>> tr.evaluate({"m": lists}, test, **how).estimates[0].value  # (4/4 - 3/4 + 3/4 - 0) / 2
    0.5
    """

    k: Count
    name = "Serendipity"
    directed = True
    needs = frozenset({ListNeed.CATALOGUE, ListNeed.POPULARITY, ListNeed.LABELS})

    @property
    def on_lists(self) -> str:
        return f"mean over users of how much higher relevant items of the top {self.k} stand than popularity puts them"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        n, top = lists.facts.n_items, lists.lists
        place = lists.facts.counts().place[top.item]
        own = (n + 1 - top.rank) / n
        anybody = np.where(place > 0, (n + 1 - place) / n, 0.0)
        return mean_of(lists.means(np.where(lists.relevant, np.maximum(own - anybody, 0.0), 0.0)))


@record
class PopularityLift(PerList):
    """How much more popular the top K is than what users chose: Σ_u mean popularity of L_u / Σ_u that of their history.

    Popularity is the number of users of the training log with the item. 1 is no lift; Abdollahpouri et al. (2020)
    report one less. `base=catalogue` divides by the mean popularity of all items instead: RecTools' AvgRecPopularity
    over that mean, where no pair of the log is repeated. Users without a history are left out, and counted.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    >>> train = pl.DataFrame({"user": [1, 2, 3, 4, 4], "item": ["c", "a", "a", "a", "b"]})
    >>> how = {"exposure": "holdout", "exclude": train}
    >>> how["metrics"] = ["PopularityLift@2", "PopularityLift@2(base=catalogue)"]
    >>> found = tr.evaluate({"m": lists}, pl.DataFrame({"user": [1], "item": ["a"]}), **how)
    >>> [each.value for each in found.estimates]  # (3 + 1) / 2 over 1, and over (3 + 1 + 1) / 3
    [2.0, 1.2]
    """

    k: Count
    base: PopularityBase = PopularityBase.HISTORY
    name = "PopularityLift"
    bounds = (0.0, np.inf)

    @property
    def needs(self) -> frozenset[ListNeed]:
        whole = {ListNeed.CATALOGUE} if self.base is PopularityBase.CATALOGUE else set()
        return frozenset({ListNeed.POPULARITY, *whole})

    @property
    def on_lists(self) -> str:
        what = "users' own history" if self.base is PopularityBase.HISTORY else "all items"
        return f"mean popularity of the top {self.k} over that of {what}; 1: as popular"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        train = lists.facts.counts()
        popularity = train.users.astype(np.float64)
        above = lists.means(popularity[lists.lists.item])
        if self.base is PopularityBase.CATALOGUE:
            return above, np.where(np.isnan(above), math.nan, float(train.users.sum()) / lists.facts.n_items)
        history = lists.history
        if history is None:
            return above, np.full(len(above), math.nan)
        below = means_of(popularity[history.item], history.count)
        return np.where(np.isnan(below), math.nan, above), np.where(np.isnan(above), math.nan, below)


@record
class Diversity(PerList):
    """Intra-list diversity: the mean distance between two items of a user's top K, over all pairs of them.

    The distance is the number of features that differ (`hamming`, RecTools' IntraListDiversity), or 1 - cosine of the
    two rows of features; an item without any feature is at distance 1 from all others. A list of fewer than two items
    has no pair and is left out, where RecTools has 0.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> features = pl.DataFrame({"item": ["a", "b", "c"], "drama": [1, 1, 0], "new": [0, 1, 1]})
    >>> how = {"exposure": "holdout", "item_features": features}
    >>> how["metrics"] = ["Diversity@3", "Diversity@2(distance=cosine)"]
    >>> found = tr.evaluate({"m": lists}, pl.DataFrame({"user": [1], "item": ["a"]}), **how)
    >>> [round(each.value, 4) for each in found.estimates]  # (1 + 2 + 1) / 3, and 1 - 1 / √2
    [1.3333, 0.2929]
    """

    k: Count
    distance: Distance = Distance.HAMMING
    name = "Diversity"
    on_full_labels = "users with two recommended items"
    needs = frozenset({ListNeed.FEATURES})
    bounds = (0.0, np.inf)

    @property
    def on_lists(self) -> str:
        what = "features that differ" if self.distance is Distance.HAMMING else "1 - cosine of features"
        return f"mean over users of the mean distance ({what}) between two items of the top {self.k}"

    def sums(self, lists: ListedItems) -> tuple[Floats, Floats]:
        if lists.facts.features is None:
            raise RefusedError(f"items have no features; give them with {option('item_features FILE')}.")
        unit, n = lists.lists.unit, lists.lists.length
        pairs, features = n * (n - 1) / 2, lists.facts.features[lists.lists.item]
        if self.distance is Distance.HAMMING:
            total = sum((pairs - equal_pairs(column, unit, len(n)) for column in features.T), np.zeros(len(n)))
        else:  # Σ v·w over pairs is half of |Σ v|² - Σ |v|²
            length = np.sqrt(np.square(features).sum(axis=1, keepdims=True))
            rows = np.divide(features, length, out=np.zeros_like(features), where=length > 0)
            together = sum((sums_by(unit, column, n=len(n)) ** 2 for column in rows.T), np.zeros(len(n)))
            total = pairs - (together - sums_by(unit, np.square(rows).sum(axis=1), n=len(n))) / 2
        return mean_of(np.divide(total, pairs, out=np.full(len(n), math.nan), where=pairs > 0))


@record
class CatalogueCoverage(OfCounts):
    """The share of the catalogue that is in the top K of at least one user: #{∪_u L_u} / n_items.

    RecTools' CatalogCoverage(normalize=True). `among=train` asks of the items of the training log alone (RePlay). More
    users cover more, so it is a number for as many users.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rank": [1, 2, 1, 2]})
    >>> test = pl.DataFrame({"user": [1, 2], "item": ["d", "a"]})
    >>> found = tr.evaluate({"m": lists}, test, exposure="holdout", metrics=["Coverage@1", "Coverage@2"])
    >>> [each.value for each in found.estimates]
    [0.25, 0.75]
    """

    k: Count
    among: CoveredItems = CoveredItems.CATALOGUE
    name = "Coverage"

    @property
    def needs(self) -> frozenset[ListNeed]:
        train = self.among is CoveredItems.TRAIN
        return frozenset({ListNeed.POPULARITY if train else ListNeed.CATALOGUE})

    @property
    def on_lists(self) -> str:
        what = "the items of the training log" if self.among is CoveredItems.TRAIN else "the catalogue"
        return f"share of {what} in the top {self.k} of as many users as these"

    def form(self, facts: ListFacts) -> Covered:
        if self.among is CoveredItems.CATALOGUE:
            return Covered(facts.n_items)
        seen = facts.counts().users > 0
        return Covered(float(np.count_nonzero(seen)), seen)


@record
class Gini(OfCounts):
    """How unequally the places of all top K lists go to the items: Σ_{i<j} |c_i - c_j| / (n Σ c) over all n items.

    c_i is the number of lists that hold item i, 0 for items in none: 0 if all are listed equally often, (n - K) / n if
    everybody gets the same K. RecBole's GiniIndex over the whole catalogue. Few users list few items, so it is a number
    for as many users.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> test = pl.DataFrame({"user": [1, 2], "item": ["c", "d"]})
    >>> tr.evaluate({"m": lists}, test, exposure="holdout", metrics=["Gini@2"]).estimates[0].value  # of 2, 1, 0, 0
    0.5833333333333334
    """

    k: Count
    name = "Gini"
    needs = frozenset({ListNeed.CATALOGUE})

    @property
    def on_lists(self) -> str:
        return f"inequality of how often items are in the top {self.k} of as many users as these; 0: all equally often"

    def form(self, facts: ListFacts) -> Inequality:
        return Inequality(facts.n_items)
