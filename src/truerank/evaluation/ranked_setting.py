"""What comes into an off-policy evaluation: the log, the position model, the policies; checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.data.impressions import Impressions, Logged
from truerank.data.read_impressions import read_impressions
from truerank.estimators.ranked.normalisers import CHOSEN, FIVE
from truerank.estimators.ranked.reward_models import PredictionColumn
from truerank.estimators.ranked.weights import Weighing
from truerank.exposure.policies.mixtures import mixed_policy
from truerank.exposure.policies.policies import (
    ExposureColumn,
    Policy,
    RankColumn,
    column_names,
    logging_policy,
    policy_of,
)
from truerank.exposure.positions.fits_clicks import Clicks
from truerank.exposure.positions.places import Positions
from truerank.exposure.positions.requests import FROM_CLICKS, fitted
from truerank.uncertainty.refits import Refit
from truerank.uncertainty.strata import nested

THE_LOG = (RankColumn("position"), ExposureColumn("propensity"))  # the logging policy as a target


@dataclass(frozen=True, slots=True)
class FittedPosition:
    """A fitted parameter of a position model, for the record."""

    place: str
    parameter: str
    value: float
    stderr: float
    p_of_fit: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """A log with the exposures of every target."""

    log: Impressions
    weighings: Mapping[str, Weighing]
    positions: Positions | None
    assumptions: tuple[str, ...]
    stratum: Ints | None
    refit: Refit | None
    fits: tuple[FittedPosition, ...]
    about: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of them; with what refits have met so far."""
        return self.about if self.refit is None else (*self.about, *self.refit.notes())


def read_log(
    log: Any,
    targets: Mapping[str, Any],
    loggers: Mapping[str, Any] | None,
    estimators: Sequence[Any],
    *,
    rewards: Sequence[str] | None,
    columns: Mapping[str, str] | None,
    sessions: Any,
    logged: Logged,
) -> Impressions:
    """The log with all columns that targets, loggers and reward models name."""
    if isinstance(log, Impressions):
        return log
    models = [getattr(each, "model", None) for each in estimators]
    names = [name for each in (*targets.values(), *(loggers or {}).values()) for name in column_names(each)]
    names += [each.column for each in models if isinstance(each, PredictionColumn)]
    extra = [name for name in dict.fromkeys(names) if name not in ("position", "propensity")]
    return read_impressions(
        log, columns=columns, rewards=rewards, extra=extra, sessions=sessions, logged=Logged(logged)
    )


def prepare(
    log: Impressions,
    targets: Mapping[str, Any],
    *,
    position: Any,
    loggers: Mapping[str, Any] | None,
    columns: Mapping[str, str] | None,
    level: float,
) -> Prepared:
    """Position models fitted where that is asked for, exposures of every target, strata of loggers."""
    asked = None if position is None else Positions.everywhere(position)
    positions, fits, notes = _fit(log, asked, level=level)

    def logging_of(part: Impressions, models: Positions | None) -> tuple[Policy, Ints | None]:
        return mixed_policy(part, loggers, positions=models) if loggers else (logging_policy(part, models), None)

    def weigh(name: str, logging: Policy, models: Positions | None) -> Weighing:
        policy = _policy(targets[name], logging, name=name, positions=models, columns=columns)
        return Weighing(logging.log, policy, logging)

    logging, of_unit = logging_of(log, positions)
    weighings = {name: weigh(name, logging, positions) for name in targets}
    refit = None
    if asked is not None and asked.requests:

        def again(part: Impressions) -> Positions:
            models: Positions = _fitted(part, asked, level=level)[0]
            return models

        def weigh_again(part: Impressions, models: Positions, name: str) -> Weighing:
            return weigh(name, logging_of(part, models)[0], models)

        refit = Refit(log, again, weigh_again)
    if of_unit is not None and not nested(log.cluster, of_unit):
        notes.append(
            "users have sessions of several loggers, so the variance is taken between users, not within loggers."
        )
        of_unit = None
    return Prepared(
        log=log,
        weighings=weighings,
        positions=positions,
        assumptions=CHOSEN if positions is None and log.sessions is None else FIVE,
        stratum=of_unit,
        refit=refit,
        fits=fits,
        about=tuple(notes + _about_targets(log, weighings)),
    )


def _policy(
    target: Any, logging: Policy, *, name: str, positions: Positions | None, columns: Mapping[str, str] | None
) -> Policy:
    log = logging.log
    if isinstance(target, RankColumn | ExposureColumn) and target in THE_LOG:
        # what the logging policy earns: every weight is 1, and as many items are exposed as were viewed
        viewed = np.bincount(log.unit if log.viewed is None else log.unit[log.viewed], minlength=log.n_units)
        return replace(logging, name=name, total=viewed.astype(np.float64) if log.logged is Logged.VIEWED else None)
    return policy_of(target, log, name=name, positions=positions, columns=columns)


def _about_targets(log: Impressions, weighings: Mapping[str, Weighing]) -> list[str]:
    found = []
    for name, weighing in weighings.items():
        target = weighing.target
        missing = log.n_units - int(np.count_nonzero(target.defined()))
        if missing:
            found.append(f"{name}: {missing:,} of {log.n_units:,} {log.unit_name}s of the log have no ranking.")
        if target.unlogged:
            found.append(
                f"{name}: it ranks {target.unlogged:,} sessions that the log does not have; they are left out. If "
                "nothing was viewed in them they count: declare all sessions with --sessions (Python: sessions=...)."
            )
        never = int(np.count_nonzero(target.exposure() == 0)) if target.whole is not None else 0
        if never:
            found.append(
                f"{name}: {never:,} of {len(log):,} logged items would never be shown by it: their weight is 0."
            )
    return found


# ----------------------------------------------------------------------------------------------------------------- fits


def _fit(
    log: Impressions, asked: Positions | None, *, level: float
) -> tuple[Positions | None, tuple[FittedPosition, ...], list[str]]:
    if asked is None or not asked.requests:
        return asked, (), []
    positions, found = _fitted(log, asked, level=level)
    fits, notes = [], []
    for place, fit in found.items():
        fits += [FittedPosition(place, each.name, each.value, each.stderr, fit.goodness.p) for each in fit.parameters]
        shown = ", ".join(f"{each.name} = {each.value:.4g} ± {each.stderr:.2g}" for each in fit.parameters[:3])
        notes.append(f"position model of {place}: {fit.model.name}, {shown}, from {fit.n:,} {_fitted_to(log, asked)}.")
        notes += [f"position model of {place}: {each}" for each in fit.notes]
        if fit.goodness.p < 0.01:
            notes.append(
                f"position model of {place}: its views differ from those in the log by more than chance "
                f"(p = {fit.goodness.p:.1g}); choose another family, or a table."
            )
    return positions, tuple(fits), notes


def _fitted(log: Impressions, asked: Positions, *, level: float) -> Any:
    """The models fitted to the scroll depths, or clicks, of a log."""
    if log.position is None:
        raise InputError(f"{log.source}: fitting a position model needs the column position.")
    if _from_clicks(asked):
        clicks = Clicks.of(
            log.item, log.position, log.rewards[_clicks(log)],
            logged=log.logged, session=log.unit,
        )  # fmt: skip
        return fitted(asked, depth=np.ones(len(log)), clicks=clicks, level=level)
    if log.logged is not Logged.VIEWED:
        raise InputError(
            f"{log.source}: every displayed item is logged and nothing says which were viewed, so there are no scroll "
            "depths. Fit clicks (fit:clicks, fit:harvest), or add a column viewed."
        )
    if log.sessions is None:
        raise InputError(
            f"{log.source}: scroll depths are those of sessions, and the log has no column session. Name it: "
            "--columns session=NAME, or give the position model itself (exp:0.9, yule:1.5, FILE)."
        )
    return fitted(asked, **_depths(log), level=level)


def _from_clicks(asked: Positions) -> bool:
    return any(request.family in FROM_CLICKS for _, request in asked.requests)


def _fitted_to(log: Impressions, asked: Positions) -> str:
    """What a fit counts, in words."""
    return f"impressions and their {_clicks(log)}" if _from_clicks(asked) else "lists"


def _clicks(log: Impressions) -> str:
    """The reward that stands for clicks: the first of 0 and 1."""
    binary = [name for name, values in log.rewards.items() if values.dtype == np.uint8]
    if not binary:
        raise InputError(f"{log.source}: fitting clicks needs a reward of 0 and 1.")
    return binary[0]


def _depths(log: Impressions) -> dict[str, Any]:
    """The deepest viewed position of each session and surface, and whether its list ended there.

    A list ends with the deepest displayed position where a column says which of the displayed items were viewed, and
    after the number of candidates where that is known.
    """
    if log.position is None:
        raise TypeError("checked before")
    surface = np.zeros(len(log), dtype=np.int64)
    if log.surface is not None:
        surface = np.unique(log.surface, return_inverse=True)[1]
    key = log.unit * (int(surface.max(initial=0)) + 1) + surface
    rows = np.arange(len(log)) if log.viewed is None else np.flatnonzero(log.viewed)
    if not len(rows):
        raise InputError(
            f"{log.source}: no row was viewed, so there are no scroll depths. Check the column viewed, or give the "
            "position model itself (exp:0.9, yule:1.5, FILE)."
        )
    at = rows[_deepest(key[rows], log.position[rows])]
    depth = log.position[at]
    ended = np.zeros(len(at), dtype=bool)
    if log.viewed is not None:
        last = _deepest(key, log.position)
        ended |= depth >= log.position[last][np.searchsorted(key[last], key[at])]
    if log.length is not None:
        ended |= depth >= log.length[log.unit[at]]
    return {
        "depth": depth,
        "censored": ended,
        "surface": None if log.surface is None else log.surface[at],
        "group": None if log.group is None else log.group[at],
    }


def _deepest(key: Ints, position: npt.NDArray[Any]) -> Ints:
    """The row of the largest position of each key, in the order of keys."""
    order = np.lexsort((position, key))
    return np.asarray(order[np.append(np.flatnonzero(np.diff(key[order])), len(order) - 1)], dtype=np.int64)
