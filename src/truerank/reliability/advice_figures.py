"""How well each way to choose candidates keeps the true order of models, for n users.

The order meant is that of the models' means over n users, as an evaluation reports it. In a scenario of a study a pair
of models differs by d on average, with a standard deviation of sd between users; its true difference (Full at
sparsity 0) has the sign s. Means over n users like those of the study, of models like those of the study, then have the
pair in the right order with probability Φ(s d √n / sd) (normal approximation), so Kendall's τ with the true order is
expected to be

    τ(n) = mean over pairs of 2 Φ(s d √n / sd) - 1.

A pair that the study itself cannot tell from a tie, |d| ≤ 1.96 sd / √users for Full at sparsity 0, has no known order:
it is left out, and counted. Noise goes away with n, a wrong sign of d does not: τ(∞) = mean of s · sign(d). That is
bias where the study tells d from 0 (`Figures.wrong`), and may be its own noise where it does not. Models that are half
as far apart need four times as many users: τ(n / 4) is what to expect of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.special import ndtr
from truerank.reliability.studied import FULL, QUESTIONS, Between, Candidates, PairTable, Studied

Z = 1.959963984540054  # of intervals of 95 %


def named(sampler: str, size: int | None) -> str:
    """A way to choose candidates in words.

    >>> named("Random", 1), named("Random", 1000), named("Full", None)
    ('Random, 1 negative', 'Random, 1,000 negatives', 'Full')
    """
    return sampler if size is None else f"{sampler}, {size:,} negative{'' if size == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to choose candidates, and what the study says of it for n users.

    `tau` is the expected Kendall τ of the order of means with the true one; `low` and `high` have every pair's
    difference at its own 95 % bound, all of them in the same direction: wide rather than narrow. `closer` is τ of
    models half as far apart, `limit` with endlessly many users, by the signs that the study found. The best model stays
    above all that are truly worse with a probability between `best_low` and `best_high` (Bonferroni, and the likeliest
    pair to be wrong). `per_user` is the mean τ-b of single users with what Full says at sparsity 0, undefined as 0,
    with its interval; `ties` the share of pairs of models that tie. `negatives` is what an evaluation ranks per user,
    beside the positives.
    """

    sampler: str
    size: int | None
    negatives: float
    tau: float
    low: float
    high: float
    closer: float
    limit: float
    best_low: float
    best_high: float
    per_user: float
    per_user_low: float
    per_user_high: float
    undefined: float
    ties: float

    @property
    def name(self) -> str:
        return named(self.sampler, self.size)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A pair that a choice orders wrongly however many users there are: truly `better` is better, by `true`."""

    better: str
    worse: str
    true: float
    difference: float


def expected_tau(difference: Floats, sd: Floats, sign: Floats, *, users: float) -> Floats:
    """τ(n) of each row of differences [candidates x pairs], by the formula above; inf users give τ(∞).

    A pair that ties for every user (difference and sd 0) counts 0; one that never varies counts 1 or -1.

    >>> expected_tau(np.array([[0.1, 0.1]]), np.array([[1.0, 1.0]]), np.array([1.0, -1.0]), users=100).tolist()
    [0.0]
    >>> round(float(expected_tau(np.array([[0.1]]), np.array([[1.0]]), np.array([1.0]), users=100)[0]), 4)  # 2 Φ(1) - 1
    0.6827
    """
    return np.asarray((2 * ndtr(_z(difference, sd, sign, users=users)) - 1).mean(axis=1))


def _z(difference: Floats, sd: Floats, sign: Floats, *, users: float) -> Floats:
    right = sign * difference
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(right == 0, 0.0, right / sd * math.sqrt(users))
    return np.where(np.isnan(sd), np.nan, z)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a study found with one metric for logs of one logger at one sparsity."""

    table: PairTable
    true: Floats  # difference of each pair, Full at sparsity 0
    decided: Bools
    users: float
    results: Mapping[Candidates, Mapping[str, float]]
    metric: str

    @classmethod
    def of(cls, studied: Studied, logger: str, between: Between, *, metric: str) -> Figures:
        here = (pl.col("logger") == logger) & (pl.col("metric") == metric)
        pairs, results = studied.pairs.filter(here), studied.results.filter(here)
        tables = {
            level: PairTable.of(pairs.filter(pl.col("sparsity") == level)) for level in {0.0, between.low, between.high}
        }
        truth = tables[0.0]
        full = truth.at((FULL, None))
        true, users = truth.difference[full], float(truth.users[full].min())
        decided = np.abs(true) > Z * truth.sd[full] / math.sqrt(users)
        mixed = tables[between.low].mixed(tables[between.high], between)
        return cls(mixed, true, decided, users, _per_user(results, between), metric)

    @property
    def able(self) -> bool:
        return bool(self.decided.any())

    @property
    def undecided(self) -> tuple[tuple[str, str], ...]:
        return tuple(each for each, known in zip(self.table.pairs, self.decided, strict=True) if not known)

    def _decided(self) -> tuple[Floats, Floats, Floats, Floats]:
        """(difference, sd, error of the difference, true sign) of the pairs that have an order."""
        if not self.able:
            raise RefusedError(
                f"by {self.metric} the study cannot tell any two of its models apart, so there is no true order to "
                "keep. Study models that differ more, more users, or another metric."
            )
        table, kept = self.table, self.decided
        error = table.sd[:, kept] / np.sqrt(table.users[:, kept])
        return table.difference[:, kept], table.sd[:, kept], error, np.sign(self.true[kept])

    def taus(self, users: float) -> Floats:
        difference, sd, _, sign = self._decided()
        return expected_tau(difference, sd, sign, users=users)

    def choices(self, users: int, cost: Mapping[str, float]) -> list[Choice]:
        """Every way to choose candidates, the best expected τ first; among equal ones the cheaper."""
        difference, sd, error, sign = self._decided()
        tau, limit, closer = self.taus(users), self.taus(math.inf), self.taus(users / 4)
        low, high = (expected_tau(difference + side * Z * error * sign, sd, sign, users=users) for side in (-1, 1))
        best_low, best_high = self._best(users)
        found = []
        for at, (sampler, size) in enumerate(self.table.candidates):
            if math.isnan(tau[at]):
                continue
            negatives = (
                cost["pool"] if sampler == FULL else cost["exposed"] if size is None else min(size, cost["pool"])
            )
            found.append(
                Choice(
                    sampler, size, float(negatives), float(tau[at]), float(low[at]), float(high[at]),
                    float(closer[at]), float(limit[at]), float(best_low[at]), float(best_high[at]),
                    **self.results[sampler, size],
                )
            )  # fmt: skip
        if not found:
            raise InputError(f"by {self.metric} the study has no figures: it needs at least two users with a positive.")
        return sorted(found, key=lambda each: (-each.tau, each.negatives))

    def _best(self, users: int) -> tuple[Floats, Floats]:
        """Bounds of the probability that the truly best model comes out above all that are truly worse.

        1 - Σ_j (1 - Φ(z_j)) and min_j Φ(z_j) over the models j that the study tells from the best.
        """
        model = self._best_model()
        at = [p for p, pair in enumerate(self.table.pairs) if self.decided[p] and model in pair]
        table = self.table
        right = ndtr(_z(table.difference[:, at], table.sd[:, at], np.sign(self.true[at]), users=users))
        if not at:
            return np.full(len(right), math.nan), np.full(len(right), math.nan)
        return np.maximum(0.0, 1 - (1 - right).sum(axis=1)), right.min(axis=1)

    def _best_model(self) -> str:
        """The one with the highest true mean: the sum of differences with all others is the largest."""
        total: dict[str, float] = {}
        for (model, other), difference in zip(self.table.pairs, self.true.tolist(), strict=True):
            total[model] = total.get(model, 0.0) + difference
            total[other] = total.get(other, 0.0) - difference
        return max(total, key=lambda name: total[name])

    def wrong(self, candidates: Candidates) -> tuple[Wrong, ...]:
        """Pairs whose difference has the wrong sign and is told from 0 by the study, the largest true one first."""
        at = self.table.at(candidates)
        difference, error = self.table.difference[at], self.table.sd[at] / np.sqrt(self.table.users[at])
        found = []
        for p in np.flatnonzero(self.decided & (difference * self.true < 0) & (np.abs(difference) > Z * error)):
            pair, sign = self.table.pairs[p], 1 if self.true[p] > 0 else -1
            better, worse = pair[::sign]
            found.append(Wrong(better, worse, float(sign * self.true[p]), float(sign * difference[p])))
        return tuple(sorted(found, key=lambda each: -each.true))


_PER_USER = {
    "per_user": "value_undefined_as_0",
    "per_user_low": "low_undefined_as_0",
    "per_user_high": "high_undefined_as_0",
    "undefined": "undefined",
}


def _per_user(results: pl.DataFrame, between: Between) -> dict[Candidates, dict[str, float]]:
    """The figures of single users, linear between two levels; of endpoints too, which is a little wide."""
    found: dict[float, dict[Candidates, dict[str, float]]] = {}
    for level in {between.low, between.high}:
        here = results.filter(pl.col("sparsity") == level)
        ties, power = (here.filter(pl.col("question") == each) for each in QUESTIONS)
        of_ties = {(row["sampler"], row["size"]): row["value"] for row in ties.iter_rows(named=True)}
        found[level] = {
            (row["sampler"], row["size"]): {name: row[column] for name, column in _PER_USER.items()}
            | {"ties": of_ties[row["sampler"], row["size"]]}
            for row in power.iter_rows(named=True)
        }
    low, high = found[between.low], found[between.high]
    return {
        key: {name: between.number(figures[name], high[key][name]) for name in figures} for key, figures in low.items()
    }
