"""How well each way to choose candidates keeps the true order of models, for n users.

The order meant is that of the models' means over n users, as an evaluation reports it. In a scenario of a study a pair
of models differs by d on average, with a standard deviation of sd between users; its true difference (Full at
sparsity 0) has the sign s. Means over n users like those of the study, of models like those of the study, then have the
pair in the right order with probability Φ(s d √n / sd) (normal approximation), so Kendall's τ with the true order is
expected to be

    τ(n) = mean over pairs of 2 Φ(s d √n / sd) - 1.

A pair that the study itself cannot tell from a tie, |d| ≤ 1.96 sd / √users for Full at sparsity 0, has no known order:
it is excluded, and counted. Noise goes away with n, a wrong sign of d does not: τ(∞) = mean of s · sign(d). That is
bias where the study tells d from 0 (`PairFigures.reversed`), and may be its noise where it does not. Models that are
half as far apart need four times as many users: τ(n / 4) is what to expect of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.record import record
from truerank.core.special import ndtr
from truerank.reliability.studied import FULL, QUESTIONS, Candidates, FinishedStudy, Interpolation

Z = 1.959963984540054  # of intervals of 95 %


def candidates_text(sampler: str, size: int | None) -> str:
    """A way to choose candidates in words.

    >>> candidates_text("Random", 1), candidates_text("Random", 1000), candidates_text("Full", None)
    ('Random, 1 negative', 'Random, 1,000 negatives', 'Full')
    """
    return sampler if size is None else f"{sampler}, {size:,} negative{'' if size == 1 else 's'}"


@record
class Choice:
    """A way to choose candidates, and its figures in the study for n users.

    `tau` is the expected Kendall τ of the order of means with the true one; `low` and `high` have every pair's
    difference at its 95 % bound, all of them in the same direction: wide rather than narrow. `closer` is τ of models
    half as far apart, `limit` with endlessly many users, by the signs in the study. The best model stays above all that
    are truly worse with a probability between `best_low` and `best_high` (Bonferroni, and the likeliest pair to be
    wrong). `per_user` is the mean τ-b of single users with Full at sparsity 0, undefined as 0, with its interval;
    `ties` the share of pairs of models that tie. `negatives` is what an evaluation ranks per user, besides positives.
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
        return candidates_text(self.sampler, self.size)


@record
class ReversedPair:
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
    return np.asarray((2 * _right_order(difference, sd, sign, users=users) - 1).mean(axis=1))


def _right_order(difference: Floats, sd: Floats, sign: Floats, *, users: float) -> Floats:
    """The probability of each pair to come out in the right order."""
    right = sign * difference
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(right == 0, 0.0, right / sd * math.sqrt(users))
    return np.asarray(ndtr(np.where(np.isnan(sd), np.nan, z)))


@record
class PairFigures:
    """Differences of models by one metric for logs of one logging policy at one sparsity: mean and standard deviation
    between users [candidates x pairs], and the true difference of each pair.
    """

    metric: str
    candidates: list[Candidates]
    pairs: list[tuple[str, str]]
    difference: Floats
    sd: Floats
    true: Floats
    decided: Bools
    users: float
    per_user: Mapping[Candidates, Mapping[str, float]]

    @classmethod
    def of(cls, study: FinishedStudy, logger: str, between: Interpolation, *, metric: str) -> PairFigures:
        here = (pl.col("logger") == logger) & (pl.col("metric") == metric)
        pairs, results = study.pairs.filter(here), between.rows(study.results.filter(here))
        truth = pairs.filter(pl.col("sparsity") == 0, pl.col("sampler") == FULL)
        true, users = truth["difference"].to_numpy(), float(truth["users"].to_numpy().min())
        mixed, n_pairs = between.rows(pairs), len(true)
        difference, sd = (mixed[name].to_numpy().reshape(n_pairs, -1).T for name in ("difference", "sd"))
        ties, power = (results.filter(pl.col("question") == question) for question in QUESTIONS)
        columns = {"per_user": "value_undefined_as_0", "per_user_low": "low_undefined_as_0",
                   "per_user_high": "high_undefined_as_0", "undefined": "undefined"}  # fmt: skip
        figures = power.select("sampler", "size", **columns).with_columns(ties=ties["value"])
        return cls(
            metric,
            list(mixed.select("sampler", "size").head(len(difference)).iter_rows()),
            list(truth.select("model", "other").iter_rows()),
            difference,
            sd,
            true,
            np.abs(true) > Z * truth["sd"].to_numpy() / math.sqrt(users),
            users,
            {row[:2]: dict(zip(figures.columns[2:], row[2:], strict=True)) for row in figures.iter_rows()},
        )

    def taus(self, users: float, *, errors: float = 0.0) -> Floats:
        """Expected τ of all candidates, with every difference so many standard errors better than it is."""
        if not self.decided.any():
            raise RefusedError(
                f"by {self.metric} the study cannot tell any two of its models apart, so there is no true order to "
                "keep. Study models that differ more, more users, or another metric."
            )
        sd, sign = self.sd[:, self.decided], np.sign(self.true[self.decided])
        better = errors * (sd / np.sqrt(self.users)) * sign
        return expected_tau(self.difference[:, self.decided] + better, sd, sign, users=users)

    def choices(self, users: int, *, exposed: float, pool: float) -> list[Choice]:
        """Every way to choose candidates, the best expected τ first; among equal ones the cheaper.

        `exposed` negatives of a user are in the log, `pool` can be drawn.
        """
        columns = np.column_stack([
            self.taus(users), self.taus(users, errors=-Z), self.taus(users, errors=Z), self.taus(users / 4),
            self.taus(math.inf), *self._best_stays_best(users),
        ])  # fmt: skip
        choices = [
            Choice(
                sampler,
                size,
                float(pool if sampler == FULL else exposed if size is None else min(size, pool)),
                *row,
                **self.per_user[sampler, size],
            )
            for (sampler, size), row in zip(self.candidates, columns.tolist(), strict=True)
            if not math.isnan(row[0])
        ]
        if not choices:
            raise InputError(f"by {self.metric} the study has no figures: it needs at least two users with a positive.")
        return sorted(choices, key=lambda choice: (-choice.tau, choice.negatives))

    def _best_stays_best(self, users: int) -> tuple[Floats, Floats]:
        """Bounds of the probability that the truly best model comes out above all that are truly worse.

        1 - Σ_j (1 - Φ(z_j)) and min_j Φ(z_j) over the models j that the study tells from the best, which has the
        largest sum of differences with all others.
        """
        total = dict.fromkeys((name for pair in self.pairs for name in pair), 0.0)
        for (model, other), difference in zip(self.pairs, self.true.tolist(), strict=True):
            total[model] += difference
            total[other] -= difference
        best = max(total, key=lambda name: total[name])
        columns = [p for p, pair in enumerate(self.pairs) if self.decided[p] and best in pair]
        if not columns:
            return np.full(len(self.sd), math.nan), np.full(len(self.sd), math.nan)
        sign = np.sign(self.true[columns])
        right = _right_order(self.difference[:, columns], self.sd[:, columns], sign, users=users)
        return np.maximum(0.0, 1 - (1 - right).sum(axis=1)), right.min(axis=1)

    def reversed(self, candidates: Candidates) -> tuple[ReversedPair, ...]:
        """Pairs whose difference has the wrong sign and is told from 0 by the study, the largest true one first."""
        row = self.candidates.index(candidates)
        difference, error = self.difference[row], self.sd[row] / np.sqrt(self.users)
        wrong = self.decided & (difference * self.true < 0) & (np.abs(difference) > Z * error)
        pairs = []
        for p in np.flatnonzero(wrong):
            sign = 1 if self.true[p] > 0 else -1
            better, worse = self.pairs[p][::sign]
            pairs.append(ReversedPair(better, worse, float(sign * self.true[p]), float(sign * difference[p])))
        return tuple(sorted(pairs, key=lambda pair: -pair.true))
