"""The cheap test of uniform draws: how often each item was judged, counted chunk by chunk of users."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.log import Pairs
from truerank.core.ranking import JudgedChunk, Pool
from truerank.exposure.randomness.draws import Dispersion, owners

REJECTED = 0.001
LARGE = 0.10  # differences of items' exposure beyond chance, as a share of their mean


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, eq=False)
class JudgedItems:
    """How often each item was judged, and what uniform draws give: sums over users, which add.

    `sums` are Σ_u f, Σ_u f (1 - f) and Σ_u (1 - 2f)² f (1 - f) N / (N - 1) over all users, f = N-bar / N; `own` [3 x
    items] is what to add for each item: minus the users of whom it is no candidate, or those of whom it is one.
    `unnamed` items of the catalogue have no name, so nobody judged them.
    """

    count: Ints
    sums: Floats
    own: Floats | None
    unnamed: float
    known: dict[str, ItemFinding | None] = field(default_factory=dict, init=False, repr=False)  # once it was asked

    @classmethod
    def of(cls, chunk: JudgedChunk) -> JudgedItems:
        """The counts of a chunk of users."""
        labels, pool = chunk.labels, chunk.pools[Pool.CATALOGUE]
        n, n_items = pool.count, len(labels.items)
        judged = np.bincount(labels.unit, minlength=labels.n_units)
        share = np.divide(judged, n, out=np.zeros(len(n)), where=n > 0)
        spread = share * (1 - share)
        third = (1 - 2 * share) ** 2 * spread * np.divide(n, n - 1, out=np.zeros(len(n)), where=n > 1)
        of_users = np.stack([share, spread, third])
        count = np.bincount(labels.item, minlength=n_items)
        if pool.only is not None:
            return cls(count, np.zeros(3), _by_item(pool.only, of_users, n_items), 0.0)
        own = None if pool.exclude is None else -_by_item(pool.exclude, of_users, n_items)
        return cls(count, of_users.sum(axis=1), own, pool.n_items - n_items)

    def __add__(self, other: JudgedItems) -> JudgedItems:
        own = [each for each in (self.own, other.own) if each is not None]
        return replace(
            self,
            count=self.count + other.count,
            sums=self.sums + other.sums,
            own=own[0] + own[1] if len(own) == 2 else own[0] if own else None,
        )

    def finding(self) -> ItemFinding | None:
        """The test, None where nothing can be tested."""
        if "" not in self.known:
            self.known[""] = self._finding()
        return self.known[""]

    def _finding(self) -> ItemFinding | None:
        """As `item_dispersion`, with upper bounds where the exact variance would need every user again.

        Rows of few users are less variable than said here, so that p is never too small for them. Where items are
        judged less than once on average, X² counts pairs of users with a common item, a Poisson number: then p is that
        of this number, which has the longer tail.
        """
        from truerank.core.special import gammainc

        expected, variance, third = self.sums[:, None] + (np.zeros((3, 1)) if self.own is None else self.own)
        expected, variance, third = (np.broadcast_to(each, self.count.shape) for each in (expected, variance, third))
        if math.isnan(self.unnamed):
            return None
        varies = variance > 1e-9
        expected, variance, third = (np.maximum(each[varies], 0.0) for each in (expected, variance, third))
        times = np.ones(len(variance))
        apart = self.count[varies] - expected
        if self.unnamed > 0 and self.sums[1] > 1e-9:
            expected, variance, third = (
                np.append(each, total) for each, total in zip((expected, variance, third), self.sums, strict=True)
            )
            times, apart = np.append(times, self.unnamed), np.append(apart, -self.sums[0])
        n = float(times.sum())
        if n < 2:
            return None
        total = float((times * apart**2 / variance).sum())
        around = (times * third).sum()
        mean = float((times * third / variance).sum() / around) if around > 0 else 0.0
        # correlations as if proportional to the variances of both items, as for many items in `item_dispersion`
        squares = n + 1 / float(1 - (times * variance**2).sum() / (times * variance).sum() ** 2)
        noise = 2 * squares + float((times * third * (1 / variance - mean) ** 2).sum())
        found = Dispersion(total, int(n), noise, squares)
        pairs = float((times * variance**2).sum()) / 2
        common = pairs + (total - n) * math.sqrt(pairs / noise)
        sparse = float(gammainc(common, pairs)) if common > 0 else 1.0
        effect = math.sqrt(max(0.0, found.statistic - found.df) / float((times * expected).sum()))
        return ItemFinding(found.statistic, found.df, max(found.p, sparse), effect)


def _by_item(pairs: Pairs, of_users: Floats, n_items: int) -> Floats:
    """Sums of users' values over the users of each item."""
    owner = owners(pairs)
    return np.stack([np.bincount(pairs.item, weights=values[owner], minlength=n_items) for values in of_users])
