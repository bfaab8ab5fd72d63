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

UNIT = 2.0**-30
QUESTIONS = ("resolution", "resolution_rounded", "fidelity", "robustness", "predictive_power")
TAUS = QUESTIONS[2:]
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
    resampling: Resampling

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.grid.sparsities), self.grid.n_candidates

    @property
    def n_pairs(self) -> int:
        return len(self.models) * (len(self.models) - 1) // 2

    def of(self, logger: int, metric: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """(results, means) of one logger and one metric."""
        sums = self._sums(logger, metric)
        users = self._users(logger, metric)
        frames = [
            self._question(question, users, logger=logger, metric=metric, of_means=self._of_means(question, sums))
            for question in QUESTIONS
        ]
        n_users = users.point[:, -1].sum()
        mean = sums.sum(axis=0) / self.scale / n_users if n_users else np.full(sums.shape[1:], np.nan)
        axes = self._axes(logger, metric)
        means = [axes.with_columns(model=pl.lit(name), mean=mean[..., m].ravel()) for m, name in enumerate(self.models)]
        return pl.concat(frames), pl.concat(means)

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

    def _users(self, logger: int, metric: int) -> _Sums:
        """Sums over users of every figure, in every resample."""
        n = int(np.prod(self.shape))
        total = np.zeros((self.resampling.resamples + 1, 8 * n + 1))
        weight = self.resampling.of_repetitions(self.grid.repetitions)
        point = np.zeros((self.grid.repetitions, 8 * n + 1))
        for repetition in range(self.grid.repetitions):
            part = np.zeros_like(total)
            for number, keys in enumerate(self.blocks):
                block = Block(repetition, logger, number)
                figures = self.folder.read_figures(block, str(self.grid.metrics[metric]), self.shape)
                _add(part, self.resampling.of_users(keys), _columns(figures, self.n_pairs))
            point[repetition] = part[0]
            total += weight[:, repetition, None] * part
        return _Sums(total, point, n)

    def _question(
        self, question: str, users: _Sums, *, logger: int, metric: int, of_means: tuple[Floats, Floats]
    ) -> pl.DataFrame:
        unit = UNIT if question in TAUS else 1 / self.n_pairs
        value, defined = users.of(QUESTIONS.index(question)), users.defined(question)
        everyone = users.total[:, -1:]
        mean, zero = _ratio(value, defined) * unit, _ratio(value, everyone) * unit
        low, high = _quantiles(mean[1:], self.resampling.level)
        zero_low, zero_high = _quantiles(zero[1:], self.resampling.level)
        each = _ratio(users.points_of(QUESTIONS.index(question)), users.points_defined(question)) * unit
        return self._axes(logger, metric).with_columns(
            pl.lit(question).alias("question"),
            value=mean[0],
            low=low,
            high=high,
            undefined=1 - _ratio(defined, everyone)[0],
            value_undefined_as_0=zero[0],
            low_undefined_as_0=zero_low,
            high_undefined_as_0=zero_high,
            sd_between_repetitions=each.std(axis=0, ddof=1) if len(each) > 1 else np.full(each.shape[1], np.nan),
            tau_of_means=of_means[0],
            tau_of_means_sd=of_means[1],
            users=pl.lit(int(users.point[:, -1].max(initial=0))),
            repetitions=pl.lit(self.grid.repetitions),
        )

    def _sums(self, logger: int, metric: int) -> Ints:
        """Sums of values over users, [repetitions x sparsities x candidates x models]."""
        shape = (*self.shape, len(self.models))
        name = str(self.grid.metrics[metric])
        found = np.zeros((self.grid.repetitions, *shape), dtype=np.int64)
        for repetition in range(self.grid.repetitions):
            for number in range(len(self.blocks)):
                found[repetition] += self.folder.read_sums(Block(repetition, logger, number), name, shape)
        return found

    def _of_means(self, question: str, sums: Ints) -> tuple[Floats, Floats]:
        """Kendall's τ-b of the models' means with the reference's: its mean over repetitions, and its spread."""
        n = int(np.prod(self.shape))
        if question not in TAUS:
            return np.full(n, np.nan), np.full(n, np.nan)
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
        return flat.mean(axis=0), spread


@dataclass(frozen=True, slots=True)
class _Sums:
    """Columns: five questions, defined τ of the last three, each [sparsities x candidates]; then users with a value."""

    total: Floats  # of each resample
    point: Floats  # of each repetition
    n: int

    def of(self, at: int) -> Floats:
        return self.total[:, at * self.n : (at + 1) * self.n]

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


def _add(total: Floats, weight: Floats, columns: tuple[Floats, npt.NDArray[np.bool_]]) -> None:
    """Add a block's product; columns in which all users of the block are defined need none."""
    value, known = columns
    n = value.shape[1]
    total[:, :n] += weight @ value
    some = np.flatnonzero(~known.all(axis=0))
    total[:, n:] += weight.sum(axis=1)[:, None]
    if len(some):
        total[:, n + some] -= weight @ (~known[:, some]).astype(np.float64)


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
