"""What is said beside off-policy estimates: where exposures come from, and which clips were chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from truerank.core.provenance import Input, Provenance, versions
from truerank.evaluation.ranked_setting import Prepared
from truerank.uncertainty.intervals import Interval
from truerank.uncertainty.weights import WeightDiagnostics


def source_of_exposures(prepared: Prepared, loggers: Any) -> str:
    """Where the exposures of the logging policy come from."""
    if loggers:
        return "loggers"
    return "column propensity" if prepared.log.propensity is not None else f"positions, {prepared.positions}"


def about_exposures(prepared: Prepared, loggers: Any) -> list[str]:
    if prepared.log.propensity is None or (prepared.positions is None and not loggers):
        return []
    if loggers:
        return ["the log has a column propensity, which is not used: the loggers give its exposures."]
    return [
        f"the log has a column propensity, which gives its exposures; the position model {prepared.positions} is used "
        "for the ranks of targets only. Drop the column to use the position model for both."
    ]


def about_choices(choices: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [
        f"clip {'inf' if each['clip'] is None else format(each['clip'], 'g')} chosen for {each['of']}, "
        f"{each['reward']}, {each['estimator']}: the smallest whose value differs from that of no larger clip by more "
        f"than the standard error of that difference. Its value differs by {each['against_largest_clip']:.3g} from "
        "that of the largest clip; intervals do not include the choice."
        for each in choices
        if each["by_rule"]
    ]
    fixed = dict.fromkeys(each["estimator"] for each in choices if not each["by_rule"])
    return found + [
        f"no clip is chosen for {name}: a ratio of clipped sums can move either way as the clip falls, so the rule "
        "would see no bias; the largest clip is taken."
        for name in fixed
    ]


def provenance_of(
    prepared: Prepared,
    loggers: Any,
    *,
    interval: Interval,
    level: float,
    seed: int,
    clips: Sequence[float],
    chosen: Sequence[Mapping[str, Any]],
    diagnostics: Mapping[str, Sequence[WeightDiagnostics]],
) -> Provenance:
    """What an off-policy evaluation was made of, with the clips it chose, its weights and its position fits."""
    log = prepared.log
    limits = [None if math.isinf(clip) else clip for clip in clips]
    return Provenance(
        inputs=(
            Input(role="log", source=log.source, rows=len(log), items=len(log.items)),
            *(Input(role="target", name=name, source=name) for name in prepared.weighings),
        ),
        settings={
            "position": None if prepared.positions is None else str(prepared.positions),
            "logging": source_of_exposures(prepared, loggers),
            "rewards": list(log.rewards),
            "clips": limits,
            "interval": type(interval).__name__,
            "level": level,
            "seed": seed,
        },
        counts={"rows": len(log), "units": log.n_units, "items": len(log.items)},
        unit=log.unit_name,
        versions=versions(),
        details={
            "cluster": "user" if log.users is not None else log.unit_name,
            "chosen": list(chosen),
            "diagnostics": [
                {"model": name, "clip": clip, **asdict(each)}
                for name, points in diagnostics.items()
                for clip, each in zip(limits, points, strict=True)
            ],
            "fits": [asdict(each) for each in prepared.fits],
        },
    )
