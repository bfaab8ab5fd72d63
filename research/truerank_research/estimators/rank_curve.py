"""The rank curve: how relevance falls along the ranks of a model, for users who like much and users who like little.

User u has s_uj relevant of t_uj judged items in bin j of the ranks. A latent z_u says how much a user likes, e_u how
well the top of the list fits:

    s_uj ~ Binomial(t_uj, p_uj),  logit p_uj = c_j + (l0 + l1 b + l2 b² + l3 b³) z + q b (z² - 1) + τ b e,  b = b_j

b_j is the log-rank position of a bin, 1 at the top and 0 at the end, times min(1, 2 lift): where relevance does not
fall along the list there is nothing to correct. z has normal weights on a grid, tilted by two Hermite polynomials
(Efron 2016), e three Gauss-Hermite nodes. Penalised marginal maximum likelihood with the priors below. A share ζ of
users may like nothing at all; the data alone hardly tell it from users who like little.

The recall of a user is the posterior mean of (hits judged + hits expected among the rest) / (relevant judged +
relevant expected among the rest), and counts by the posterior chance that there is a relevant item at all.

Rows that are equal are fitted once, in sorted order and blocks of one size, on one BLAS thread: the same bits whatever
the order of users.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, exact_sum
from truerank.core.threads import one_blas_thread
from truerank_research.estimators.histograms import Histograms

BLOCK = 2**14  # distinct rows that are looked at together
STEPS = 60
GAIN = 5e-3  # of the log-likelihood, below which a step is the last
# priors: mean and standard deviation of l0 ... l3, sd of q, log τ, g3, log -g4 and of changes of slope of c
SLOPES, SLOPES_SD = (1.0, 0.0, 0.0, 0.0), (0.5, 1.0, 1.0, 1.0)
BEND_SD, LOG_FIT, FIT_SD = 0.15, math.log(0.7), 0.5
THIRD_SD, LOG_FOURTH, FOURTH_SD, CURVE_SD = 0.15, math.log(0.1), 0.7, 3.0
FREE_SD = 100.0
LIKE_NOTHING = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # shares that are tried
RULED_OUT = 3.84  # twice the log-likelihood below the best


@dataclass(frozen=True, slots=True)
class RecallByUser:
    """What each row has: Σ `value` / Σ `weight` is the mean recall; `influence` is what it adds to the error."""

    value: Floats
    weight: Floats
    influence: Floats

    @property
    def mean(self) -> float:
        below = exact_sum(self.weight)
        return exact_sum(self.value) / below if below > 0 else math.nan


@dataclass(frozen=True, slots=True)
class CurveFit:
    """The mean recall under the rank curve; `converged` says whether the fit came to an end."""

    found: RecallByUser
    lift: float
    converged: bool


def fit_curve(rows: Histograms, *, like_nothing: float) -> CurveFit:
    """Fit the rank curve to users of whom a share likes nothing.

    >>> judged = np.tile([[5.0, 5.0]], (2, 1))
    >>> whole = Histograms(np.array([[1.0, 1.0], [0.0, 0.0]]), judged, judged, np.array([5.0, 10.0]), 1)
    >>> fit_curve(whole, like_nothing=0.0).found.mean  # every label is known
    0.5
    """
    if not rows.rest.any():
        return _known(rows)
    distinct, place, count = rows.distinct()
    with one_blas_thread():
        model = CurveModel.of(distinct, count)
        fit = model.fit(like_nothing, model.start)
        found = model.recall(like_nothing, fit)
    by_row = RecallByUser(found.value[place], found.weight[place], found.influence[place])
    return CurveFit(by_row, model.lift, fit.converged)


def _known(rows: Histograms) -> CurveFit:
    """Where every label is known: the plain mean over users with a relevant item."""
    n, hits = rows.relevant.sum(axis=1), rows.relevant[:, : rows.within].sum(axis=1)
    some = n > 0
    value, weight = np.divide(hits, n, out=np.zeros(len(n)), where=some), some.astype(np.float64)
    mean = RecallByUser(value, weight, weight).mean
    influence = (value - mean * weight) / max(exact_sum(weight), 1.0)
    return CurveFit(RecallByUser(value, weight, influence), rows.lift(), True)


def plausible(rows: Histograms) -> dict[float, float]:
    """The mean recall under each share of users who like nothing, up to the largest that the data do not rule out.

    Shares are tried from 0 up to that of users without a judged relevant item; one is ruled out where twice its
    log-likelihood is 3.84 below that of the best. Smaller ones stay: that they fit worse is the model's word alone.
    """
    if not rows.rest.any():
        return {}
    distinct, _, count = rows.distinct()
    tried: dict[float, CurveStep] = {}
    with one_blas_thread():
        model = CurveModel.of(distinct, count)
        most = float(count[model.none].sum() / count.sum())
        start = model.start
        for share in (each for each in LIKE_NOTHING if each == 0 or each < most):
            tried[share] = model.fit(share, start)
            start = tried[share].at
            if 2 * (max(each.value for each in tried.values()) - tried[share].value) > RULED_OUT:
                break
        best = max(each.value for each in tried.values())
        most = max(share for share, fit in tried.items() if 2 * (best - fit.value) <= RULED_OUT)
        found = {share: model.recall(share, fit) for share, fit in tried.items() if share <= most}
    return {share: exact_sum(count * each.value) / exact_sum(count * each.weight) for share, each in found.items()}


# ------------------------------------------------------------------------------------------------------------ the model


@dataclass(frozen=True, slots=True, eq=False)
class CurveStep:
    """Parameters with their penalised log-likelihood, and the score of each row."""

    at: Floats
    value: float
    scores: Floats
    converged: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Where z and e are looked at: log-odds, log(1 + odds) and probabilities [nodes x bins], log weights of nodes."""

    odds: Floats
    none: Floats
    p: Floats
    weight: Floats
    tilt: Floats  # by how much a step of each tilt moves it
    expected: Floats  # mean of the Hermite polynomials


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Of one block of rows: log-likelihood, weights of nodes, the chance to like nothing, expected residuals by bin."""

    value: Floats
    weight: Floats
    nothing: Floats
    residual: Floats  # [rows x bins x (1, z, z² - 1, e)]


@dataclass(frozen=True, slots=True, eq=False)
class CurveModel:
    """The likelihood of distinct rows, each of which `count` users have."""

    rows: Histograms
    count: Floats
    rest: Floats
    n: Floats
    lift: float
    position: Floats  # b of each bin
    powers: Floats  # 1, b, b², b³
    penalty: Floats
    prior: Floats
    start: Floats
    z: Floats
    hermite: Floats
    factors: Floats  # 1, z, z² - 1, e of each node

    @classmethod
    def of(cls, rows: Histograms, count: Floats) -> CurveModel:
        whole = Histograms(
            rows.relevant * count[:, None], rows.judged * count[:, None], rows.size, rows.last, rows.within
        )
        lift, bins = whole.lift(), len(rows.last)
        place = _positions(rows.last)
        b = place * min(1.0, 2.0 * lift)
        n = rows.relevant.sum(axis=1)
        most = float(n.max(initial=0.0))
        z = np.linspace(-4.0, 4.0, 17 if most < 12 else 25 if most < 22 else 33)
        hermite = np.stack([(z**3 - 3 * z) / math.sqrt(6), (z**4 - 6 * z**2 + 3) / math.sqrt(24)], axis=1)
        node = np.repeat(z, 3)
        e = np.tile([-math.sqrt(3), 0.0, math.sqrt(3)], len(z))
        prior = np.array([*([0.0] * bins), *SLOPES, 0.0, LOG_FIT, 0.0, LOG_FOURTH])
        hits, seen = whole.relevant.sum(axis=0), whole.judged.sum(axis=0)
        rate = np.clip((hits + 0.5 * hits.sum() / seen.sum()) / (seen + 0.5), 1e-6, 0.95)
        start = prior.copy()
        start[:bins] = np.log(rate / (1 - rate)) - 0.3
        return cls(
            rows, count, rows.rest, n, lift, b, np.stack([np.ones(bins), b, b * b, b**3], axis=1), _penalty(place),
            prior, start, z, np.repeat(hermite, 3, axis=0),
            np.stack([np.ones(len(node)), node, node**2 - 1, e], axis=1),
        )  # fmt: skip

    @property
    def none(self) -> Bools:
        """Which rows have no judged relevant item."""
        return np.asarray(self.n == 0)

    def blocks(self) -> Iterator[slice]:
        for first in range(0, len(self.count), BLOCK):
            yield slice(first, first + BLOCK)

    def nodes(self, at: Floats) -> Nodes:
        bins = len(self.position)
        c, slopes, (bend, fit, third, fourth) = at[:bins], at[bins : bins + 4], at[bins + 4 :]
        tilt = np.array([1.0, -math.exp(fourth)])
        own = self.hermite[::3]
        log = -(self.z**2) / 2 + own @ np.array([third, tilt[1]])
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        z, e = self.factors[:, 1], self.factors[:, 3]
        odds = c + np.outer(z, self.powers @ slopes) + np.outer(self.factors[:, 2], bend * self.position)
        odds = np.minimum(odds + np.outer(e, math.exp(fit) * self.position), 7.0)
        none = np.log1p(np.exp(odds))
        log_weight = np.log(np.maximum(np.outer(weight, np.array([1.0, 4.0, 1.0]) / 6).ravel(), 1e-290))
        return Nodes(odds, none, np.exp(odds - none), log_weight, tilt, weight @ own)

    def posterior(self, part: slice, nodes: Nodes, share: float) -> Posterior:
        relevant, judged = self.rows.relevant[part], self.rows.judged[part]
        log = relevant @ nodes.odds.T - judged @ nodes.none.T + nodes.weight
        highest = log.max(axis=1, keepdims=True)
        weight = np.exp(log - highest)
        total = weight.sum(axis=1)
        weight /= total[:, None]
        value = highest[:, 0] + np.log(total) + math.log1p(-share)
        nothing = np.zeros(len(value))
        if share > 0:
            value = np.where(self.none[part], np.logaddexp(math.log(share), value), value)
            nothing = np.where(self.none[part], np.exp(math.log(share) - value), 0.0)
        weight *= (1 - nothing)[:, None]
        bins = len(self.position)
        expected = (nodes.p[:, :, None] * self.factors[:, None, :]).reshape(len(nodes.p), -1)
        residual = relevant[:, :, None] * (weight @ self.factors)[:, None, :]
        residual -= judged[:, :, None] * (weight @ expected).reshape(-1, bins, 4)
        return Posterior(value, weight, nothing, residual)

    def scores(self, at: Floats, share: float) -> tuple[float, Floats]:
        """The penalised log-likelihood, and the score of each row."""
        nodes = self.nodes(at)
        values, scores = [], []
        for part in self.blocks():
            found = self.posterior(part, nodes, share)
            tilted = found.weight @ self.hermite - (1 - found.nothing)[:, None] * nodes.expected
            values.append(found.value)
            scores.append(np.concatenate([self._chain(found.residual, at), tilted * nodes.tilt], axis=1))
        off = at - self.prior
        value = exact_sum(self.count * np.concatenate(values)) - 0.5 * float(off @ self.penalty @ off)
        return value, np.concatenate(scores)

    def _chain(self, residual: Floats, at: Floats) -> Floats:
        """From derivatives by log-odds, [... x bins x 4], to those by parameters, without the tilts."""
        b, fit = self.position, math.exp(at[len(self.position) + 5])
        bend, well = residual[..., 2] @ b, fit * (residual[..., 3] @ b)
        return np.concatenate(
            [residual[..., 0], residual[..., 1] @ self.powers, bend[..., None], well[..., None]], axis=-1
        )

    def information(self, scores: Floats) -> Floats:
        """The outer products of scores, with the penalty."""
        return np.asarray((scores * self.count[:, None]).T @ scores + self.penalty)

    def fit(self, share: float, start: Floats) -> CurveStep:
        """Damped steps by outer products of scores (Berndt, Hall, Hall and Hausman 1974)."""
        at = start
        value, scores = self.scores(at, share)
        damping = 0.01
        for _ in range(STEPS):
            slope = self.count @ scores - self.penalty @ (at - self.prior)
            information = self.information(scores)
            while True:
                step = np.linalg.solve(information + damping * np.diag(np.diag(information)), slope)
                step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
                new = self.scores(at + step, share)
                if new[0] >= value - 1e-9 or damping > 1e5:
                    break
                damping = max(damping * 8, 0.01)
            gain, at, (value, scores) = float(slope @ step), at + step, new
            damping /= 6
            if gain < GAIN:
                return CurveStep(at, value, scores)
        return CurveStep(at, value, scores, converged=False)

    def recall(self, share: float, fit: CurveStep) -> RecallByUser:
        """The recall of each row with its weight, and its influence on the mean: its own, and through the fit."""
        nodes = self.nodes(fit.at)
        parts = [self._recall(part, nodes, share) for part in self.blocks()]
        value, weight = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
        below = exact_sum(self.count * weight)
        if not below > 0:
            return RecallByUser(value, weight, np.full(len(value), math.nan))
        mean = exact_sum(self.count * value) / below
        slope = sum((self._slope(part, nodes, share, mean, fit.at) for part in self.blocks()), np.zeros(len(fit.at)))
        through = fit.scores @ np.linalg.solve(self.information(fit.scores), slope)
        return RecallByUser(value, weight, (value - mean * weight + through) / below)

    def _shares_of(self, part: slice, nodes: Nodes) -> tuple[Floats, Floats, Floats]:
        """At each node: recall, the expected number of relevant items, and the chance that there is one."""
        rest, within = self.rest[part], self.rows.within
        number = np.maximum(self.n[part][:, None] + rest @ nodes.p.T, 1e-12)
        hits = self.rows.relevant[part][:, :within].sum(axis=1)[:, None] + rest[:, :within] @ nodes.p[:, :within].T
        some = np.where(self.none[part][:, None], -np.expm1(-(rest @ nodes.none.T)), 1.0)
        return hits / number, number, some

    def _recall(self, part: slice, nodes: Nodes, share: float) -> tuple[Floats, Floats]:
        recall, _, some = self._shares_of(part, nodes)
        weight = self.posterior(part, nodes, share).weight * some
        return (weight * recall).sum(axis=1), weight.sum(axis=1)

    def _slope(self, part: slice, nodes: Nodes, share: float, mean: float, at: Floats) -> Floats:
        """By how much Σ E[1{a relevant item} (recall - mean)] moves with each parameter."""
        found = self.posterior(part, nodes, share)
        recall, number, some = self._shares_of(part, nodes)
        rest, within, count = self.rest[part], self.rows.within, self.count[part][:, None]
        away = recall - mean
        each = count * found.weight * some / number
        moves = nodes.p * (1 - nodes.p)
        by_bin = -((each * recall).T @ rest) * moves
        by_bin[:, :within] += (each.T @ rest[:, :within]) * moves[:, :within]
        own = count * found.weight * some * away
        by_bin += own.T @ self.rows.relevant[part] - (own.T @ self.rows.judged[part]) * nodes.p
        appears = count * found.weight * (1 - some) * away * self.none[part][:, None]
        by_bin += (appears.T @ rest) * nodes.p
        total = own.sum(axis=1)  # of each row; the posterior moves around its own mean
        residual = by_bin.T @ self.factors - np.tensordot(total, found.residual, 1)
        tilted = own.sum(axis=0) @ self.hermite - total @ (found.weight @ self.hermite)
        return np.concatenate([self._chain(residual, at), tilted * nodes.tilt])


def _positions(last: Floats) -> Floats:
    """Mean log rank of each bin, 1 in the first and 0 in the last.

    >>> _positions(np.array([1.0, 4.0])).tolist()
    [1.0, 0.0]
    """
    first = np.concatenate([[0.0], last[:-1]])
    middle = (_log_factorial(last) - _log_factorial(first)) / (last - first)
    span = middle[-1] - middle[0]
    return np.asarray((middle[-1] - middle) / span if span > 0 else np.zeros(len(last)))


def _log_factorial(n: Floats) -> Floats:
    return np.array([math.lgamma(each + 1.0) for each in n.tolist()])


def _penalty(place: Floats) -> Floats:
    """Inverse variances of the priors; the curve of bins may bend, but not at every bin."""
    bins = len(place)
    sd = np.array([*([FREE_SD] * bins), *SLOPES_SD, BEND_SD, FIT_SD, THIRD_SD, FOURTH_SD])
    penalty = np.diag(sd**-2.0)
    bends = np.zeros((max(bins - 2, 0), bins))
    for at in range(len(bends)):
        one, two = place[at] - place[at + 1], place[at + 1] - place[at + 2]
        bends[at, at : at + 3] = 1 / one, -1 / one - 1 / two, 1 / two
    penalty[:bins, :bins] += bends.T @ bends / CURVE_SD**2
    return penalty
