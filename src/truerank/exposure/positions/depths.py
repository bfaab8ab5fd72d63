"""Position models fitted to scroll depths by maximum likelihood, with feeds that ended before the user did.

A session of depth D viewed ranks 1 ... D, so P(V = 1 | R = r) = P(D >= r). Each family has one parameter, on a scale u
without bounds on which its likelihood is close to a parabola; its functions return value, first and second derivative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.core.record import record
from truerank.exposure.positions.fits import Goodness, Parameter, PositionFit, goodness_by_depth, normal_quantile
from truerank.exposure.positions.position_models import Exponential, GeneralisedLog, PositionModel, Table, YuleSimon

BOUND, FAR = 20.0, 30.0  # on the scale of a family; beyond the first a parameter is at the border of what it can be
STEPS, CLOSE = 200, 1e-9  # a last step of this length leaves an error of its square
DEEPEST, DEEPEST_TABLE = 10_000, 100_000
FEWEST_AT_END, UNLIKELY = 5, 0.001  # sessions at the deepest rank, and the probability, from which lists end there
NARROW, WIDE = 0.01, 5.0  # spreads between groups that are looked at; below the first they count as equal

Derivatives = tuple[Floats, Floats, Floats]


class DepthFamily:
    """A distribution of scroll depths with one parameter; u is its logarithm, or its logit where `scale` says so."""

    form: ClassVar[Any]
    parameter: ClassVar[str]
    scale: ClassVar[str] = "log"

    def model(self, u: float, *, cutoff: int | None) -> PositionModel:
        model: PositionModel = self.form(float(self.value(np.array([u]))[0]), cutoff=cutoff)
        return model

    def value(self, u: Floats) -> Floats:
        return np.asarray(1.0 / (1.0 + np.exp(-u)) if self.scale == "logit" else np.exp(u))

    def point(self, value: float) -> float:
        """The u of a parameter."""
        return math.log(value / (1 - value)) if self.scale == "logit" else math.log(value)

    def slope(self, u: Floats) -> Floats:
        """How fast the parameter changes along u."""
        return self.value(u) * self.value(-u) if self.scale == "logit" else self.value(u)

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        """ln P(D >= depth): what a session whose feed ended there contributes."""
        raise NotImplementedError

    def stopping(self, u: Floats, depth: Floats) -> Derivatives:
        """ln P(D = depth | D >= depth)."""
        raise NotImplementedError

    def stopped(self, u: Floats, depth: Floats) -> Derivatives:
        """ln P(D = depth): what a session contributes that could have gone on."""
        here, stop = self.reached(u, depth), self.stopping(u, depth)
        return here[0] + stop[0], here[1] + stop[1], here[2] + stop[2]


class Geometric(DepthFamily):
    """P(D >= d) = γ^(d - 1); u = ln(γ / (1 - γ))."""

    form, parameter, scale = Exponential, "gamma", "logit"

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        n = depth - 1.0
        return -n * np.log1p(np.exp(-u)), n * self.value(-u), -n * self.slope(u)

    def stopping(self, u: Floats, depth: Floats) -> Derivatives:
        return -np.log1p(np.exp(u)), -self.value(u), -self.slope(u)


class Yule(DepthFamily):
    """P(D >= d) = Γ(ρ + 1) Γ(d) / Γ(d + ρ), P(D = d) = P(D >= d) ρ / (d + ρ); u = ln ρ."""

    form, parameter = YuleSimon, "rho"

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        from truerank.core.special import betaln, digamma, zeta

        rho = np.exp(u)
        first = rho * (digamma(rho + 1.0) - digamma(depth + rho))
        curve = zeta(2.0, rho + 1.0) - zeta(2.0, depth + rho)  # the trigamma function is ζ(2, ·)
        return u + betaln(depth, rho), first, rho**2 * curve + first

    def stopping(self, u: Floats, depth: Floats) -> Derivatives:
        share = depth / (depth + np.exp(u))
        return -np.log1p(depth * np.exp(-u)), share, -share * (1.0 - share)


class Logarithm(DepthFamily):
    """P(D >= d) = 1 / g(d), g(d) = ln(e + α (d - 1)), P(D = d) = 1 / g(d) - 1 / g(d + 1); u = ln α."""

    form, parameter = GeneralisedLog, "alpha"

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        g, first, second = self._growth(u, depth)
        return -np.log(g), -first / g, -second / g + (first / g) ** 2

    def stopping(self, u: Floats, depth: Floats) -> Derivatives:
        (_, first, second), (_, next_first, next_second) = self._growth(u, depth), self._growth(u, depth + 1.0)
        step = np.log1p(np.exp(u) / (math.e + np.exp(u) * (depth - 1.0)))  # g(d + 1) - g(d), without cancellation
        rise, bend = (next_first - first) / step, (next_second - second) / step
        there = self.reached(u, depth + 1.0)
        return np.log(step) + there[0], rise + there[1], bend - rise**2 + there[2]

    def _growth(self, u: Floats, depth: Floats) -> Derivatives:
        whole = math.e + np.exp(u) * (depth - 1.0)
        share = 1.0 - math.e / whole
        return np.log(whole), share, share * (1.0 - share)


FAMILIES: dict[str, DepthFamily] = {"exp": Geometric(), "yule": Yule(), "log": Logarithm()}
FAMILIES["generalised-log"] = FAMILIES["log"]


def family_of(name: str) -> DepthFamily:
    if name not in FAMILIES:
        raise InputError(f"{name!r} cannot be fitted to scroll depths; expected one of {', '.join(FAMILIES)}.")
    return FAMILIES[name]


@record
class Depths:
    """How many sessions `stopped` at each depth, and how many came to the end of their feed there."""

    depth: Floats
    stopped: Floats
    censored: Floats

    @classmethod
    def from_sessions(cls, depth: npt.ArrayLike, *, censored: npt.ArrayLike = False) -> Depths:
        """From one row per session: its depth, and whether its feed was exhausted there.

        >>> Depths.from_sessions([1, 1, 3], censored=[False, False, True]).stopped.tolist()
        [2.0, 0.0]
        """
        return pooled([cls.of_sessions(depth, censored)])

    @classmethod
    def of_sessions(cls, depth: npt.ArrayLike, censored: npt.ArrayLike, *, end: float = math.inf) -> Depths:
        """The same with a row for each session; lists end at the rank `end`."""
        rows, ended = np.asarray(depth, dtype=np.float64), np.asarray(censored, dtype=bool)
        if rows.ndim != 1 or not len(rows):
            raise InputError("no scroll depths; expected one for every session.")
        if ended.shape not in ((), rows.shape):
            raise InputError(f"{len(rows)} depths and {len(ended)} ends; expected as many of each.")
        bad = np.flatnonzero(~((rows >= 1) & (rows == np.floor(rows)) & np.isfinite(rows)))
        if len(bad):
            raise InputError(
                f"session {bad[0] + 1}: scroll depth {rows[bad[0]]:g}; expected a whole number from 1 (rank 1 is "
                "always viewed). Leave out sessions in which nothing was viewed."
            )
        last = (ended | (rows >= end)).astype(np.float64)
        return cls(np.minimum(rows, end), 1.0 - last, last)

    @property
    def n(self) -> int:
        return int((self.stopped + self.censored).sum())

    @property
    def n_censored(self) -> int:
        return int(self.censored.sum())

    def at_risk(self, last: int) -> tuple[Floats, Floats]:
        """Sessions that could stop at each depth 1 ... last, and those that did.

        A session whose feed ended at L could have stopped at every depth before L, not at L itself.
        """
        rows = self.depth <= last
        depth = self.depth[rows].astype(np.int64)
        stops, ends = (sums_by(depth - 1, values[rows], n=last) for values in (self.stopped, self.censored))
        return float((self.stopped + self.censored).sum()) - np.cumsum(stops + ends) + stops, stops

    def list_end(self) -> int | None:
        """The deepest rank, where so many sessions stop that lists must end there; None where people may have stopped.

        Without an end, that all k sessions which came to the deepest rank stop there has probability h^(k - 1) given
        that one does, h the share that stops at a rank. The largest share at an earlier rank is taken as h.

        >>> Depths.from_sessions([1] * 20 + [2] * 20 + [3] * 60).list_end()
        3
        >>> Depths.from_sessions([1] * 50 + [2] * 25 + [3] * 12 + [4] * 6).list_end() is None
        True
        """
        last = int(self.depth.max())
        if last > DEEPEST_TABLE or last < 2:
            return None
        came, stops = self.at_risk(last)
        k = float(stops[-1])
        unlikely = k >= FEWEST_AT_END and float((stops[:-1] / came[:-1]).max()) ** (k - 1) < UNLIKELY
        return last if unlikely else None

    def up_to(self, last: float) -> Depths:
        """The same, where sessions that came to the rank `last` came to the end of their list."""
        stopped = np.where(self.depth >= last, 0.0, self.stopped)
        censored = self.censored + self.stopped - stopped
        return pooled([Depths(np.minimum(self.depth, last), stopped, censored)])


def pooled(parts: Sequence[Depths]) -> Depths:
    """The depths of several groups of sessions as one, with one row for each depth."""
    rows = _joined(parts)
    depth, row = np.unique(rows.depth, return_inverse=True)
    return Depths(depth, *(sums_by(row, values, n=len(depth)) for values in (rows.stopped, rows.censored)))


def _joined(parts: Sequence[Depths]) -> Depths:
    columns = zip(*((part.depth, part.stopped, part.censored) for part in parts), strict=True)
    return Depths(*map(np.concatenate, columns))


def log_likelihood(family: DepthFamily, u: Floats, rows: Depths) -> list[Floats]:
    """Of each row of depths, and its first and second derivative by the row's u."""
    functions = zip(family.stopped(u, rows.depth), family.reached(u, rows.depth), strict=True)
    return [rows.stopped * stop + rows.censored * end for stop, end in functions]


@record
class Solution:
    """The maximum of each group's log-likelihood (plus a normal prior, where there is one) on a family's scale."""

    u: Floats
    information: Floats
    log_likelihood: Floats


def solve(family: DepthFamily, parts: Sequence[Depths], *, centre: float = 0.0, precision: float = 0.0) -> Solution:
    """Newton's method for all groups at once, inside a bracket that halves where a step would leave it."""
    n, rows = len(parts), _joined(parts)
    group = np.repeat(np.arange(n), [len(part.depth) for part in parts])

    def derivatives(u: Floats) -> list[Floats]:
        return [sums_by(group, values, n=n) for values in log_likelihood(family, u[group], rows)]

    low, high, u = np.full(n, -FAR), np.full(n, FAR), np.full(n, centre)
    for _ in range(STEPS):
        _, first, second = derivatives(u)
        first, second = first - precision * (u - centre), second - precision
        low, high = np.where(first > 0, u, low), np.where(first > 0, high, u)
        with np.errstate(invalid="ignore", divide="ignore"):
            step = u - first / second
        close = (second < 0) & (np.abs(step - u) <= CLOSE * (1 + np.abs(u)))
        inside = (second < 0) & (step > low) & (step < high)
        u = np.where(close | inside, step, (low + high) / 2)
        if (close | (high - low <= CLOSE)).all():
            break
    value, _, second = derivatives(u)
    return Solution(u, -second + precision, value)


def fit_depths(family: str, depths: Depths, *, cutoff: int | None = None, level: float = 0.95) -> PositionFit:
    """Maximum likelihood from scroll depths (statistics 3).

    A session that stopped at d contributes ln(P(V|d) - P(V|d + 1)), one whose feed ended at d ln P(V|d). The interval
    is û ± z / √I(û) on the family's scale u (logit γ, ln ρ, ln α), I the observed information. Needs sessions that are
    independent; for γ the maximum is Σ(d - 1) / (Σ(d - 1) + number of stops).

    >>> fit = fit_depths("exp", Depths.from_sessions([1, 2, 3, 3], censored=[False, False, False, True]))
    >>> round(fit.parameter.value, 6), str(fit.model)[:8]
    (0.625, 'exp:0.62')
    """
    if family == "table":
        return _fit_table(depths, cutoff=cutoff)
    law = family_of(family)
    solution = solve(law, [depths])
    if abs(solution.u[0]) > BOUND:
        stops = bool(depths.stopped.sum())
        what = "no session goes beyond rank 1" if stops else "every session came to the end of its feed"
        raise RefusedError(
            f"{what}, so {law.parameter} of {family} lies at the border of what it can be and has no interval. "
            "Collect sessions that go on and sessions that stop, or name a model."
        )
    return _described(law, depths, solution, 0, cutoff=cutoff, level=level)


def _described(
    law: DepthFamily, depths: Depths, solution: Solution, group: int, *, cutoff: int | None, level: float
) -> PositionFit:
    """The fit of a group, with its interval and goodness of fit."""
    u, error = solution.u[[group]], 1.0 / np.sqrt(solution.information[group])
    width = normal_quantile(level) * error
    value, low, high = (float(law.value(point)[0]) for point in (u, u - width, u + width))
    return PositionFit(
        model=law.model(float(u[0]), cutoff=cutoff),
        parameters=(Parameter(law.parameter, value, float(law.slope(u)[0] * error), low, high),),
        log_likelihood=float(solution.log_likelihood[group]),
        n=depths.n,
        n_censored=depths.n_censored,
        goodness=_goodness(law.model(float(u[0]), cutoff=None), depths, parameters=1),
    )


def _goodness(model: PositionModel, depths: Depths, *, parameters: int) -> Goodness:
    """Stops in buckets of depth against those the model expects from the sessions that came there."""
    last = int(min(depths.depth.max(), DEEPEST))
    return goodness_by_depth(*depths.at_risk(last), view=model.view(np.arange(1.0, last + 2.0)), parameters=parameters)


def table_of(depths: Depths, *, cutoff: int | None) -> Table:
    """P(V | r) without a formula: the share of sessions that reach r (Kaplan-Meier).

    >>> table_of(Depths.from_sessions([1, 2, 2, 4]), cutoff=None).probability
    (1.0, 0.75, 0.25, 0.25)
    """
    n, stops = depths.at_risk(int(min(depths.depth.max(), DEEPEST_TABLE)))
    return Table((1.0, *np.cumprod(1.0 - stops[:-1] / n[:-1]).tolist()), cutoff=cutoff)


def _fit_table(depths: Depths, *, cutoff: int | None) -> PositionFit:
    """The table of observed views (`table_of`) with Greenwood's standard errors."""
    model = table_of(depths, cutoff=cutoff)
    n, stops = (counts[:-1] for counts in depths.at_risk(len(model.probability)))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.nan_to_num(np.sqrt(np.cumsum(stops / (n * (n - stops)))))
    views = model.probability[1:]
    return PositionFit(
        model=model,
        parameters=tuple(
            Parameter(f"P(V|{rank})", view, view * part)
            for rank, (view, part) in enumerate(zip(views, error.tolist(), strict=True), 2)
        ),
        n=depths.n,
        n_censored=depths.n_censored,
        goodness=_goodness(Table((*model.probability, 0.0)), depths, parameters=len(model.probability)),
        notes=("a table fits its own data exactly: its goodness of fit has no degrees of freedom",),
    )


def fit_groups(
    family: str, groups: Mapping[str, Depths], *, cutoff: int | None = None, level: float = 0.95
) -> tuple[PositionFit, dict[str, PositionFit], float]:
    """The fit for everyone, one for each group with shrinkage, and the spread τ of groups on the family's scale.

    u_g ~ N(û, τ²) around everyone's û: a group's u_g maximises its own log-likelihood minus (u_g - û)² / (2 τ²); τ
    maximises the marginal likelihood of all groups (Laplace's approximation), and is 0 where groups do not differ.
    Intervals are u_g ± z / √(I_g + 1/τ²). A group without stops still gets a value.

    >>> sorted(fit_groups("exp", {"a": Depths.from_sessions([1, 1, 2, 2]), "b": Depths.from_sessions([1, 9])})[1])
    ['a', 'b']
    """
    from scipy.optimize import minimize_scalar

    law, whole, parts = family_of(family), pooled([*groups.values()]), [*groups.values()]
    everyone = fit_depths(family, whole, cutoff=cutoff, level=level)
    centre = float(solve(law, [whole]).u[0])

    def loss(log_spread: float) -> float:
        spread = math.exp(log_spread)
        solution = solve(law, parts, centre=centre, precision=spread**-2)
        away = (solution.u - centre) / spread
        marginal = solution.log_likelihood - away**2 / 2 - np.log(solution.information * spread**2) / 2
        return -float(np.sum(marginal))

    best = minimize_scalar(loss, bounds=(math.log(NARROW), math.log(WIDE)), method="bounded", options={"xatol": 1e-4})
    spread = math.exp(float(best.x))
    if spread <= 1.02 * NARROW or -float(best.fun) <= everyone.log_likelihood:
        note = ("no difference between groups was found: these are everyone's value and interval",)
        same = {
            name: replace(everyone, n=part.n, n_censored=part.n_censored, notes=note) for name, part in groups.items()
        }
        return everyone, same, 0.0
    solution = solve(law, parts, centre=centre, precision=spread**-2)
    fits = {
        name: _described(law, part, solution, number, cutoff=cutoff, level=level)
        for number, (name, part) in enumerate(groups.items())
    }
    return everyone, fits, spread
