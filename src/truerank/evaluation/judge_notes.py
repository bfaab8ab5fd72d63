"""How far a judge alone is off, said beside what it assists."""

from __future__ import annotations

import math

from truerank.core.messages import Message, caution, note
from truerank.estimators.judged.judge_alone import JudgeAlone
from truerank.estimators.predictions import Assistance, Helped
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Question
from truerank.uncertainty.spreads import Spread, influences


def about_judge(question: Question, measured: Measured) -> tuple[Message, ...]:
    """For each metric, by how much the judge alone differs from what labels make of it, and whether beyond chance."""
    alone = {asked.metric: number for number, (each, asked) in enumerate(question.asked) if each == JudgeAlone()}
    messages: list[Message] = []
    for number, (estimator, asked) in enumerate(question.asked):
        helped = isinstance(estimator, Helped) and estimator.by in (None, Assistance.JUDGE)
        if not helped or asked.metric not in alone:
            continue
        cells = {model: ((model, alone[asked.metric]), (model, number)) for model in question.models}
        apart = {
            model: _apart(measured, *both, level=question.level)
            for model, both in cells.items()
            if both[0] in measured.terms and both[1] in measured.terms
        }
        messages += _said(str(asked.metric), apart, level=question.level)
    return tuple(messages)


def _apart(measured: Measured, alone: tuple[str, int], assisted: tuple[str, int], *, level: float) -> Spread:
    """The judge alone minus what labels make of it, over the same users."""
    judge, corrected = (influences(measured.terms[cell]) for cell in (alone, assisted))
    if math.isnan(judge.value) or math.isnan(corrected.value):
        return Spread.unknown(math.nan)
    return judge.minus(corrected, informative=corrected.informative).spread(level=level, difference=True)


def _said(metric: str, apart: dict[str, Spread], *, level: float) -> list[Message]:
    known = {model: spread for model, spread in apart.items() if not math.isnan(spread.stderr)}
    if not known:
        return []
    parts = [
        f"{model} by {spread.value:+.4f} ({spread.low:+.4f} to {spread.high:+.4f})" for model, spread in known.items()
    ]
    off = [model for model, spread in known.items() if spread.low > 0 or spread.high < 0]
    numbers = {model: spread.value for model, spread in known.items()}
    sentence = f"{metric}: the judge alone is off from assisted, for {', '.join(parts)}, {level:.0%} intervals; "
    if off:
        return [
            caution(
                "judge-off",
                f"{sentence}beyond chance for {', '.join(off)}: do not rely on judge-alone.",
                numbers=numbers,
                about=(metric,),
            )
        ]
    return [note("judge-off", f"{sentence}no more than labels leave to chance.", numbers=numbers, about=(metric,))]
