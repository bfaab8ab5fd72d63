"""All scenarios of one logger and one repetition, for a block of users: arrays in, whole numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.metric import Metric
from truerank.metrics.tables import worth_and_divisor
from truerank.ranking.samplers.draw import PURPOSE as CANDIDATES
from truerank.ranking.samplers.draw import Among, OwnPositives, Sampler
from truerank.reliability.draws import CandidateCounts, LoggerRun, ScenarioWeights
from truerank.reliability.grid import Family, Grid, deepest_rank
from truerank.reliability.worlds import Orders
from truerank.sampling.pools import LAST, ring_times


class CandidateKind(IntEnum):
    """All items of the pool, the user's own rows, or draws from the pool: without or with the user's positives."""

    FULL = 0
    EXPOSED = 1
    DRAWN = 2
    DRAWN_WITH_POSITIVES = 3


FIGURES = ("equal", "equal_rounded", "fidelity", "robustness", "predictive_power")


@dataclass(frozen=True, slots=True)
class MetricTables:
    """The metrics of a study: distinct tables of worth [ranks x tables], which one each metric has, and its divisor
    by number of positives. `scale` turns values into whole numbers whose sum over all users is exact.
    """

    worth: Floats
    of: Ints
    divisor: Floats
    scale: float

    @classmethod
    def of_metrics(cls, metrics: Sequence[Metric], *, most_positives: int, n_users: int) -> MetricTables:
        deepest = deepest_rank(metrics)
        worths: list[Floats] = []
        of, divisors, largest = [], [], 1.0
        for metric in metrics:
            found = worth_and_divisor(metric, deepest=deepest, most=most_positives)
            if found is None:
                raise InputError(
                    f"{metric} is no sum over ranks of relevant items; expected Precision, Recall, nDCG or DCG at K."
                )
            worth, divisor = found
            same = [at for at, each in enumerate(worths) if np.array_equal(each, worth)]
            of.append(same[0] if same else len(worths))
            if not same:
                worths.append(worth)
            divisors.append(divisor)
            largest = max(largest, float(worth.sum() / np.nanmin(divisor)))
        # coarser than the rounding of the largest value, and no sum overflows
        bits = min(48 - ceil(log2(largest)), 62 - ceil(log2(largest * max(n_users, 1))))
        return cls(np.ascontiguousarray(np.stack(worths, axis=1)), np.array(of), np.stack(divisors), 2.0**bits)


@dataclass(frozen=True, slots=True)
class FamilyArrays:
    """The families of a grid as the kernels want them."""

    kind: Ints
    as_exposed: npt.NDArray[np.uint8]
    start: Ints
    sizes: Ints

    @classmethod
    def of(cls, families: Sequence[Family]) -> FamilyArrays:
        start = np.cumsum([0, *(len(each.labels) for each in families)])
        sizes = [0 if n is None else n for each in families for _, n in each.labels]
        exposed = [each.as_exposed for each in families]
        return cls(
            np.array([_kind(each.sampler) for each in families], dtype=np.int64),
            np.array(exposed, dtype=np.uint8),
            start.astype(np.int64),
            np.array(sizes, dtype=np.int64),
        )


def _kind(sampler: Sampler) -> CandidateKind:
    if sampler.among is Among.EXPOSED:
        return CandidateKind.EXPOSED
    if sampler.wanted(np.zeros(1, dtype=np.int64)) is None:
        return CandidateKind.FULL
    return CandidateKind.DRAWN if sampler.positives is OwnPositives.EXCLUDED else CandidateKind.DRAWN_WITH_POSITIVES


@dataclass(frozen=True, slots=True)
class Compared:
    """Of every user, sparsity, candidates and metric the FIGURES, as counts of pairs of models; -1 equal pairs for a
    user without positives. `sums` are the values of models added over the users of each group, in units of 1 / scale,
    from the group `first` on; `users` says how many users with positives a group has here.
    """

    figures: npt.NDArray[np.signedinteger[Any]]
    sums: Ints
    users: Ints
    first: int


@dataclass(frozen=True, slots=True)
class Scenarios:
    """One logger in one repetition, ready to take blocks of users."""

    exposing: LoggerRun
    layout: FamilyArrays
    tables: MetricTables
    pool: npt.NDArray[np.uint8]
    weights: ScenarioWeights
    by_rounded: bool

    @classmethod
    def of(
        cls, exposing: LoggerRun, counted: CandidateCounts, *, grid: Grid, tables: MetricTables, train: Floats | None
    ) -> Scenarios:
        samplers = [family.sampler for family in grid.families]
        weights = counted.weights(samplers, exposing.world, holds_out=exposing.holds_out, train=train)
        pool = (counted.rows > 0).astype(np.uint8)
        return cls(exposing, FamilyArrays.of(grid.families), tables, pool, weights, grid.by_rounded)

    def evaluate(self, units: Ints, group: Ints, order: Orders, finite: Ints) -> Compared:
        """The users of a block, in groups of rising number, whose items every model has put in `order`."""
        from truerank.reliability import kernels

        exposing, tables, layout = self.exposing, self.tables, self.layout
        world, n_models = exposing.world, order.shape[1]
        shown = exposing.shown(units)
        time = ring_times(exposing.seed, CANDIDATES, world.users.keys()[units][:, None], world.items.keys()[None, :])
        weight = self.weights.at(Ids(world.users.values[units]))
        n_sparsities, n_candidates, n_metrics = len(weight), len(layout.sizes), len(tables.of)
        shape = (len(units), n_sparsities, n_candidates, n_metrics, len(FIGURES))
        out = np.empty(shape, dtype=pair_type(n_models))
        here = group - group[0]
        sums = np.zeros((here[-1] + 1, n_sparsities, n_candidates, n_metrics, n_models), dtype=np.int64)
        deepest = len(tables.worth) - 1
        bin_of = np.empty((world.n_items, n_models), dtype=np.uint8 if deepest < 256 else np.int32)
        kernels.evaluate_users(
            here, order, finite, shown.level, shown.mark, time, self.pool, weight,
            layout.kind, layout.as_exposed, layout.start, layout.sizes, LAST / 2,
            tables.worth, tables.of, tables.divisor, tables.scale, self.by_rounded, bin_of, out, sums,
        )  # fmt: skip
        users = np.bincount(here[out[:, 0, 0, 0, 0] >= 0], minlength=len(sums))
        return Compared(out, sums, users, int(group[0]))


def pair_type(n_models: int) -> type[np.signedinteger[Any]]:
    """The smallest whole numbers that hold the number of pairs of models.

    >>> pair_type(16), pair_type(17)
    (<class 'numpy.int8'>, <class 'numpy.int16'>)
    """
    n_pairs = n_models * (n_models - 1) // 2
    return np.int8 if n_pairs <= 127 else np.int16 if n_pairs <= 32767 else np.int32


TAUS = ("fidelity", "robustness", "predictive_power")


def tau_b(agreement: Any, ties: Any, other_ties: Any, *, n_pairs: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Kendall's τ-b from counts of pairs, and where it is defined: both have pairs that differ (NaN elsewhere).

    τ_b = (concordant - discordant) / √((pairs - ties) (pairs - ties of the other)) (Kendall 1945).

    >>> tau_b(np.array([1, 0]), np.array([1, 3]), np.array([0, 0]), n_pairs=3)[0].round(4).tolist()
    [0.4082, nan]
    """
    size = (n_pairs - ties.astype(np.float64)) * (n_pairs - other_ties.astype(np.float64))
    defined = size > 0
    return np.where(defined, agreement / np.sqrt(np.where(defined, size, 1.0)), np.nan), defined


def reference(question: str, figure: Any) -> Any:
    """The part of [users or resamples, sparsities, candidates, ...] that a question compares with.

    Full on the same log, the same candidates at sparsity 0, or Full at sparsity 0: both come first.
    """
    if question == "fidelity":
        return figure[:, :, :1]
    return figure[:, :1] if question == "robustness" else figure[:, :1, :1]
