"""Whether a few clusters carry a value: tails of what they earn, unequal sizes, and what that does to its interval.

A heavy tail is most dangerous where its largest members happen not to have been drawn: then nothing in the spread shows
them. So it is judged by the slope of the upper part of what was seen, which hardly depends on the very largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from truerank.core.arrays import Floats, equal_parts
from truerank.core.messages import Message, message
from truerank.core.record import record
from truerank.core.terms import Smooth
from truerank.inference.linearization import influences

UPPER = 0.2  # the part of clusters that the tail is judged by
LEAST = 10  # members of it
HEAVY = 0.7  # a tail of index 1/2 has no variance; sums of exponential numbers seem to have .4 to .6
MANY = 50
LARGE = 0.1
FEW_EFFECTIVE = 10.0
RELATED = 0.3  # correlation of sizes with values
SURELY = 3.0  # standard errors
ENOUGH = 100.0  # equal clusters, beyond which it does not matter that sizes go with values


def tail_index(values: Floats) -> float:
    """The mean of log(x / x0) over the upper fifth of the numbers above 0, x0 the next smaller one (Hill 1975).

    Numbers with P(X > x) ~ x^(-1/k) have the index k; NaN where there are fewer than ten in the fifth.

    >>> round(tail_index((np.arange(1000, 0, -1) / 1000.0) ** -0.8), 1), round(tail_index(np.linspace(1, 2, 1000)), 2)
    (0.8, 0.05)
    """
    above = values[values > 0]
    n = int(UPPER * len(above))
    upper = np.partition(above, len(above) - n - 1)[-n - 1 :] if len(above) else above
    return _slope(upper) if len(upper) > LEAST else math.nan


def _slope(upper: Floats) -> float:
    """The mean of log(x / x0) over the numbers above the smallest, x0, which is the first."""
    return float(np.log(upper[1:] / upper[0]).mean())


def tail_length(n: int) -> int:
    """How many of n numbers are the tail: min(n / 5, 3 √n), as in Pareto-smoothed importance sampling."""
    return int(min(math.ceil(0.2 * n), math.ceil(3 * math.sqrt(n))))


@record(eq=False)
class Largest:
    """How many numbers there are, and the largest of them, ascending, at most `most`; those of other rows add.

    The part of them that is the tail becomes smaller as they become many: an interval for many forgives more.

    >>> rewards = (np.arange(1000, 0, -1) / 1000.0) ** -0.8
    >>> both = Largest.count(rewards[:500], most=200) + Largest.count(rewards[500:], most=200)
    >>> both.n, round(both.index, 1)
    (1000, 0.8)
    """

    n: int
    values: Floats
    most: int

    @classmethod
    def count(cls, rewards: Floats, *, most: int) -> Largest:
        """Of rewards by their size, those of 0 apart."""
        sizes = np.abs(rewards[rewards != 0]).astype(np.float64)
        return cls(len(sizes), np.sort(sizes)[-most:], most)

    def __add__(self, more: Largest) -> Largest:
        values = np.sort(np.concatenate([self.values, more.values]))[-self.most :]
        return Largest(self.n + more.n, values, self.most)

    @property
    def tail(self) -> Floats:
        """Those that are the tail."""
        return self.values[-tail_length(self.n) :]

    @property
    def index(self) -> float:
        """The tail index, NaN where too few, or too few different ones such as prices, are in the tail."""
        upper = self.values[-len(self.tail) - 1 :]
        return math.nan if len(np.unique(upper)) <= LEAST else _slope(upper)


def check_rewards(rewards: Largest | None) -> Iterator[Message]:
    """That rewards themselves have a heavy tail, whoever earned them: the largest may not be in the data."""
    if rewards is not None and rewards.index > HEAVY:
        yield message("heavy-tailed-rewards", rewards=rewards.n, tail=rewards.index, heavy=HEAVY)


def check_tails(terms: Smooth, *, cluster: str) -> list[Message]:
    """Values of which few clusters have much: of rewards, of sizes, or of its error."""
    if ("tails", cluster) not in terms.known:  # clips that take nothing away share their terms
        earned = np.abs(terms.clusters.sums(terms.sums[:, 0]))[terms.clusters.has(terms.defined)]
        terms.known["tails", cluster] = [*_check_earned(earned, cluster), *check_unequal(terms, cluster=cluster)]
    messages: list[Message] = terms.known["tails", cluster]
    return messages


def _check_earned(earned: Floats, cluster: str) -> Iterator[Message]:
    total = float(earned.sum())
    if not total > 0:
        return
    index, effective = tail_index(earned), 1 / float(((earned / total) ** 2).sum())
    if index > HEAVY:
        yield message("heavy-rewards", cluster=cluster, tail=index, heavy=HEAVY)
    if effective < FEW_EFFECTIVE and np.count_nonzero(earned) > 2 * FEW_EFFECTIVE:  # fewer: by number
        yield message("few-carry", cluster=cluster, effective=effective, fewest=FEW_EFFECTIVE)


def check_unequal(terms: Smooth, *, cluster: str) -> Iterator[Message]:
    """What unequal sizes do: few clusters have much of the error, or values depend on the size of a cluster.

    Of at least 50 clusters: whether one has much of the error, or sizes differ much. Few degrees of freedom alone are
    no reason: the interval is wide then, and covered 97 % of truths.
    """
    effects = influences(terms)
    moments = effects.moments()
    if moments is None:
        return
    moved = np.abs(effects.effect)
    n, largest = int(np.count_nonzero(moved)), float(moved.max()) / float(moved.sum())
    if n >= MANY:
        sizes, df = tail_index(terms.sizes()), float(moments.df)
        if largest > LARGE or sizes > HEAVY:
            numbers = {"df": df, "tail": sizes}
            yield message("unequal-clusters", cluster=cluster, n=n, effective=df + 1, largest=largest, numbers=numbers)
    if moments.leverages * ENOUGH >= 1:  # Σ h is at least 1 over those above 0
        yield from _check_sizes(effects.effect, effects.leverage, cluster)


def _check_sizes(effect: Floats, leverage: Floats, cluster: str) -> Iterator[Message]:
    """Whether large clusters have other values than small ones, and they are too few for that not to matter."""
    used = leverage > 0
    size, effect = leverage[used], effect[used]
    n, effective = len(size), equal_parts(size)
    if n < LEAST or effective > ENOUGH or not size.max() > size.min():
        return
    values = effect / size
    related = float(np.corrcoef(size, values)[0, 1]) if values.max() > values.min() else 0.0
    error = math.sqrt(max(1.0 - related**2, 0.0) / (n - 2))
    if abs(related) > RELATED and abs(related) > SURELY * error:
        yield message("sizes-with-values", cluster=cluster, correlation=related, effective=effective)
