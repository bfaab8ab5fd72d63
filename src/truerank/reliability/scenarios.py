"""All scenarios of one logging policy and one repetition, for a block of users: arrays in, whole numbers out.

The cells that are exposed are those of `expose` after `WorldHoldOut.split`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids, Keys
from truerank.core.metric import Metric
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.datasets.split import PER_USER
from truerank.exposure.expose import PURPOSE as EXPOSURE
from truerank.exposure.expose import HoldOutUnit, WorldHoldOut, exposure_sizes
from truerank.exposure.logging_policies import LoggingPolicy
from truerank.metrics.tables import discount_and_divisor
from truerank.ranking.samplers.draw import PURPOSE as CANDIDATES
from truerank.ranking.samplers.draw import Among, ItemCounts, OwnPositives, Sampler, weights_of
from truerank.reliability.dataset import Flags, LabelledDataset, Mark, Orders
from truerank.reliability.grid import Family, Grid
from truerank.sampling.clocks import checked_weights
from truerank.sampling.pools import LAST, Share, ring_times, rings, sizes_of


class CandidateKind(IntEnum):
    """All items of the pool, the user's exposed rows, or draws from the pool: without or with the user's positives."""

    FULL = 0
    EXPOSED = 1
    DRAWN = 2
    DRAWN_WITH_POSITIVES = 3


FIGURES = ("equal", "equal_rounded", "fidelity", "robustness", "predictive_power")
TAUS = FIGURES[2:]


# ------------------------------------------------------------------------------------------------------ what is exposed


class ExposedCells(NamedTuple):
    """Of each user and item: at how many sparsities it is exposed (from the smallest on), its `Mark`, whether it is
    held out. Held-out, unobserved and excluded cells are never exposed, nor liked.
    """

    level: Flags
    mark: Flags
    held: Flags


@record
class LoggerRun:
    """One logging policy in one repetition."""

    dataset: LabelledDataset
    weight: Floats
    sparsities: tuple[float, ...]
    seed: int
    fraction: float  # of each user's cells that is held out
    held_items: Bools  # items that are held out as a whole

    @classmethod
    def prepare(
        cls,
        dataset: LabelledDataset,
        logger: LoggingPolicy,
        *,
        sparsities: tuple[float, ...],
        holdout: WorldHoldOut | None,
        weight: Floats,
        seed: int,
    ) -> LoggerRun:
        """`weight` is the policy's for the whole dataset: what an evaluator sets aside does not change a policy."""
        fraction, held = 0.0, np.zeros(len(dataset.items), dtype=bool)
        if holdout is not None and holdout.applies_to(logger):
            held = holdout.items_held(dataset.items, seed=seed)
            fraction = holdout.fraction if holdout.unit is HoldOutUnit.CELLS else 0.0
        return cls(dataset, checked_weights(weight), sparsities, seed, fraction, held)

    def exposed(self, units: Ints) -> ExposedCells:
        """The cells of these users."""
        from truerank.reliability import kernels

        positive, observed, excluded = self.dataset.block(units)
        keys = self.keys(units)
        held = observed & self.held_items[None, :]
        if self.fraction > 0:  # the cells that `split_per_user` sets aside
            n = sizes_of(Share(self.fraction), observed.sum(axis=1, dtype=np.int64))[:, None]
            kernels.levels(cell_keys(self.seed, PER_USER, *keys), observed, np.zeros_like(observed), n, held)
        left = observed & ~held & np.uint8(1)
        positive &= left
        count = left.sum(axis=1, dtype=np.int64)
        sizes = np.stack([exposure_sizes(count, sparsity=sparsity) for sparsity in self.sparsities], axis=1)
        level = np.zeros(left.shape, dtype=np.uint8)
        kernels.levels(rings(ring_times(self.seed, EXPOSURE, *keys), self.weight), left, positive, sizes, level)
        # a held-out item is no candidate either: its label is known, and taking it for a negative would be wrong
        return ExposedCells(level, np.where((excluded | held) == 1, np.uint8(Mark.EXCLUDED), positive), held)

    def keys(self, units: Ints) -> tuple[Keys, Keys]:
        return self.dataset.users.keys()[units][:, None], self.dataset.items.keys()[None, :]

    def count(self, units: Ints) -> Ints:
        """Of each item, for these users: rows at every sparsity, positives at every sparsity, held-out rows."""
        from truerank.reliability import kernels

        cells = self.exposed(units)
        exact = np.zeros((2, len(self.sparsities) + 1, len(self.dataset.items)), np.int64)
        kernels.count_levels(cells.level, cells.mark, *exact)
        at_least = np.cumsum(exact[:, ::-1], axis=1)[:, ::-1][:, 1:]
        return np.concatenate([*at_least, cells.held.sum(axis=0, dtype=np.int64)[None, :]])


# ----------------------------------------------------------------------------------------------------------- evaluation


@record
class MetricTables:
    """The metrics of a study: distinct tables of discounts [ranks x tables], the table of each metric, and its divisor
    by number of positives. `scale` turns values into whole numbers whose sum over all users is exact.
    """

    discount: Floats
    table: Ints
    divisor: Floats
    scale: float

    @classmethod
    def of_metrics(cls, metrics: Sequence[Metric], *, most_positives: int, n_users: int) -> MetricTables:
        for metric in metrics:
            if metric.cutoff is None:
                raise InputError(f"{metric} has no cut-off; the study takes sums over the top K, such as nDCG@100.")
        deepest, largest = max(metric.cutoff or 0 for metric in metrics), 1.0
        discounts, divisors = [], []
        for metric in metrics:
            both = discount_and_divisor(metric, deepest=deepest, most=most_positives)
            if both is None:
                raise InputError(
                    f"{metric} is no sum over ranks of relevant items; expected Precision, Recall, nDCG or DCG at K."
                )
            discounts.append(both[0])
            divisors.append(both[1])
            largest = max(largest, float(both[0].sum() / np.nanmin(both[1])))
        different, table = np.unique(np.stack(discounts), axis=0, return_inverse=True)
        # coarser than the rounding of the largest value, and no sum overflows
        bits = min(48 - ceil(log2(largest)), 62 - ceil(log2(largest * max(n_users, 1))))
        return cls(np.ascontiguousarray(different.T), table.ravel(), np.stack(divisors), 2.0**bits)


class Compared(NamedTuple):
    """Of every user, sparsity, candidates and metric the FIGURES, as counts of pairs of models; -1 equal pairs for a
    user without positives. `sums` are the values of models added over the users of each group, in units of 1 / scale.
    """

    figures: npt.NDArray[np.signedinteger[Any]]
    sums: Ints


@record
class Scenarios:
    """One logging policy in one repetition, ready to take blocks of users.

    `shared` [sparsities x samplers x 1 x items] are weights that are the same for all users, 0 for items not in the
    log; `by_user` says of the others at which sparsity, of which sampler and of which items they are.
    """

    run: LoggerRun
    families: tuple[Family, ...]
    tables: MetricTables
    pool: Bools
    shared: Floats
    by_user: Mapping[tuple[int, int], ItemCounts]
    by_rounded: bool

    @classmethod
    def prepare(
        cls, run: LoggerRun, counts: Ints, *, grid: Grid, tables: MetricTables, train: Floats | None
    ) -> Scenarios:
        """Random data are the held-out cells; where nothing is held out, the log itself, as in the sampler paper's
        code.
        """
        n_sparsities, users, items = len(run.sparsities), run.dataset.users, run.dataset.items
        rows, positives, held = counts[:n_sparsities], counts[n_sparsities:-1], counts[-1]
        shared = np.zeros((n_sparsities, len(grid.families), 1, len(items)))
        by_user: dict[tuple[int, int], ItemCounts] = {}
        for s in range(n_sparsities):
            pool = np.flatnonzero(rows[s] > 0)
            seen = held if run.fraction > 0 or run.held_items.any() else rows[s]
            random = seen[pool] / seen.sum() if seen.any() else None  # users with few items have nothing held out
            of_train = None if train is None else train[pool]
            of_pool = ItemCounts(rows[s][pool], positives[s][pool], of_train, random, Ids(items.values[pool]))
            for f, family in enumerate(grid.families):
                if random is None and "random" in family.sampler.needs:
                    raise InputError(
                        f"nothing could be held out as random data for {family.sampler}: users have too few items. "
                        "Leave it out of the samplers, or study a larger dataset."
                    )
                weight = weights_of(family.sampler, of_pool, users=Ids(users.values[:1]))
                if weight.ndim == 1:
                    shared[s, f, 0, pool] = weight
                else:
                    by_user[s, f] = of_pool
        return cls(run, grid.families, tables, rows > 0, shared, by_user, grid.by_rounded)

    def evaluate(self, units: Ints, group: Ints, order: Orders, finite: Ints) -> Compared:
        """The users of a block, in groups of rising number, whose items every model has put in `order`."""
        from truerank.reliability import kernels

        run, tables, families = self.run, self.tables, self.families
        n_models, n_pairs = order.shape[1], order.shape[1] * (order.shape[1] - 1) // 2
        cells, here = run.exposed(units), group - group[0]
        sizes = np.array([size or 0 for family in families for _, size in family.labels])
        start = np.cumsum([0, *(len(family.labels) for family in families)])
        axes = (len(run.sparsities), len(sizes), len(tables.table))
        figures = np.empty((len(units), *axes, len(FIGURES)), dtype=np.min_scalar_type(-n_pairs - 1))
        sums = np.zeros((here[-1] + 1, *axes, n_models), dtype=np.int64)
        deepest = len(tables.discount) - 1
        bin_of = np.empty((len(run.dataset.items), n_models), dtype=np.uint8 if deepest < 256 else np.int32)
        kernels.evaluate_users(
            here,
            (order, finite),
            (cells.level, cells.mark, ring_times(run.seed, CANDIDATES, *run.keys(units))),
            self.pool.view(np.uint8),
            self._weights(units),
            (
                np.array([_kind(family.sampler) for family in families]),
                np.array([family.as_exposed for family in families], dtype=np.uint8), start, sizes, LAST / 2,
            ),
            (tables.discount, tables.table, tables.divisor, tables.scale, self.by_rounded),
            bin_of,
            (figures, sums),
        )  # fmt: skip
        return Compared(figures, sums)

    def _weights(self, units: Ints) -> Floats:
        """[sparsities x samplers x users x items], or 1 in the place of users where all have the same weights."""
        if not self.by_user:
            return self.shared
        users = Ids(self.run.dataset.users.values[units])
        weight = np.repeat(self.shared, len(units), axis=2)
        for (s, f), counts in self.by_user.items():
            weight[s, f][:, self.pool[s]] = weights_of(self.families[f].sampler, counts, users=users)
        return weight


def _kind(sampler: Sampler) -> CandidateKind:
    if sampler.among is Among.EXPOSED:
        return CandidateKind.EXPOSED
    if sampler.wanted(np.zeros(1, dtype=np.int64)) is None:
        return CandidateKind.FULL
    return CandidateKind.DRAWN if sampler.positives is OwnPositives.EXCLUDED else CandidateKind.DRAWN_WITH_POSITIVES
