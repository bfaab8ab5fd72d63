"""What loggers show of a world, block by block: the same cells as `expose` shows after `WorldHoldOut.split`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log
from truerank.datasets.split import PER_USER
from truerank.exposure.counts import rows_of_items
from truerank.exposure.expose import PURPOSE as EXPOSURE
from truerank.exposure.expose import HoldOutUnit, WorldHoldOut, exposure_sizes
from truerank.exposure.logging_policies import LoggingPolicy
from truerank.ranking.samplers.draw import ItemCounts, Sampler, SamplerWeights
from truerank.reliability.worlds import Flags, LabelledWorld, Mark
from truerank.sampling.clocks import checked_weights
from truerank.sampling.pools import Share, ring_times, rings, sizes_of


@dataclass(frozen=True, slots=True)
class Shown:
    """Of each user and item: at how many sparsities it is shown (from the smallest on), and its `Mark`.

    Held-out, unobserved and excluded cells are never shown, nor liked.
    """

    level: Flags
    mark: Flags
    held: Flags


@dataclass(frozen=True, slots=True)
class LoggerRun:
    """One logger in one repetition."""

    world: LabelledWorld
    weight: Floats
    sparsities: tuple[float, ...]
    seed: int
    fraction: float  # of each user's cells that is held out
    held_items: Bools  # items that are held out as a whole

    @classmethod
    def of(
        cls,
        world: LabelledWorld,
        logger: LoggingPolicy,
        *,
        sparsities: tuple[float, ...],
        holdout: WorldHoldOut | None,
        weight: Floats,
        seed: int,
    ) -> LoggerRun:
        """`weight` is the logger's of the whole world: what an evaluator sets aside does not change a logger."""
        held = np.zeros(world.n_items, dtype=bool)
        fraction = 0.0
        if holdout is not None:
            _, out = holdout.split(_one_user(world.items), logger=logger, seed=seed)
            if holdout.unit is HoldOutUnit.ITEMS and out is not None:
                held[out.item] = True
            elif out is not None:
                fraction = holdout.fraction
        return cls(world, checked_weights(weight), sparsities, seed, fraction, held)

    @property
    def holds_out(self) -> bool:
        return self.fraction > 0 or bool(self.held_items.any())

    def shown(self, units: Ints) -> Shown:
        """The cells of the given users."""
        world = self.world
        positive, observed = world.block(units)
        held = self._held_out(units, observed) if self.fraction > 0 else observed & self.held_items[None, :]
        left = observed & ~held & np.uint8(1)
        positive &= left
        count = left.sum(axis=1, dtype=np.int64)
        sizes = np.stack([exposure_sizes(count, sparsity=each) for each in self.sparsities], axis=1)
        level = self._levels(units, left, positive, sizes)
        # what is held out is no candidate either: its label is known, and taking it for a negative would be wrong
        away = (world.excluded_block(units) | held) == 1
        return Shown(level, np.where(away, np.uint8(Mark.EXCLUDED), positive), held)

    def _held_out(self, units: Ints, observed: Flags) -> Flags:
        """The cells that `split_per_user` sets aside."""
        from truerank.reliability import kernels

        held = np.zeros(observed.shape, dtype=np.uint8)
        n = sizes_of(Share(self.fraction), observed.sum(axis=1, dtype=np.int64))
        kernels.smallest(cell_keys(self.seed, PER_USER, *self._keys(units)), observed, n, held)
        return held

    def _levels(self, units: Ints, left: Flags, positive: Flags, sizes: Ints) -> Flags:
        """At how many sparsities the logger shows each cell, of sizes[user, sparsity]; the first positive at all."""
        from truerank.reliability import kernels

        level = np.zeros(left.shape, dtype=np.uint8)
        clock = rings(ring_times(self.seed, EXPOSURE, *self._keys(units)), self.weight)
        kernels.levels(clock, left, positive, sizes, level)
        return level

    def _keys(self, units: Ints) -> tuple[Keys, Keys]:
        return self.world.users.keys()[units][:, None], self.world.items.keys()[None, :]

    def count(self, units: Ints) -> CandidateCounts:
        """How often the given users are shown each item."""
        from truerank.reliability import kernels

        found = self.shown(units)
        n_levels, n_items = len(self.sparsities) + 1, self.world.n_items
        rows, liked = np.zeros((n_levels, n_items), np.int64), np.zeros((n_levels, n_items), np.int64)
        kernels.count_levels(found.level, found.mark, rows, liked)
        at_least, liked_at_least = (np.cumsum(each[::-1], axis=0)[::-1][1:] for each in (rows, liked))
        return CandidateCounts(at_least, liked_at_least, found.held.sum(axis=0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class CandidateCounts:
    """Rows and positives of each item in the log of every sparsity [sparsities x items], and its held-out rows."""

    rows: Ints
    positives: Ints
    held: Ints

    def __add__(self, other: CandidateCounts) -> CandidateCounts:
        return CandidateCounts(self.rows + other.rows, self.positives + other.positives, self.held + other.held)

    @classmethod
    def nothing(cls, n_sparsities: int, n_items: int) -> CandidateCounts:
        rows, positives = (np.zeros((n_sparsities, n_items), np.int64) for _ in range(2))
        return cls(rows, positives, np.zeros(n_items, np.int64))

    def weights(
        self, samplers: Sequence[Sampler], world: LabelledWorld, *, holds_out: bool, train: Floats | None
    ) -> ScenarioWeights:
        """v of every sampler at every sparsity.

        Random data are the held-out cells; where nothing is held out, the log itself, as in the sampler paper's code.
        """
        n_sparsities, n_items = self.rows.shape
        pools = tuple(np.flatnonzero(rows > 0) for rows in self.rows)
        shared, by_user = np.zeros((n_sparsities, len(samplers), 1, n_items)), dict[tuple[int, int], SamplerWeights]()
        for s, pool in enumerate(pools):
            seen = self.held if holds_out else self.rows[s]
            random = seen[pool] / seen.sum() if seen.any() else None  # users with few items have nothing held out
            counts = ItemCounts(
                rows=self.rows[s][pool],
                positives=self.positives[s][pool],
                train=None if train is None else train[pool],
                random=random,
                items=Ids(world.items.values[pool]),
            )
            for f, sampler in enumerate(samplers):
                try:
                    weights = SamplerWeights.of(sampler, counts, users=world.users)
                except InputError:
                    if random is None:
                        raise InputError(
                            f"nothing could be held out as random data for {sampler}: users have too few items. Leave "
                            "it out of the samplers, or study a larger world."
                        ) from None
                    raise
                if weights.shared is None:
                    by_user[s, f] = weights
                else:
                    shared[s, f, 0, pool] = weights.shared
        return ScenarioWeights(frozen(shared), pools, by_user)


@dataclass(frozen=True, slots=True)
class ScenarioWeights:
    """The weights of all samplers at all sparsities; 0 for items not in the log.

    `shared` [sparsities x samplers x 1 x items] are those that are the same for all users, `by_user` the others.
    """

    shared: Floats
    pools: tuple[Ints, ...]
    by_user: Mapping[tuple[int, int], SamplerWeights]

    def at(self, users: Ids) -> Floats:
        """[sparsities x samplers x users x items], or 1 in the place of users where all have the same weights."""
        if not self.by_user:
            return self.shared
        weight = np.repeat(self.shared, len(users), axis=2)
        for (s, f), weights in self.by_user.items():
            weight[s, f][:, self.pools[s]] = weights.at(users)
        return weight


def train_shares(train: Log | None, items: Ids) -> Floats | None:
    """Each item's share of the rows of training data."""
    if train is None:
        return None
    if len(train) == 0:
        raise InputError(f"{train.source}: no rows; expected rows to count the items of.")
    return np.asarray(rows_of_items(train, items) / len(train))


def _one_user(items: Ids) -> Log:
    """A row for each item: what a hold-out of whole items looks at."""
    n = len(items)
    nobody = np.zeros(n, dtype=np.int64)
    return Log(Ids.of([0]), items, user=nobody, item=np.arange(n), rewards={"label": np.zeros(n)})
