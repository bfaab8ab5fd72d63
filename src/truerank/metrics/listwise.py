"""Metrics of all relevant items of a unit at once: of their best order, of the first, or of how many there are."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.metric import BaseMetric
from truerank.core.options import Discount, Gain, Ideal
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.additive import DCG
from truerank.metrics.discounts import (
    GradedMetric,
    Positives,
    TieGroups,
    expected_discount,
    grade_column,
    grades,
    with_positives,
)


@record
class NDCG(GradedMetric):
    """DCG@K divided by the DCG@K of the ideal list: the user's own items in their best order.

    `Ideal.CUTOFF` divides by a list of K items as good as the user's best, also where the user has fewer. Undefined for
    a user without a relevant item. Over tie orders only the numerator varies, so its expected value is the expected
    DCG divided by the ideal.

    >>> str(NDCG(10)), str(NDCG(10, Gain.EXPONENTIAL, Ideal.CUTOFF))
    ('nDCG@10', 'nDCG@10(gain=exponential,ideal=cutoff)')
    """

    k: Count
    gain: Gain = Gain.BINARY
    ideal: Ideal = Ideal.POSITIVES
    discount: Discount = Discount.SMOOTH
    name = "nDCG"
    on_full_labels = "users with a relevant item"
    partial = (
        "its normaliser needs the number of all relevant items of each user, and no unbiased form exists; "
        "post-normalised divides mean DCG by that of an ideal list; or use DCG"
    )

    @property
    def _dcg(self) -> DCG:
        return DCG(self.k, discount=self.discount)

    def by_rank(self, rank: Floats) -> Floats:
        return self._dcg.rank_discount(rank)

    def by_hit(self, hit: Floats) -> Floats:
        return np.ones(len(hit))

    def divide(self, positives: Positives) -> Floats:
        """The DCG of the ideal list."""
        dcg = self._dcg
        if self.ideal is Ideal.CUTOFF:
            best = np.zeros(len(positives.count))
            np.maximum.at(best, positives.unit, positives.gain)
            return with_positives(positives, best * np.sum(dcg.rank_discount(np.arange(1.0, self.k + 1))))
        if not self.graded:
            most = int(min(positives.count.max(initial=0), self.k))
            running = np.concatenate([[np.nan], np.cumsum(dcg.rank_discount(np.arange(1.0, most + 1)))])
            return running[np.minimum(positives.count, most).astype(np.int64)]
        best_first, place = positives.best_first()
        discount = positives.gain[best_first] * dcg.rank_discount(place + 1.0)
        return with_positives(positives, sums_by(positives.unit[best_first], discount, n=len(positives.count)))

    def values(self, positives: Positives) -> Floats:
        result = positives.sums(positives.gain * expected_discount(self._dcg, positives.ranks))
        return result / self.divide(positives)


@record
class ReciprocalRank(BaseMetric):
    """1 / rank of the best-ranked relevant item, 0 beyond the cut-off where one is given.

    Undefined for a user without a relevant item. Over tie orders: in the best tie group of t candidates, p of them
    relevant, the first relevant one stands at place j with probability C(t - j, p - 1) / C(t, p).

    >>> str(ReciprocalRank()), str(ReciprocalRank(10))
    ('RR', 'RR@10')
    """

    k: Count | None = None
    name = "RR"
    aliases = ("MRR",)
    on_full_labels = "users with a relevant item"
    partial = "a relevant item that was not judged may come first, and no unbiased form exists; use DCG"

    def by_rank(self, rank: Floats) -> Floats:
        return np.where(rank <= (np.inf if self.k is None else self.k), 1.0 / rank, 0.0)

    def by_hit(self, hit: Floats) -> Floats:
        return np.where(hit == 1, 1.0, 0.0)

    def divide(self, positives: Positives) -> Floats:
        return with_positives(positives, np.ones(len(positives.count)))

    def values(self, positives: Positives) -> Floats:
        result = np.zeros(len(positives.count))
        groups = positives.groups()
        cutoff = np.inf if self.k is None else self.k
        for index in np.flatnonzero(groups.first):
            above, size = groups.above[index], groups.size[index]
            if groups.positives[index] >= size:
                result[groups.unit[index]] = 1.0 / (above + 1) if above + 1 <= cutoff else 0.0
                continue
            place = np.arange(1.0, size - groups.positives[index] + 2)
            chance = _first(size, groups.positives[index], len(place))
            rank = above + place
            result[groups.unit[index]] = float(np.sum(np.where(rank <= cutoff, chance / rank, 0.0)))
        return with_positives(positives, result)


def _first(size: float, positives: float, n: int) -> Floats:
    """The probability that the first of `positives` among `size` in random order stands at place 1 ... n.

    P(1) = p / t and P(j + 1) = P(j) (t - j - p + 1) / (t - j).

    >>> _first(3, 1, 3).round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """
    place = np.arange(1.0, n)
    return (positives / size) * np.concatenate([[1.0], np.cumprod((size - place - positives + 1) / (size - place))])


@record
class HitRate(BaseMetric):
    """1 if at least one relevant item is in the top K, else 0. A user without a relevant item has hit rate 0.

    Over tie orders: the best tie group holds p relevant among t candidates, of which c lie within the cut-off, so
    the expected value is 1 - C(t - p, c) / C(t, c) (McSherry and Najork 2008).

    >>> str(HitRate(10))
    'HitRate@10'
    """

    k: Count
    name = "HitRate"
    aliases = ("HR", "Hit", "Hits", "Success")
    partial = (
        "one relevant item among those not judged would change it, and no unbiased form exists; use Recall or Precision"
    )

    def by_rank(self, rank: Floats) -> Floats:
        return (rank <= self.k).astype(np.float64)

    def by_hit(self, hit: Floats) -> Floats:
        return np.where(hit == 1, 1.0, 0.0)

    def divide(self, positives: Positives) -> Floats:
        return np.ones(len(positives.count))

    def values(self, positives: Positives) -> Floats:
        result = np.zeros(len(positives.count))
        groups = positives.groups()
        inside = np.clip(self.k - groups.above, 0, groups.size)
        for index in np.flatnonzero(groups.first & (inside > 0)):
            # all of the group inside, or its relevant items share one rank: a sure hit
            sure = inside[index] == groups.size[index] or groups.positives[index] >= groups.size[index]
            result[groups.unit[index]] = (
                1.0 if sure else 1.0 - _miss(groups.size[index], groups.positives[index], inside[index])
            )
        return result


def _miss(size: float, positives: float, inside: float) -> float:
    """C(size - positives, inside) / C(size, inside), as a product of the smaller number of factors.

    >>> _miss(4, 1, 2)
    0.5
    """
    few, many = sorted((positives, inside))
    step = np.arange(few)
    return float(np.prod(np.maximum(size - many - step, 0.0) / (size - step)))


@record
class RPrecision(BaseMetric):
    """The share of a user's n relevant items that are ranked in the top n; precision and recall at n are the same.

    Undefined for a user without a relevant item. Over tie orders a relevant item in a group of t candidates after a
    better ones is in the top n with probability (n - a) / t, between 0 and 1.

    >>> str(RPrecision())
    'RPrecision'
    """

    name = "RPrecision"
    on_full_labels = "users with a relevant item"
    partial = (
        "it looks as deep as a user has relevant items, a number that is not known, and no unbiased form exists; "
        "use Recall or Precision"
    )

    def values(self, positives: Positives) -> Floats:
        ranks, n = positives.ranks, positives.count
        size = ranks.tied + 1
        hits = positives.sums(np.clip(n[positives.unit] - ranks.above, 0, size) / size)
        return with_positives(positives, hits / np.maximum(n, 1))


NEGLIGIBLE = 1e-20  # the chance to look any further, below which nothing in a 64-bit sum changes


@record
class ERR(BaseMetric):
    """The expected 1 / rank at which a reader is satisfied (Chapelle et al. 2009), 0 beyond the cut-off.

    The reader goes down the list and stops at an item of grade g with probability (2^g - 1) / 2^highest, where
    `highest` is the top of the scale of grades. Without it the label is the grade, and the probability 1/2. A user
    without a relevant item has ERR 0.

    Over tie orders, with c_i the probability not to stop at item i, the chance to pass the first j places of a group is
    q_j = Σ over sets of j candidates of Π c_i / C(t, j). One more candidate of the group changes the q_j of s to
    ((s + 1 - j) q_j + j c q_(j - 1)) / (s + 1), so that no set is ever listed.

    >>> str(ERR(10)), str(ERR(10, highest=4))
    ('ERR@10', 'ERR@10(highest=4)')
    """

    k: Count
    highest: Count | None = None
    name = "ERR"
    partial = "an item that was not judged may satisfy the reader before, and no unbiased form exists; use DCG or RBP"

    @property
    def graded(self) -> bool:
        return self.highest is not None

    def gains(self, log: Log) -> Floats:
        """The probability to stop at each row."""
        if self.highest is None:
            return log.label / 2
        grade = grades(log)
        if grade.max(initial=0.0) > self.highest:
            raise InputError(
                f"{self}: {log.source} has a {grade_column(log)} of {grade.max():g}, above the top of the scale; "
                f"expected at most {self.highest}. Give the top: ERR@{self.k}(highest={int(np.ceil(grade.max()))})."
            )
        return (np.exp2(grade) - 1.0) / 2.0**self.highest

    def values(self, positives: Positives) -> Floats:
        g = positives.groups()
        passed = np.multiply.reduceat(1.0 - g.gain, g.start[:-1]) if len(g.gain) else np.zeros(0)
        value = np.where(g.above < self.k, (1.0 - passed) / (g.above + 1), 0.0)
        for group in np.flatnonzero(~g.share_one_rank & (g.above < self.k)):
            value[group] = _tied(g, int(group), self.k)
        result, looks = np.zeros(len(positives.count)), np.ones(len(positives.count))
        index = np.flatnonzero(g.first)
        ends = np.append(index[1:], len(g.unit))
        # the best group of every user, then the second best, until no reader is left
        while len(index):
            result[g.unit[index]] += looks[g.unit[index]] * value[index]
            looks[g.unit[index]] *= passed[index]
            mask = (index + 1 < ends) & (looks[g.unit[index]] > NEGLIGIBLE)
            index, ends = index[mask] + 1, ends[mask]
        return result


def _tied(groups: TieGroups, at: int, k: int) -> float:
    """The expected reciprocal rank of one tie group, for a reader who comes to it.

    The weakest items first: then every further one lowers each q_j, and those that have become negligible stay so.
    """
    above, size = groups.above[at], int(groups.size[at])
    stop = np.sort(groups.gain[groups.start[at] : groups.start[at + 1]])
    place = np.arange(min(size, int(k - above)) + 1.0)
    chance = np.ones(min(size - len(stop) + 1, len(place)))
    whole = True
    for s, entry in enumerate(stop, start=size - len(stop)):
        if whole and len(chance) < len(place):
            chance = np.append(chance, 0.0)
        j = place[: len(chance)]
        before = np.append(0.0, chance[:-1])
        chance = ((s + 1 - j) * chance + j * (1.0 - entry) * before) / (s + 1)
        seen = int(np.searchsorted(-chance, -NEGLIGIBLE)) + 1
        whole, chance = whole and seen > len(chance), chance[:seen]
    return float(np.sum((chance[:-1] - chance[1:]) / (above + place[1 : len(chance)])))
