"""The samplers of the sampler paper: all negatives, or some of them with weights that follow the log."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.values import Count, CountFrom0
from truerank.exposure.counts import Floor, RowCounts, posterior_ratio, zipf
from truerank.ranking.samplers.draw import Among, ItemCounts, OwnPositives, Sampler


@record
class FullSampler(Sampler):
    """Every item of the pool that is no positive of the user.

    >>> str(FullSampler())
    'Full'
    """

    name: ClassVar[str] = "Full"

    def wanted(self, exposed: Ints) -> Ints | None:
        return None


@record
class ExposedSampler(Sampler):
    """The user's own rows that are not positive.

    >>> str(ExposedSampler())
    'Exposed'
    """

    name: ClassVar[str] = "Exposed"
    among: ClassVar[Among] = Among.EXPOSED

    def wanted(self, exposed: Ints) -> Ints | None:
        return exposed


@record
class PopularitySampler(Sampler):
    """v_i = (rank_i + shift)^-1/2, rank 1 for the item with most rows in the log; equal numbers share the best rank.

    The sampler paper says Zipf's law without an exponent; its code uses 1/2, adds 1 to the rank and lets positives be
    drawn.

    >>> counts = ItemCounts(rows=np.array([9, 5, 5]), positives=np.array([0, 1, 2]))
    >>> PopularitySampler(1).weights(counts).round(4).tolist()
    [1.0, 0.7071, 0.7071]
    >>> PopularitySampler.released(1).weights(counts).round(4).tolist()
    [0.7071, 0.5774, 0.5774]
    """

    n: Count
    shift: CountFrom0 = 0
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Popularity"
    needs: ClassVar[tuple[str, ...]] = ("rows",)
    as_released: ClassVar[Mapping[str, Any]] = {"shift": 1, "positives": OwnPositives.DRAWN}

    def weights(self, counts: ItemCounts) -> Floats:
        return zipf(counts.rows, shift=self.shift)


class Law(StrEnum):
    """How weights follow the number of positives: by rank (Zipf's law), or proportionally."""

    ZIPF = "zipf"
    LINEAR = "linear"


@record
class PositivitySampler(Sampler):
    """v_i = rank_i^-1/2 by the number of positives in the log, as the text of the sampler paper says.

    Its code weighs proportionally to the number of positives, so that an item without any is never drawn, and lets a
    user's own positives be drawn.

    >>> counts = ItemCounts(rows=np.array([9, 5, 5]), positives=np.array([0, 1, 2]))
    >>> PositivitySampler(1).weights(counts).round(4).tolist(), PositivitySampler.released(1).weights(counts).tolist()
    ([0.5774, 0.7071, 1.0], [0.0, 1.0, 2.0])
    """

    n: Count
    law: Law = Law.ZIPF
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Positivity"
    as_released: ClassVar[Mapping[str, Any]] = {"law": Law.LINEAR, "positives": OwnPositives.DRAWN}

    def weights(self, counts: ItemCounts) -> Floats:
        return zipf(counts.positives) if self.law is Law.ZIPF else counts.positives.astype(np.float64)


AS_EXPOSED: Literal["e"] = "e"


@record
class RandomSampler(Sampler):
    """n items of the pool that are no positives of the user, uniformly; `Random@e`: as many as the user's exposed ones.

    >>> [RandomSampler(n).wanted(np.array([1, 9])).tolist() for n in (3, "e")], str(RandomSampler("e"))
    ([[3, 3], [1, 9]], 'Random@e')
    """

    n: Count | Literal["e"]

    name: ClassVar[str] = "Random"

    def wanted(self, exposed: Ints) -> Ints | None:
        return exposed if self.n == "e" else np.full(len(exposed), self.n, dtype=np.int64)


class Favoured(StrEnum):
    """Which items are drawn more often."""

    RARE = "rare"
    POPULAR = "popular"


@record
class SkewSampler(Sampler):
    """v_i = 1 / rows of the item in the log (Liang et al. 2016), an item without rows as if it had one.

    The sampler paper does not state the direction; its code favours popular items, v_i = rows, and lets positives be
    drawn. Only negatives are drawn this way, all positives stay: this does not debias the positives, unlike the
    intervened test sets of the same name.

    >>> counts = ItemCounts(rows=np.array([4, 5, 0]), positives=np.array([0, 1, 0]))
    >>> SkewSampler(1).weights(counts).tolist(), SkewSampler.released(1).weights(counts).tolist()
    ([0.25, 0.2, 1.0], [4.0, 5.0, 0.0])
    """

    n: Count
    favours: Favoured = Favoured.RARE
    positives: OwnPositives = OwnPositives.EXCLUDED

    name: ClassVar[str] = "Skew"
    needs: ClassVar[tuple[str, ...]] = ("rows",)
    as_released: ClassVar[Mapping[str, Any]] = {"favours": Favoured.POPULAR, "positives": OwnPositives.DRAWN}

    def weights(self, counts: ItemCounts) -> Floats:
        if self.favours is Favoured.POPULAR:
            return counts.rows.astype(np.float64)
        return 1 / np.maximum(counts.rows, 1).astype(np.float64)


class ShareSource(StrEnum):
    """Whose rows say how items are exposed: those of the log that is sampled, or of the training data."""

    LOGGED = "logged"
    TRAIN = "train"


@record
class WTDHSampler(Sampler):
    """WTD with a hypothesis in place of random data: P_random(i) = 1 / number of items of the pool.

    >>> counts = ItemCounts(np.array([3, 1]), np.array([0, 1]))
    >>> WTDHSampler(1).weights(counts).round(4).tolist(), str(WTDHSampler.released(1))
    ([0.4444, 4.0], 'WTDH@1(power=1)')
    """

    n: Count
    power: CountFrom0 = 2
    mnar_source: ShareSource = ShareSource.LOGGED

    name: ClassVar[str] = "WTDH"
    as_released: ClassVar[Mapping[str, Any]] = {"power": 1}
    from_random: ClassVar[bool] = False  # whether P_random comes from random data

    @property
    def needs(self) -> tuple[str, ...]:
        source = "train" if self.mnar_source is ShareSource.TRAIN else "rows"
        return ("random", source) if self.from_random else (source,)

    def weights(self, counts: ItemCounts) -> Floats:
        n_items, biased = max(len(counts.rows), 1), counts.rows / max(int(counts.rows.sum()), 1)
        random = None
        if self.from_random:
            if counts.random is None:
                raise InputError(
                    f"{self} needs random data; give random=, the part that was held out before logging, or use WTDH, "
                    "which assumes uniform exposure."
                )
            random = RowCounts(counts.random, rows=1, size=n_items)
        if self.mnar_source is ShareSource.TRAIN:
            if counts.train is None:
                raise InputError("mnar_source=train needs the training data; give train=, or take mnar_source=logged.")
            biased = counts.train
        return posterior_ratio(random, RowCounts(biased, rows=1, size=n_items), zero=Floor()) ** self.power


@record
class WTDSampler(WTDHSampler):
    """v_i = (P_random(i) / P_biased(i))^power, with the item's share of rows in random data and in the log.

    The text squares the item's weight, the code does not; the user's weight cancels within a user. A share of 0 is
    taken as 0.0001. Random data are the hold-out of the dataset; the code that goes with the sampler paper had none for
    its uniform logger and took the log itself (`random=log`), which makes all weights equal. `mnar_source=train` takes
    P_biased from the training data, which is what the published figure for the uniform logger looks like.

    >>> counts = ItemCounts(np.array([3, 1]), np.array([0, 1]), random=np.array([0.5, 0.5]))
    >>> WTDSampler(1).weights(counts).round(4).tolist(), WTDSampler.released(1).weights(counts).round(4).tolist()
    ([0.4444, 4.0], [0.6667, 2.0])
    """

    name: ClassVar[str] = "WTD"
    from_random: ClassVar[bool] = True
