"""Contextual position bias: how deep a user scrolls depends on features of the user or the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, RefusedError
from truerank.exposure.positions.fits import Parameter
from truerank.exposure.positions.fits_families import DEEPEST, FAMILIES, DepthFamily, Goodness, bucketed
from truerank.exposure.positions.position_models import Place, PositionModel, Positions

STEPS = 100
BORDER = 15.0  # on the scale of a family; beyond it a session would all but surely go on, or stop


@dataclass(frozen=True, slots=True)
class ContextualFit:
    """u(x) = β_0 + β·x on the scale of a family: logit γ, ln ρ or ln α as a linear function of features."""

    family: str
    parameters: tuple[Parameter, ...]
    covariance: tuple[tuple[float, ...], ...]
    log_likelihood: float
    n: int
    n_censored: int
    goodness: Goodness
    cutoff: int | None = None

    @property
    def coefficient(self) -> Floats:
        return np.array([each.value for each in self.parameters])

    def value(self, features: npt.ArrayLike) -> Floats:
        """The parameter (γ, ρ or α) of each row of features."""
        return FAMILIES[self.family].value(self._scale(features))

    def model(self, features: npt.ArrayLike) -> PositionModel:
        """The position model of one row of features."""
        return FAMILIES[self.family].model(
            float(self._scale(np.atleast_2d(np.asarray(features)))[0]), cutoff=self.cutoff
        )

    def positions(self, groups: Mapping[str, Sequence[float]]) -> Positions:
        """The models of user groups, each by its features: what `off_policy` takes as position for a log with groups.

        Intervals of what is estimated with them do not include the error of this fit.

        >>> fit = fit_contextual("exp", [1, 2, 1, 2, 5, 6, 7, 4], features=[[0]] * 4 + [[1]] * 4, names=["heavy"])
        >>> str(fit.positions({"light": [0], "heavy": [1]}).rules[1][0])
        '*/heavy'
        """
        return Positions(tuple((Place(None, name), self.model(row)) for name, row in groups.items()))

    def view(self, position: Floats, features: npt.ArrayLike) -> Floats:
        """P(V = 1 | r, x) of each row."""
        position = np.asarray(position, dtype=np.float64)
        found = np.exp(FAMILIES[self.family].reached(self._scale(features), position)[0])
        return found if self.cutoff is None else np.where(position <= self.cutoff, found, 0.0)

    def _scale(self, features: npt.ArrayLike) -> Floats:
        table = np.asarray(features, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != len(self.parameters) - 1:
            raise InputError(
                f"features of shape {table.shape}; expected one row each with {len(self.parameters) - 1} columns."
            )
        return np.asarray(self.coefficient[0] + table @ self.coefficient[1:])


def fit_contextual(
    family: str,
    depth: npt.ArrayLike,
    *,
    features: npt.ArrayLike,
    names: Sequence[str],
    censored: npt.ArrayLike | None = None,
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

    if family not in FAMILIES:
        raise InputError(f"{family!r} cannot be fitted to scroll depths; expected one of {', '.join(FAMILIES)}.")
    law = FAMILIES[family]
    at, ended, design = _checked(depth, censored, features, names=names, cutoff=cutoff)
    beta, information, log_likelihood = _newton(law, at, ended, design)
    covariance = np.linalg.inv(information)
    stderr = np.sqrt(np.diag(covariance))
    z = float(ndtri(0.5 + level / 2))
    parameters = tuple(
        Parameter(name, float(b), float(s), float(b - z * s), float(b + z * s))
        for name, b, s in zip(("intercept", *names), beta, stderr, strict=True)
    )
    return ContextualFit(
        family=family,
        parameters=parameters,
        covariance=tuple(map(tuple, covariance.tolist())),
        log_likelihood=log_likelihood,
        n=len(at),
        n_censored=int(ended.sum()),
        goodness=_goodness(law, design @ beta, at, ended),
        cutoff=cutoff,
    )


def _checked(
    depth: npt.ArrayLike,
    censored: npt.ArrayLike | None,
    features: npt.ArrayLike,
    *,
    names: Sequence[str],
    cutoff: int | None,
) -> tuple[Floats, npt.NDArray[np.bool_], Floats]:
    at, table = np.asarray(depth, dtype=np.float64), np.asarray(features, dtype=np.float64)
    ended = np.zeros(len(at), dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    if table.shape != (len(at), len(names)) or len(ended) != len(at):
        raise InputError(
            f"{len(at)} depths, {len(ended)} ends and features of shape {table.shape}; expected one row per session "
            f"with {len(names)} columns ({', '.join(names)})."
        )
    if not (at >= 1).all() or not np.isfinite(table).all():
        raise InputError(
            "a scroll depth below 1 or a feature that is no number; expected depths from 1 and finite features."
        )
    if cutoff is not None:
        ended, at = ended | (at >= cutoff), np.minimum(at, cutoff)
    design = np.column_stack([np.ones(len(at)), table])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise RefusedError(
            f"the features {', '.join(names)} repeat each other or a constant, so their effects cannot be told apart. "
            "Leave one out."
        )
    return at, ended, design


def _newton(law: DepthFamily, at: Floats, ended: npt.NDArray[np.bool_], design: Floats) -> tuple[Floats, Floats, float]:
    def parts(beta: Floats) -> tuple[float, Floats, Floats]:
        u = design @ beta
        stopped, reached = law.stopped(u, at), law.reached(u, at)
        value, first, second = (np.where(ended, b, a) for a, b in zip(stopped, reached, strict=True))
        return float(value.sum()), design.T @ first, -(design.T * second) @ design

    beta = np.zeros(design.shape[1])
    value, score, information = parts(beta)
    for _ in range(STEPS):
        # a little of the identity where the likelihood is not yet curved like its maximum
        ridge = max(0.0, 1e-8 - float(np.linalg.eigvalsh(information)[0]))
        step = np.linalg.solve(information + ridge * 2 * np.eye(len(beta)), score)
        step *= min(1.0, 5.0 / max(float(np.abs(design @ step).max()), 1e-300))
        while (found := parts(beta + step))[0] < value - 1e-9 * abs(value) and np.abs(step).max() > 1e-14:
            step = step / 2
        beta = beta + step
        value, score, information = found
        if np.abs(step).max() <= 1e-10 * (1 + np.abs(beta).max()):
            break
    if np.linalg.eigvalsh(information)[0] <= 0 or np.abs(design @ beta).max() > BORDER:
        raise RefusedError(
            "the likelihood has no inner maximum: some features separate sessions that never go on, or never stop. "
            "Leave out such a feature or gather rare values."
        )
    return beta, information, value


def _goodness(law: DepthFamily, u: Floats, at: Floats, ended: npt.NDArray[np.bool_]) -> Goodness:
    """Stops by depth against Σ h_k(x) over the sessions that came there.

    One degree of freedom goes to the intercept; slopes move who stops, hardly how many, so none is taken for them.
    """
    last = int(min(at.max(), DEEPEST))
    n, stops, expected, variance = (np.zeros(last) for _ in range(4))
    observed_view, expected_view = np.ones(last), np.ones(last)
    alive = 1.0
    order = np.argsort(-at, kind="stable")
    u, at, ended = u[order], at[order], ended[order]
    came = len(at)
    for k in range(1, last + 1):
        came = int(np.searchsorted(-at[:came], -k, side="right"))
        rank, after = np.full(1, float(k)), np.full(1, k + 1.0)
        could = ~(ended[:came] & (at[:came] == k))
        here = u[:came][could]
        hazard = -np.expm1(law.reached(here, after)[0] - law.reached(here, rank)[0])
        n[k - 1], stops[k - 1] = len(here), float(np.sum(at[:came][could] == k))
        expected[k - 1], variance[k - 1] = hazard.sum(), (hazard * (1 - hazard)).sum()
        observed_view[k - 1], expected_view[k - 1] = alive, float(np.exp(law.reached(u, rank)[0]).mean())
        alive *= 1 - stops[k - 1] / n[k - 1] if n[k - 1] else 1.0
    return bucketed(
        n=n,
        stops=stops,
        expected=expected,
        variance=variance,
        observed_view=observed_view,
        expected_view=expected_view,
        parameters=1,
    )
