"""Position models of user groups, each drawn towards what holds for everyone as far as its own sessions say little."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.errors import RefusedError
from truerank.exposure.positions.fits import Depths, PositionFit, derivatives, described, fit_depths, solve
from truerank.exposure.positions.fits_families import FAMILIES, DepthFamily
from truerank.exposure.positions.places import Place, Positions

NARROW, WIDE = 0.01, 5.0  # spreads between groups that are looked at; below the first they count as equal


@dataclass(frozen=True, slots=True)
class GroupFits:
    """The fit for everyone, one for each group, and how far groups differ (a standard deviation on the scale)."""

    everyone: PositionFit
    groups: dict[str, PositionFit]
    between: float

    def positions(self, *, surface: str | None = None) -> Positions:
        """The models as rules: each group's own, everyone's for groups that were not seen."""
        rules = [(Place(surface, name), fit.model) for name, fit in self.groups.items()]
        return Positions(((Place(surface), self.everyone.model), *rules))


def fit_groups(family: str, depths: Depths, *, cutoff: int | None = None, level: float = 0.95) -> GroupFits:
    """One parameter per group with shrinkage: u_g ~ N(û, τ²) around everyone's û on the family's scale.

    A group's u_g maximises its own log-likelihood minus (u_g - û)² / (2 τ²); τ maximises the marginal likelihood of all
    groups (Laplace's approximation). Intervals are u_g ± z / √(I_g + 1/τ²). A group without stops still gets a value.

    >>> two = Depths.of([1, 1, 2, 2, 1, 9], group=np.array(list("aaaabb")))
    >>> fits = fit_groups("exp", two)
    >>> sorted(fits.groups)
    ['a', 'b']
    """
    if family not in FAMILIES:
        raise RefusedError(
            f"{family!r} has no parameter that groups could share; expected one of {', '.join(FAMILIES)}."
        )
    law, everyone = FAMILIES[family], fit_depths(family, depths, cutoff=cutoff, level=level)
    centre = float(solve(law, depths.pooled()).u[0])
    spread = _spread(law, depths, centre)
    if spread == 0:
        same = {name: _alone(everyone, depths, at) for at, name in enumerate(depths.groups)}
        return GroupFits(everyone, same, 0.0)
    found = solve(law, depths, centre=centre, precision=spread**-2)
    groups = {
        name: described(
            law,
            depths.only(at),
            u=float(found.u[at]),
            information=float(found.information[at]),
            cutoff=cutoff,
            level=level,
        )
        for at, name in enumerate(depths.groups)
    }
    return GroupFits(everyone, groups, spread)


def _alone(everyone: PositionFit, depths: Depths, group: int) -> PositionFit:
    own = depths.only(group)
    return replace(
        everyone,
        n=own.n,
        n_censored=int(own.censored.sum()),
        notes=("no difference between groups was found: these are everyone's value and interval",),
    )


def _spread(law: DepthFamily, depths: Depths, centre: float) -> float:
    """The τ of the largest marginal likelihood, 0 where groups show no difference."""
    from scipy.optimize import minimize_scalar

    def loss(log_spread: float) -> float:
        return -_marginal(law, depths, centre, math.exp(log_spread))

    best = minimize_scalar(loss, bounds=(math.log(NARROW), math.log(WIDE)), method="bounded", options={"xatol": 1e-4})
    spread = math.exp(float(best.x))
    same = float(derivatives(law, depths, np.full(len(depths.groups), centre))[0].sum())
    return spread if spread > 1.02 * NARROW and -float(best.fun) > same else 0.0


def _marginal(law: DepthFamily, depths: Depths, centre: float, spread: float) -> float:
    found = solve(law, depths, centre=centre, precision=spread**-2)
    away = (found.u - centre) / spread
    return float(np.sum(found.log_likelihood - away**2 / 2 - np.log(found.information * spread**2) / 2))
