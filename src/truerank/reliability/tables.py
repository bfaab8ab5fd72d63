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

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints
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
EQUAL, ROUNDED = FIGURES[:2]


class Tables(NamedTuple):
    """What a study found: `results` per scenario, metric and question; `means` per scenario, metric and model;
    `pairs` per scenario, metric and pair of models.
    """

    results: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame


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

    def interval(self, values: Floats, *, n: int) -> tuple[Floats, Floats]:
        """Percentiles of each column of n users or groups, without resamples in which nothing is defined."""
        bounds = np.full((2, values.shape[1]), np.nan)
        if n >= LEAST:
            shares = [(1 - self.level) / 2, (1 + self.level) / 2]
            defined = ~np.isnan(values)
            whole = defined.all(axis=0)
            if whole.any():
                bounds[:, whole] = np.quantile(values[:, whole], shares, axis=0)
            for column in np.flatnonzero(~whole & (defined.sum(axis=0) > 1)):
                bounds[:, column] = np.quantile(values[defined[:, column], column], shares)
        return bounds[0], bounds[1]


def grouped(units: Ints, key: Keys, *, seed: int) -> tuple[Ints, Ints]:
    """Users in random order by (seed, user), and the group of each: equal sizes, give or take one.

    >>> units, group = grouped(np.arange(300), np.arange(300, dtype=np.uint64), seed=0)
    >>> int(group[-1]) + 1, sorted(set(np.bincount(group).tolist())), sorted(units.tolist()) == list(range(300))
    (128, [2, 3], True)
    """
    n = len(units)
    place = np.argsort(cell_keys(seed, "groups of users", key, np.zeros(n, dtype=np.uint64)), kind="stable")
    return units[place], np.arange(n) * min(GROUPS, n) // max(n, 1)


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


# ------------------------------------------------------------------------------------------------------- order of means


@record
class GroupSums:
    """Sums of values of one repetition [groups x sparsities x candidates x models], and how many users a group has."""

    sums: Ints
    users: Ints

    def pair_counts(self, weight: Floats) -> npt.NDArray[np.int32]:
        """Of every resample and scenario the tied pairs of models, and the agreement with each question's reference."""
        from truerank.reliability import kernels

        largest = float(np.abs(self.sums).sum(axis=0).max(initial=1)) * float(weight.max())
        shift = max(0, ceil(log2(largest)) - 52)
        shape = (len(weight), *self.sums.shape[1:])
        means = (weight @ np.rint(self.sums.reshape(len(self.sums), -1) / 2.0**shift)).reshape(shape)
        # both roundings, of each user's value and of each group's sum: what differs by less may be equal
        rounding = weight @ (1 + self.users / 2.0**shift)
        out = np.empty((*shape[:-1], 1 + len(TAUS)), dtype=np.int32)
        kernels.count_pairs(means, rounding, out)
        return out


def tau_of_means(repetitions: Sequence[GroupSums], resampling: Resampling) -> dict[str, dict[str, Floats]]:
    """Kendall's τ-b of the models' means with the reference's: mean over repetitions, interval, and spread."""
    n_groups, n_sparsities, n_candidates, n_models = repetitions[0].sums.shape
    n_scenarios, n_pairs = n_sparsities * n_candidates, n_models * (n_models - 1) // 2
    weight, of_repetition = resampling.of_groups(n_groups), resampling.of_repetitions(len(repetitions))
    total, defined = np.zeros((2, len(TAUS), len(weight), n_scenarios))
    points = np.empty((len(repetitions), len(TAUS), n_scenarios))
    for r, repetition in enumerate(repetitions):
        count = repetition.pair_counts(weight)
        for q, question in enumerate(TAUS):
            ties = count[..., 0]
            both = tau_b(count[..., 1 + q], ties, reference(question, ties), n_pairs=n_pairs)
            tau, is_defined = (values.reshape(len(weight), -1) for values in both)
            points[r, q] = tau[0]
            total[q] += of_repetition[:, r, None] * np.where(is_defined, tau, 0.0)
            defined[q] += of_repetition[:, r, None] * is_defined
    n = max(int((repetition.users > 0).sum()) for repetition in repetitions)
    mean, spread, columns = _ratio(total, defined), _spread(points), {}  # NaN where all models tie in every repetition
    for q, question in enumerate(TAUS):
        low, high = resampling.interval(mean[q, 1:], n=n)
        named = {"": mean[q, 0].copy(), "_low": low, "_high": high, "_sd": spread[q]}  # no view of all resamples
        columns[question] = {f"tau_of_means{end}": values for end, values in named.items()}
    return columns


def differences(
    repetitions: Sequence[GroupSums], models: Sequence[str], axes: pl.DataFrame, *, scale: float
) -> pl.DataFrame:
    """The difference of every pair of models, and its standard deviation between users; sums are in units of 1 / scale.

    With D_g the sum of a group's differences, n_g its users and d the mean over all, the variance between users is
    Σ_g n_g (D_g / n_g - d)² / (groups - 1) (users are drawn independently), its mean over repetitions.

    >>> sums = np.array([[[[3, 1]]], [[[1, 1]]]])  # two users, one scenario, two models: differences 2 and 0
    >>> repetition = GroupSums(sums, np.ones(2, dtype=np.int64))
    >>> differences([repetition], ("a", "b"), pl.DataFrame({"sparsity": [0.0]}), scale=1.0).row(0)[:5]
    (0.0, 'a', 'b', 1.0, 1.4142135623730951)
    """
    tables, nothing = [], np.full(axes.height, np.nan)
    n_users = [int(repetition.users.sum()) for repetition in repetitions]
    for a, b in combinations(range(len(models)), 2):
        total, variance = np.zeros(axes.height), []
        for repetition in repetitions:
            filled = repetition.users > 0
            sums, users = repetition.sums[filled], repetition.users[filled, None]
            apart = (sums[..., a] - sums[..., b]).reshape(-1, axes.height) / scale
            total += apart.sum(axis=0)
            if len(apart) > 1:
                deviation = apart / users - apart.sum(axis=0) / users.sum()
                variance.append((users * deviation**2).sum(axis=0) / (len(apart) - 1))
        tables.append(
            axes.with_columns(
                model=pl.lit(models[a]),
                other=pl.lit(models[b]),
                difference=total / sum(n_users) if sum(n_users) else nothing,
                sd=np.sqrt(np.mean(variance, axis=0)) if variance else nothing,
                users=pl.lit(max(n_users)),
                repetitions=pl.lit(len(n_users)),
            )
        )
    return pl.concat(tables)


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

    @property
    def n_pairs(self) -> int:
        return len(self.models) * (len(self.models) - 1) // 2

    def of(self, logger: int, metrics: Sequence[int]) -> list[Tables]:
        """What one logging policy and each of several metrics of one table of discounts say."""
        return [
            self._tables(logger, metric, *sums)
            for metric, sums in zip(metrics, self._sums_of_users(logger, metrics), strict=True)
        ]

    def _tables(self, logger: int, metric: int, total: Floats, point: Floats) -> Tables:
        grid, sparsities = self.grid, len(self.grid.sparsities)
        names, sizes = zip(*grid.candidates, strict=True)
        axes = pl.DataFrame(
            {
                "logger": [str(grid.loggers[logger])] * (sparsities * len(names)),
                "sparsity": np.repeat(grid.sparsities, len(names)),
                "sampler": list(names) * sparsities,
                "size": pl.Series(list(sizes) * sparsities, dtype=pl.Int64),
                "metric": [str(grid.metrics[metric])] * (sparsities * len(names)),
            }
        )
        repetitions = [self._group_sums(Block(r, logger, 0), metric) for r in range(grid.repetitions)]
        taus, nothing = tau_of_means(repetitions, self.resampling), np.full(axes.height, np.nan)
        results = [
            axes.with_columns(pl.lit(question).alias("question"), **self._figures(q, total, point)).with_columns(
                **taus.get(question, dict.fromkeys(taus[TAUS[0]], nothing)),
                users=pl.lit(int(point[:, -1].max(initial=0))),
                repetitions=pl.lit(grid.repetitions),
            )
            for q, question in enumerate(QUESTIONS)
        ]
        n_users, sums = point[:, -1].sum(), np.sum([part.sums.sum(axis=0) for part in repetitions], axis=0)
        mean = sums / self.scale / n_users if n_users else np.full(sums.shape, np.nan)
        means = [axes.with_columns(model=pl.lit(name), mean=mean[..., m].ravel()) for m, name in enumerate(self.models)]
        return Tables(
            pl.concat(results), pl.concat(means), differences(repetitions, self.models, axes, scale=self.scale)
        )

    def _sums_of_users(self, logger: int, metrics: Sequence[int]) -> Iterator[tuple[Floats, Floats]]:
        """Sums over users of every figure, in every resample and of every repetition, for each metric.

        Columns: five questions, defined τ of the last three, each [sparsities x candidates]; then users with a value.
        """
        n_columns = 8 * len(self.grid.sparsities) * self.grid.n_candidates + 1
        totals = np.zeros((len(metrics), self.resampling.resamples + 1, n_columns))
        points = np.zeros((len(metrics), self.grid.repetitions, n_columns))
        weight = self.resampling.of_repetitions(self.grid.repetitions)
        for repetition in range(self.grid.repetitions):
            parts = np.zeros_like(totals)
            for number, keys in enumerate(self.blocks):
                products = self._products(Block(repetition, logger, number), metrics, self.resampling.of_users(keys))
                for m, product in enumerate(products):
                    parts[m] += product
            points[:, repetition] = parts[:, 0]
            parts *= weight[:, repetition, None]
            totals += parts
        return zip(totals, points, strict=True)

    def _products(self, block: Block, metrics: Sequence[int], weight: Floats) -> Iterator[Floats]:
        """The sums of a block in every resample, for each metric; each is to be used before the next is made.

        Metrics of one table of discounts, such as Recall@5 and Precision@5, mostly order models alike.
        """
        n, first, product = len(self.grid.sparsities) * self.grid.n_candidates, dict[str, Any](), np.zeros(0)
        apart = () if self.grid.by_rounded else (ROUNDED,)
        for metric in metrics:
            figures = self._user_figures(block, metric)
            if first and all(np.array_equal(figures[name], first[name]) for name in figures if name not in apart):
                # made already, up to what rounding does
                product[:, n : 2 * n] = weight @ figures[ROUNDED].reshape(-1, n).astype(np.float64)
            else:
                first, product = figures, self._product(weight, figures)
            yield product

    def _user_figures(self, block: Block, metric: int) -> dict[str, Any]:
        """Each figure of one metric, [users x sparsities x candidates]."""
        columns = {figure: f"{self.grid.metrics[metric]} {figure}" for figure in FIGURES}
        table, shape = self.folder.read(block, columns=list(columns.values())), (-1, *self._shape)
        return {figure: table[name].to_numpy().reshape(shape) for figure, name in columns.items()}

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.grid.sparsities), self.grid.n_candidates

    def _product(self, weight: Floats, figures: dict[str, Any]) -> Floats:
        """Sums of the values of users, in units, and of those whose τ is defined; a user without positives has zeros.

        Columns in which all users of the block are defined need no product.
        """
        ties, rounded = figures[EQUAL], figures[ROUNDED]
        present, flat = ties[:, 0, 0] >= 0, (len(ties), -1)
        values, defined = [np.maximum(ties, 0).reshape(flat), rounded.reshape(flat)], []
        tied = rounded if self.grid.by_rounded else ties  # in the values that are compared
        for question in TAUS:
            tau, is_defined = tau_b(figures[question], tied, reference(question, tied), n_pairs=self.n_pairs)
            is_defined &= present[:, None, None]
            values.append(np.rint(np.where(is_defined, tau, 0.0) / UNIT).reshape(flat))
            defined.append(is_defined.reshape(flat))
        undefined = ~np.concatenate([*defined, present[:, None]], axis=1)
        sums = np.repeat(weight.sum(axis=1)[:, None], undefined.shape[1], axis=1)
        partly = np.flatnonzero(undefined.any(axis=0))
        sums[:, partly] -= weight @ undefined[:, partly].astype(np.float64)
        return np.concatenate([weight @ np.concatenate(values, axis=1).astype(np.float64), sums], axis=1)

    def _figures(self, q: int, total: Floats, point: Floats) -> dict[str, Floats]:
        """A question's columns: value and interval, the share undefined, the same with undefined as 0."""
        n, unit = (total.shape[1] - 1) // 8, UNIT if QUESTIONS[q] in TAUS else 1 / self.n_pairs
        here = slice(q * n, (q + 1) * n)
        where = slice((q + 3) * n, (q + 4) * n) if QUESTIONS[q] in TAUS else [-1] * n
        everyone, n_users = total[:, -1:], int(point[:, -1].max(initial=0))
        mean, zero = _ratio(total[:, here], total[:, where]) * unit, _ratio(total[:, here], everyone) * unit
        low, high = self.resampling.interval(mean[1:], n=n_users)
        low_zero, high_zero = low.copy(), high.copy()
        partly = np.flatnonzero((total[:, where] != everyone).any(axis=0))
        if len(partly) and not np.isnan(low).all():
            low_zero[partly], high_zero[partly] = self.resampling.interval(zero[1:, partly], n=n_users)
        return {  # rows are copied: a view in a table would keep all resamples in memory
            "value": mean[0].copy(),
            "low": low,
            "high": high,
            "undefined": 1 - _ratio(total[:1, where], everyone[:1])[0],
            "value_undefined_as_0": zero[0].copy(),
            "low_undefined_as_0": low_zero,
            "high_undefined_as_0": high_zero,
            "sd_between_repetitions": _spread(_ratio(point[:, here], point[:, where]) * unit),
        }

    def _group_sums(self, block: Block, metric: int) -> GroupSums:
        """Sums of values over the users of each group, of one repetition."""
        shape, name = (*self._shape, len(self.models)), str(self.grid.metrics[metric])
        sums, users = np.zeros((self.n_groups, *shape), dtype=np.int64), np.zeros(self.n_groups, dtype=np.int64)
        for number in range(len(self.blocks)):
            table = self.folder.read(block._replace(number=number), "-sums", [name, "group", "users"])
            part, first = table[name].to_numpy().reshape(-1, *shape), int(table["group"][0])
            here = slice(first, first + len(part))
            sums[here] += part
            users[here] += table["users"].gather_every(part[0].size).to_numpy()
        return GroupSums(sums, users)


def _ratio(num: Floats, den: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(den > 0, num / den, np.nan))


def _spread(points: Floats) -> Floats:
    """The standard deviation between repetitions, where there are several."""
    return np.asarray(points.std(axis=0, ddof=1)) if len(points) > 1 else np.full(points.shape[1:], np.nan)
