"""From what was counted per user to tables with intervals.

Intervals redraw users, and with several repetitions also repetitions (Owen's crossed bootstrap, 2007, a little wide
rather than narrow): the weight of a user in a resample is Poisson with mean 1, keyed by (seed, resample, user), so a
block of users adds its product [resamples x users] · [users x values] and no weight is kept. All values are whole
multiples of 2^-30 (τ is rounded to that), so sums are exact and the same bits in any order and any division in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.arrays import Floats, Ints
from truerank.chance import cell_uniforms, generator
from truerank.ids import Keys
from truerank.studies.reliability.folder import Block, Folder
from truerank.studies.reliability.grid import Grid
from truerank.studies.reliability.scenarios import FIGURES

UNIT = 2.0**-30
QUESTIONS = ("resolution", "resolution_rounded", "fidelity", "robustness", "predictive_power")
TAUS = QUESTIONS[2:]
ROUNDED, EQUAL = QUESTIONS[1], FIGURES[1]
_POISSON = np.cumsum([exp(-1) / factorial(k) for k in range(20)])


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many resamples, of which level intervals are, and the chance behind them."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0

    def of_users(self, key: Keys) -> Floats:
        """How often each user counts, [1 + resamples x users]; row 0 is the data itself.

        >>> Resampling(3).of_users(np.arange(4, dtype=np.uint64))[0].tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        number = np.arange(1, self.resamples + 1, dtype=np.uint64)
        chance = cell_uniforms(self.seed, "resample users", key[None, :], number[:, None])
        return np.concatenate([np.ones((1, len(key))), np.searchsorted(_POISSON, chance, side="right")])

    def of_repetitions(self, n: int) -> Floats:
        """How often each of n repetitions counts; once each where there is only one."""
        drawn = np.ones((self.resamples + 1, n))
        if n > 1:
            drawn[1:] = generator(self.seed, "resample repetitions").multinomial(n, [1 / n] * n, size=self.resamples)
        return drawn


@dataclass(frozen=True, slots=True)
class Summary:
    """All that turns the blocks of a study into its tables."""

    folder: Folder
    grid: Grid
    models: tuple[str, ...]
    blocks: tuple[Keys, ...]  # the keys of the users of each block
    scale: float
    table_of: Ints  # which table of worth each metric has
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

    def of(self, logger: int, group: tuple[int, ...]) -> dict[int, tuple[pl.DataFrame, pl.DataFrame]]:
        """(results, means) of one logger and each metric of a group."""
        found: dict[int, tuple[pl.DataFrame, pl.DataFrame]] = {}
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
            sums = self._sums(logger, metric)
            axes = self._axes(logger, metric)
            results = [
                axes.with_columns(pl.lit(question).alias("question"), **figures[-1][question]).with_columns(
                    **self._of_means(question, sums),
                    users=pl.lit(int(each.point[:, -1].max(initial=0))),
                    repetitions=pl.lit(self.grid.repetitions),
                )
                for question in QUESTIONS
            ]
            n_users = each.point[:, -1].sum()
            mean = sums.sum(axis=0) / self.scale / n_users if n_users else np.full(sums.shape[1:], np.nan)
            means = [
                axes.with_columns(model=pl.lit(name), mean=mean[..., m].ravel()) for m, name in enumerate(self.models)
            ]
            found[metric] = pl.concat(results), pl.concat(means)
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
                products = self._products(Block(repetition, logger, number), group, self.resampling.of_users(keys))
                for at, product in enumerate(products):
                    parts[at] += product
            for at, part in enumerate(parts):
                points[at][repetition] = part[0]
                totals[at] += weight[:, repetition, None] * part
        return [_Sums(total, point, n) for total, point in zip(totals, points, strict=True)]

    def _products(self, block: Block, group: tuple[int, ...], weight: Floats) -> Iterator[Floats]:
        """The sums of a block in every resample, for each metric; each is to be used before the next is made."""
        n = int(np.prod(self.shape))
        first: dict[str, Any] = {}
        product = np.zeros(0)
        for metric in group:
            figures = self.folder.read_figures(block, str(self.grid.metrics[metric]), self.shape)
            if first and all(np.array_equal(figures[each], first[each]) for each in figures if each != EQUAL):
                # made already, up to what rounding does
                product[:, n : 2 * n] = weight @ figures[EQUAL].reshape(-1, n).astype(np.float64)
            else:
                first, product = figures, _product(weight, *_columns(figures, self.n_pairs))
            yield product

    def _figures(self, question: str, users: _Sums) -> dict[str, Floats]:
        """A question's columns: value and interval, the share undefined, the same with undefined as 0."""
        unit = UNIT if question in TAUS else 1 / self.n_pairs
        value, defined = users.of(QUESTIONS.index(question)), users.defined(question)
        everyone = users.total[:, -1:]
        mean, zero = _ratio(value, defined) * unit, _ratio(value, everyone) * unit
        low, high = _quantiles(mean[1:], self.resampling.level)
        low_zero, high_zero = low.copy(), high.copy()
        other = np.flatnonzero((defined != everyone).any(axis=0))
        if len(other):
            low_zero[other], high_zero[other] = _quantiles(zero[1:, other], self.resampling.level)
        each = _ratio(users.points_of(QUESTIONS.index(question)), users.points_defined(question)) * unit
        return {
            "value": mean[0],
            "low": low,
            "high": high,
            "undefined": 1 - _ratio(defined, everyone)[0],
            "value_undefined_as_0": zero[0],
            "low_undefined_as_0": low_zero,
            "high_undefined_as_0": high_zero,
            "sd_between_repetitions": each.std(axis=0, ddof=1) if len(each) > 1 else np.full(each.shape[1], np.nan),
        }

    def _sums(self, logger: int, metric: int) -> Ints:
        """Sums of values over users, [repetitions x sparsities x candidates x models]."""
        shape = (*self.shape, len(self.models))
        name = str(self.grid.metrics[metric])
        found = np.zeros((self.grid.repetitions, *shape), dtype=np.int64)
        for repetition in range(self.grid.repetitions):
            for number in range(len(self.blocks)):
                found[repetition] += self.folder.read_sums(Block(repetition, logger, number), name, shape)
        return found

    def _of_means(self, question: str, sums: Ints) -> dict[str, Floats]:
        """Kendall's τ-b of the models' means with the reference's: its mean over repetitions, and its spread."""
        n = int(np.prod(self.shape))
        if question not in TAUS:
            return {"tau_of_means": np.full(n, np.nan), "tau_of_means_sd": np.full(n, np.nan)}
        first, second = np.triu_indices(len(self.models), 1)
        difference = sums[..., first] - sums[..., second]
        # each value was rounded to a whole unit: what differs by less than a unit per user may be equal
        rounding = sum(map(len, self.blocks))
        sign = np.where(np.abs(difference) <= rounding, 0, np.sign(difference))
        other = _reference(question, sign)
        ties, other_ties = (sign == 0).sum(axis=-1), (other == 0).sum(axis=-1)
        tau, _ = tau_b((sign * other).sum(axis=-1), ties, other_ties, n_pairs=self.n_pairs)
        flat = tau.reshape(len(sums), n)
        spread = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(n, np.nan)
        return {"tau_of_means": flat.mean(axis=0), "tau_of_means_sd": spread}


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


def tau_b(agreement: Any, ties: Any, other_ties: Any, *, n_pairs: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Kendall's τ-b from counts of pairs, and where it is defined: both have pairs that differ (NaN elsewhere).

    τ_b = (concordant - discordant) / √((pairs - ties) (pairs - ties of the other)) (Kendall 1945).

    >>> tau_b(np.array([1, 0]), np.array([1, 3]), np.array([0, 0]), n_pairs=3)[0].round(4).tolist()
    [0.4082, nan]
    """
    size = (n_pairs - ties.astype(np.float64)) * (n_pairs - other_ties.astype(np.float64))
    defined = size > 0
    return np.where(defined, agreement / np.sqrt(np.where(defined, size, 1.0)), np.nan), defined


def _reference(question: str, figure: Any) -> Any:
    """The figure of what a question compares with, of [..., sparsities, candidates, (pairs)]; Full and 0 are first."""
    if question == "fidelity":
        return figure[:, :, :1]
    return figure[:, :1] if question == "robustness" else figure[:, :1, :1]


def _columns(figures: dict[str, Any], n_pairs: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The values of each user, in units, and which τ are defined; a user without positives has zeros."""
    ties = figures["equal"]
    present = ties[:, 0, 0] >= 0
    flat = (len(ties), -1)
    values, known = [np.maximum(ties, 0).reshape(flat), figures["equal_rounded"].reshape(flat)], []
    for question in TAUS:
        tau, defined = tau_b(figures[question], ties, _reference(question, ties), n_pairs=n_pairs)
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


def _quantiles(values: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentiles of each column, leaving out resamples in which nothing was defined."""
    asked = [(1 - level) / 2, (1 + level) / 2]
    known = ~np.isnan(values)
    found = np.full((2, values.shape[1]), np.nan)
    whole = known.all(axis=0)
    if whole.any():
        found[:, whole] = np.quantile(values[:, whole], asked, axis=0)
    for at in np.flatnonzero(~whole & (known.sum(axis=0) > 1)):
        found[:, at] = np.quantile(values[known[:, at], at], asked)
    return found[0], found[1]


def runs(units: Ints, size: int) -> Iterator[Ints]:
    """Runs of that many users."""
    return (units[low : low + size] for low in range(0, len(units), size))
