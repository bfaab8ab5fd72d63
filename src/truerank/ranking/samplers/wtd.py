"""Negatives weighted so that they resemble random exposure: the WTD paper's weights, on negatives alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.values import Count, CountFrom0
from truerank.exposure.counts import Floor, RowCounts, posterior_ratio
from truerank.ranking.samplers.draw import ItemCounts, Sampler, same_for_all


class ShareSource(StrEnum):
    """Whose rows say how items are exposed: those of the log that is sampled, or of the training data."""

    LOGGED = "logged"
    TRAIN = "train"


@dataclass(frozen=True, slots=True)
class WTDSampler(Sampler):
    """v_i = (P_random(i) / P_biased(i))^power, with the item's share of rows in random data and in the log.

    The text squares the item's weight, the code does not; the user's weight cancels within a user. A share of 0 is
    taken as 0.0001. Random data are the hold-out of the world; the code that goes with the sampler paper had none for
    its uniform logger and took the log itself (`random=log`), which makes all weights equal. `mnar_source=train` takes
    P_biased from the training data, which is what the published figure for the uniform logger looks like.

    >>> import numpy as np
    >>> counts = ItemCounts(np.array([3, 1]), np.array([0, 1]), random=np.array([0.5, 0.5]))
    >>> WTDSampler(1).weights(counts).round(4).tolist(), WTDSampler.released(1).weights(counts).round(4).tolist()
    ([0.4444, 4.0], [0.6667, 2.0])
    """

    n: Count
    power: CountFrom0 = 2
    mnar_source: ShareSource = ShareSource.LOGGED

    name: ClassVar[str] = "WTD"

    @classmethod
    def released(cls, n: int) -> WTDSampler:
        return cls(n, power=1)

    def wanted(self, exposed: Ints) -> Ints | None:
        return same_for_all(self.n, exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        if counts.random is None:
            raise InputError(
                f"{self} needs random data; give random=, the part that was held out before logging, or use WTDH, "
                "which assumes uniform exposure."
            )
        return _ratio(counts.random, counts, self.mnar_source) ** self.power


@dataclass(frozen=True, slots=True)
class WTDHSampler(Sampler):
    """WTD with a hypothesis in place of random data: P_random(i) = 1 / number of items of the pool.

    >>> import numpy as np
    >>> counts = ItemCounts(np.array([3, 1]), np.array([0, 1]))
    >>> WTDHSampler(1).weights(counts).round(4).tolist(), str(WTDHSampler.released(1))
    ([0.4444, 4.0], 'WTDH@1(power=1)')
    """

    n: Count
    power: CountFrom0 = 2
    mnar_source: ShareSource = ShareSource.LOGGED

    name: ClassVar[str] = "WTDH"

    @classmethod
    def released(cls, n: int) -> WTDHSampler:
        return cls(n, power=1)

    def wanted(self, exposed: Ints) -> Ints | None:
        return same_for_all(self.n, exposed)

    def weights(self, counts: ItemCounts) -> Floats:
        return _ratio(None, counts, self.mnar_source) ** self.power


def _ratio(random: Floats | None, counts: ItemCounts, mnar: ShareSource) -> Floats:
    """Share in random data (uniform where there are none) / share in biased data; shares of 0 at the floor."""
    if mnar is ShareSource.TRAIN and counts.train is None:
        raise InputError("mnar_source=train needs the training data; give train=, or take mnar_source=logged.")
    logged = counts.rows / max(int(counts.rows.sum()), 1)
    biased = logged if counts.train is None or mnar is ShareSource.LOGGED else counts.train
    n_items = max(len(counts.rows), 1)
    target = None if random is None else RowCounts(random, rows=1, size=n_items)
    seen = RowCounts(biased, rows=1, size=n_items)
    return posterior_ratio(target, seen, zero=Floor())
