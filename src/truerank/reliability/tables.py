"""From what was counted per user to tables with intervals.

Intervals redraw users, and with several repetitions also repetitions (Owen's crossed bootstrap, 2007, a little wide
rather than narrow): the weight of a user in a resample is Poisson with mean 1, keyed by (seed, resample, user), so a
block of users adds its product [resamples x users] · [users x values] and no weight is stored. All values are whole
multiples of 2^-30 (τ is rounded to that), so sums are exact and the same bits in any order and any division in blocks.

For the order of the models' means, a user's values are not stored; they are added up in random groups of users (each
user a group where there are few), and a resample counts each group a Poisson number of times. These sums are whole
numbers below 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import ceil, comb, log2, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.ids import Keys
from truerank.core.record import record
from truerank.core.rng import cell_keys, generator
from truerank.inference.intervals import weights_of
from truerank.reliability.folder import Block, Folder
from truerank.reliability.grid import Grid
from truerank.reliability.scenarios import FIGURES, TAUS

UNIT = 2.0**-30
QUESTIONS = ("resolution", "resolution_rounded", *TAUS)
GROUPS = 128  # their sums say how means vary between draws of users, give or take 1 / sqrt(2 * 128) = 6 %
LEAST = 2  # one user, or one group of them, says nothing about others

StudyFrames = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]  # results, means, pairs
Figures = npt.NDArray[np.signedinteger[Any]]  # [FIGURES x users x sparsities x candidates]


@record
class Resampling:
    """How many resamples, the level of intervals, and the seed."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0

    def of_users(self, key: Keys, purpose: str = "resample users") -> Floats:
        """How often each user counts, [1 + resamples x users]; row 0 is the data itself.

        >>> Resampling(3).of_users(np.arange(4, dtype=np.uint64))[0].tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        number = np.arange(1, self.resamples + 1, dtype=np.uint64)
        return np.concatenate([np.ones((1, len(key))), weights_of(key, number, seed=self.seed, purpose=purpose)])

    def of_groups(self, n: int) -> Floats:
        """How often each of n groups of users counts."""
        return self.of_users(np.arange(n, dtype=np.uint64), "resample groups of users")

    def of_repetitions(self, n: int) -> Floats:
        """How often each of n repetitions counts; once each where there is only one."""
        drawn = np.ones((self.resamples + 1, n))
        if n > 1:
            drawn[1:] = generator(self.seed, "resample repetitions").multinomial(n, [1 / n] * n, size=self.resamples)
        return drawn

    def interval(self, values: Floats, *, n: int) -> Floats:
        """Percentiles (low, high) of each column of n users or groups, without resamples in which it is undefined."""
        if n < LEAST or values.shape[1] == 0:
            return np.full((2, values.shape[1]), np.nan)
        shares = [(1 - self.level) / 2, (1 + self.level) / 2]
        bounds = np.quantile(values, shares, axis=0)  # NaN where a resample is undefined
        partly = np.isnan(bounds[0]) & ((~np.isnan(values)).sum(axis=0) > 1)
        if partly.any():
            bounds[:, partly] = np.nanquantile(values[:, partly], shares, axis=0)
        return bounds


def group_users(units: Ints, key: Keys, *, seed: int) -> tuple[Ints, Ints]:
    """Users in random order by (seed, user), and the group of each: equal sizes, give or take one.

    >>> units, group = group_users(np.arange(300), np.arange(300, dtype=np.uint64), seed=0)
    >>> int(group[-1]) + 1, sorted(set(np.bincount(group).tolist())), sorted(units.tolist()) == list(range(300))
    (128, [2, 3], True)
    """
    n = len(units)
    place = np.argsort(cell_keys(seed, "groups of users", key, np.zeros(n, dtype=np.uint64)), kind="stable")
    return units[place], np.arange(n) * min(GROUPS, n) // max(n, 1)


def tau_b(agreement: Any, ties: Any, other_ties: Any, *, n_models: int) -> Floats:
    """Kendall's τ-b from counts of pairs of models, NaN where all pairs of either tie.

    τ_b = (concordant - discordant) / √((pairs - ties) (pairs - ties of the other)) (Kendall 1945).

    >>> tau_b(np.array([1, 0]), np.array([1, 3]), np.array([0, 0]), n_models=3).round(4).tolist()
    [0.4082, nan]
    """
    n_pairs = n_models * (n_models - 1) / 2
    size = (n_pairs - ties) * (n_pairs - other_ties)
    return np.where(size > 0, agreement / np.sqrt(np.where(size > 0, size, 1.0)), np.nan)


def reference(question: str, figure: Any) -> Any:
    """The part of [users or resamples, sparsities, candidates, ...] that a question compares with.

    Full on the same log, the same candidates at sparsity 0, or Full at sparsity 0: both come first.
    """
    if question == "fidelity":
        return figure[:, :, :1]
    return figure[:, :1] if question == "robustness" else figure[:, :1, :1]


# ------------------------------------------------------------------------------------------------------- order of means


@record
class GroupSums:
    """Sums of values [repetitions x groups x sparsities x candidates x models], and how many users groups have in each
    repetition. Sums are in units of 1 / `scale`.
    """

    sums: Ints
    users: Ints
    scale: float = 1.0

    @property
    def means(self) -> Floats:
        """Over all users and repetitions, [sparsities x candidates x models]."""
        return _ratio(self.sums.sum(axis=(0, 1)) / self.scale, self.users.sum())

    def tau(self, resampling: Resampling) -> dict[str, dict[str, Floats]]:
        """Kendall's τ-b of the models' means with the reference's: mean over repetitions, interval, and spread."""
        n_repetitions, n_groups, *_, n_models = self.sums.shape
        weight, of_repetition = resampling.of_groups(n_groups), resampling.of_repetitions(n_repetitions)
        counts = [_pair_counts(*repetition, weight) for repetition in zip(self.sums, self.users, strict=True)]
        columns = {}
        for q, question in enumerate(TAUS, start=1):
            taus = np.array([
                tau_b(count[..., q], count[..., 0], reference(question, count[..., 0]), n_models=n_models)
                for count in counts
            ]).reshape(n_repetitions, len(weight), -1)  # fmt: skip
            defined = np.einsum("nr,rns->ns", of_repetition, ~np.isnan(taus))
            mean = _ratio(np.einsum("nr,rns->ns", of_repetition, np.nan_to_num(taus)), defined)
            interval = resampling.interval(mean[1:], n=int((self.users > 0).sum(axis=1).max()))
            columns[question] = dict(zip(TAU_COLUMNS, (mean[0].copy(), *interval, _spread(taus[:, 0])), strict=True))
        return columns

    def differences(self, models: Sequence[str], axes: pl.DataFrame) -> pl.DataFrame:
        """The difference of every pair of models, and its standard deviation between users.

        With D_g the sum of a group's differences, n_g its users and d the mean over all, the variance between users is
        Σ_g n_g (D_g / n_g - d)² / (groups - 1) (users are drawn independently), its mean over repetitions.

        >>> sums = np.array([[[[[3, 1]]], [[[1, 1]]]]])  # two users, one scenario, two models: differences 2 and 0
        >>> axes = pl.DataFrame({"sparsity": [0.0]})
        >>> GroupSums(sums, np.ones((1, 2), dtype=np.int64)).differences(("a", "b"), axes).row(0)[:5]
        (0.0, 'a', 'b', 1.0, 1.4142135623730951)
        """
        n_repetitions, n_users, n_groups = len(self.users), self.users.sum(axis=1), (self.users > 0).sum(axis=1)
        tables, users = [], self.users[..., None]
        for a, b in combinations(range(len(models)), 2):
            apart = (self.sums[..., a] - self.sums[..., b]).reshape(*self.users.shape, axes.height) / self.scale
            total = apart.sum(axis=1)
            deviation = np.nan_to_num(_ratio(apart, users)) - _ratio(total, n_users[:, None])[:, None]
            variance = _ratio((users * deviation**2).sum(axis=1), n_groups[:, None] - 1)[n_groups > 1]
            tables.append(
                axes.with_columns(
                    model=pl.lit(models[a]),
                    other=pl.lit(models[b]),
                    difference=_ratio(total.sum(axis=0), n_users.sum()),
                    sd=np.sqrt(variance.mean(axis=0) if len(variance) else np.full(axes.height, np.nan)),
                    users=pl.lit(int(n_users.max())),
                    repetitions=pl.lit(n_repetitions),
                )
            )
        return pl.concat(tables)


TAU_COLUMNS = ("tau_of_means", "tau_of_means_low", "tau_of_means_high", "tau_of_means_sd")


def _pair_counts(sums: Ints, users: Ints, weight: Floats) -> npt.NDArray[np.int32]:
    """Of every resample and scenario the tied pairs of models, and the agreement with each question's reference."""
    from truerank.reliability import kernels

    largest = float(np.abs(sums).sum(axis=0).max(initial=1)) * float(weight.max())
    unit = 2.0 ** max(0, ceil(log2(largest)) - 52)
    shape = (len(weight), *sums.shape[1:])
    means = (weight @ np.rint(sums.reshape(len(sums), -1) / unit)).reshape(shape)
    counts = np.empty((*shape[:-1], 1 + len(TAUS)), dtype=np.int32)
    # both roundings, of each user's value and of each group's sum: what differs by less may be equal
    kernels.count_pairs(means, weight @ (1 + users / unit), counts)
    return counts


# -------------------------------------------------------------------------------------------------------------- summary


@record
class Summary:
    """All that turns the blocks of a study into its tables."""

    folder: Folder
    grid: Grid
    models: tuple[str, ...]
    blocks: tuple[Keys, ...]  # the keys of the users of each block
    scale: float
    n_groups: int
    resampling: Resampling

    def frames(self, logger: int, metrics: Sequence[int]) -> list[StudyFrames]:
        """The tables of one logging policy and each of several metrics with one table of discounts."""
        totals, points = self._sums_of_users(logger, metrics)
        return [self._frames(logger, *of_metric) for of_metric in zip(metrics, totals, points, strict=True)]

    def _frames(self, logger: int, metric: int, total: Floats, point: Floats) -> StudyFrames:
        grid, resampling = self.grid, self.resampling
        scenarios = [(sparsity, *candidates) for sparsity in grid.sparsities for candidates in grid.candidates]
        schema = {"sparsity": pl.Float64, "sampler": pl.String, "size": pl.Int64}
        logger_name, metric_name = (
            pl.lit(str(axis[at])) for axis, at in ((grid.loggers, logger), (grid.metrics, metric))
        )
        axes = pl.DataFrame(scenarios, schema, orient="row").select(
            logger_name.alias("logger"), *schema, metric_name.alias("metric")
        )
        groups = self._group_sums(logger, metric)
        taus = groups.tau(resampling)
        n_users = int(point[:, -1].max(initial=0))
        nothing = dict.fromkeys(TAU_COLUMNS, np.full(axes.height, np.nan))
        results = [
            axes.with_columns(question=pl.lit(question), **self._columns(q, total, point)).with_columns(
                **taus.get(question, nothing), users=pl.lit(n_users), repetitions=pl.lit(grid.repetitions)
            )
            for q, question in enumerate(QUESTIONS)
        ]
        mean = groups.means
        means = [axes.with_columns(model=pl.lit(name), mean=mean[..., m].ravel()) for m, name in enumerate(self.models)]
        return pl.concat(results), pl.concat(means), groups.differences(self.models, axes)

    def _sums_of_users(self, logger: int, metrics: Sequence[int]) -> tuple[Floats, Floats]:
        """Sums over users for each metric: in every resample, and of every repetition as it is.

        Columns: five questions, defined τ of the last three, each [sparsities x candidates]; then users with a value.
        Metrics of one table of discounts, such as Recall@5 and Precision@5, mostly order models alike: the product of
        the first one serves them all, up to ties of rounded values.
        """
        grid, n = self.grid, prod(self._axes)
        totals = np.zeros((len(metrics), self.resampling.resamples + 1, 8 * n + 1))
        points = np.zeros((len(metrics), grid.repetitions, 8 * n + 1))
        compared = slice(None) if grid.by_rounded else [0, *range(2, len(FIGURES))]
        for repetition, weight in enumerate(self.resampling.of_repetitions(grid.repetitions).T):
            parts = np.zeros_like(totals)
            for number, keys in enumerate(self.blocks):
                of_users, first, sums = self.resampling.of_users(keys), None, np.zeros(0)
                for part, metric in zip(parts, metrics, strict=True):
                    figures = self._figures(Block(repetition, logger, number), metric)
                    if first is not None and np.array_equal(figures[compared], first[compared]):
                        sums[:, n : 2 * n] = of_users @ figures[1].reshape(-1, n).astype(np.float64)
                    else:
                        first, sums = figures, self._product(of_users, figures)
                    np.add(part, sums, out=part)
            points[:, repetition] = parts[:, 0]
            totals += parts * weight[:, None]
        return totals, points

    def _figures(self, block: Block, metric: int) -> Figures:
        names = [f"{self.grid.metrics[metric]} {figure}" for figure in FIGURES]
        table = self.folder.files.read(self.folder.place(block), names)
        return np.stack([table[name].to_numpy().reshape(-1, *self._axes) for name in names])

    def _product(self, weight: Floats, figures: Figures) -> Floats:
        """Sums of the values of users, in units, and of those whose τ is defined; a user without positives has zeros.

        Columns in which all users of the block are defined need no product.
        """
        ties, rounded, *agreements = figures
        present, flat = ties[:, 0, 0] >= 0, (len(ties), -1)
        values, defined = [np.maximum(ties, 0).reshape(flat), rounded.reshape(flat)], list[Bools]()
        tied = rounded if self.grid.by_rounded else ties  # in the values that are compared
        for question, agreement in zip(TAUS, agreements, strict=True):
            tau = tau_b(agreement, tied, reference(question, tied), n_models=len(self.models)).reshape(flat)
            tau[~present] = np.nan
            values.append(np.rint(np.nan_to_num(tau) / UNIT))
            defined.append(~np.isnan(tau))
        undefined = ~np.concatenate([*defined, present[:, None]], axis=1)
        sums = np.repeat(weight.sum(axis=1)[:, None], undefined.shape[1], axis=1)
        partly = np.flatnonzero(undefined.any(axis=0))
        sums[:, partly] -= weight @ undefined[:, partly].astype(np.float64)
        return np.concatenate([weight @ np.concatenate(values, axis=1).astype(np.float64), sums], axis=1)

    def _columns(self, q: int, total: Floats, point: Floats) -> dict[str, Floats]:
        """A question's columns: value and interval, the share undefined, the same with undefined as 0."""
        n, is_tau = total.shape[1] // 8, QUESTIONS[q] in TAUS
        here, unit = slice(q * n, (q + 1) * n), UNIT if is_tau else 1 / comb(len(self.models), 2)
        where = slice((q + 3) * n, (q + 4) * n) if is_tau else [-1] * n
        everyone, n_users = total[:, -1:], int(point[:, -1].max(initial=0))
        mean, zero = _ratio(total[:, here], total[:, where]) * unit, _ratio(total[:, here], everyone) * unit
        bounds = self.resampling.interval(mean[1:], n=n_users)
        bounds_zero = bounds.copy()
        partly = np.flatnonzero((total[:, where] != everyone).any(axis=0))
        if not np.isnan(bounds[0]).all():
            bounds_zero[:, partly] = self.resampling.interval(zero[1:, partly], n=n_users)
        return {  # rows are copied: a view in a table would keep all resamples in memory
            "value": mean[0].copy(),
            "low": bounds[0],
            "high": bounds[1],
            "undefined": 1 - _ratio(total[:1, where], everyone[:1])[0],
            "value_undefined_as_0": zero[0].copy(),
            "low_undefined_as_0": bounds_zero[0],
            "high_undefined_as_0": bounds_zero[1],
            "sd_between_repetitions": _spread(_ratio(point[:, here], point[:, where]) * unit),
        }

    def _group_sums(self, logger: int, metric: int) -> GroupSums:
        """Sums of values over the users of each group, of every repetition."""
        shape, name = (*self._axes, len(self.models)), str(self.grid.metrics[metric])
        sums = np.zeros((self.grid.repetitions, self.n_groups, *shape), dtype=np.int64)
        users = np.zeros(sums.shape[:2], dtype=np.int64)
        for repetition, number in product(range(self.grid.repetitions), range(len(self.blocks))):
            place = self.folder.place(Block(repetition, logger, number), "-sums")
            table = self.folder.files.read(place, [name, "group", "users"])
            part, first = table[name].to_numpy().reshape(-1, *shape), int(table["group"][0])
            here = (repetition, slice(first, first + len(part)))
            sums[here] += part
            users[here] += table["users"].gather_every(part[0].size).to_numpy()
        return GroupSums(sums, users, self.scale)

    @property
    def _axes(self) -> tuple[int, int]:
        return len(self.grid.sparsities), self.grid.n_candidates


def _ratio(num: Any, den: Any) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(den > 0, num / den, np.nan))


def _spread(points: Floats) -> Floats:
    """The standard deviation between repetitions, where there are several."""
    return np.asarray(points.std(axis=0, ddof=1)) if len(points) > 1 else np.full(points.shape[1:], np.nan)
