"""Expected reciprocal rank."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.metric import BaseMetric
from truerank.core.record import record
from truerank.core.values import Count
from truerank.metrics.discounts import Positives, TieGroups, grade_column, grades

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
    name: ClassVar[str] = "ERR"
    partial: ClassVar[str] = (
        "an item that was not judged may satisfy the reader before, and no unbiased form exists; use DCG or RBP"
    )

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
        return np.asarray((np.exp2(grade) - 1.0) / 2.0**self.highest)

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
