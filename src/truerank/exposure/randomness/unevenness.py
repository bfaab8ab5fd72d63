"""How unevenly items were shown beyond chance and which stand out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Ids
from truerank.exposure.randomness.draws import Dispersion, Draws

MUCH = 0.10  # an effect from which items are shown "far" more often or more rarely
MOST = 3  # outlying items that are named on each side
SIDE = 2 / 3  # the part of the squared deviations from which one side is the direction
UNLIKELY = 0.05  # for any item at all, by Bonferroni


class Direction(StrEnum):
    """On which side of chance the deviating items lie."""

    OFTEN = "items shown too often"
    RARELY = "items shown too rarely"
    BOTH = "items shown too often and items shown too rarely"


@dataclass(frozen=True, slots=True)
class OutlyingItem:
    """An item that chance would not show so often, or so rarely: to how many users, how many chance gives, its z."""

    item: str
    shown: int
    expected: float
    z: float


@dataclass(frozen=True, slots=True)
class Unevenness:
    """How unevenly items were shown, beyond what uniform draws give.

    `effect` is the coefficient of variation of exposure beyond chance, 0.58 where rates differ by a standard deviation
    of 58 % of their mean; `direction` is None where it is 0. `too_often` and `too_rarely` count the items beyond what
    chance gives any item, of which the farthest are named.
    """

    effect: float
    direction: Direction | None
    too_often: int
    too_rarely: int
    most_often: tuple[OutlyingItem, ...]
    most_rarely: tuple[OutlyingItem, ...]

    @property
    def words(self) -> str:
        """What the effect means for items, in words."""
        more = "far more" if self.effect >= MUCH else "a little more"
        if self.direction is Direction.BOTH:
            return f"some items were shown {more} often, others {more} rarely than chance gives"
        how = "rarely" if self.direction is Direction.RARELY else "often"
        return f"some items were shown {more} {how} than chance gives"


def unevenness(draws: Draws, dispersion: Dispersion, items: Ids) -> Unevenness:
    """The effect, √(max(0, X² - df) / Σ E), its direction, and the outlying items.

    The direction is the side that has two thirds of Σ (c - E)² / V. An item is outlying if its count has a probability
    below 5 % over all items and both sides: at most that of a binomial number with the same mean (Hoeffding 1956).

    >>> from truerank.core.log import Log
    >>> from truerank.exposure.randomness.draws import item_dispersion
    >>> user, item = np.arange(40), np.repeat([0, 1], [35, 5])
    >>> log = Log(Ids.of(range(40)), Ids.of(["a", "b", "c", "d"]), user, item, {})  # 10 of each by chance
    >>> found = unevenness(Draws.of(log), item_dispersion(Draws.of(log)), log.items)
    >>> round(found.effect, 2), found.direction.value  # X² = (25² + 5² + 10² + 10²) / 7.5 · 3/4 = 85 on 3 df, Σ E = 40
    (1.43, 'items shown too often')
    >>> [(each.item, each.shown, each.expected) for each in (*found.most_often, *found.most_rarely)]
    [('a', 35, 10.0), ('c', 0, 10.0), ('d', 0, 10.0)]
    """
    variance, expected, count = draws.over_users(draws.spread), draws.over_users(draws.share), draws.count
    varies = variance > 1e-9
    z = np.where(varies, (count - expected) / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    excess = max(0.0, dispersion.statistic - dispersion.df)
    effect = math.sqrt(excess / float(expected[varies].sum()))
    users = draws.over_users((draws.n_candidates > 0).astype(np.float64))
    outlying = varies & (_tail(count, expected, users) * 2 * np.count_nonzero(varies) < UNLIKELY)
    often, rarely = np.flatnonzero(outlying & (z > 0)), np.flatnonzero(outlying & (z < 0))

    def named(at: Ints) -> tuple[OutlyingItem, ...]:
        farthest = at[np.argsort(-np.abs(z[at]), kind="stable")][:MOST]
        return tuple(
            OutlyingItem(name, int(count[place]), float(expected[place]), float(z[place]))
            for name, place in zip(items.texts(farthest), farthest.tolist(), strict=True)
        )

    return Unevenness(effect, _direction(z, effect), len(often), len(rarely), named(often), named(rarely))


def _direction(z: Floats, effect: float) -> Direction | None:
    if effect == 0:
        return None
    above = float((z[z > 0] ** 2).sum() / (z**2).sum())
    return Direction.OFTEN if above >= SIDE else Direction.RARELY if above <= 1 - SIDE else Direction.BOTH


def _tail(count: Floats, expected: Floats, users: Floats) -> Floats:
    """The probability of a count as far from its mean on its side; 1 within one of the mean, where no bound holds."""
    from truerank.core.special import bdtr, bdtrc

    n = np.maximum(np.rint(users), 1.0).astype(np.int64)
    rate = np.clip(expected / n, 0.0, 1.0)
    below, above = bdtr(count, n, rate), np.where(count > 0, bdtrc(np.maximum(count - 1, 0), n, rate), 1.0)
    tail = np.where(count <= expected - 1, below, np.where(count >= expected + 1, above, 1.0))
    return np.asarray(tail, dtype=np.float64)
