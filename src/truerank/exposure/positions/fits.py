"""Position models fitted to scroll depths by maximum likelihood, with feeds that ended before the user did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.exposure.positions.fits_families import FAMILIES, DepthFamily, Goodness, at_risk, goodness_of_depths
from truerank.exposure.positions.position_models import PositionModel, Table

BOUND = 20.0  # on the scale of a family; beyond it a parameter is at the border of what it can be
FAR = 30.0
STEPS = 200
CLOSE = 1e-9  # a last step of this length leaves an error of its square
DEEPEST_TABLE = 100_000
POOLED = ("all",)  # the one group of depths without groups
FEWEST_AT_END, UNLIKELY = 5, 0.001  # sessions at the deepest rank, and the probability, from which lists end there


@dataclass(frozen=True, slots=True)
class Parameter:
    """A fitted number with its standard error and interval."""

    name: str
    value: float
    stderr: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PositionFit:
    """A fitted position model and how well it describes what it was fitted to.

    `scale` says on which scale the interval is symmetric (nothing where it comes from a bootstrap). `list_end` is the
    rank at which lists were recognised to end, where no column of the log gives it.
    """

    model: PositionModel
    parameters: tuple[Parameter, ...]
    scale: str
    log_likelihood: float
    n: int
    n_censored: int
    goodness: Goodness
    notes: tuple[str, ...] = ()
    list_end: int | None = None

    @property
    def parameter(self) -> Parameter:
        """The one parameter of a family that has one."""
        (only,) = self.parameters
        return only


@dataclass(frozen=True, slots=True)
class Depths:
    """How many sessions of each group `stopped` at each depth, and how many came to the end of their feed there."""

    group: Ints
    depth: Floats
    stopped: Floats
    censored: Floats
    groups: tuple[str, ...] = POOLED

    @classmethod
    def of(
        cls,
        depth: npt.ArrayLike,
        *,
        censored: npt.ArrayLike | None = None,
        group: npt.NDArray[Any] | None = None,
        count: npt.ArrayLike | None = None,
        cutoff: int | None = None,
    ) -> Depths:
        """From one row per session: its depth, whether its feed was exhausted there, and its user group.

        A row may stand for a `count` of sessions. With a cut-off, sessions that came to it count as exhausted there.

        >>> Depths.of([1, 1, 3], censored=[False, False, True]).stopped.tolist()
        [2.0, 0.0]
        """
        at = np.asarray(depth, dtype=np.float64)
        ended = np.zeros(len(at), dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
        names = np.full(len(at), "all") if group is None else np.asarray(group).astype(str)
        if at.ndim != 1 or not len(at):
            raise InputError("no scroll depths; expected one for every session.")
        if not len(at) == len(ended) == len(names):
            raise InputError(f"{len(at)} depths, {len(ended)} ends and {len(names)} groups; expected as many of each.")
        bad = np.flatnonzero(~((at >= 1) & (at == np.floor(at)) & np.isfinite(at)))
        if len(bad):
            raise InputError(
                f"session {bad[0] + 1}: scroll depth {at[bad[0]]:g}; expected a whole number from 1 (rank 1 is always "
                "viewed). Leave out sessions in which nothing was viewed."
            )
        if cutoff is not None:
            ended, at = ended | (at >= cutoff), np.minimum(at, cutoff)
        groups, of = np.unique(names, return_inverse=True)
        distinct, which = np.unique(at, return_inverse=True)
        keys, row = np.unique(of.reshape(-1) * len(distinct) + which, return_inverse=True)
        many = np.ones(len(at)) if count is None else np.asarray(count, dtype=np.float64)
        stopped = sums_by(row, np.where(ended, 0.0, many), n=len(keys))
        exhausted = sums_by(row, np.where(ended, many, 0.0), n=len(keys))
        of_key, depth_key = np.divmod(keys, len(distinct))
        return cls(of_key, distinct[depth_key], stopped, exhausted, tuple(groups.tolist()))

    @classmethod
    def joined(cls, parts: Mapping[str, Depths]) -> Depths:
        """Depths of several groups side by side, each as one group.

        >>> both = Depths.joined({"a": Depths.of([1, 2]), "b": Depths.of([2])})
        >>> both.groups, both.n, both.only(1).depth.tolist()
        (('a', 'b'), 3, [2.0])
        """
        pooled = [each.pooled() for each in parts.values()]
        group = np.repeat(np.arange(len(pooled)), [len(each.depth) for each in pooled])
        depth, stopped, censored = (
            np.concatenate([getattr(each, name) for each in pooled]) for name in ("depth", "stopped", "censored")
        )
        return cls(group, depth, stopped, censored, tuple(parts))

    def pooled(self) -> Depths:
        """All groups as one."""
        depth, row = np.unique(self.depth, return_inverse=True)
        stopped, censored = (sums_by(row, each, n=len(depth)) for each in (self.stopped, self.censored))
        return Depths(np.zeros(len(depth), dtype=np.int64), depth, stopped, censored)

    def only(self, group: int) -> Depths:
        rows = self.group == group
        return Depths(
            np.zeros(int(rows.sum()), dtype=np.int64), self.depth[rows], self.stopped[rows], self.censored[rows]
        )

    def list_end(self) -> int | None:
        """The deepest rank, where so many sessions stop that lists must end there; None where people may have stopped.

        Without an end, that all k sessions which came to the deepest rank stop there has probability h^(k - 1) given
        that one does, h the share that stops at a rank. The largest share at an earlier rank is taken as h.

        >>> Depths.of([1] * 20 + [2] * 20 + [3] * 60).list_end()
        3
        >>> Depths.of([1] * 50 + [2] * 25 + [3] * 12 + [4] * 6).list_end() is None
        True
        """
        last = int(self.depth.max())
        if last > DEEPEST_TABLE or last < 2:
            return None
        came, stops = at_risk(self.depth, self.stopped, self.censored, last=last)
        largest_share = float((stops[:-1] / came[:-1]).max())
        k = float(stops[-1])
        return last if k >= FEWEST_AT_END and largest_share ** (k - 1) < UNLIKELY else None

    def ending_at(self, last: int) -> Depths:
        """The same, where sessions that came to the rank `last` came to the end of their list."""
        end = self.depth >= last
        return replace(
            self,
            stopped=np.where(end, 0.0, self.stopped),
            censored=np.where(end, self.censored + self.stopped, self.censored),
        )

    @property
    def n(self) -> int:
        return int((self.stopped + self.censored).sum())


@dataclass(frozen=True, slots=True)
class Solution:
    """The maximum of each group's log-likelihood (plus a normal prior, where there is one) on a family's scale."""

    u: Floats
    information: Floats
    log_likelihood: Floats


def fit_depths(family: str, depths: Depths, *, cutoff: int | None = None, level: float = 0.95) -> PositionFit:
    """Maximum likelihood from scroll depths; groups are pooled (statistics 3).

    A session that stopped at d contributes ln(P(V|d) - P(V|d + 1)), one whose feed ended at d ln P(V|d). The interval
    is û ± z / √I(û) on the family's scale u (logit γ, ln ρ, ln α), I the observed information. Needs sessions that are
    independent; for γ the maximum is Σ(d - 1) / (Σ(d - 1) + number of stops).

    >>> fit = fit_depths("exp", Depths.of([1, 2, 3, 3], censored=[False, False, False, True]))
    >>> round(fit.parameter.value, 6), str(fit.model)[:8]
    (0.625, 'exp:0.62')
    """
    if family == "table":
        return _fit_table(depths.pooled(), cutoff=cutoff, level=level)
    if family not in FAMILIES:
        raise InputError(f"{family!r} cannot be fitted to scroll depths; expected one of {', '.join(FAMILIES)}, table.")
    law, data = FAMILIES[family], depths.pooled()
    found = solve(law, data)
    u = float(found.u[0])
    if abs(u) > BOUND:
        stops = bool(data.stopped.sum())
        what = "no session goes beyond rank 1" if stops else "every session came to the end of its feed"
        raise RefusedError(
            f"{what}, so {law.parameter} of {family} lies at the border of what it can be and has no interval. "
            "Collect sessions that go on and sessions that stop, or name a model."
        )
    return described(law, data, u=u, information=float(found.information[0]), cutoff=cutoff, level=level)


def described(
    law: DepthFamily, data: Depths, *, u: float, information: float, cutoff: int | None, level: float
) -> PositionFit:
    """The fit at u, with its interval and goodness of fit."""
    from truerank.core.special import ndtri

    point, wide = np.array([u]), float(ndtri(0.5 + level / 2)) / np.sqrt(information)
    value, low, high = (float(law.value(each)[0]) for each in (point, point - wide, point + wide))
    stderr = float(law.slope(point)[0]) / np.sqrt(information)
    model = law.model(u, cutoff=cutoff)
    log_likelihood = derivatives(law, data, point)[0][0]
    return PositionFit(
        model=model,
        parameters=(Parameter(law.parameter, value, float(stderr), low, high),),
        scale=law.scale,
        log_likelihood=float(log_likelihood),
        n=data.n,
        n_censored=int(data.censored.sum()),
        goodness=goodness_of_depths(law.model(u, cutoff=None), data.depth, data.stopped, data.censored, parameters=1),
    )


def derivatives(law: DepthFamily, data: Depths, u: Floats) -> tuple[Floats, Floats, Floats]:
    """The log-likelihood of each group at its u, with its first two derivatives."""
    at, n = u[data.group], len(u)
    stopped, reached = law.stopped(at, data.depth), law.reached(at, data.depth)
    value, first, second = (
        sums_by(data.group, data.stopped * a + data.censored * b, n=n) for a, b in zip(stopped, reached, strict=True)
    )
    return value, first, second


def solve(law: DepthFamily, data: Depths, *, centre: float = 0.0, precision: float = 0.0) -> Solution:
    """Newton's method for all groups at once, kept inside a bracket that halves where a step would leave it."""
    n = len(data.groups)
    low, high, u = np.full(n, -FAR), np.full(n, FAR), np.full(n, centre)
    for _ in range(STEPS):
        _, first, second = derivatives(law, data, u)
        first, second = first - precision * (u - centre), second - precision
        low, high = np.where(first > 0, u, low), np.where(first > 0, high, u)
        with np.errstate(invalid="ignore", divide="ignore"):
            step = u - first / second
        close = (second < 0) & (np.abs(step - u) <= CLOSE * (1 + np.abs(u)))
        inside = (second < 0) & (step > low) & (step < high)
        u = np.where(close | inside, step, (low + high) / 2)
        if (close | (high - low <= CLOSE)).all():
            break
    value, _, second = derivatives(law, data, u)
    return Solution(u, -second + precision, value)


def table_of(depths: Depths, *, cutoff: int | None) -> Table:
    """P(V | r) without a formula: the share of sessions that reach r (Kaplan-Meier).

    >>> table_of(Depths.of([1, 2, 2, 4]), cutoff=None).probability
    (1.0, 0.75, 0.25, 0.25)
    """
    return Table((1.0, *_survival(depths.pooled())[2].tolist()), cutoff=cutoff)


def _survival(data: Depths) -> tuple[Floats, Floats, Floats]:
    """Sessions that could stop at each rank, those that did, and the share that reaches each rank from 2 on."""
    last = int(min(data.depth.max(), DEEPEST_TABLE))
    n, stops = at_risk(data.depth, data.stopped, data.censored, last=last)
    return n, stops, np.asarray(np.cumprod(1.0 - stops[:-1] / n[:-1]), dtype=np.float64)


def _fit_table(data: Depths, *, cutoff: int | None, level: float) -> PositionFit:
    """The table of observed views (`table_of`) with Greenwood's standard errors.

    Intervals are symmetric on the scale of ln(-ln P), as usual for survival.
    """
    from truerank.core.special import ndtri

    n, stops, survive = _survival(data)
    last = len(n)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.cumsum(stops[:-1] / (n[:-1] * (n[:-1] - stops[:-1]))))
        wide = np.exp(float(ndtri(0.5 + level / 2)) * spread / np.abs(np.log(survive)))
        ends = [np.where((survive > 0) & (survive < 1), survive**power, survive) for power in (wide, 1 / wide)]
    model = table_of(data, cutoff=cutoff)
    parameters = tuple(
        Parameter(f"P(V|{rank})", *map(float, values))
        for rank, values in enumerate(zip(survive, survive * np.nan_to_num(spread), *ends, strict=True), 2)
    )
    stayed = n - stops
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = np.where(stops > 0, stops * np.log(stops / n), 0.0) + np.where(
            stayed > 0, stayed * np.log(stayed / n), 0.0
        )
    goodness = goodness_of_depths(
        Table((1.0, *survive.tolist(), 0.0)), data.depth, data.stopped, data.censored, parameters=last
    )
    return PositionFit(
        model=model,
        parameters=parameters,
        scale="ln(-ln)",
        log_likelihood=float(np.nansum(terms)),
        n=data.n,
        n_censored=int(data.censored.sum()),
        goodness=goodness,
        notes=("a table fits its own data exactly: its goodness of fit has no degrees of freedom",),
    )
