"""What a recommender says, who competes, and the ranks that follow."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.clusters import Clusters
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.record import record


@runtime_checkable
class Scores(Protocol):
    """What a recommender says: a row of scores over `items` for any of its `users`, higher is better.

    `block(rows)` must give the same bits for a user whatever else is in the block. -inf means never recommended.
    `depth` is the length of the longest list where only top lists are known, else None.
    """

    @property
    def users(self) -> Ids: ...
    @property
    def items(self) -> Ids: ...
    @property
    def depth(self) -> int | None: ...
    def block(self, rows: Ints) -> npt.NDArray[np.floating]: ...


class Pool(StrEnum):
    """Which items an estimator wants to compete: the whole pool, or only those that were judged."""

    CATALOGUE = "catalogue"
    JUDGED = "judged"


@record
class Candidates:
    """Which items compete for each unit: `only` these (or the catalogue) minus `exclude`.

    `n_items` is the size of the catalogue where its items are not all known by name, NaN where not even that is.
    """

    n_units: int
    n_items: float
    only: Pairs | None = None
    exclude: Pairs | None = None

    @property
    def count(self) -> Floats:
        """The number of candidates of each unit, N."""
        if self.only is not None:
            return self.only.count.astype(np.float64)
        excluded = 0 if self.exclude is None else self.exclude.count
        return np.full(self.n_units, self.n_items) - excluded


class Ties(StrEnum):
    """The order of candidates with equal scores.

    EXPECTED     every order is equally likely; metrics give their expected value (default)
    RANDOM       one order, drawn by seed, user and item
    OPTIMISTIC   relevant items first, higher grades before lower: the largest value any order gives; needs every label
    PESSIMISTIC  relevant items last, higher grades after lower: the smallest value any order gives; needs every label
    STRICT       the rule of the URE paper: an item counts only if it scores strictly higher than the (K+1)-th
                 candidate, so its rank is the number of candidates that score at least as high
    """

    EXPECTED = "expected"
    RANDOM = "random"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"
    STRICT = "strict"

    @property
    def needs_every_label(self) -> bool:
        """With labels missing, where a relevant item lands would depend on labels nobody knows."""
        return self in (Ties.OPTIMISTIC, Ties.PESSIMISTIC)


@record
class Ranks:
    """For every row of a log, how many candidates of its unit score `above` it and how many others are `tied`.

    The ranks a row can have are above + 1 ... above + 1 + tied, all equally likely. An item that is never
    recommended (-inf) has above = inf. Per unit: the number of candidates, how many of them are ever recommended, and
    whether there are scores at all.
    """

    above: Floats
    tied: Floats
    n_candidates: Floats
    n_recommended: Floats
    scored: Bools


@record
class TopLists:
    """What each unit is recommended, best first: unit u has `item[start[u]:start[u + 1]]`, positions in the catalogue.

    `tied` says whether the candidate after an item, in the list or not, scores as high.

    >>> lists = TopLists(np.array([0, 3, 4]), np.array([5, 2, 9, 2]), np.array([False, True, False, False]))
    >>> lists.top(2).item.tolist(), lists.rank.tolist(), lists.top(2).split.tolist()
    ([5, 2, 2], [1.0, 2.0, 3.0, 1.0], [True, False])
    """

    start: Ints
    item: Ints
    tied: Bools

    @property
    def length(self) -> Ints:
        return np.diff(self.start)

    @property
    def unit(self) -> Ints:
        return np.repeat(np.arange(len(self.start) - 1), self.length)

    @property
    def rank(self) -> Floats:
        return np.asarray(np.arange(len(self.item)) - np.repeat(self.start[:-1], self.length) + 1.0)

    def top(self, k: int) -> TopLists:
        """The first k places of each list."""
        mask = self.rank <= k
        start = np.concatenate([[0], np.cumsum(np.minimum(self.length, k))])
        return TopLists(start, self.item[mask], self.tied[mask])

    @property
    def split(self) -> Bools:
        """Of which units a tie was cut: equals of the last item are not in the list."""
        result = np.zeros(len(self.start) - 1, dtype=bool)
        some = self.length > 0
        result[some] = self.tied[self.start[1:][some] - 1]
        return result


# ------------------------------------------------------------------------------------------------------ chunk and view


@record
class Returned:
    """What came back of a designed exposure; that of other users adds.

    `drawn` pairs were to be shown to the users of the labels, `back` of them came back; `unasked` rows were not in the
    design. Of `partial` users some rows are missing, of `silent` ones all.
    """

    drawn: int
    back: int
    unasked: int
    partial: int
    silent: int

    def __add__(self, more: Returned) -> Returned:
        return Returned(*(getattr(self, entry.name) + getattr(more, entry.name) for entry in fields(self)))


@record
class JudgedChunk:
    """Labels of whole users, laid over the catalogue, with the candidates of every pool: what `measure` takes.

    Users are units and clusters at once. `unit` are their places in the population, where that is larger.
    """

    labels: Log
    pools: Mapping[Pool, Candidates]
    unit: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    dropped: int = 0  # rows that are no longer there, because they are excluded
    returned: Returned | None = None  # of a design, where the rows were shown by one
    models: Mapping[str, Any] = field(default_factory=dict)  # what each says of the users
    clusters: Clusters = field(default_factory=lambda: Clusters.numbered(0))  # each user, made once

    def __post_init__(self) -> None:
        if len(self.clusters.of_row) != self.labels.n_units:
            object.__setattr__(self, "clusters", Clusters.alone(self.labels.users.keys()))
        if len(self.unit) != self.labels.n_units:
            object.__setattr__(self, "unit", np.arange(self.labels.n_units))

    @property
    def n_rows(self) -> int:
        """How many labels went in."""
        return len(self.labels) + self.dropped + (0 if self.returned is None else self.returned.unasked)

    def places(self) -> Ints:
        return self.unit

    def with_items(self, items: Ids) -> JudgedChunk:
        """The same with other names of items."""
        return replace(self, labels=replace(self.labels, items=items))

    def to_send(self) -> JudgedChunk:
        """The chunk without the names of all items, which travel once."""
        return self.with_items(Ids.places(0))


@record
class RankView:
    """How one model sees the labels of a chunk: their ranks; and its scores, for those who look at whole lists.

    `listed` keeps what was made of whole lists, which a fit without some of the users asks for again.
    """

    ranks: Ranks
    scores: Scores | None = None
    name: str = "scores"
    ties: Ties = Ties.EXPECTED
    seed: int = 0
    listed: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    refits: ClassVar[None] = None

    def without(self, group: int) -> RankView:
        """The view under what was learned without a group of clusters: ranks do not depend on it."""
        return self
