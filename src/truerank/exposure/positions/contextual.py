"""Contextual position bias: how deep a user scrolls depends on features of the user or the session."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.record import record
from truerank.exposure.positions.depths import FAMILIES, Depths, family_of, log_likelihood
from truerank.exposure.positions.fits import Parameter, normal_quantile
from truerank.exposure.positions.position_models import Place, PositionModel, Positions

BORDER = 15.0  # on the scale of a family; beyond it a session would all but surely go on, or stop


@record
class ContextualFit:
    """u(x) = β_0 + β·x on the scale of a family: logit γ, ln ρ or ln α as a linear function of features."""

    family: str
    parameters: tuple[Parameter, ...]
    log_likelihood: float
    n: int
    n_censored: int
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
    """Maximum likelihood of β; standard errors from the observed information.

    One row per session. P(V = 1 | r, x) is that of the family with u = β_0 + β·x, so assumption 2 holds given x.
    Intervals are symmetric in β.

    >>> fit = fit_contextual("exp", [1, 2, 1, 2, 5, 6, 7, 4], features=[[0]] * 4 + [[1]] * 4, names=["heavy"])
    >>> [round(float(value), 6) for value in fit.value([[0], [1]])]  # Σ(d - 1) / Σd of each kind of user
    [0.333333, 0.818182]
    """
    from scipy.optimize import minimize

    law, sessions = family_of(family), Depths.of_sessions(depth, censored, end=cutoff or math.inf)
    design, n = _design(features, names, n=sessions.n), sessions.n

    def derivatives(beta: Floats) -> tuple[float, Floats, Floats]:
        """Of -1 / n times the log-likelihood."""
        value, first, second = log_likelihood(law, design @ beta, sessions)
        return -float(value.sum()) / n, -(first @ design) / n, -(design.T * second) @ design / n

    beta = minimize(
        lambda beta: derivatives(beta)[:2], np.zeros(len(names) + 1), jac=True, hess=lambda beta: derivatives(beta)[2],
        method="trust-exact", options={"gtol": 1e-10},
    ).x  # fmt: skip
    loss, _, curvature = derivatives(beta)
    if np.linalg.eigvalsh(curvature)[0] <= 0 or np.abs(design @ beta).max() > BORDER:
        raise RefusedError(
            "the likelihood has no inner maximum: some features separate sessions that never go on, or never stop. "
            "Leave out such a feature or gather rare values."
        )
    stderr = np.sqrt(np.diag(np.linalg.inv(curvature)) / n)
    width = normal_quantile(level) * stderr
    columns = zip(("intercept", *names), beta, stderr, beta - width, beta + width, strict=True)
    parameters = tuple(Parameter(name, *map(float, row)) for name, *row in columns)
    return ContextualFit(family, parameters, -loss * n, n, sessions.n_censored, cutoff)


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
