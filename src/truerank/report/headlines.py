"""The answer in words: one sentence with its verdict for each question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truerank.core.errors import some
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW, Comparison, Results
from truerank.report.numbers import interval, number
from truerank.report.questions import ShownQuestion, shown_questions

FEW = 3  # models that a sentence names
VALUE = "no comparison"


@dataclass(frozen=True, slots=True)
class Headline:
    """What one question shows; `verdict` is the best of its comparisons, or that there are none."""

    question: str
    verdict: str
    sentence: str
    badge: str  # the verdict in a few words


def headlines(results: Results) -> list[Headline]:
    """One for each question, in the order of the results."""
    return [headline(question) for question in shown_questions(results)]


def headline(question: ShownQuestion) -> Headline:
    leader = question.leader
    if leader is None:
        return Headline(question.label, INSUFFICIENT, f"Nothing can be said of {question.at}: it has no value.",
                        INSUFFICIENT)  # fmt: skip
    if not question.differences:
        value = f"{leader.model} has {number(leader.value)} at {question.at}"
        sure = _sure(leader.low, leader.high, leader.level)
        return Headline(question.label, VALUE, f"{value}{sure}. There is nothing to compare it with.", VALUE)
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
    return signed(comparison.difference) + _sure(comparison.low, comparison.high, comparison.level)


def _sure(low: float, high: float, level: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return ", no interval"
    return f", {100 * level:.4g} % interval {interval(low, high)}"


def _reason(comparison: Comparison) -> str:
    return "; ".join(comparison.reason_texts) or "the evidence is insufficient"


def _of_two(question: ShownQuestion, found: Comparison) -> Headline:
    below = found.verdict in SHOWN_BELOW or (found.verdict not in SHOWN_ABOVE and found.difference < 0)
    towards = found.turned() if below else found
    model, other, at = towards.model, towards.baseline, question.at
    sentences = {
        **{kind: f"{model} is {kind} than {other} at {at}: {difference_text(towards)}." for kind in SHOWN_ABOVE},
        NOT_SHOWN: f"It is not shown that {model} is {question.word} than {other} at {at}: {difference_text(towards)}.",
        INSUFFICIENT: f"Nothing can be said of {model} against {other} at {at}: {_reason(towards)}.",
    }
    return Headline(question.label, towards.verdict, sentences[towards.verdict], towards.verdict)


def _of_leader(question: ShownQuestion, leader: str) -> Headline:
    """The highest value against each other."""
    own = [
        each if each.model == leader else each.turned()
        for each in question.differences
        if leader in (each.model, each.baseline)
    ]
    own.sort(key=lambda each: each.difference)  # the closest first
    above, unclear = _with(own, *SHOWN_ABOVE), _with(own, INSUFFICIENT)
    rest = [each for each in own if each not in above and each not in unclear]
    at, word, parts = question.at, question.word, list[str]()
    if above:
        every = f"all {len(above)} others" if len(above) == len(own) > FEW else _named(above)
        closest = f", closest to {above[0].baseline}" if len(above) > 1 else ""
        parts.append(f"{leader} is {word} than {every} at {at}{closest}: {difference_text(above[0])}")
    else:
        parts.append(f"{leader} is highest at {at}")
    if rest:
        parts.append(f"it is not shown to be {word} than {_named(rest)}: {difference_text(rest[0])}")
    if unclear:
        parts.append(f"nothing can be said of it against {_named(unclear)}: {_reason(unclear[0])}")
    found = word if above else NOT_SHOWN if rest else INSUFFICIENT
    badge = f"{word} than {len(above)} of {len(own)}" if 0 < len(above) < len(own) else found
    return Headline(question.label, found, f"{'; '.join(parts)}.", badge)


def _of_baseline(question: ShownQuestion) -> Headline:
    """Each model against the baseline, the largest difference first."""
    ordered = sorted(question.differences, key=lambda each: -each.difference)
    words = {
        **{kind: (f"{{}} is {kind}", " than {} at {}") for kind in (*SHOWN_ABOVE, *SHOWN_BELOW)},
        NOT_SHOWN: ("{} is not shown to differ", " from {} at {}"),
        INSUFFICIENT: ("nothing can be said of {}", " against {} at {}"),
    }
    told = []
    for at, each in enumerate(ordered):
        said, against = words[each.verdict]
        whom = "" if at else against.format(question.baseline, question.at)
        why = _reason(each) if each.verdict == INSUFFICIENT else difference_text(each)
        told.append(f"{said.format(each.model)}{whom}: {why}")
    found = next(kind for kind in (*SHOWN_ABOVE, NOT_SHOWN, *SHOWN_BELOW, INSUFFICIENT) if _with(ordered, kind))
    n = len(_with(ordered, found))
    badge = f"{found}: {n} of {len(ordered)}" if n < len(ordered) else found
    listed = "; ".join(told[:FEW]) + (f"; and {len(told) - FEW:,} more" if len(told) > FEW else "")
    return Headline(question.label, found, f"{listed}.", badge)


def _with(differences: Sequence[Comparison], *verdicts: str) -> list[Comparison]:
    return [each for each in differences if each.verdict in verdicts]


def _named(differences: Sequence[Comparison]) -> str:
    names = [each.baseline for each in differences]
    return f"{', '.join(names[:-1])} and {names[-1]}" if 1 < len(names) <= FEW else some(names, most=FEW)
