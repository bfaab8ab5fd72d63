"""Contextual position bias: how deep a user scrolls depends on features of the user or the session."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.record import record
from truerank.exposure.positions.depths import (
    DEEPEST,
    FAMILIES,
    DepthFamily,
    Depths,
    checked_depths,
    family_of,
    log_likelihood,
)
from truerank.exposure.positions.fits import Goodness, Parameter, goodness_by_depth
from truerank.exposure.positions.position_models import Place, PositionModel, Positions

STEPS = 100
BORDER = 15.0  # on the scale of a family; beyond it a session would all but surely go on, or stop


@record
class ContextualFit:
    """u(x) = β_0 + β·x on the scale of a family: logit γ, ln ρ or ln α as a linear function of features."""

    family: str
    parameters: tuple[Parameter, ...]
    log_likelihood: float
    n: int
    n_censored: int
    goodness: Goodness
    cutoff: int | None = None

    def value(self, features: npt.ArrayLike) -> Floats:
        """The parameter (γ, ρ or α) of each row of features."""
        return FAMILIES[self.family].value(self._scale(features))

    def model(self, features: npt.ArrayLike) -> PositionModel:
        """The position model of one row of features."""
        u = float(self._scale(np.atleast_2d(np.asarray(features)))[0])
        return FAMILIES[self.family].model(u, cutoff=self.cutoff)

    def positions(self, groups: Mapping[str, Sequence[float]]) -> Positions:
        """The models of user groups, each by its features: what `off_policy` takes as position for a log with groups.

        Intervals of what is estimated with them do not include the error of this fit.

        >>> fit = fit_contextual("exp", [1, 2, 1, 2, 5, 6, 7, 4], features=[[0]] * 4 + [[1]] * 4, names=["heavy"])
        >>> str(fit.positions({"light": [0], "heavy": [1]}).rules[1][0])
        '*/heavy'
        """
        return Positions(tuple((Place(None, name), self.model(row)) for name, row in groups.items()))

    def _scale(self, features: npt.ArrayLike) -> Floats:
        table = np.asarray(features, dtype=np.float64)
        intercept, *slopes = (parameter.value for parameter in self.parameters)
        if table.ndim != 2 or table.shape[1] != len(slopes):
            raise InputError(f"features of shape {table.shape}; expected one row each with {len(slopes)} columns.")
        return np.asarray(intercept + table @ np.array(slopes))


def fit_contextual(
    family: str,
    depth: npt.ArrayLike,
    *,
    features: npt.ArrayLike,
    names: Sequence[str],
    censored: npt.ArrayLike = False,
    cutoff: int | None = None,
    level: float = 0.95,
) -> ContextualFit:
    """Maximum likelihood of β by Newton's method; standard errors from the observed information.

    One row per session. P(V = 1 | r, x) is that of the family with u = β_0 + β·x, so assumption 2 holds given x.
    Intervals are symmetric in β.

    >>> fit = fit_contextual("exp", [1, 2, 1, 2, 5, 6, 7, 4], features=[[0]] * 4 + [[1]] * 4, names=["heavy"])
    >>> [round(float(value), 6) for value in fit.value([[0], [1]])]  # Σ(d - 1) / Σd of each kind of user
    [0.333333, 0.818182]
    """
    from truerank.core.special import ndtri

    law, limit = family_of(family), cutoff or math.inf
    rows, ended = checked_depths(depth, censored)
    rows, ended = np.minimum(rows, limit), ended | (rows >= limit)
    design = _design(features, names, n=len(rows))
    beta, information, value = _newton(law, Depths(rows, np.where(ended, 0.0, 1.0), np.where(ended, 1.0, 0.0)), design)
    stderr = np.sqrt(np.diag(np.linalg.inv(information)))
    width = float(ndtri(0.5 + level / 2)) * stderr
    columns = zip(("intercept", *names), beta, stderr, beta - width, beta + width, strict=True)
    return ContextualFit(
        family=family,
        parameters=tuple(Parameter(name, *map(float, row)) for name, *row in columns),
        log_likelihood=value,
        n=len(rows),
        n_censored=int(ended.sum()),
        goodness=_goodness(law, design @ beta, rows, ended),
        cutoff=cutoff,
    )


def _design(features: npt.ArrayLike, names: Sequence[str], *, n: int) -> Floats:
    table = np.asarray(features, dtype=np.float64)
    if table.shape != (n, len(names)) or not np.isfinite(table).all():
        raise InputError(
            f"{n} depths and features of shape {table.shape}; expected one row per session with {len(names)} columns "
            f"({', '.join(names)}) of finite numbers."
        )
    design = np.column_stack([np.ones(n), table])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise RefusedError(
            f"the features {', '.join(names)} repeat each other or a constant, so their effects cannot be told apart. "
            "Leave one out."
        )
    return design


def _newton(law: DepthFamily, rows: Depths, design: Floats) -> tuple[Floats, Floats, float]:
    def derivatives(beta: Floats) -> tuple[float, Floats, Floats]:
        value, first, second = log_likelihood(law, design @ beta, rows)
        return float(value.sum()), design.T @ first, -(design.T * second) @ design

    beta = np.zeros(design.shape[1])
    value, score, information = derivatives(beta)
    for _ in range(STEPS):
        # a little of the identity where the likelihood is not yet curved like its maximum
        ridge = max(0.0, 1e-8 - float(np.linalg.eigvalsh(information)[0]))
        step = np.linalg.solve(information + ridge * 2 * np.eye(len(beta)), score)
        step *= min(1.0, 5.0 / max(float(np.abs(design @ step).max()), 1e-300))
        while (there := derivatives(beta + step))[0] < value - 1e-9 * abs(value) and np.abs(step).max() > 1e-14:
            step = step / 2
        beta = beta + step
        value, score, information = there
        if np.abs(step).max() <= 1e-10 * (1 + np.abs(beta).max()):
            break
    if np.linalg.eigvalsh(information)[0] <= 0 or np.abs(design @ beta).max() > BORDER:
        raise RefusedError(
            "the likelihood has no inner maximum: some features separate sessions that never go on, or never stop. "
            "Leave out such a feature or gather rare values."
        )
    return beta, information, value


def _goodness(law: DepthFamily, u: Floats, depth: Floats, ended: Bools) -> Goodness:
    """Stops by depth against Σ h_k(x) over the sessions that came there.

    One degree of freedom goes to the intercept; slopes move who stops, hardly how many, so none is taken for them.
    """
    last = int(min(depth.max(), DEEPEST))
    expected, variance, view = np.zeros((3, last))
    for k in range(1, last + 1):
        rank = np.full(1, float(k))
        could = u[(depth > k) | ((depth == k) & ~ended)]
        hazard = -np.expm1(law.reached(could, rank + 1.0)[0] - law.reached(could, rank)[0])
        expected[k - 1], variance[k - 1] = hazard.sum(), (hazard * (1 - hazard)).sum()
        view[k - 1] = float(np.exp(law.reached(u, rank)[0]).mean())
    n, stops = Depths.from_sessions(depth, censored=ended).at_risk(last)
    return goodness_by_depth(n, stops, expected=expected, variance=variance, view=view, parameters=1)
