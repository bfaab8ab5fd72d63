"""Were labelled items drawn uniformly, and were users selected by their labels? Counted chunk by chunk of users."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, quotient, sums_by
from truerank.core.log import Log, Pairs
from truerank.core.ranking import JudgedChunk, Pool
from truerank.core.record import record
from truerank.exposure.counts import sum_cells
from truerank.exposure.randomness.draws import Dispersion

REJECTED = 0.001
LARGE = 0.10  # differences of items' exposure beyond chance, as a share of their mean


@record
class ItemFinding:
    """X² of item counts with its degrees of freedom and p, and the spread of items' exposure beyond chance.

    `effect` is √(max(0, X² - df) / Σ E): the coefficient of variation of items' exposure that chance does not explain.
    """

    statistic: float
    df: float
    p: float
    effect: float

    @property
    def rejected(self) -> bool:
        return self.p < REJECTED

    @property
    def not_random(self) -> bool:
        """Whether items differ by more than chance, and by much."""
        return self.rejected and self.effect > LARGE


@dataclass(frozen=True, eq=False)
class LabelledItems:
    """How often each item was labelled, and what uniform draws give: sums over users, which add.

    `sums` are Σ_u f, Σ_u f (1 - f) and Σ_u (1 - 2f)² f (1 - f) N / (N - 1) over all users, f = N-bar / N; `own_sums` [3
    x items] is what to add for each item: minus the users of whom it is no candidate, or those of whom it is one.
    `unnamed` items of the catalogue have no name, so they have no label.
    """

    count: Ints
    sums: Floats
    own_sums: Floats | None
    unnamed: float

    @classmethod
    def from_chunk(cls, chunk: JudgedChunk) -> LabelledItems:
        """The counts of a chunk of users."""
        labels, pool = chunk.labels, chunk.pools[Pool.CATALOGUE]
        n, n_items = pool.count, len(labels.items)
        labelled = np.bincount(labels.unit, minlength=labels.n_units)
        share = quotient(labelled, n)
        spread = share * (1 - share)
        third = (1 - 2 * share) ** 2 * spread * quotient(n, n - 1)
        of_users = np.stack([share, spread, third])
        count = np.bincount(labels.item, minlength=n_items)
        if pool.only is not None:
            return cls(count, np.zeros(3), _by_item(pool.only, of_users, n_items), 0.0)
        own_sums = None if pool.exclude is None else -_by_item(pool.exclude, of_users, n_items)
        return cls(count, of_users.sum(axis=1), own_sums, pool.n_items - n_items)

    def __add__(self, more: LabelledItems) -> LabelledItems:
        parts = [part.own_sums for part in (self, more) if part.own_sums is not None]
        own_sums = np.sum(parts, axis=0) if parts else None
        return replace(self, count=self.count + more.count, sums=self.sums + more.sums, own_sums=own_sums)

    @cached_property
    def finding(self) -> ItemFinding | None:
        """As `item_dispersion`, with upper bounds where the exact variance would need every user again.

        Rows of few users vary less than assumed here, so that p is never too small for them. Where items are labelled
        less than once on average, X² counts pairs of users with a common item, a Poisson number: then p is that
        of this number, which has the longer tail.
        """
        from truerank.core.special import gammainc

        if math.isnan(self.unnamed):
            return None
        sums = self.sums[:, None] + np.zeros((3, len(self.count))) + (0.0 if self.own_sums is None else self.own_sums)
        varies = sums[1] > 1e-9
        sums, times, count = np.maximum(sums[:, varies], 0.0), np.ones(np.count_nonzero(varies)), self.count[varies]
        if self.unnamed > 0 and self.sums[1] > 1e-9:
            sums = np.column_stack([sums, self.sums])
            times, count = np.append(times, self.unnamed), np.append(count, 0)
        expected, variance, third = sums
        apart = count - expected
        n = float(times.sum())
        if n < 2:
            return None
        total = float((times * apart**2 / variance).sum())
        around = (times * third).sum()
        mean = float((times * third / variance).sum() / around) if around > 0 else 0.0
        # correlations as if proportional to the variances of both items, as for many items in `item_dispersion`
        squares = n + 1 / float(1 - (times * variance**2).sum() / (times * variance).sum() ** 2)
        noise = 2 * squares + float((times * third * (1 / variance - mean) ** 2).sum())
        test = Dispersion(total, int(n), noise, squares)
        pairs = float((times * variance**2).sum()) / 2
        common = pairs + (total - n) * math.sqrt(pairs / noise)
        sparse = float(gammainc(common, pairs)) if common > 0 else 1.0
        return ItemFinding(test.statistic, test.df, max(test.p, sparse), test.effect(float((times * expected).sum())))


def _by_item(pairs: Pairs, of_users: Floats, n_items: int) -> Floats:
    """Sums of users' values over the users of each item."""
    return np.stack([np.bincount(pairs.item, weights=values[pairs.unit], minlength=n_items) for values in of_users])


# -------------------------------------------------------------------------------------------------------------- users

ALPHA = 0.001  # p below which so few users without a positive are no accident
SMALLEST_STRATUM = 100  # users, below which neighbouring strata are merged


@record
class WithoutPositive:
    """Users with labelled rows but no positive one, how many random exposure gives at least, and p of so few."""

    users: int
    expected: float
    p: float

    @property
    def too_few(self) -> bool:
        """Whether users were selected by their labels: fewer than half of those expected, and not by accident."""
        return self.p < ALPHA and self.users < self.expected / 2

    @property
    def words(self) -> str:
        lacking = "no user lacks a positive" if self.users == 0 else f"only {self.users:,} users lack a positive"
        return (
            f"{lacking}, where random exposure gives at least about {self.expected:,.0f}: users were probably kept "
            "because they have a positive label, and values such as Precision are too high"
        )


@record(eq=False)
class UserCounts:
    """Users by their number of labelled rows N-bar and of candidates N; counts of other users add.

    `table` has a row for each (N-bar, N), ascending, with its users, positive rows, and users without a positive row.

    >>> both = UserCounts.from_users(np.array([2, 2]), np.array([9.0, 9.0]), np.array([0, 1]))
    >>> (both + UserCounts.from_users(np.array([2, 0]), np.array([9.0, 9.0]), np.array([2, 0]))).table.rows()
    [(2, 9, 3.0, 3.0, 1.0)]
    """

    table: pl.DataFrame

    @classmethod
    def from_users(cls, n_labelled: Ints, n_candidates: Floats, n_positive: Ints) -> UserCounts:
        """Of users with so many labelled rows, candidates and positive rows; users without a row do not count."""
        used = n_labelled > 0
        rows, candidates, positive = n_labelled[used], n_candidates[used], n_positive[used].astype(np.float64)
        strata = {"rows": rows, "candidates": np.maximum(candidates, rows).astype(np.int64)}
        counts = {"users": np.ones(len(rows)), "positive": positive, "lacking": (positive == 0).astype(np.float64)}
        return cls(sum_cells(pl.DataFrame({**strata, **counts})))

    @classmethod
    def from_log(cls, log: Log, n_candidates: Floats) -> UserCounts:
        """Of the users of a labelled log."""
        rows, positive = (np.bincount(user, minlength=log.n_units) for user in (log.user, log.user[log.label == 1]))
        return cls.from_users(rows, n_candidates, positive)

    @classmethod
    def from_chunk(cls, chunk: JudgedChunk, positive: Bools) -> UserCounts:
        """Of a chunk whose rows are positive or not. An unknown number of candidates is at least that of named items.

        Fewer candidates make fewer users without a positive, so that counting too few of them gives no false alarm.
        """
        labels, pool = chunk.labels, chunk.pools[Pool.CATALOGUE]
        excluded = 0 if pool.exclude is None else pool.exclude.count
        candidates = np.where(np.isnan(pool.count), len(labels.items) - excluded, pool.count)
        rows = np.bincount(labels.unit, minlength=labels.n_units)
        return cls.from_users(rows, candidates, np.bincount(labels.unit[positive], minlength=labels.n_units))

    def __add__(self, more: UserCounts) -> UserCounts:
        return UserCounts(sum_cells(pl.concat([self.table, more.table])))

    def test(self) -> WithoutPositive:
        """Users without a positive against E = Σ_u Π_{j < N-bar} (1 - p N / (N - j)), p the positive rate of a stratum.

        That is the probability of no positive among N-bar uniform draws from N candidates, p N of them positive. It is
        convex in p, so users who differ within a stratum lack a positive more often, never less. Where strata are
        merged, users with few rows may like more of them: p is the larger of the rate of rows and the mean rate of
        users. The p-value of so few is Chernoff's bound exp(-E + U + U ln(E / U)). With every candidate labelled
        nothing was drawn, and E is about 0.

        >>> everyone = UserCounts.from_users(np.full(300, 2), np.full(300, 50.0), np.ones(300, dtype=int))
        >>> everyone.test().users, round(everyone.test().expected, 1), everyone.test().too_few
        (0, 73.5, True)
        """
        rows, candidates, users, positive, lacking = self.table.cast(pl.Float64).to_numpy().T
        group = _merged(users)
        n_groups = int(group[-1]) + 1 if len(group) else 0
        of_rows, of_users = (
            sums_by(group, weight * positive / rows, n=n_groups) / sums_by(group, weight * users, n=n_groups)
            for weight in (rows, np.ones(len(rows)))
        )
        rate = np.maximum(of_rows, of_users)[group]
        expected = float((users * _no_positive(rows, candidates, rate * candidates)).sum())
        n = int(lacking.sum())
        p = math.exp(n - expected + (n * math.log(expected / n) if n else 0.0)) if n < expected else 1.0
        return WithoutPositive(n, expected, p)


def _merged(users: Floats) -> Ints:
    """The group of each stratum: neighbours together, until a group has 100 users; the rest joins the last one.

    >>> _merged(np.array([60.0, 60.0, 150.0, 30.0])).tolist()
    [0, 0, 1, 1]
    """
    group, total, number = [], 0.0, 0
    for n in users.tolist():
        group.append(number)
        total += n
        if total >= SMALLEST_STRATUM:
            total, number = 0.0, number + 1
    if total and number:
        group = [min(before, number - 1) for before in group]
    return np.array(group, dtype=np.int64)


def _no_positive(rows: Floats, candidates: Floats, positives: Floats) -> Floats:
    """P(no positive among uniform draws): Π_{j < rows} (1 - positives / (candidates - j)); 0 where one factor is.

    >>> _no_positive(np.array([2.0, 3.0]), np.array([4.0, 4.0]), np.array([1.0, 2.0])).round(12).tolist()
    [0.5, 0.0]
    """
    from truerank.core.special import gammaln

    others = candidates - positives
    possible = others - rows + 1 > 1e-9
    n, left = np.where(possible, rows, 0.0), np.where(possible, others, candidates)
    log = gammaln(left + 1) - gammaln(left - n + 1) + gammaln(candidates - n + 1) - gammaln(candidates + 1)
    return np.where(possible, np.exp(log), 0.0)
