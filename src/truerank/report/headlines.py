"""The answer in words: one sentence with its verdict for each question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truerank.core.errors import some
from truerank.core.results import BETTER, INSUFFICIENT, NOT_SHOWN, WORSE, Comparison, Results
from truerank.report.numbers import interval, number
from truerank.report.questions import ShownQuestion, shown_questions

FEW = 3  # models that a sentence names
VALUE = "no comparison"


@dataclass(frozen=True, slots=True)
class Headline:
    """What one question shows; `verdict` is that of its comparisons, or that there are none."""

    question: str
    verdict: str
    sentence: str


def headlines(results: Results) -> list[Headline]:
    """One for each question, in the order of the results."""
    return [headline(question) for question in shown_questions(results)]


def headline(question: ShownQuestion) -> Headline:
    leader = question.leader
    if leader is None:
        return Headline(question.label, INSUFFICIENT, f"Nothing can be said of {question.metric}: it has no value.")
    if not question.differences:
        value = f"{leader.model} has {number(leader.value)} at {question.metric}{_sure(leader.low, leader.high, leader.level)}"
        return Headline(question.label, VALUE, f"{value}. There is nothing to compare it with.")
    if len(question.differences) == 1:
        return _of_two(question, question.differences[0])
    return _of_baseline(question) if question.baseline is not None else _of_leader(question, leader.model)


def signed(value: float) -> str:
    """
    >>> signed(0.0123), signed(-0.2), signed(0.0)
    ('+0.0123', '-0.2000', '0.0000')
    """
    return f"+{number(value)}" if value > 0 else number(value)


def difference_text(comparison: Comparison) -> str:
    """The difference with its interval, as +0.0120, 95 % interval 0.0080 to 0.0160."""
    return signed(comparison.difference) + _sure(comparison.low, comparison.high, comparison.interval_level)


def _sure(low: float, high: float, level: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return ", no interval"
    return f", {100 * level:.4g} % interval {interval(low, high)}"


def _reason(comparison: Comparison) -> str:
    return "; ".join(comparison.reason_texts) or "the evidence is insufficient"


def _of_two(question: ShownQuestion, found: Comparison) -> Headline:
    towards = found.turned() if found.difference < 0 else found
    model, other, at = towards.model, towards.baseline, question.metric
    sentences = {
        BETTER: f"{model} is better than {other} at {at}: {difference_text(towards)}.",
        WORSE: f"{other} is better than {model} at {at}: {difference_text(towards.turned())}.",
        NOT_SHOWN: f"It is not shown that {model} is better than {other} at {at}: {difference_text(towards)}.",
        INSUFFICIENT: f"Nothing can be said of {model} against {other} at {at}: {_reason(towards)}.",
    }
    return Headline(question.label, BETTER if towards.verdict == WORSE else towards.verdict, sentences[towards.verdict])


def _of_leader(question: ShownQuestion, leader: str) -> Headline:
    """The highest value against each other."""
    own = [each if each.model == leader else each.turned()
           for each in question.differences if leader in (each.model, each.baseline)]  # fmt: skip
    own.sort(key=lambda each: each.difference)  # the closest first
    better, rest = _with(own, BETTER), [each for each in own if each.verdict not in (BETTER, INSUFFICIENT)]
    unclear = _with(own, INSUFFICIENT)
    at, parts = question.metric, list[str]()
    if better:
        every = f"all {len(better)} others" if len(better) == len(own) > FEW else _named(better)
        closest = f", closest to {better[0].baseline}" if len(better) > 1 else ""
        parts.append(f"{leader} is better than {every} at {at}{closest}: {difference_text(better[0])}")
    else:
        parts.append(f"{leader} is highest at {at}")
    if rest:
        parts.append(f"it is not shown to be better than {_named(rest)}: {difference_text(rest[0])}")
    if unclear:
        parts.append(f"nothing can be said of it against {_named(unclear)}: {_reason(unclear[0])}")
    found = BETTER if len(better) == len(own) else NOT_SHOWN if rest or better else INSUFFICIENT
    return Headline(question.label, found, f"{'; '.join(parts)}.")


def _of_baseline(question: ShownQuestion) -> Headline:
    """Each model against the baseline, the largest difference first."""
    ordered = sorted(question.differences, key=lambda each: -each.difference)
    words = {
        BETTER: "better than {}",
        WORSE: "worse than {}",
        NOT_SHOWN: "not shown to differ from {}",
        INSUFFICIENT: "nothing can be said against {}",
    }
    parts = []
    for kind, text in words.items():
        own = _with(ordered, kind)
        told = [f"{each.model} ({_reason(each) if kind == INSUFFICIENT else difference_text(each)})" for each in own]
        if told:
            parts.append(f"{text.format(question.baseline)}: {some(told, most=FEW)}")
    found = next(kind for kind in (BETTER, NOT_SHOWN, WORSE, INSUFFICIENT) if _with(ordered, kind))
    sentence = f"At {question.metric}, {'; '.join(parts)}."
    return Headline(question.label, found, sentence)


def _with(differences: Sequence[Comparison], verdict: str) -> list[Comparison]:
    return [each for each in differences if each.verdict == verdict]


def _named(differences: Sequence[Comparison]) -> str:
    return some([each.baseline for each in differences], most=FEW)
