"""Logistic regression on features of users and items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.chance import cell_keys, cell_uniforms
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates
from truerank.core.values import Positive, check, text_of
from truerank.data.features import Features
from truerank.exposure.propensities import Fitted, check_propensity, n_cells

MOST_CELLS = 400_000  # of each class; more are drawn from at random and weighted


@dataclass(frozen=True, slots=True)
class Logistic:
    """P(O=1 | u, i) = σ(a + b·x_u + c·x_i), fitted to the pairs that are in the log and those that are not.

    Features are standardised; the penalty is |b, c|² / (2 strength), as scikit-learn's C. Of many unobserved pairs some
    are drawn, keyed by seed and user, and weighted (a case-control sample). Assumed: exposure depends on these features
    alone, additively on the logit scale. `under` takes one Newton step from the optimum, which is what a stacked
    sandwich would use: the change of the fit to first order in the weights.

    >>> str(Logistic()), str(Logistic(0.1))
    ('logistic', 'logistic:0.1')
    """

    strength: Positive = 1.0

    name: ClassVar[str] = "logistic"
    positional: ClassVar[tuple[str, ...]] = ("strength",)
    uses: ClassVar[frozenset[str]] = frozenset({"user_features", "item_features"})

    def __post_init__(self) -> None:
        check(self, where="propensity logistic")

    __str__ = text_of

    def fit(
        self,
        log: Log,
        *,
        random: Log | None = None,
        user_features: Features | None = None,
        item_features: Features | None = None,
        candidates: Candidates | None = None,
        seed: int = 0,
    ) -> Fitted:
        if user_features is None and item_features is None:
            raise InputError(
                "propensity logistic: no features; it needs a table of features of users or items. "
                "Give one: --user-features FILE, --item-features FILE (Python: user_features=..., item_features=...)."
            )
        cells = _cells(log, candidates, seed=seed)
        x_user, names_user = _standard(user_features, log.users, cells.user)
        x_item, names_item = _standard(item_features, log.items, cells.item)
        if not names_user and not names_item:
            raise InputError("propensity logistic: every feature has one value only; there is nothing to learn from.")
        beta, pull = _solved(cells, x_user, x_item, strength=self.strength, n_units=log.n_units)
        found = LogisticFit(
            self,
            log,
            beta,
            pull,
            x_user,
            x_item,
            (user_features, item_features),
            (*names_user, *names_item),
            cells.note,
        )
        check_propensity(found.value, log, what="the fitted propensity", advice="Clip it, or use fewer features.")
        return found


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """The optimum, how far each unit pulls it, and the standardised features."""

    model: Logistic
    log: Log
    beta: Floats
    pull: Floats  # [units x coefficients]: the change of the optimum if the unit counted once more
    x_user: Floats
    x_item: Floats
    features: tuple[Features | None, Features | None]
    names: tuple[str, ...]
    note: str
    fitted: bool = True

    @property
    def description(self) -> str:
        return (
            f"propensities are a logistic regression on {len(self.names):,} features of users and items "
            f"({self.note}): exposure depends on them alone"
        )

    @property
    def value(self) -> Floats:
        return self._rows(self.beta)

    def under(self, weight: Floats) -> Floats:
        return self._rows(self.beta + (weight - 1) @ self.pull)

    def at(self, cells: Log) -> Floats:
        """Pairs of users and items that the log knows."""
        user = self.log.users.locate(cells.users, where=f"{cells.source}, users")[cells.user]
        item = self.log.items.locate(cells.items, where=f"{cells.source}, items")[cells.item]
        strange = np.flatnonzero((user < 0) | (item < 0))
        if len(strange):
            raise InputError(
                f"{cells.source}: row {int(strange[0]) + 1:,} is of a user or an item that {self.log.source} does not "
                f"know ({len(strange):,} rows so); the features were standardised without them. Declare all users and "
                "items when reading the log."
            )
        return self._cells(self.beta, user, item)

    def _rows(self, beta: Floats) -> Floats:
        return self._cells(beta, self.log.user, self.log.item)

    def _cells(self, beta: Floats, user: Ints, item: Ints) -> Floats:
        split = 1 + self.x_user.shape[1]
        of_user, of_item = beta[0] + self.x_user @ beta[1:split], self.x_item @ beta[split:]
        return _sigmoid(of_user[user] + of_item[item])


@dataclass(frozen=True, slots=True)
class _Cells:
    """Pairs to learn from: whether they are in the log, and how many each stands for."""

    user: Ints
    item: Ints
    observed: Floats
    weight: Floats
    note: str


def _cells(log: Log, candidates: Candidates | None, *, seed: int) -> _Cells:
    """Observed pairs, and unobserved candidates: all of them, or a keyed sample of each class."""
    pairs = Pairs.of(log.user, log.item, n_units=log.n_units)
    n_observed, n = float(pairs.count.sum()), n_cells(log, candidates)
    if n_observed == 0:
        raise InputError(f"{log.source}: no rows to fit propensities to.")
    if n_observed >= n.sum():
        raise InputError(
            f"{log.source}: every candidate is in the log, so there is no exposure to model: all propensities are 1. "
            "Use full exposure."
        )
    owner = np.repeat(np.arange(log.n_units), pairs.count)
    keys = log.users.keys()[owner], log.items.keys()[pairs.item]
    rate = min(1.0, MOST_CELLS / n_observed)
    kept = cell_uniforms(seed, "propensity observed pairs", *keys) < rate
    user, item, weight = _unobserved(log, pairs, candidates, n, seed=seed)
    note = f"{int(kept.sum()):,} pairs of the log and {len(user):,} others"
    if rate < 1 or n.sum() - n_observed > len(user):
        note += f", drawn from {int(n_observed):,} and {int(n.sum() - n_observed):,} and weighted"
    return _Cells(
        np.concatenate([owner[kept], user]),
        np.concatenate([pairs.item[kept], item]),
        np.concatenate([np.ones(int(kept.sum())), np.zeros(len(user))]),
        np.concatenate([np.full(int(kept.sum()), 1 / rate), weight]),
        note,
    )


def _unobserved(
    log: Log, pairs: Pairs, candidates: Candidates | None, n: Floats, *, seed: int
) -> tuple[Ints, Ints, Floats]:
    """Candidates that are not in the log, and how many each stands for.

    Of too many, m_u of the N_u places of a user are drawn with replacement, and those in the log are thrown away; each
    kept one stands for N_u / m_u, so sums over the kept are unbiased for sums over all.
    """
    users, items, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    share = MOST_CELLS / float(n.sum())
    user_key = log.users.keys()
    everything = np.arange(len(log.items))
    for user in np.flatnonzero(n > 0).tolist():
        pool = everything
        if candidates is not None and candidates.only is not None:
            pool = candidates.only.of_unit(user)
        if candidates is not None and candidates.exclude is not None:
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


def _standard(features: Features | None, ids: Any, used: Ints) -> tuple[Floats, tuple[str, ...]]:
    """Columns with mean 0 and variance 1 over the ids that occur; constant ones are left out."""
    if features is None:
        return np.zeros((len(ids), 0)), ()
    present = np.unique(used)
    value = features.rows(ids, used=present)
    mean, spread = value[present].mean(axis=0), value[present].std(axis=0)
    varies = spread > 1e-12
    scaled = (value[:, varies] - mean[varies]) / spread[varies]
    return frozen(scaled), tuple(name for name, kept in zip(features.names, varies, strict=True) if kept)


def _solved(cells: _Cells, x_user: Floats, x_item: Floats, *, strength: float, n_units: int) -> tuple[Floats, Floats]:
    """The optimum, and by how much it moves where one unit counts once more: curvature^-1 x the unit's score."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # the same bits however many cores there are
        design = np.column_stack([np.ones(len(cells.user)), x_user[cells.user], x_item[cells.item]])
        beta = _optimum(design, cells, strength=strength)
        chance = _sigmoid(design @ beta)
        penalty = np.concatenate([[0.0], np.full(len(beta) - 1, 1 / strength)])
        curvature = (design * (cells.weight * chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        residual = cells.weight * (cells.observed - chance)
        score = [np.bincount(cells.user, weights=residual * column, minlength=n_units) for column in design.T]
        return frozen(beta), frozen(np.linalg.solve(curvature, np.array(score)).T)


def _optimum(design: Floats, cells: _Cells, *, strength: float) -> Floats:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError('propensity logistic needs scikit-learn: pip install "truerank[models]".') from None
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10, max_iter=200)
    model.fit(design[:, 1:], cells.observed, sample_weight=cells.weight)
    return np.concatenate([model.intercept_, model.coef_[0]])


def _sigmoid(x: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(x), dtype=np.float64)
