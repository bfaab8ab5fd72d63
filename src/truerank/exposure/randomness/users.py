"""Were users selected because they have a positive label? How many lack one, counted chunk by chunk of users."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.log import Log
from truerank.core.ranking import JudgedChunk, Pool

ALPHA = 0.001  # p below which so few users without a positive are no accident
SMALLEST_STRATUM = 100  # users, below which neighbouring strata are merged


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, eq=False)
class UserCounts:
    """Users by their number of labelled rows N-bar and of candidates N; counts of other users add.

    `strata` [n x 2] are the distinct (N-bar, N), ascending; `counts` [n x 3] are, for each of them, users, positive
    rows, and users without a positive row. Whole numbers, so that chunks change no bit.

    >>> both = UserCounts.of(np.array([2, 2]), np.array([9.0, 9.0]), np.array([0, 1]))
    >>> (both + UserCounts.of(np.array([2, 0]), np.array([9.0, 9.0]), np.array([2, 0]))).counts.tolist()
    [[3, 3, 1]]
    """

    strata: Ints
    counts: Ints
    tested: list[WithoutPositive] = field(default_factory=list, init=False, repr=False)  # once it was asked for

    @classmethod
    def of(cls, n_labelled: Ints, n_candidates: Floats, n_positive: Ints) -> UserCounts:
        """Of users with so many labelled rows, candidates and positive rows; users without a row do not count."""
        used = n_labelled > 0
        rows, candidates, positive = n_labelled[used], n_candidates[used], n_positive[used]
        strata = np.stack([rows, np.maximum(candidates, rows).astype(np.int64)], axis=1)
        return cls._added(strata, np.stack([np.ones_like(rows), positive, positive == 0], axis=1).astype(np.int64))

    @classmethod
    def of_log(cls, log: Log, n_candidates: Floats) -> UserCounts:
        """Of the users of a labelled log."""
        rows, positive = (np.bincount(user, minlength=log.n_units) for user in (log.user, log.user[log.label == 1]))
        return cls.of(rows, n_candidates, positive)

    @classmethod
    def of_chunk(cls, chunk: JudgedChunk, positive: Bools) -> UserCounts:
        """Of a chunk whose rows are positive or not. An unknown number of candidates is at least that of named items.

        Fewer candidates make fewer users without a positive, so that counting too few of them gives no false alarm.
        """
        labels, pool = chunk.labels, chunk.pools[Pool.CATALOGUE]
        excluded = 0 if pool.exclude is None else pool.exclude.count
        candidates = np.where(np.isnan(pool.count), len(labels.items) - excluded, pool.count)
        rows = np.bincount(labels.unit, minlength=labels.n_units)
        return cls.of(rows, candidates, np.bincount(labels.unit[positive], minlength=labels.n_units))

    @classmethod
    def _added(cls, strata: Ints, counts: Ints) -> UserCounts:
        distinct, place = np.unique(strata, axis=0, return_inverse=True)
        total = np.zeros((len(distinct), 3), dtype=np.int64)
        np.add.at(total, place.reshape(-1), counts)
        return cls(distinct, total)

    def __add__(self, other: UserCounts) -> UserCounts:
        return self._added(
            np.concatenate([self.strata, other.strata]), np.concatenate([self.counts, other.counts])
        )  # fmt: skip

    def test(self) -> WithoutPositive:
        """The test of `_test`, computed once."""
        if not self.tested:
            self.tested.append(self._test())
        return self.tested[0]

    def _test(self) -> WithoutPositive:
        """Users without a positive against E = Σ_u Π_{j < N-bar} (1 - p N / (N - j)), p the positive rate of a stratum.

        That is the probability of no positive among N-bar uniform draws from N candidates, p N of them positive. It is
        convex in p, so users who differ within a stratum lack a positive more often, never less. Where strata are
        merged, users with few rows may like more of them: p is the larger of the rate of rows and the mean rate of
        users. The p-value of so few is Chernoff's bound exp(-E + U + U ln(E / U)). With every candidate labelled
        nothing was drawn, and E is about 0.

        >>> everyone = UserCounts.of(np.full(300, 2), np.full(300, 50.0), np.ones(300, dtype=int))
        >>> everyone.test().users, round(everyone.test().expected, 1), everyone.test().too_few
        (0, 73.5, True)
        """
        users, positive, lacking = self.counts.T
        group = _merged(users)
        rows, candidates = self.strata.T.astype(np.float64)
        n_groups = int(group[-1]) + 1 if len(group) else 0
        of_rows, of_users = (
            np.bincount(group, weights=weight * positive / rows, minlength=n_groups)
            / np.bincount(group, weights=weight * users, minlength=n_groups)
            for weight in (rows, np.ones(len(rows)))
        )
        rate = np.maximum(of_rows, of_users)[group]
        expected = float((users * _no_positive(rows, candidates, rate * candidates)).sum())
        n = int(lacking.sum())
        below = n < expected
        p = math.exp(n - expected + (n * math.log(expected / n) if n else 0.0)) if below else 1.0
        return WithoutPositive(n, expected, p)


def _merged(users: Ints) -> Ints:
    """The group of each stratum: neighbours together, until a group has 100 users; the rest joins the last one.

    >>> _merged(np.array([60, 60, 150, 30])).tolist()
    [0, 0, 1, 1]
    """
    group, total, number = [], 0, 0
    for n in users.tolist():
        group.append(number)
        total += n
        if total >= SMALLEST_STRATUM:
            total, number = 0, number + 1
    if total and number:
        group = [min(each, number - 1) for each in group]
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
