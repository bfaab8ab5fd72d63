"""What a log supports, and which sampled candidates to use, as answers for every form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from truerank.core.wording import worded
from truerank.evaluation.diagnostics import Diagnosis
from truerank.reliability.advice import Advice
from truerank.reliability.advice_words import verdict, warnings
from truerank.reliability.choices import Choice
from truerank.reliability.studied import PositivesProfile
from truerank.report.view import Answer, AnswerSummary, DataTable

MOST_FINDINGS = 5
KINDS = {
    "full": "complete labels: every metric can be computed",
    "holdout": "a hold-out: pairs without a row count as irrelevant, by convention",
    "random": "a random sample: labelled items represent the unlabelled ones",
    "biased": "a biased log: some pairs were more likely to be exposed, and weights must correct for it",
    "ranked": "a ranked log: the reward of other rankers can be estimated",
}


def diagnosis_answer(
    diagnosis: Diagnosis, commands: Sequence[str], *, hints: Sequence[str] = (), for_cli: bool = True
) -> Answer:
    """What kind of data it is and why, what was found in it, what estimates it supports, and what to run next."""
    columns = ", ".join(name if name == kind else f"{name} (the {kind})" for kind, name in diagnosis.columns.items())
    facts = ", ".join(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in diagnosis.facts.items())
    grave = ["warning", "caution", "note"]
    findings = sorted(diagnosis.findings, key=lambda message: grave.index(message.severity))[:MOST_FINDINGS]
    notes = [f"Why: {diagnosis.why.removesuffix('.')}.", f"Columns: {columns}. {facts}."]
    names = [usable.name for usable in diagnosis.estimators if usable.valid and not usable.caution]
    notes += [f"Valid estimators: {', '.join(names)}."] if names else []
    if diagnosis.needs_positive is not None:
        notes.append(f"Values are not labels: choose which are positive, for example {diagnosis.needs_positive}.")
    notes += hints
    notes += [] if commands else ["Next: correct the log, and run advise again."]
    summary = AnswerSummary(
        f"{diagnosis.source} is {KINDS[diagnosis.exposed]}.",
        notes=tuple(notes),
        warnings=tuple(f"{message.said(for_cli=for_cli).removesuffix('.')}." for message in findings),
        commands=tuple(commands),
    )
    estimators = [_usable(usable) for usable in diagnosis.estimators]
    exposure = {"exposure": str(diagnosis.exposed)}
    frame = pl.DataFrame([exposure | {name: "; ".join(value) if isinstance(value, list) else value
                                      for name, value in row.items()} for row in estimators])  # fmt: skip
    randomness = diagnosis.randomness
    document = {
        "source": diagnosis.source, **exposure, "why": diagnosis.why, "columns": diagnosis.columns,
        "facts": diagnosis.facts, "findings": diagnosis.findings,
        "randomness": None if randomness is None else asdict(randomness) | {
            "checks": [asdict(check) | {"failed": check.failed} for check in randomness.checks]},
        "estimators": estimators, "next": commands,
    }  # fmt: skip
    return Answer("What can this log tell?", summary, lambda: frame, document)


def _fact(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _usable(usable: Any) -> dict[str, Any]:
    return {
        "estimator": usable.name, "valid": usable.valid, "metrics": list(usable.metrics),
        "assumptions": list(usable.assumptions), "why_not": worded(usable.why_not or "", for_cli=True),
        "caution": usable.caution,
    }  # fmt: skip


# -------------------------------------------------------------------------------------------------- sampled candidates


def advice_answer(advice: Advice, *, top: int) -> Answer:
    """What to do, the figures behind it beside those of the log, and what to keep in mind."""
    study = ""
    if advice.shipped:
        study = (
            f" No study was given: this is the study of {advice.source}, the nearest of those that come with truerank "
            f"({', '.join(advice.shipped)}). `truerank study reliability` makes one of data like yours."
        )
    words = (
        f"{len(advice.choices):,} ways to choose candidates, {len(advice.not_worse):,} of them not clearly worse than "
        f"the best (their intervals overlap). tau: expected agreement of the order of means over {advice.users:,} "
        f"users with the true one, {advice.pairs} of {advice.all_pairs} pairs of models; closer models: half as far "
        "apart; tau per user: of single users, undefined as 0."
    )
    summary = AnswerSummary(
        verdict(advice),
        table=_choices(advice, top).texts(),
        notes=(words,),
        groups=((f"{_log(advice)}{study}", _loggers(advice).texts()),),
        warnings=tuple(warnings(advice)),
    )
    scenario = {"metric": advice.metric, "users": advice.users, "logger": advice.logger.logger,
                "sparsity": advice.sparsity, "pairs": advice.pairs}  # fmt: skip
    choices = [
        asdict(choice) | {"recommended": choice == advice.recommended, "not_clearly_worse": choice in advice.not_worse}
        for choice in _best(advice, top)
    ]
    frame = pl.DataFrame([scenario | {"undecided": len(advice.undecided), "outside": "; ".join(advice.outside)} | choice
                          for choice in choices], infer_schema_length=None)  # fmt: skip
    log = advice.log
    document = scenario | {
        "verdict": verdict(advice), "recommended": advice.recommended, "choices": choices,
        "log": None if log is None else asdict(log) | {"positives_per_user": log.positives_per_user},
        "loggers": advice.loggers, "not_clearly_worse": len(advice.not_worse),
        "undecided": advice.undecided, "tau_of_all_pairs": advice.tau_of_all,
        "outside": advice.outside, "wrong": advice.wrong,
        "other_metrics": advice.other_metrics, "warnings": warnings(advice),
        "study": {"source": advice.source, "shipped": advice.shipped, "users": advice.study_users,
                  "repetitions": advice.study_repetitions, "sparsities": advice.study_range},
    }  # fmt: skip
    return Answer("Which candidates keep the true order of models?", summary, lambda: frame, document)


def _best(advice: Advice, top: int) -> list[Choice]:
    """The best, and what is recommended where it is not among them."""
    first = list(advice.choices[:top])
    return first if advice.recommended in first else [*first, advice.recommended]


def _log(advice: Advice) -> str:
    """The log in words; below it stands its exposure beside that of the study's logs."""
    profile = advice.log
    stated = f"as stated, sparsity {advice.sparsity:.1%}, logger {advice.logger.logger}."
    if profile is None:
        return f"Your log: {advice.users:,} users; {stated}"
    positives = f"{profile.positives_per_user:.1f} positives per user"
    if isinstance(profile, PositivesProfile):
        items = f"{profile.items:,} items, {profile.items_liked:,} of them liked"
        return f"Your log: {advice.users:,} users; {items}; {positives}, and nothing else; {stated}"
    figures = ""
    if not math.isclose(advice.sparsity, profile.sparsity):
        figures = f", figures are of {advice.sparsity:.1%} as stated"
    return (
        f"Your log: {profile.users:,} users, {advice.users:,} of them counted; {profile.items:,} items, "
        f"{profile.items_shown:,} of them exposed; {profile.rows:,} pairs (sparsity {profile.sparsity:.1%}{figures}), "
        f"{positives}."
    )


def _loggers(advice: Advice) -> DataTable:
    """The exposure of the log, and of the study's logs."""
    names = ("spread", "lift", "positives_per_user", "distance")
    logs = [*([("your log", advice.log, "")] if advice.log is not None else []),
            *((match.logger, match, "taken" * (match == advice.logger)) for match in advice.loggers)]  # fmt: skip
    rows = [
        {"exposure": title} | {name.replace("_", " "): getattr(log, name, None) for name in names} | {"": taken}
        for title, log, taken in logs
    ]
    return DataTable("", pl.DataFrame(rows, infer_schema_length=None).fill_nan(None))


def _choices(advice: Advice, top: int) -> DataTable:
    rows = [
        {
            "sampler": choice.sampler, "size": choice.size, "tau": choice.tau, "low": choice.low, "high": choice.high,
            "closer models": choice.closer, "endless users": choice.limit,
            "best stays best": "unknown" if math.isnan(choice.best_low)
            else f"{choice.best_low:.2f} to {choice.best_high:.2f}",
            "tau per user": choice.per_user, "ties": choice.ties,
            "": "recommended" if choice == advice.recommended else "" if choice in advice.not_worse else "worse",
        }
        for choice in _best(advice, top)
    ]  # fmt: skip
    return DataTable("", pl.DataFrame(rows, infer_schema_length=None))
