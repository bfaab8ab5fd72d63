"""Logistic regression on features of users and items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.chance import cell_keys, cell_uniforms
from truerank.core.errors import InputError, extra
from truerank.core.estimator import Groups, Learned
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, JudgedChunk, Pool
from truerank.core.values import Positive, check, text_of
from truerank.core.wording import option
from truerank.exposure.propensities import Fitted, PropensityLearner, check_propensity, n_cells
from truerank.io.features import Features

MOST_CELLS = 400_000  # of each class; more are drawn from at random and weighted


@dataclass(frozen=True, slots=True)
class Logistic:
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
    fitted: ClassVar[bool] = True
    scaled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self, where="propensity logistic")

    __str__ = text_of

    def tally(self, chunk: JudgedChunk, *, given: PropensityLearner, groups: Groups, learned: Learned) -> PairSample:
        if given.user_features is None and given.item_features is None:
            raise InputError(
                "propensity logistic: no features; it needs a table of features of users or items. "
                f"Give one: {option('user_features FILE')}, {option('item_features FILE')}."
            )
        log, candidates = chunk.labels, chunk.pools[Pool.CATALOGUE]
        pairs, n = Pairs.of(log.user, log.item, n_units=log.n_units), n_cells(log, candidates)
        shown = _observed(log, pairs, n_observed=float(learned.facts["n_rows"]), seed=given.seed)
        others = _unobserved(log, pairs, candidates, n, share=_share(learned.facts["n_cells"]), seed=given.seed)
        user, item, weight = (np.concatenate(both) for both in zip(shown, others, strict=True))
        key, group = log.users.keys(), groups.at(log.users.keys())
        return PairSample(
            key=key[user],
            item=item,
            user_row=_rows_of(given.user_features, log.users, user),
            item_row=_rows_of(given.item_features, log.items, item),
            observed=np.arange(len(user)) < len(shown[0]),
            weight=weight,
            group=group[user],
            n_observed=sums_by(group, pairs.count, n=len(groups)),
            n_cells=sums_by(group, n, n=len(groups)),
            source=log.source,
        )

    def fit(self, tally: PairSample, *, given: PropensityLearner) -> Fitted:
        cells = tally.sorted()
        n_observed, n = float(cells.n_observed.sum()), float(cells.n_cells.sum())
        if n_observed == 0:
            raise InputError(f"{cells.source}: no rows to fit propensities to.")
        if n_observed >= n:
            raise InputError(
                f"{cells.source}: every candidate is in the log, so there is no exposure to model: all propensities "
                "are 1. Use full exposure."
            )
        of_user = Standard.of(given.user_features, cells.user_row)
        of_item = Standard.of(given.item_features, cells.item_row)
        if not of_user.names and not of_item.names:
            raise InputError("propensity logistic: every feature has one value only; there is nothing to learn from.")
        shown = int(np.count_nonzero(cells.observed))
        note = f"{shown:,} pairs of the log and {len(cells.item) - shown:,} others"
        if shown < n_observed or n - n_observed > len(cells.item) - shown:
            note += f", drawn from {int(n_observed):,} and {int(n - n_observed):,} and weighted"
        beta = _optimum(cells, of_user.value[cells.user_row], of_item.value[cells.item_row], strength=self.strength)
        return LogisticFit(self, beta, of_user, of_item, note)


@dataclass(frozen=True, slots=True, eq=False)
class PairSample:
    """Pairs to learn from: whether they are in the log, how many each stands for, where their features are.

    `key` is the key of the user, `n_observed` and `n_cells` count the pairs of the log and the candidates by group.
    """

    key: Keys
    item: Ints
    user_row: Ints
    item_row: Ints
    observed: Bools
    weight: Floats
    group: Ints
    n_observed: Floats
    n_cells: Floats
    source: str

    def __add__(self, other: PairSample) -> PairSample:
        return replace(
            self,
            key=np.concatenate([self.key, other.key]),
            item=np.concatenate([self.item, other.item]),
            user_row=np.concatenate([self.user_row, other.user_row]),
            item_row=np.concatenate([self.item_row, other.item_row]),
            observed=np.concatenate([self.observed, other.observed]),
            weight=np.concatenate([self.weight, other.weight]),
            group=np.concatenate([self.group, other.group]),
            n_observed=self.n_observed + other.n_observed,
            n_cells=self.n_cells + other.n_cells,
        )

    def without(self, group: int | None) -> PairSample:
        if group is None:
            return self
        kept, others = self._at(np.flatnonzero(self.group != group)), np.arange(len(self.n_cells)) != group
        return replace(kept, n_observed=self.n_observed[others], n_cells=self.n_cells[others])

    def sorted(self) -> PairSample:
        """In the order of ids, those in the log first: the same whatever the chunks were."""
        return self._at(np.lexsort((self.item, self.key, ~self.observed)))

    def _at(self, cells: Ints) -> PairSample:
        return replace(
            self,
            key=self.key[cells],
            item=self.item[cells],
            user_row=self.user_row[cells],
            item_row=self.item_row[cells],
            observed=self.observed[cells],
            weight=self.weight[cells],
            group=self.group[cells],
        )


@dataclass(frozen=True, slots=True, eq=False)
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
        return cls(
            features, frozen(scaled), tuple(name for name, kept in zip(features.names, varies, strict=True) if kept)
        )

    def effect(self, ids: Ids, used: Ints, beta: Floats) -> Floats:
        """x·beta for each used position of these ids; the same bits whatever else is asked for."""
        x = self.value[_rows_of(self.features, ids, used)]
        found = np.zeros(len(used))
        for column, coefficient in zip(x.T, beta, strict=True):
            found += column * coefficient
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """The optimum, and the standardised features."""

    model: Logistic
    beta: Floats
    of_user: Standard
    of_item: Standard
    note: str
    fitted: bool = True

    @property
    def description(self) -> str:
        names = (*self.of_user.names, *self.of_item.names)
        return (
            f"propensities are a logistic regression on {len(names):,} features of users and items "
            f"({self.note}): exposure depends on them alone"
        )

    def at(self, cells: Log) -> Floats:
        """Pairs of users and items that have features."""
        split = 1 + len(self.of_user.names)
        users, user = np.unique(cells.user, return_inverse=True)
        items, item = np.unique(cells.item, return_inverse=True)
        of_user = self.beta[0] + self.of_user.effect(cells.users, users, self.beta[1:split])
        of_item = self.of_item.effect(cells.items, items, self.beta[split:])
        found = _sigmoid(of_user[user] + of_item[item])
        return check_propensity(found, cells, what="the fitted propensity", advice="Clip it, or use fewer features.")


def _rows_of(features: Features | None, ids: Ids, used: Ints) -> Ints:
    """The row of features of each used position of ids."""
    if features is None:
        return np.zeros(len(used), dtype=np.int64)
    return features.rows_of(ids, used=np.unique(used))[used]


def _share(n: float) -> float:
    """The share of candidates that is drawn."""
    return MOST_CELLS / n if n > 0 else 1.0


def _observed(log: Log, pairs: Pairs, *, n_observed: float, seed: int) -> tuple[Ints, Ints, Floats]:
    """Pairs of the log, and how many each stands for: all of them, or each with the same probability."""
    owner = np.repeat(np.arange(log.n_units), pairs.count)
    keys = log.users.keys()[owner], log.items.keys()[pairs.item]
    rate = min(1.0, MOST_CELLS / n_observed) if n_observed > 0 else 1.0
    kept = cell_uniforms(seed, "propensity observed pairs", *keys) < rate
    return owner[kept], pairs.item[kept], np.full(int(kept.sum()), 1 / rate)


def _unobserved(
    log: Log, pairs: Pairs, candidates: Candidates, n: Floats, *, share: float, seed: int
) -> tuple[Ints, Ints, Floats]:
    """Candidates that are not in the log, and how many each stands for.

    Of too many, m_u of the N_u places of a user are drawn with replacement, and those in the log are thrown away; each
    kept one stands for N_u / m_u, so sums over the kept are unbiased for sums over all.
    """
    users, items, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    user_key = log.users.keys()
    everything = np.arange(len(log.items))
    for user in np.flatnonzero(n > 0).tolist():
        pool = everything if candidates.only is None else candidates.only.of_unit(user)
        if candidates.exclude is not None:
            pool = np.setdiff1d(pool, candidates.exclude.of_unit(user), assume_unique=True)
        weight = 1.0
        if share < 1:
            m = max(1, round(share * len(pool)))
            key = cell_keys(seed, "propensity other pairs", np.full(m, user_key[user]), np.arange(m, dtype=np.uint64))
            weight = len(pool) / m
            pool = pool[(key % np.uint64(len(pool))).astype(np.int64)]
        pool = pool[~np.isin(pool, pairs.of_unit(user))]
        users.append(np.full(len(pool), user))
        items.append(pool)
        weights.append(np.full(len(pool), weight))
    return np.concatenate(users), np.concatenate(items), np.concatenate(weights)


def _optimum(cells: PairSample, x_user: Floats, x_item: Floats, *, strength: float) -> Floats:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(f"propensity logistic needs scikit-learn: pip install {extra('models')}.") from None
    if cells.observed.all() or not cells.observed.any():
        raise InputError(f"{cells.source}: the pairs that were drawn are all in the log or none is; fit to more users.")
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10, max_iter=200)
    model.fit(np.column_stack([x_user, x_item]), cells.observed.astype(np.float64), sample_weight=cells.weight)
    return frozen(np.concatenate([model.intercept_, model.coef_[0]]))


def _sigmoid(x: Floats) -> Floats:
    from truerank.core.special import expit

    return np.asarray(expit(x), dtype=np.float64)
