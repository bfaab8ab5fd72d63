"""What a log supports, and which sampled candidates to use: as text, and as plain values for JSON and CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import fill
from typing import Any

from truerank.core.escaping import printable
from truerank.core.wording import worded
from truerank.evaluation.diagnostics import Diagnosis
from truerank.exposure.randomness.tests import Randomness
from truerank.reliability.advice import Advice
from truerank.reliability.advice_words import verdict, warnings
from truerank.reliability.choices import Choice
from truerank.reliability.studied import PositivesProfile
from truerank.report.text import COLUMNS, aligned, plain_messages, without_nan

MOST_FINDINGS = 5
MARKS = {"warning": "!!", "caution": "!", "note": "-"}  # the gravest first
KINDS = {
    "full": "full labels: every pair has one, so every metric is simply computed",
    "holdout": "a hold-out: what is not listed counts as irrelevant, which is a convention",
    "random": "random exposure: judged items stand for those that were not, without a model",
    "biased": "biased exposure: some pairs were likelier to be shown, which weights must undo",
    "ranked": "a ranked log: what other rankers would earn can be estimated",
}


def diagnosis_text(diagnosis: Diagnosis, commands: Sequence[str], *, for_cli: bool = True) -> str:
    """What kind of data it is and why, what was found in it, what estimates it supports, and what to run next."""
    columns = ", ".join(name if name == kind else f"{name} (the {kind})" for kind, name in diagnosis.columns.items())
    facts = ", ".join(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in diagnosis.facts.items())
    findings = sorted(diagnosis.findings, key=lambda message: list(MARKS).index(message.severity))
    lines = [f"{diagnosis.source} is {KINDS[diagnosis.exposed]}.", f"Why: {diagnosis.why}.", f"Columns: {columns}.",
             f"{facts}."]  # fmt: skip
    lines += [f"{MARKS[message.severity]} {message.said(for_cli=for_cli)}." for message in findings[:MOST_FINDINGS]]
    for title, cautious in (("Estimators to use", False), ("Only to compare with", True)):
        names = [usable.name for usable in diagnosis.estimators if usable.valid and bool(usable.caution) == cautious]
        lines += [f"{title}: {', '.join(names)}."] if names else []
    if diagnosis.needs_positive is not None:
        lines.append(f"Values are no labels: say which count as positive, as here {diagnosis.needs_positive}.")
    text = "\n".join(fill(printable(line), COLUMNS, break_long_words=False) for line in lines)
    steps = ["Next:", *(f"  {command}" for command in commands)] if commands else ["Next: mend the log, and ask again."]
    return "\n".join([text, *steps, ""])


def _fact(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _estimators(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "estimator": usable.name,
            "valid": usable.valid,
            "metrics": list(usable.metrics),
            "assumptions": list(usable.assumptions),
            "why_not": worded(usable.why_not or "", for_cli=True),
            "caution": usable.caution,
        }
        for usable in diagnosis.estimators
    ]


def diagnosis_plain(diagnosis: Diagnosis, commands: Sequence[str]) -> dict[str, Any]:
    """For JSON."""
    return {
        "source": diagnosis.source,
        "exposure": str(diagnosis.exposed),
        "why": diagnosis.why,
        "columns": dict(diagnosis.columns),
        "facts": dict(diagnosis.facts),
        "findings": plain_messages(diagnosis.findings),
        "randomness": None if diagnosis.randomness is None else _randomness(diagnosis.randomness),
        "estimators": _estimators(diagnosis),
        "next": list(commands),
    }


def _randomness(randomness: Randomness) -> dict[str, Any]:
    """Nested plain values; NaN is None."""
    checks = [without_nan(asdict(check)) | {"failed": check.failed} for check in randomness.checks]
    return without_nan(asdict(randomness)) | {"drawn": randomness.drawn.value, "checks": checks}


def diagnosis_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """A row for each estimator."""
    return [
        {"exposure": str(diagnosis.exposed)}
        | {name: "; ".join(value) if isinstance(value, list) else value for name, value in row.items()}
        for row in _estimators(diagnosis)
    ]


# -------------------------------------------------------------------------------------------------- sampled candidates


def advice_text(advice: Advice, *, top: int) -> str:
    """What the log looks like, what to do, the figures behind it, and what to keep in mind."""
    parts = [_log(advice), verdict(advice), _table(advice, top), "\n".join(f"! {text}" for text in warnings(advice))]
    if advice.shipped:
        parts.insert(
            0,
            f"No study was given: this goes by the one on {advice.source}, the nearest of those that come with "
            f"truerank ({', '.join(advice.shipped)}). `truerank study reliability` makes one of a world like yours.",
        )
    return "\n\n".join(parts) + "\n"


def advice_plain(advice: Advice, *, top: int) -> dict[str, Any]:
    """Nested plain values; NaN is None."""
    log = advice.log
    return {
        "verdict": verdict(advice),
        "recommended": without_nan(asdict(advice.recommended)),
        "metric": advice.metric,
        "users": advice.users,
        "sparsity": advice.sparsity,
        "log": None if log is None else asdict(log) | {"positives_per_user": log.positives_per_user},
        "logger": advice.logger.logger,
        "loggers": [without_nan(asdict(logger)) for logger in advice.loggers],
        "choices": [
            without_nan(asdict(choice)) | {"not_clearly_worse": choice in advice.not_worse}
            for choice in _shown(advice, top)
        ],
        "not_clearly_worse": len(advice.not_worse),
        "pairs": advice.pairs,
        "undecided": list(map(list, advice.undecided)),
        "tau_of_all_pairs": list(advice.tau_of_all),
        "outside": list(advice.outside),
        "wrong": list(map(asdict, advice.wrong)),
        "other_metrics": [
            {
                "metric": elsewhere.metric,
                "sampler": elsewhere.choice[0],
                "size": elsewhere.choice[1],
                "tau": elsewhere.tau,
                "tau_of_recommended": elsewhere.recommended,
            }
            for elsewhere in advice.other_metrics
        ],
        "study": {
            "source": advice.source,
            "shipped": list(advice.shipped),
            "users": advice.study_users,
            "repetitions": advice.study_repetitions,
            "densest": advice.study_range[0],
            "sparsest": advice.study_range[1],
        },
        "warnings": list(warnings(advice)),
    }


def advice_rows(advice: Advice, *, top: int) -> list[dict[str, Any]]:
    """A row for each choice."""
    scenario = {name: getattr(advice, name) for name in ("metric", "users")} | {
        "logger": advice.logger.logger,
        "sparsity": advice.sparsity,
        "pairs": advice.pairs,
        "undecided": len(advice.undecided),
        "outside": "; ".join(advice.outside),
    }
    return [
        scenario
        | without_nan(asdict(choice))
        | {"recommended": choice == advice.recommended, "not_clearly_worse": choice in advice.not_worse}
        for choice in _shown(advice, top)
    ]


def _shown(advice: Advice, top: int) -> list[Choice]:
    """The best, and what is recommended where it is not among them."""
    first = list(advice.choices[:top])
    return first if advice.recommended in first else [*first, advice.recommended]


def _log(advice: Advice) -> str:
    """The log in words, and its exposure beside that of the study's logs."""
    look, header = advice.log, "exposure at this sparsity"
    stated = f"as said, sparsity {advice.sparsity:.1%}, logger {advice.logger.logger}."
    rows = []
    if look is None:
        text = f"Your log: {advice.users:,} users; {stated}"
    elif isinstance(look, PositivesProfile):
        text = (
            f"Your log: {advice.users:,} users; {look.items:,} items, {look.items_liked:,} of them liked; "
            f"{look.positives_per_user:.1f} positives per user, and nothing else; {stated}"
        )
        rows = [["your log", "", "", f"{look.positives_per_user:.1f}", "", ""]]
    else:
        figures = ""
        if not math.isclose(advice.sparsity, look.sparsity):
            figures = f", figures are of {advice.sparsity:.1%} as said"
            header = f"exposure at {look.sparsity:.1%} sparsity"
        text = (
            f"Your log: {look.users:,} users, {advice.users:,} of them counted; {look.items:,} items, "
            f"{look.items_shown:,} of them shown; {look.rows:,} pairs (sparsity {look.sparsity:.1%}{figures}), "
            f"{look.positives_per_user:.1f} positives per user."
        )
        rows = [["your log", f"{look.spread:.2f}", f"{look.lift:.2f}", f"{look.positives_per_user:.1f}", "", ""]]
    rows += [
        [
            logger.logger,
            f"{logger.spread:.2f}",
            f"{logger.lift:.2f}",
            f"{logger.positives_per_user:.1f}",
            "" if math.isnan(logger.distance) else f"{logger.distance:.2f}",
            "taken" if logger == advice.logger else "",
        ]
        for logger in advice.loggers
    ]
    titles = [header, "spread", "lift", "positives per user", "distance", ""]
    return text + "\n\n" + aligned([titles, *rows], left=(0, 5))


def _table(advice: Advice, top: int) -> str:
    header = [
        "sampler", "size", "negatives", "tau", "95 % interval", "closer models", "endless users",
        "best stays best", "tau per user", "95 % interval", "undefined", "ties", "",
    ]  # fmt: skip
    rows = [
        [
            choice.sampler,
            "" if choice.size is None else f"{choice.size:,}",
            f"{choice.negatives:,.0f}",
            f"{choice.tau:.3f}",
            f"{choice.low:.3f} to {choice.high:.3f}",
            f"{choice.closer:.3f}",
            f"{choice.limit:.3f}",
            "unknown" if math.isnan(choice.best_low) else f"{choice.best_low:.2f} to {choice.best_high:.2f}",
            f"{choice.per_user:.3f}",
            f"{choice.per_user_low:.3f} to {choice.per_user_high:.3f}",
            f"{choice.undefined:.1%}",
            f"{choice.ties:.1%}",
            "recommended" if choice == advice.recommended else "" if choice in advice.not_worse else "worse",
        ]
        for choice in _shown(advice, top)
    ]
    words = (
        f"{len(advice.choices):,} ways to choose candidates, {len(advice.not_worse):,} of them not clearly worse than "
        f"the best (their intervals overlap).\ntau: expected agreement of the order of means over {advice.users:,} "
        f"users with the true one, {advice.pairs} of {advice.all_pairs} pairs of models; closer models: half as far "
        "apart.\ntau per user: of single users, undefined as 0."
    )
    return aligned([header, *rows], left=(0, 12)) + "\n" + words
