"""How often users and items occur in logs, and the weights that follow: what loggers, interventions and samplers share.

By rank (Zipf's law), or by how much more often a user or an item would be seen at random than it was: the weights of
WTD (eqs. 13 and 14), for rows of a test set and for sampled candidates alike.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.values import Positive, Range, Value
from truerank.sampling.designs import SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members, row_keys

PAIR, PURPOSE = "pair", "intervene"  # one for all strategies: they differ by weights alone
ZIPF = 0.5  # the exponent of the KuaiRec authors' demonstration, which papers on loggers and samplers follow


def rows_of_items(log: Log, items: Ids, *, positive: bool = False) -> Ints:
    """How many rows, or positive rows, each of `items` has in a log; in a complete one every pair is a row.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> log = read(pl.DataFrame({"user": [1, 1, 2], "item": [5, 7, 7], "label": [0, 1, 0]}))
    >>> rows_of_items(log, Ids.of([5, 6, 7])).tolist(), rows_of_items(log, Ids.of([5, 6, 7]), positive=True).tolist()
    ([1, 0, 2], [0, 0, 1])
    """
    place = items.locate(log.items, where=f"{log.source}, column 'item'")
    if log.complete and not positive:
        return np.bincount(place[place >= 0], minlength=len(items)).astype(np.int64) * len(log.users)
    here = place[log.item[log.label == 1] if positive else log.item]
    return np.bincount(here[here >= 0], minlength=len(items)).astype(np.int64)


def shares_of_items(log: Log, items: Ids) -> Floats:
    """Each item's share of the rows of a log."""
    if len(log) == 0:
        raise InputError(f"{log.source}: no rows; expected rows to count the items of.")
    return np.asarray(rows_of_items(log, items) / len(log))


def sum_cells(rows: pl.DataFrame) -> pl.DataFrame:
    """The sums of all columns of floats over rows that agree in the others, in ascending order of these.

    >>> sum_cells(pl.DataFrame({"rank": [2, 1, 2], "clicks": [1.0, 5.0, 2.0]})).rows()
    [(1, 5.0), (2, 3.0)]
    """
    keys = [name for name, kind in rows.schema.items() if kind != pl.Float64]
    return rows.group_by(keys).agg(pl.exclude(keys).sum()).sort(keys)


def pair_order(log: Log) -> Ints | None:
    """The rows in the order of users and items, None where they are; refused where a pair occurs twice."""
    cell = log.user * max(len(log.items), 1) + log.item
    if (cell[1:] > cell[:-1]).all():
        return None
    order = np.argsort(cell, kind="stable")
    again = np.flatnonzero(np.diff(cell[order]) == 0)
    if len(again):
        row = order[again[:1]]
        user, item = log.users.texts(log.user[row])[0], log.items.texts(log.item[row])[0]
        raise InputError(
            f"{log.source}: {len(again):,} pairs occur more than once, such as user {user}, item {item}; "
            "expected one row per pair. Keep one row per pair."
        )
    return order


def zipf(count: Ints | Floats, *, shift: int = 0, exponent: float = ZIPF) -> Floats:
    """(rank + shift)^-exponent, rank 1 for the largest count; equal counts share the smallest of their ranks.

    >>> zipf(np.array([10, 30, 10])).round(4).tolist()
    [0.7071, 1.0, 0.7071]
    """
    if not (exponent >= 0 and np.isfinite(exponent)):
        raise InputError(f"a Zipf exponent of {exponent:g}; expected a finite number from 0.")
    rank = 1 + len(count) - np.searchsorted(np.sort(count), count, side="right")
    return np.asarray((rank + shift).astype(np.float64) ** -exponent)


@record
class RowCounts:
    """The number of rows of each id of interest, of all `rows`, over a space of `size` ids."""

    count: Floats
    rows: int
    size: int


@record
class Floor(Value):
    """A posterior of 0 becomes `least`, an absolute number; 0 leaves it 0 (the WTD paper's code has 0.0001).

    >>> Floor(0.01).posterior(RowCounts(np.array([0.0, 3.0]), rows=4, size=3)).tolist()
    [0.01, 0.75]
    """

    least: Annotated[float, Range(least=0, most=1)] = 1e-4
    name: ClassVar[str] = "floor"
    positional: ClassVar[tuple[str, ...]] = ("least",)

    def posterior(self, counts: RowCounts) -> Floats:
        return np.where(counts.count > 0, counts.count / max(counts.rows, 1), self.least)


@record
class Smoothed(Value):
    """Additive smoothing: (count + `added`) / (rows + `added` x size).

    >>> Smoothed(1).posterior(RowCounts(np.array([0.0, 3.0]), rows=4, size=4)).tolist()
    [0.125, 0.5]
    """

    added: Positive = 1.0
    name: ClassVar[str] = "smoothed"
    positional: ClassVar[tuple[str, ...]] = ("added",)

    def posterior(self, counts: RowCounts) -> Floats:
        return np.asarray((counts.count + self.added) / (counts.rows + self.added * counts.size))


Zero = Floor | Smoothed


def posterior_ratio(random: RowCounts | None, biased: RowCounts, *, zero: Zero) -> Floats:
    """w = P_mar(. | O) / P_mnar(. | O) of each id; without random data P_mar is 1 / size (section 4.3).

    >>> seen = RowCounts(np.array([4.0, 2.0, 2.0]), rows=8, size=3)
    >>> posterior_ratio(RowCounts(np.array([1.0, 1.0, 2.0]), rows=4, size=3), seen, zero=Floor()).tolist()
    [0.5, 1.0, 2.0]
    >>> posterior_ratio(None, seen, zero=Floor()).round(3).tolist()
    [0.667, 1.333, 1.333]
    """
    target = np.full(len(biased.count), 1 / biased.size) if random is None else zero.posterior(random)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(target / zero.posterior(biased))


@record(eq=False)
class Margins:
    """How many rows each user and each item of a log has: all that weights of rows are made from.

    >>> from truerank.io.read import read
    >>> import polars as pl
    >>> counted = Margins.of(read(pl.DataFrame({"user": [1, 1, 2], "item": [5, 7, 7]})))
    >>> len(counted), counted.rows("user").tolist(), counted.rows("item").tolist()
    (3, [2, 1], [1, 2])
    """

    users: Ids
    items: Ids
    by_user: Ints
    by_item: Ints
    source: str

    @classmethod
    def of(cls, log: Log | Margins) -> Margins:
        if isinstance(log, Margins):
            return log
        by_user = np.bincount(log.user, minlength=len(log.users))
        return cls(log.users, log.items, by_user, np.bincount(log.item, minlength=len(log.items)), log.source)

    def __len__(self) -> int:
        return int(self.by_item.sum())

    def ids(self, margin: str) -> Ids:
        return self.users if margin == "user" else self.items

    def rows(self, margin: str) -> Ints:
        return self.by_user if margin == "user" else self.by_item


def counts_in(ids: Ids, log: Margins, *, margin: str, size: int) -> RowCounts:
    """How many rows of a log each of these users or items has."""
    place = ids.locate(log.ids(margin), where=f"{log.source}, column {margin!r}")
    count = np.zeros(len(ids))
    count[place[place >= 0]] = log.rows(margin)[place >= 0]
    return RowCounts(count, len(log), size)


def ratio_of(log: Margins, margin: str, *, train: Margins, random: Margins | None, zero: Zero) -> Floats:
    """w of every user or item of a log; `random` is the randomly shown slice, None for the hypothesised one."""
    sources = {"log": log, "train": train} | ({} if random is None else {"random": random})
    populations = {  # by role: two frames may have the same name
        f"{role} {counts.source}, column {margin!r}": counts.ids(margin) for role, counts in sources.items()
    }
    ids, size = log.ids(margin), len(Ids.union(populations))
    shown = None if random is None else counts_in(ids, random, margin=margin, size=size)
    ratio = posterior_ratio(shown, counts_in(ids, train, margin=margin, size=size), zero=zero)
    bad = np.flatnonzero(~np.isfinite(ratio))
    if len(bad):
        raise InputError(
            f"{log.source}: {margin} {some(ids.texts(bad), most=3)} unseen in {train.source}, so that a floor of 0 "
            "leaves no weight; give a floor above 0, or smoothing."
        )
    return ratio


@record(eq=False)
class DrawingRule:
    """How rows are drawn, as far as users and items tell: `n` of each pool, uniformly or by the weights of both.

    `pool` is the pool of each item, -1 where its rows are never drawn; None where all rows are one pool. It serves for
    all rows at once and for those of any chunk.
    """

    n: int
    pool: Ints | None = None
    of_user: Floats | None = None
    of_item: Floats | None = None

    @property
    def weighs(self) -> bool:
        return self.of_item is not None

    @property
    def n_pools(self) -> int:
        return 1 if self.pool is None else int(self.pool.max(initial=-1)) + 1

    def weights(self, log: Log, unit: Ints | None = None) -> Floats:
        """Of each row; `unit` are the places of the log's users, where it has some of them alone."""
        if self.of_item is None:
            return np.ones(len(log))
        of_item = self.of_item[log.item]
        if self.of_user is None:
            return of_item
        return np.asarray(self.of_user[log.user if unit is None else unit[log.user]] * of_item)

    def members(self, log: Log, key: Keys, *, largest: float, unit: Ints | None = None) -> tuple[Ints, Members]:
        """The rows that can be drawn, as members of pools, by keys of pairs; `largest` is the largest of all weights.

        The scale of weights is free; far from 1 they could leave the range of numbers.
        """
        if self.weighs:
            return np.arange(len(log)), Members.together(key, weight=self.weights(log, unit) / largest)
        if self.pool is None:
            return np.arange(len(log)), Members.together(key)
        pool = self.pool[log.item]
        rows = np.flatnonzero(pool >= 0)
        return rows, Members(pool[rows].astype(np.uint64), key[rows])

    def draw(self, log: Log, *, seed: int) -> Ints:
        """The rows of a log in memory that are drawn, ascending."""
        rows, members, design = self.design(log)
        return rows[design.draw(members, seed=seed, purpose=PURPOSE)]

    def inclusion(self, log: Log) -> Floats:
        """The probability of each row of a log in memory to be drawn."""
        rows, members, design = self.design(log)
        probability = np.zeros(len(log))
        probability[rows] = design.inclusion(members)
        return probability

    def design(self, log: Log) -> tuple[Ints, Members, SamplingDesign]:
        """The rows that can be drawn, as members of pools, and the design that draws from them."""
        largest = float(self.weights(log).max(initial=0.0))
        check_largest(largest, log.source)
        members = self.members(log, cell_keys(0, PAIR, *row_keys(log)), largest=largest)
        return *members, WeightedDesign(self.n) if self.weighs else UniformDesign(self.n)


def check_largest(largest: float, source: str) -> None:
    """Refuse rows of which none can be drawn."""
    if not largest > 0:
        raise InputError(
            f"{source}: no row has a positive weight, so nothing can be drawn; give a floor above 0 for users and "
            "items without a row in the random slice."
        )
