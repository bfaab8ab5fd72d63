"""What a log can tell, as text, and as plain values for JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from truerank.core.escaping import printable
from truerank.core.wording import worded
from truerank.evaluation.diagnostics import Diagnosis
from truerank.report.checks import randomness_plain
from truerank.report.text import COLUMNS

MOST_FINDINGS = 5
MARKS = {"note": "-", "caution": "!", "warning": "!!"}
KINDS = {
    "full": "full labels: every pair has one, so every metric is simply computed",
    "holdout": "a hold-out: what is not listed counts as irrelevant, which is a convention",
    "random": "random exposure: judged items stand for those that were not, without a model",
    "biased": "biased exposure: some pairs were likelier to be shown, which weights must undo",
    "ranked": "a ranked log: what other rankers would earn can be estimated",
}


def diagnosis_text(found: Diagnosis, commands: Sequence[str], *, for_cli: bool = True) -> str:
    """What kind of data it is and why, what was found in it, what estimates it supports, and what to run next."""
    columns = ", ".join(name if name == kind else f"{name} (the {kind})" for kind, name in found.columns.items())
    facts = ", ".join(f"{_spaced(name)} {_number(value)}" for name, value in found.facts.items())
    order = ["warning", "caution", "note"]
    findings = sorted(found.findings, key=lambda message: order.index(message.severity))
    lines = [f"{found.source} is {KINDS[found.exposed]}.", f"Why: {found.why}.", f"Columns: {columns}.", f"{facts}."]
    lines += [f"{MARKS[message.severity]} {message.said(for_cli=for_cli)}." for message in findings[:MOST_FINDINGS]]
    for title, cautious in (("Estimators to use", False), ("Only to compare with", True)):
        names = [usable.name for usable in found.estimators if usable.valid and bool(usable.caution) == cautious]
        lines += [f"{title}: {', '.join(names)}."] if names else []
    if found.needs_positive is not None:
        lines.append(f"Values are no labels: say which count as positive, as here {found.needs_positive}.")
    text = "\n".join(fill(printable(line), COLUMNS, break_long_words=False) for line in lines)
    steps = ["Next:", *(f"  {command}" for command in commands)] if commands else ["Next: mend the log, and ask again."]
    return "\n".join([text, *steps, ""])


def diagnosis_plain(found: Diagnosis, commands: Sequence[str]) -> dict[str, Any]:
    """For JSON."""
    return {
        "source": found.source,
        "exposure": str(found.exposed),
        "why": found.why,
        "columns": dict(found.columns),
        "facts": dict(found.facts),
        "findings": [
            {"code": each.code, "severity": str(each.severity), "text": str(each), **each.numbers}
            for each in found.findings
        ],
        "randomness": None if found.randomness is None else randomness_plain(found.randomness),
        "estimators": [
            {
                "estimator": each.name,
                "valid": each.valid,
                "metrics": list(each.metrics),
                "assumptions": list(each.assumptions),
                "why_not": worded(each.why_not or "", for_cli=True),
                "caution": each.caution,
            }
            for each in found.estimators
        ],
        "next": list(commands),
    }


def diagnosis_rows(found: Diagnosis) -> list[dict[str, Any]]:
    """A row for each estimator."""
    return [
        {
            "exposure": str(found.exposed),
            "estimator": each.name,
            "valid": each.valid,
            "metrics": "; ".join(each.metrics),
            "assumptions": "; ".join(each.assumptions),
            "why_not": worded(each.why_not or "", for_cli=True),
            "caution": each.caution,
        }
        for each in found.estimators
    ]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _number(value: float | int) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}"
