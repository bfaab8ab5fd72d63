"""What a log can tell, as text, and as plain values for JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truerank.evaluation.diagnosed import Diagnosis, Usable
from truerank.report.checks import randomness_plain
from truerank.report.text import as_lines

MARKS = {"note": "-", "caution": "!", "warning": "!!"}
KINDS = {
    "full": "full labels: every pair has one, so every metric is simply computed",
    "holdout": "a hold-out: what is not listed counts as irrelevant, which is a convention",
    "random": "random exposure: judged items stand for those that were not, without a model",
    "biased": "biased exposure: some pairs were likelier to be shown, which weights must undo",
    "ranked": "a ranked log: what other rankers would earn can be estimated",
}


def diagnosis_text(found: Diagnosis, commands: Sequence[str], *, for_cli: bool = True) -> str:
    """The verdict first, then what it rests on, what can be used, and what to run next."""
    facts = {_spaced(name): _number(value) for name, value in found.facts.items()}
    columns = ", ".join(name if name == kind else f"{name} (the {kind})" for kind, name in found.columns.items())
    parts = [
        f"{found.source} is {KINDS[found.exposed]}.\nWhy: {found.why}.",
        as_lines({"columns": columns, **facts}).rstrip(),
    ]
    if found.findings:
        parts.append("\n".join(f"{MARKS[each.severity]} {each.said(for_cli=for_cli)}." for each in found.findings))
    valid = [each for each in found.estimators if each.valid and not each.caution]
    parts.append("Valid here, under what each assumes:\n" + "\n".join(_usable(each) for each in valid))
    compared = [each for each in found.estimators if each.valid and each.caution]
    if compared:
        parts.append("To compare with, not to decide by:\n" + "\n".join(_usable(each) for each in compared))
    others = [each for each in found.estimators if not each.valid]
    parts.append("Not valid here:\n" + "\n".join(f"  {each.name}: {each.why_not}." for each in others))
    if found.needs_positive is not None:
        parts.append(f"Values are no labels: say which count as positive, as here {found.needs_positive}.")
    if commands:
        parts.append("Next:\n" + "\n".join(f"  {command}" for command in commands))
    else:
        parts.append("Next: mend the log, and ask again.")
    return "\n\n".join(parts) + "\n"


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
                "why_not": each.why_not,
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
            "why_not": each.why_not,
            "caution": each.caution,
        }
        for each in found.estimators
    ]


def _usable(each: Usable) -> str:
    lines = [f"  {each.name}: {', '.join(each.metrics)}"]
    lines += [f"      assumes that {assumption}" for assumption in each.assumptions]
    return "\n".join([*lines, *([f"      ! {each.caution}"] if each.caution else [])])


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _number(value: float | int) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}"
