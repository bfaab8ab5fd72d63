"""What an off-policy evaluation keeps for the record: fitted position models, chosen clips, weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from truerank.evaluation.log_facts import RankedFacts
from truerank.exposure.positions.learner import FittedPositions
from truerank.exposure.positions.position_models import Positions


@dataclass(frozen=True, slots=True)
class FittedPosition:
    """A fitted parameter of a position model, for the record."""

    place: str
    parameter: str
    value: float
    stderr: float
    p_of_fit: float


def source_of_exposures(facts: RankedFacts, positions: Positions | None, loggers: Mapping[str, Any]) -> str:
    """Where the exposures of the logging policy come from."""
    if loggers:
        return "loggers"
    return "column propensity" if facts.propensity else f"positions, {positions}"


def recorded(fitted: FittedPositions) -> list[FittedPosition]:
    """Fitted parameters, for the record."""
    return [
        FittedPosition(place, each.name, each.value, each.stderr, fit.goodness.p)
        for place, fit in fitted.fits.items()
        for each in fit.parameters
    ]


def views(fitted: FittedPositions) -> list[dict[str, Any]]:
    """How many came to each position, in the log and by the model, for the record."""
    return [{"place": place, **asdict(bucket)} for place, fit in fitted.fits.items() for bucket in fit.goodness.buckets]


def details_of(
    *,
    cluster: str,
    chosen: Sequence[Mapping[str, Any]],
    diagnostics: Sequence[Mapping[str, Any]],
    fits: Sequence[FittedPosition],
    views: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What an off-policy evaluation alone can tell: clips it chose, weights, position fits and their data."""
    return {
        "cluster": cluster,
        "chosen": list(chosen),
        "diagnostics": list(diagnostics),
        "fits": [asdict(each) for each in fits],
        "views": list(views),
    }


def limit(clip: float) -> float | None:
    """A clip for the record: none is None."""
    return None if math.isinf(clip) else clip
