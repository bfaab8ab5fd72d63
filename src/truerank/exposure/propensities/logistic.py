"""Logistic regression on features of users and items."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.errors import InputError, extra
from truerank.core.estimator import Groups, Learned
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, JudgedChunk, Pool
from truerank.core.record import record
from truerank.core.rng import cell_keys, cell_uniforms
from truerank.core.values import Positive
from truerank.core.wording import option
from truerank.exposure.propensities import PropensityLearner, PropensityModel, check_propensity, n_cells
from truerank.io.features import Features

MOST_CELLS = 400_000  # of each class; more are drawn from at random and weighted


@record
class Logistic(PropensityModel):
    """P(O=1 | u, i) = σ(a + b·x_u + c·x_i), fitted to the pairs that are in the log and those that are not.

    Features are standardised; the penalty is |b, c|² / (2 strength), as scikit-learn's C. Of many pairs of a class some
    are drawn, keyed by seed and user, and weighted (a case-control sample). Assumed: exposure depends on these features
    alone, additively on the logit scale.

    >>> str(Logistic()), str(Logistic(0.1))
    ('logistic', 'logistic:0.1')
    """

    strength: Positive = 1.0

    name: ClassVar[str] = "logistic"
    positional: ClassVar[tuple[str, ...]] = ("strength",)
    uses: ClassVar[frozenset[str]] = frozenset({"user_features", "item_features"})

    def tally(self, chunk: JudgedChunk, *, learner: PropensityLearner, groups: Groups, learned: Learned) -> PairSample:
        if learner.user_features is None and learner.item_features is None:
            raise InputError(
                "propensity logistic: no features; it needs a table of features of users or items. "
                f"Give one: {option('user_features FILE')}, {option('item_features FILE')}."
            )
        log, candidates = chunk.labels, chunk.pools[Pool.CATALOGUE]
        pairs, n = Pairs.of(log.user, log.item, n_units=log.n_units), n_cells(log, candidates)
        share = MOST_CELLS / max(learned.facts["n_cells"], 1.0)
        shown = _observed(log, pairs, n_observed=float(learned.facts["n_rows"]), seed=learner.seed)
        others = _unobserved(log, pairs, candidates, n, share=share, seed=learner.seed)
        user, item, weight = (np.concatenate(both) for both in zip(shown, others, strict=True))
        group = groups.at(log.users.keys())
        cells = pl.DataFrame(
            {
                "key": log.users.keys()[user],
                "item": item,
                "user_row": _rows_of(learner.user_features, log.users, user),
                "item_row": _rows_of(learner.item_features, log.items, item),
                "unobserved": np.arange(len(user)) >= len(shown[0]),
                "weight": weight,
                "group": group[user],
            }
        )
        sizes = np.stack([sums_by(group, values, n=len(groups)) for values in (pairs.count, n)])
        return PairSample(cells, sizes, log.source)

    def fit(self, tally: PairSample, *, learner: PropensityLearner) -> LogisticFit:
        n_observed, n = (float(total) for total in tally.sizes.sum(axis=1))
        if n_observed == 0:
            raise InputError(f"{tally.source}: no rows to fit propensities to.")
        if n_observed >= n:
            raise InputError(
                f"{tally.source}: every candidate is in the log, so there is no exposure to model: all propensities "
                "are 1. Use full exposure."
            )
        # in the order of ids: the same whatever the chunks were
        cells = tally.cells.sort("unobserved", "key", "item", maintain_order=True)
        user_row, item_row, unobserved = (cells[name].to_numpy() for name in ("user_row", "item_row", "unobserved"))
        of_user, of_item = Standard.of(learner.user_features, user_row), Standard.of(learner.item_features, item_row)
        if not of_user.names and not of_item.names:
            raise InputError("propensity logistic: every feature has one value only; there is nothing to learn from.")
        if unobserved.all() or not unobserved.any():
            raise InputError(
                f"{tally.source}: the pairs that were drawn are all in the log or none is; fit to more users."
            )
        others = int(np.count_nonzero(unobserved))
        shown = len(cells) - others
        note = f"{shown:,} pairs of the log and {others:,} others"
        if shown < n_observed or n - n_observed > others:
            note += f", drawn from {int(n_observed):,} and {int(n - n_observed):,} and weighted"
        x = np.column_stack([of_user.value[user_row], of_item.value[item_row]])
        beta = _optimum(x, ~unobserved, cells["weight"].to_numpy(), strength=self.strength)
        return LogisticFit(self, beta, of_user, of_item, note)


@record(eq=False)
class PairSample:
    """Pairs to learn from: whether they are in the log, how many each represents, where their features are.

    `cells` has a row for each, with the `key` of its user; `sizes` [2 x groups] count the pairs of the log and the
    candidates.
    """

    cells: pl.DataFrame
    sizes: Floats
    source: str

    def __add__(self, more: PairSample) -> PairSample:
        return PairSample(pl.concat([self.cells, more.cells]), self.sizes + more.sizes, self.source)

    def without(self, group: int | None) -> PairSample:
        if group is None:
            return self
        cells = self.cells.filter(pl.col("group") != group)
        return PairSample(cells, np.delete(self.sizes, group, axis=1), self.source)


@record(eq=False)
class Standard:
    """A table of features with mean 0 and variance 1 over the ids that occurred; columns that do not vary are left out.

    Without features every id has the one row of none.
    """

    features: Features | None
    value: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, features: Features | None, used: Ints) -> Standard:
        if features is None:
            return cls(None, np.zeros((1, 0)), ())
        present = features.value[np.unique(used)]
        mean, spread = present.mean(axis=0), present.std(axis=0)
        varies = spread > 1e-12
        scaled = (features.value[:, varies] - mean[varies]) / spread[varies]
        return cls(features, frozen(scaled), tuple(np.array(features.names)[varies].tolist()))

    def effect(self, ids: Ids, used: Ints, beta: Floats) -> Floats:
        """x·beta for each used position of these ids; the same bits whatever else is computed."""
        x = self.value[_rows_of(self.features, ids, used)]
        total = np.zeros(len(used))
        for column, coefficient in zip(x.T, beta, strict=True):
            total += column * coefficient
        return total


@record(eq=False)
class LogisticFit:
    """The optimum, and the standardised features."""

    model: Logistic
    beta: Floats
    of_user: Standard
    of_item: Standard
    note: str

    @property
    def description(self) -> str:
        names = (*self.of_user.names, *self.of_item.names)
        return (
            f"propensities are a logistic regression on {len(names):,} features of users and items "
            f"({self.note}): exposure depends on them alone"
        )

    def at(self, cells: Log) -> Floats:
        """Pairs of users and items that have features."""
        from truerank.core.special import expit

        split = 1 + len(self.of_user.names)
        users, user = np.unique(cells.user, return_inverse=True)
        items, item = np.unique(cells.item, return_inverse=True)
        of_user = self.beta[0] + self.of_user.effect(cells.users, users, self.beta[1:split])
        of_item = self.of_item.effect(cells.items, items, self.beta[split:])
        value = np.asarray(expit(of_user[user] + of_item[item]), dtype=np.float64)
        return check_propensity(value, cells, what="the fitted propensity", advice="Clip it, or use fewer features.")


def _rows_of(features: Features | None, ids: Ids, used: Ints) -> Ints:
    """The row of features of each used position of ids."""
    if features is None:
        return np.zeros(len(used), dtype=np.int64)
    return features.rows_of(ids, used=np.unique(used))[used]


def _observed(log: Log, pairs: Pairs, *, n_observed: float, seed: int) -> tuple[Ints, Ints, Floats]:
    """Pairs of the log, and how many each stands for: all of them, or each with the same probability."""
    keys = log.users.keys()[pairs.unit], log.items.keys()[pairs.item]
    rate = min(1.0, MOST_CELLS / n_observed) if n_observed > 0 else 1.0
    drawn = cell_uniforms(seed, "propensity observed pairs", *keys) < rate
    return pairs.unit[drawn], pairs.item[drawn], np.full(int(drawn.sum()), 1 / rate)


def _unobserved(
    log: Log, pairs: Pairs, candidates: Candidates, n: Floats, *, share: float, seed: int
) -> tuple[Ints, Ints, Floats]:
    """Candidates that are not in the log, and how many each stands for.

    Of too many, m_u of the N_u places of a user are drawn with replacement, and those in the log are thrown away; each
    kept one stands for N_u / m_u, so sums over the kept are unbiased for sums over all.
    """
    parts: list[tuple[Ints, Ints, Floats]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    user_key, everything = log.users.keys(), np.arange(len(log.items))
    for number in np.flatnonzero(n > 0).tolist():
        pool = everything if candidates.only is None else candidates.only.of_unit(number)
        if candidates.exclude is not None:
            pool = np.setdiff1d(pool, candidates.exclude.of_unit(number), assume_unique=True)
        represented = 1.0
        if share < 1:
            m = max(1, round(share * len(pool)))
            key = cell_keys(seed, "propensity other pairs", np.full(m, user_key[number]), np.arange(m, dtype=np.uint64))
            represented = len(pool) / m
            pool = pool[(key % np.uint64(len(pool))).astype(np.int64)]
        pool = pool[~np.isin(pool, pairs.of_unit(number))]
        parts.append((np.full(len(pool), number), pool, np.full(len(pool), represented)))
    user, item, weight = map(np.concatenate, zip(*parts, strict=True))
    return user, item, weight


def _optimum(x: Floats, observed: Bools, weight: Floats, *, strength: float) -> Floats:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(f"propensity logistic needs scikit-learn: pip install {extra('models')}.") from None
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10, max_iter=200)
    model.fit(x, observed.astype(np.float64), sample_weight=weight)
    return frozen(np.concatenate([model.intercept_, model.coef_[0]]))
