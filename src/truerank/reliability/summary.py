"""From what was counted per user to tables with intervals.

Intervals redraw users, and with several repetitions also repetitions (Owen's crossed bootstrap, 2007, a little wide
rather than narrow): the weight of a user in a resample is Poisson with mean 1, keyed by (seed, resample, user), so a
block of users adds its product [resamples x users] · [users x values] and no weight is kept. All values are whole
multiples of 2^-30 (τ is rounded to that), so sums are exact and the same bits in any order and any division in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Keys
from truerank.reliability.folder import Folder, WorkBlock
from truerank.reliability.grid import Grid
from truerank.reliability.order_of_means import GroupSums, OrderOfMeans, Resampling, quantiles
from truerank.reliability.scenarios import FIGURES, TAUS, reference, tau_b

UNIT = 2.0**-30
QUESTIONS = ("resolution", "resolution_rounded", *TAUS)
LEAST_USERS = 2  # one user says nothing about others
ROUNDED, EQUAL = QUESTIONS[1], FIGURES[1]


@dataclass(frozen=True, slots=True)
class Tables:
    """What a study found: `results` per scenario, metric and question; `means` per scenario, metric and model;
    `pairs` per scenario, metric and pair of models.
    """

    results: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame

    @classmethod
    def together(cls, parts: Sequence[Tables]) -> Tables:
        """One below the other."""
        return cls(*(pl.concat([getattr(each, name) for each in parts]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class Summary:
    """All that turns the blocks of a study into its tables."""

    folder: Folder
    grid: Grid
    models: tuple[str, ...]
    blocks: tuple[Keys, ...]  # the keys of the users of each block
    scale: float
    table_of: Ints  # which table of worth each metric has
    n_groups: int
    resampling: Resampling

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.grid.sparsities), self.grid.n_candidates

    @property
    def n_pairs(self) -> int:
        return len(self.models) * (len(self.models) - 1) // 2

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Metrics that add up the same worth, such as Recall@5 and Precision@5: mostly they order models alike."""
        return [tuple(np.flatnonzero(self.table_of == each).tolist()) for each in dict.fromkeys(self.table_of.tolist())]

    def of(self, logger: int, group: tuple[int, ...]) -> dict[int, Tables]:
        """What one logger and each metric of a group say."""
        found: dict[int, Tables] = {}
        figures: list[dict[str, dict[str, Floats]]] = []
        users = self._users(logger, group)
        for metric, each in zip(group, users, strict=True):
            known = figures[0] if figures and each.same_as(users[0]) else {}
            figures.append(
                {
                    question: known[question]
                    if question in known and question != ROUNDED
                    else self._figures(question, each)
                    for question in QUESTIONS
                }
            )
            axes = self._axes(logger, metric)
            repetitions = tuple(self._sums(logger, metric, repetition) for repetition in range(self.grid.repetitions))
            order = OrderOfMeans(repetitions, self.resampling, self.scale)
            results = [
                axes.with_columns(pl.lit(question).alias("question"), **figures[-1][question]).with_columns(
                    **order.columns(question),
                    users=pl.lit(int(each.point[:, -1].max(initial=0))),
                    repetitions=pl.lit(self.grid.repetitions),
                )
                for question in QUESTIONS
            ]
            n_users = each.point[:, -1].sum()
            total = np.sum([each.sums.sum(axis=0) for each in repetitions], axis=0)
            mean = total / self.scale / n_users if n_users else np.full(total.shape, np.nan)
            means = [
                axes.with_columns(model=pl.lit(name), mean=mean[..., m].ravel()) for m, name in enumerate(self.models)
            ]
            found[metric] = Tables(pl.concat(results), pl.concat(means), order.pairs(self.models, axes))
        return found

    def _axes(self, logger: int, metric: int) -> pl.DataFrame:
        names, sizes = zip(*self.grid.candidates, strict=True)
        n_sparsities, n_candidates = self.shape
        return pl.DataFrame(
            {
                "logger": [str(self.grid.loggers[logger])] * (n_sparsities * n_candidates),
                "sparsity": np.repeat(self.grid.sparsities, n_candidates),
                "sampler": list(names) * n_sparsities,
                "size": pl.Series(list(sizes) * n_sparsities, dtype=pl.Int64),
                "metric": [str(self.grid.metrics[metric])] * (n_sparsities * n_candidates),
            }
        )

    def _users(self, logger: int, group: tuple[int, ...]) -> list[_Sums]:
        """Sums over users of every figure, in every resample, for each metric of a group."""
        n = int(np.prod(self.shape))
        totals = [np.zeros((self.resampling.resamples + 1, 8 * n + 1)) for _ in group]
        points = [np.zeros((self.grid.repetitions, 8 * n + 1)) for _ in group]
        weight = self.resampling.of_repetitions(self.grid.repetitions)
        for repetition in range(self.grid.repetitions):
            parts = [np.zeros_like(each) for each in totals]
            for number, keys in enumerate(self.blocks):
                products = self._products(WorkBlock(repetition, logger, number), group, self.resampling.of_users(keys))
                for at, product in enumerate(products):
                    parts[at] += product
            for at, part in enumerate(parts):
                points[at][repetition] = part[0]
                totals[at] += weight[:, repetition, None] * part
        return [_Sums(total, point, n) for total, point in zip(totals, points, strict=True)]

    def _products(self, block: WorkBlock, group: tuple[int, ...], weight: Floats) -> Iterator[Floats]:
        """The sums of a block in every resample, for each metric; each is to be used before the next is made."""
        n = int(np.prod(self.shape))
        first: dict[str, Any] = {}
        product = np.zeros(0)
        for metric in group:
            figures = self.folder.read_figures(block, str(self.grid.metrics[metric]), self.shape)
            apart = () if self.grid.by_rounded else (EQUAL,)
            if first and all(np.array_equal(figures[each], first[each]) for each in figures if each not in apart):
                # made already, up to what rounding does
                product[:, n : 2 * n] = weight @ figures[EQUAL].reshape(-1, n).astype(np.float64)
            else:
                first, product = (
                    figures,
                    _product(weight, *_columns(figures, self.n_pairs, by_rounded=self.grid.by_rounded)),
                )
            yield product

    def _figures(self, question: str, users: _Sums) -> dict[str, Floats]:
        """A question's columns: value and interval, the share undefined, the same with undefined as 0."""
        unit = UNIT if question in TAUS else 1 / self.n_pairs
        value, defined = users.of(QUESTIONS.index(question)), users.defined(question)
        everyone = users.total[:, -1:]
        mean, zero = _ratio(value, defined) * unit, _ratio(value, everyone) * unit
        low, high = quantiles(mean[1:], self.resampling.level)
        if users.point[:, -1].max(initial=0) < LEAST_USERS:
            low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
        low_zero, high_zero = low.copy(), high.copy()
        other = np.flatnonzero((defined != everyone).any(axis=0))
        if len(other) and not np.isnan(low).all():
            low_zero[other], high_zero[other] = quantiles(zero[1:, other], self.resampling.level)
        each = _ratio(users.points_of(QUESTIONS.index(question)), users.points_defined(question)) * unit
        return {  # rows are copied: a view in a table would keep all resamples in memory
            "value": mean[0].copy(),
            "low": low,
            "high": high,
            "undefined": 1 - _ratio(defined, everyone)[0],
            "value_undefined_as_0": zero[0].copy(),
            "low_undefined_as_0": low_zero,
            "high_undefined_as_0": high_zero,
            "sd_between_repetitions": each.std(axis=0, ddof=1) if len(each) > 1 else np.full(each.shape[1], np.nan),
        }

    def _sums(self, logger: int, metric: int, repetition: int) -> GroupSums:
        """Sums of values over the users of each group."""
        name, shape = str(self.grid.metrics[metric]), (*self.shape, len(self.models))
        sums, users = np.zeros((self.n_groups, *shape), dtype=np.int64), np.zeros(self.n_groups, dtype=np.int64)
        for number in range(len(self.blocks)):
            first, part = self.folder.read_sums(WorkBlock(repetition, logger, number), name, shape)
            sums[first : first + len(part.sums)] += part.sums
            users[first : first + len(part.users)] += part.users
        return GroupSums(sums, users)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Columns: five questions, defined τ of the last three, each [sparsities x candidates]; then users with a value."""

    total: Floats  # of each resample
    point: Floats  # of each repetition
    n: int

    def of(self, at: int) -> Floats:
        return self.total[:, at * self.n : (at + 1) * self.n]

    def same_as(self, other: _Sums) -> bool:
        """Whether all but what rounding does is the same."""
        kept = np.delete(np.arange(self.total.shape[1]), slice(self.n, 2 * self.n))
        both = ((self.total, other.total), (self.point, other.point))
        return all(np.array_equal(mine[:, kept], its[:, kept]) for mine, its in both)

    def points_of(self, at: int) -> Floats:
        return self.point[:, at * self.n : (at + 1) * self.n]

    def defined(self, question: str) -> Floats:
        return self.of(5 + TAUS.index(question)) if question in TAUS else self.total[:, -1:].repeat(self.n, axis=1)

    def points_defined(self, question: str) -> Floats:
        return self.points_of(5 + TAUS.index(question)) if question in TAUS else self.point[:, -1:]


def _columns(
    figures: dict[str, Any], n_pairs: int, *, by_rounded: bool = False
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The values of each user, in units, and which τ are defined; a user without positives has zeros."""
    ties = figures["equal"]
    present = ties[:, 0, 0] >= 0
    flat = (len(ties), -1)
    values, known = [np.maximum(ties, 0).reshape(flat), figures["equal_rounded"].reshape(flat)], []
    tied = figures["equal_rounded"] if by_rounded else ties  # in the values that are compared
    for question in TAUS:
        tau, defined = tau_b(figures[question], tied, reference(question, tied), n_pairs=n_pairs)
        defined &= present[:, None, None]
        values.append(np.rint(np.where(defined, tau, 0.0) / UNIT).reshape(flat))
        known.append(defined.reshape(flat))
    return np.concatenate(values, axis=1).astype(np.float64), np.concatenate([*known, present[:, None]], axis=1)


def _product(weight: Floats, value: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """A block's sums in every resample; columns in which all users of the block are defined need no product."""
    n = value.shape[1]
    found = np.empty((len(weight), n + known.shape[1]))
    found[:, :n] = weight @ value
    found[:, n:] = weight.sum(axis=1)[:, None]
    some = np.flatnonzero(~known.all(axis=0))
    if len(some):
        found[:, n + some] -= weight @ (~known[:, some]).astype(np.float64)
    return found


def _ratio(num: Floats, den: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(den > 0, num / den, np.nan))


def runs(units: Ints, size: int) -> Iterator[Ints]:
    """Runs of that many users."""
    return (units[low : low + size] for low in range(0, len(units), size))
