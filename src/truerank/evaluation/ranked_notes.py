"""What is said beside off-policy estimates: where exposures come from, and which clips were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truerank.evaluation.ranked_setting import Prepared


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
