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
from math import ceil, comb, log2
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Keys
from truerank.core.record import record
from truerank.core.rng import generator
from truerank.inference.intervals import weights_of
from truerank.reliability.plan import SUMS, Block, Folder, StudyPlan
from truerank.reliability.scenarios import FIGURES, TAUS

UNIT = 2.0**-30
QUESTIONS = ("resolution", "resolution_rounded", *TAUS)
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

    def tau(self, resampling: Resampling) -> dict[str, Floats]:
        """Kendall's τ-b of the models' means with each question's reference, for all questions one after the other:
        mean over repetitions, interval, and spread; NaN for questions without a reference.
        """
        n_repetitions, n_groups, *_, n_models = self.sums.shape
        weight, of_repetition = resampling.of_groups(n_groups), resampling.of_repetitions(n_repetitions)
        taus = np.stack([
            _by_row(_taus(count[..., 0], np.moveaxis(count[..., 1:], -1, 0), n_models=n_models))
            for count in (_pair_counts(*sums, weight) for sums in zip(self.sums, self.users, strict=True))
        ])  # fmt: skip
        defined = np.einsum("nr,rns->ns", of_repetition, ~np.isnan(taus))
        mean = _ratio(np.einsum("nr,rns->ns", of_repetition, np.nan_to_num(taus)), defined)
        interval = resampling.interval(mean[1:], n=int((self.users > 0).sum(axis=1).max()))
        without = np.full((len(QUESTIONS) - len(TAUS)) * taus.shape[2] // len(TAUS), np.nan)
        columns = zip(TAU_COLUMNS, (mean[0], *interval, _spread(taus[:, 0])), strict=True)
        return {name: np.concatenate([without, column]) for name, column in columns}

    def differences(self, models: Sequence[str], axes: pl.DataFrame) -> pl.DataFrame:
        """The difference of every pair of models, and its standard deviation between users.

        With D_g the sum of a group's differences, n_g its users and d the mean over all, the variance between users is
        Σ_g n_g (D_g / n_g - d)² / (groups - 1) (users are drawn independently), its mean over repetitions.

        >>> sums = np.array([[[[[3, 1]]], [[[1, 1]]]]])  # two users, one scenario, two models: differences 2 and 0
        >>> axes = pl.DataFrame({"sparsity": [0.0]})
        >>> GroupSums(sums, np.ones((1, 2), dtype=np.int64)).differences(("a", "b"), axes).row(0)[:5]
        (0.0, 'a', 'b', 1.0, 1.4142135623730951)
        """
        n_users, n_groups, users = self.users.sum(axis=1), (self.users > 0).sum(axis=1), self.users[..., None]
        tables = []
        for a, b in combinations(range(len(models)), 2):
            apart = (self.sums[..., a] - self.sums[..., b]).reshape(*self.users.shape, -1) / self.scale
            total = apart.sum(axis=1)
            deviation = np.nan_to_num(_ratio(apart, users)) - _ratio(total, n_users[:, None])[:, None]
            variance = _ratio((users * deviation**2).sum(axis=1), n_groups[:, None] - 1)[n_groups > 1]
            sd = np.sqrt(variance.mean(axis=0)) if len(variance) else np.full(axes.height, np.nan)
            pair = {"model": pl.lit(models[a]), "other": pl.lit(models[b])}
            tables.append(axes.with_columns(**pair, difference=_ratio(total.sum(axis=0), n_users.sum()), sd=sd))
        return pl.concat(tables).with_columns(users=pl.lit(int(n_users.max())), repetitions=pl.lit(len(self.users)))


TAU_COLUMNS = ("tau_of_means", "tau_of_means_low", "tau_of_means_high", "tau_of_means_sd")


def _taus(tied: Any, agreements: Any, *, n_models: int) -> Floats:
    """τ-b of each question [questions x ...], from the tied pairs and the agreement with the question's reference."""
    return np.stack([
        tau_b(agreement, tied, reference(question, tied), n_models=n_models)
        for question, agreement in zip(TAUS, agreements, strict=True)
    ])  # fmt: skip


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

    plan: StudyPlan
    folder: Folder
    resampling: Resampling

    def frames(self, logger: int, metrics: Sequence[int]) -> list[StudyFrames]:
        """The tables of one logging policy and each of several metrics with one table of discounts."""
        totals, points, users = self._sums_of_users(logger, metrics)
        return [self._frames(logger, *of_metric, users) for of_metric in zip(metrics, totals, points, strict=True)]

    def _frames(self, logger: int, metric: int, total: Floats, point: Floats, users: Ints) -> StudyFrames:
        grid, models = self.plan.grid, list(self.plan.models.aligned)
        scenarios = [
            (str(grid.loggers[logger]), sparsity, *candidates, str(grid.metrics[metric]))
            for sparsity, candidates in product(grid.sparsities, grid.candidates)
        ]
        axes = pl.DataFrame(scenarios, AXES, orient="row")
        groups, n_users = self._group_sums(logger, metric, users), int(point[:, -1].max(initial=0))
        results = pl.concat([axes.with_columns(question=pl.lit(question)) for question in QUESTIONS]).with_columns(
            **self._columns(total, point, n_users=n_users),
            **groups.tau(self.resampling),
            users=pl.lit(n_users),
            repetitions=pl.lit(grid.repetitions),
        )
        means = [
            axes.with_columns(model=pl.lit(name), mean=mean.ravel())
            for name, mean in zip(models, np.moveaxis(groups.means, -1, 0), strict=True)
        ]
        return results, pl.concat(means), groups.differences(models, axes)

    def _sums_of_users(self, logger: int, metrics: Sequence[int]) -> tuple[Floats, Floats, Ints]:
        """Sums over users for each metric: in every resample, and of every repetition as it is; and how many users with
        positives each group has in every repetition.

        Columns: five questions, defined τ of the last three, each [sparsities x candidates]; then users with a value.
        Metrics of one table of discounts, such as Recall@5 and Precision@5, mostly order models alike: the product of
        the first one serves them all, up to ties of rounded values.
        """
        grid, n = self.plan.grid, self.plan.n_scenarios
        totals = np.zeros((len(metrics), self.resampling.resamples + 1, 8 * n + 1))
        points = np.zeros((len(metrics), grid.repetitions, 8 * n + 1))
        users = np.zeros((grid.repetitions, self.plan.n_groups), dtype=np.int64)
        compared = slice(None) if grid.by_rounded else [0, *range(2, len(FIGURES))]
        for repetition, weight in enumerate(self.resampling.of_repetitions(grid.repetitions).T):
            parts = np.zeros_like(totals)
            for number, units in enumerate(self.plan.users):
                of_users = self.resampling.of_users(self.plan.dataset.users.keys()[units])
                first: Any = None
                sums = np.zeros(0)
                for part, metric in zip(parts, metrics, strict=True):
                    figures = self._figures(Block(repetition, logger, number), metric)
                    if first is not None and np.array_equal(figures[compared], first[compared]):
                        sums[:, n : 2 * n] = of_users @ figures[1].reshape(-1, n).astype(np.float64)
                    else:
                        first, sums = figures, self._product(of_users, figures)
                    np.add(part, sums, out=part)
                present = figures[0, :, 0, 0] >= 0
                users[repetition] += np.bincount(self.plan.groups[number][present], minlength=self.plan.n_groups)
            points[:, repetition] = parts[:, 0]
            totals += parts * weight[:, None]
        return totals, points, users

    def _figures(self, block: Block, metric: int) -> Figures:
        column: Figures = self.folder.read(block, str(self.plan.grid.metrics[metric]))
        return column.reshape(len(FIGURES), -1, *self.plan.axes)

    def _product(self, weight: Floats, figures: Figures) -> Floats:
        """Sums of the values of users, in units, and of those whose τ is defined; a user without positives has zeros.

        Columns in which all users of the block are defined need no product.
        """
        ties, rounded, *agreements = figures
        present = ties[:, 0, 0] >= 0
        tied = rounded if self.plan.grid.by_rounded else ties  # in the values that are compared
        taus = _taus(tied, agreements, n_models=len(self.plan.models))
        taus[:, ~present] = np.nan
        values = _by_row(np.stack([np.maximum(ties, 0), rounded, *np.rint(np.nan_to_num(taus) / UNIT)]))
        undefined = np.column_stack([_by_row(np.isnan(taus)), ~present])
        sums = np.repeat(weight.sum(axis=1)[:, None], undefined.shape[1], axis=1)
        partly = np.flatnonzero(undefined.any(axis=0))
        sums[:, partly] -= weight @ undefined[:, partly].astype(np.float64)
        return np.concatenate([weight @ values, sums], axis=1)

    def _columns(self, total: Floats, point: Floats, *, n_users: int) -> dict[str, Floats]:
        """Of all questions, one after the other: value and interval, the share undefined, and with undefined as 0."""
        n, interval = self.plan.n_scenarios, self.resampling.interval
        unit = np.repeat([1 / comb(len(self.plan.models), 2), UNIT], [2 * n, 3 * n])
        value, defined, everyone = _parts(total, n)
        mean = _ratio(value, defined) * unit
        bounds = interval(mean[1:], n=n_users)
        bounds_zero = bounds.copy()
        partly = np.flatnonzero((defined != everyone).any(axis=0))
        bounds_zero[:, partly] = interval(_ratio(value[1:, partly], everyone[1:]) * unit[partly], n=n_users)
        of_repetition, known, _ = _parts(point, n)
        return {  # rows are copied: a view in a table would keep all resamples in memory
            "value": mean[0].copy(),
            "low": bounds[0],
            "high": bounds[1],
            "undefined": 1 - _ratio(defined[0], everyone[0]),
            "value_undefined_as_0": _ratio(value[0], everyone[0]) * unit,
            "low_undefined_as_0": bounds_zero[0],
            "high_undefined_as_0": bounds_zero[1],
            "sd_between_repetitions": _spread(_ratio(of_repetition, known) * unit),
        }

    def _group_sums(self, logger: int, metric: int, users: Ints) -> GroupSums:
        """Sums of values over the users of each group, of every repetition."""
        plan = self.plan
        sums = np.zeros((plan.grid.repetitions, plan.n_groups, *plan.axes, len(plan.models)), dtype=np.int64)
        name = str(plan.grid.metrics[metric])
        for repetition, (number, group) in product(range(plan.grid.repetitions), enumerate(plan.groups)):
            block = Block(repetition, logger, number)
            sums[repetition, group[0] : group[-1] + 1] += self.folder.read(block, name, SUMS).reshape(
                -1, *sums.shape[2:]
            )
        return GroupSums(sums, users, plan.tables.scale)


AXES = {"logger": pl.String, "sparsity": pl.Float64, "sampler": pl.String, "size": pl.Int64, "metric": pl.String}


def _by_row(figures: Any) -> Any:
    """[users or resamples x figures of all scenarios] of [figures x users or resamples x sparsities x candidates]."""
    return np.moveaxis(figures, 0, 1).reshape(figures.shape[1], -1)


def _parts(sums: Floats, n: int) -> tuple[Floats, Floats, Floats]:
    """Of n scenarios and five questions: the sums of values, the users whose value is defined, and all users."""
    everyone = sums[:, -1:]
    return sums[:, : 5 * n], np.column_stack([np.repeat(everyone, 2 * n, axis=1), sums[:, 5 * n : -1]]), everyone


def _ratio(num: Any, den: Any) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(den > 0, num / den, np.nan))


def _spread(points: Floats) -> Floats:
    """The standard deviation between repetitions, where there are several."""
    return np.asarray(points.std(axis=0, ddof=1)) if len(points) > 1 else np.full(points.shape[1:], np.nan)
