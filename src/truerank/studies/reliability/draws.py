"""What loggers show of a world, block by block: the same cells as `expose` shows after `HoldOut.split`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.split import PER_USER
from truerank.exposure.loggers.counts import rows_of_items
from truerank.exposure.loggers.expose import PURPOSE as EXPOSURE
from truerank.exposure.loggers.expose import Logger, exposure_sizes
from truerank.exposure.loggers.holdout import HoldOut, Unit
from truerank.ranks.samplers.draw import ItemCounts, Sampler
from truerank.sampling.clocks import checked_weights
from truerank.sampling.orders import ring_times, rings
from truerank.studies.reliability.kinds import Mark
from truerank.studies.reliability.worlds import Flags, World


@dataclass(frozen=True, slots=True)
class Shown:
    """Of each user and item: at how many sparsities it is shown (from the smallest on), and its `Mark`.

    Held-out, unobserved and excluded cells are never shown, nor liked.
    """

    level: Flags
    mark: Flags
    held: Flags


@dataclass(frozen=True, slots=True)
class Exposing:
    """One logger in one repetition."""

    world: World
    weight: Floats
    sparsities: tuple[float, ...]
    seed: int
    fraction: float  # of each user's cells that is held out
    held_items: Bools  # items that are held out as a whole
    fast: bool

    @classmethod
    def of(
        cls,
        world: World,
        logger: Logger,
        *,
        sparsities: tuple[float, ...],
        holdout: HoldOut | None,
        weight: Floats,
        seed: int,
        fast: bool | None = None,
    ) -> Exposing:
        """`weight` is the logger's of the whole world: what an evaluator sets aside does not change a logger."""
        held = np.zeros(world.n_items, dtype=bool)
        fraction = 0.0
        if holdout is not None:
            _, out = holdout.split(_one_user(world.items), logger=logger, seed=seed)
            if holdout.unit is Unit.ITEMS and out is not None:
                held[out.item] = True
            elif out is not None:
                fraction = holdout.fraction
        compiled = find_spec("numba") is not None if fast is None else fast
        return cls(world, checked_weights(weight), sparsities, seed, fraction, held, compiled)

    @property
    def holds_out(self) -> bool:
        return self.fraction > 0 or bool(self.held_items.any())

    def shown(self, units: Ints) -> Shown:
        """The cells of the given users."""
        world = self.world
        user, item = world.users.keys()[units][:, None], world.items.keys()[None, :]
        positive, observed = world.block(units)
        held = observed & self.held_items[None, :]
        if self.fraction > 0:
            n = np.floor(self.fraction * observed.sum(axis=1, dtype=np.int64) + 1e-9).astype(np.int64)
            key = cell_keys(self.seed, PER_USER, user, item)
            held = _smallest(key, observed, n, fast=self.fast)
        left = observed & ~held & np.uint8(1)
        positive &= left
        clock = rings(ring_times(self.seed, EXPOSURE, user, item), self.weight)
        count = left.sum(axis=1, dtype=np.int64)
        sizes = np.stack([exposure_sizes(count, sparsity=each) for each in self.sparsities], axis=1)
        level = _levels(clock, left, positive, sizes, fast=self.fast)
        # what is held out is no candidate either: its label is known, and taking it for a negative would be wrong
        away = (world.excluded_block(units) | held) == 1
        return Shown(level, np.where(away, np.uint8(Mark.EXCLUDED), positive), held)

    def count(self, units: Ints) -> Counted:
        """How often the given users are shown each item."""
        found = self.shown(units)
        n_levels, n_items = len(self.sparsities) + 1, self.world.n_items
        rows, liked = np.zeros((n_levels, n_items), np.int64), np.zeros((n_levels, n_items), np.int64)
        if self.fast:
            from truerank.studies.reliability import fast_draws

            fast_draws.count_levels(found.level, found.mark, rows, liked)
        else:
            for at in range(n_levels):
                rows[at] = (found.level == at).sum(axis=0)
                liked[at] = ((found.level == at) & (found.mark == Mark.LIKED)).sum(axis=0)
        at_least, liked_at_least = (np.cumsum(each[::-1], axis=0)[::-1][1:] for each in (rows, liked))
        return Counted(at_least, liked_at_least, found.held.sum(axis=0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows and positives of each item in the log of every sparsity [sparsities x items], and its held-out rows."""

    rows: Ints
    positives: Ints
    held: Ints

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.rows + other.rows, self.positives + other.positives, self.held + other.held)

    @classmethod
    def nothing(cls, n_sparsities: int, n_items: int) -> Counted:
        rows, positives = (np.zeros((n_sparsities, n_items), np.int64) for _ in range(2))
        return cls(rows, positives, np.zeros(n_items, np.int64))

    def weights(self, samplers: Sequence[Sampler], *, holds_out: bool, train: Floats | None) -> Floats:
        """v_i of every sampler at every sparsity, [sparsities x samplers x items]; 0 for items not in the log.

        Random data are the held-out cells; where nothing is held out, the log itself, as in the sampler paper's code.
        """
        n_sparsities, n_items = self.rows.shape
        found = np.zeros((n_sparsities, len(samplers), n_items))
        for s in range(n_sparsities):
            pool = np.flatnonzero(self.rows[s] > 0)
            seen = self.held if holds_out else self.rows[s]
            random = seen[pool] / seen.sum() if seen.any() else None  # users with few items have nothing held out
            counts = ItemCounts(
                rows=self.rows[s][pool],
                positives=self.positives[s][pool],
                train=None if train is None else train[pool],
                random=random,
            )
            for f, sampler in enumerate(samplers):
                try:
                    found[s, f, pool] = checked_weights(sampler.weights(counts))
                except InputError:
                    if random is None:
                        raise InputError(
                            f"nothing could be held out as random data for {sampler}: users have too few items. Leave "
                            "it out of the samplers, or study a larger world."
                        ) from None
                    raise
        return found


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


def _smallest(key: npt.NDArray[np.uint64], among: Flags, n: Ints, *, fast: bool) -> Flags:
    found = np.zeros(among.shape, dtype=np.uint8)
    if fast:
        from truerank.studies.reliability import fast_draws

        fast_draws.smallest(key, among, n, found)
        return found
    for u in range(len(key)):
        members = np.flatnonzero(among[u])
        found[u, members[np.argsort(key[u, members], kind="stable")[: n[u]]]] = 1
    return found


def _levels(clock: Floats, left: Flags, positive: Flags, sizes: Ints, *, fast: bool) -> Flags:
    level = np.zeros(left.shape, dtype=np.uint8)
    if fast:
        from truerank.studies.reliability import fast_draws

        fast_draws.levels(clock, left, positive, sizes, level)
        return level
    for u in range(len(clock)):
        members = np.flatnonzero(left[u])
        order = members[np.argsort(clock[u, members], kind="stable")]
        for s, size in enumerate(sizes[u]):
            level[u, order[:size]] = s + 1
        level[u, order[positive[u, order] == 1][:1]] = sizes.shape[1]
    return level
