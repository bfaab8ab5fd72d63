"""Whether a log was shown at random: as text, and as plain values for JSON and CSV."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from truerank.exposure.randomness.tests import Check, Randomness


def randomness_text(found: Randomness) -> str:
    """The verdict, the checks behind it, and what they leave open."""
    lines = [f"Is this log random? {found.verdict}"]
    if found.checks:
        width = max(len(each.name) for each in found.checks)
        lines += ["", f"{'check':{width}}  {'statistic':>18}  {'p':>8}  {'p adjusted':>10}"]
        lines += [
            f"{each.name:{width}}  {_statistic(each):>18}  {_p(each.p):>8}  {_p(each.p_adjusted):>10}"
            for each in found.checks
        ]
        lines.append("")
    never = (
        f"{found.never_exposed:.2%} of items were shown to nobody; chance alone: {found.never_exposed_expected:.2%}."
    )
    return "\n".join([*lines, never, *found.notes]) + "\n"


def randomness_plain(found: Randomness) -> dict[str, Any]:
    """Nested plain values; NaN is None."""
    content: dict[str, Any] = asdict(found)
    content["drawn"] = found.drawn.value
    content["checks"] = [
        {name: _none(value) for name, value in asdict(each).items()} | {"failed": each.failed} for each in found.checks
    ]
    return {name: _none(value) for name, value in content.items()}


def randomness_flat(found: Randomness) -> dict[str, Any]:
    """One value for each name, for a table of two columns."""
    flat: dict[str, Any] = {"verdict": found.verdict}
    for each in found.checks:
        flat |= {f"{each.name}, statistic": _statistic(each), f"{each.name}, p": _p(each.p)}
        flat |= {f"{each.name}, p adjusted": _p(each.p_adjusted)} if each.verdict else {}
    flat |= {"share of items never shown": found.never_exposed, "by chance": found.never_exposed_expected}
    return flat | {f"note {at}": note for at, note in enumerate(found.notes, start=1)}


def _statistic(each: Check) -> str:
    if math.isnan(each.df):
        return f"z = {each.statistic:.2f}"
    return f"{each.statistic:,.1f} on {each.df:,.0f} df"


def _p(value: float) -> str:
    return "" if math.isnan(value) else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
