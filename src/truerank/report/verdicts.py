"""Who beats whom on what, in one sentence, and whether the evidence is sufficient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truerank.core.errors import some
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW, Comparison
from truerank.report.questions import ShownQuestion

FEW = 3  # that a sentence names
WORDS = {NOT_SHOWN: "inconclusive", INSUFFICIENT: "insufficient evidence"}  # verdicts as they are displayed
SIGNIFICANT = (*SHOWN_ABOVE, *SHOWN_BELOW)


def ranked_models(questions: Sequence[ShownQuestion]) -> list[str]:
    """Models by how many questions they lead, then by the first question."""
    if not questions:
        return []
    first = [estimate.model for estimate in questions[0].estimates]
    names = dict.fromkeys([*first, *(estimate.model for question in questions for estimate in question.estimates)])
    leads = [question.leader.model for question in questions if question.leader is not None]
    wins = [winner(pair) for question in questions for pair in question.differences if pair.verdict in SIGNIFICANT]
    return sorted(names, key=lambda name: (-leads.count(name), -wins.count(name)))


def winner(comparison: Comparison) -> str:
    return comparison.model if comparison.verdict in SHOWN_ABOVE else comparison.baseline


def verdict(questions: Sequence[ShownQuestion], models: Sequence[str]) -> str:
    """Who beats whom on what, in one sentence."""
    compared = [question for question in questions if question.differences]
    if not models:
        return "No estimate."
    if not compared:
        return f"No comparison: {'one model' if len(models) == 1 else some(list(models))}."
    baselines = {question.baseline for question in compared}
    if len(models) == 2:
        text = _pair_sentence(models[0], models[1], compared)
    elif len(baselines) == 1 and None not in baselines:
        text = _against_baseline(models, str(baselines.pop()), compared)
    else:
        text = _leaders(models, compared)
    return f"{text[0].upper() if text.startswith(('no ', 'insufficient ')) else text[0]}{text[1:]}."


def evidence(questions: Sequence[ShownQuestion]) -> str:
    """Whether the comparisons carry verdicts."""
    verdicts = [comparison.verdict for question in questions for comparison in question.differences]
    lacking = verdicts.count(INSUFFICIENT)
    if not verdicts:
        return ""
    if lacking in (0, len(verdicts)):
        return "insufficient" if lacking else "sufficient"
    return f"insufficient for {lacking:,} of {len(verdicts):,} comparisons"


def scope(chosen: Sequence[ShownQuestion], every: Sequence[ShownQuestion]) -> str:
    """On what: the questions by name, or how many of how many."""
    total = len(every)
    noun = next(
        (noun for noun, values in (("metrics", {question.metric for question in every}),
                                   ("rewards", {question.reward for question in every}),
                                   ("estimators", {question.estimator for question in every})) if len(values) == total),
        "estimates",
    )  # fmt: skip
    if len(chosen) == total > 1:
        return f"both {noun}" if total == 2 else f"all {total:,} {noun}"
    if len(chosen) <= FEW:
        return _listed([question.label for question in chosen])
    return f"{len(chosen):,} of {total:,} {noun}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _parts(model: str, baseline: str, questions: Sequence[ShownQuestion], words: Mapping[str, str]) -> list[str]:
    """A clause for each kind of verdict on two models: the words of the verdict, and on which questions."""
    verdicts: dict[str, list[ShownQuestion]] = {}
    for question in questions:
        comparison = question.difference(model, baseline)
        if comparison is not None:
            verdicts.setdefault(comparison.verdict, []).append(question)
    return [f"{text} {scope(verdicts[kind], questions)}" for kind, text in words.items() if kind in verdicts]


def _pair_sentence(model: str, baseline: str, questions: Sequence[ShownQuestion]) -> str:
    both = f"{model} and {baseline}"
    words = {
        "better": f"{model} beats {baseline} on", "higher": f"{model} is higher than {baseline} on",
        "worse": f"{baseline} beats {model} on", "lower": f"{baseline} is higher than {model} on",
        NOT_SHOWN: f"no significant difference between {both} on",
        INSUFFICIENT: f"insufficient evidence to compare {both} on",
    }  # fmt: skip
    first, *rest = _parts(model, baseline, questions, words)
    return "; ".join([first, *(part.replace(f" between {both}", "").replace(f" to compare {both}", "")
                               for part in rest)])  # fmt: skip


def _against_baseline(models: Sequence[str], baseline: str, questions: Sequence[ShownQuestion]) -> str:
    """Models with the same verdicts together."""
    words = {
        "better": "better on", "higher": "higher on", "worse": "worse on", "lower": "lower on",
        NOT_SHOWN: "no significant difference on", INSUFFICIENT: "insufficient evidence on",
    }  # fmt: skip
    alike: dict[str, list[str]] = {}
    for model in models:
        if model != baseline:
            alike.setdefault(", ".join(_parts(model, baseline, questions, words)), []).append(model)
    parts = [f"{some(names)} {text}" for text, names in alike.items()]
    return f"Against {baseline}: {'; '.join(parts[:FEW])}{'; and more' * (len(parts) > FEW)}"


def _leaders(models: Sequence[str], questions: Sequence[ShownQuestion]) -> str:
    """Which model leads what, and where it beats all others."""
    leads: dict[str, list[ShownQuestion]] = {}
    for question in questions:
        if question.leader is not None:
            leads.setdefault(question.leader.model, []).append(question)
    if not leads:
        return "no model has a defined value"
    leader, most = max(leads.items(), key=lambda lead: len(lead[1]))
    alone = [question for question in most if len(beaten_by(question, leader)) == len(question.estimates) - 1]
    others = f"all {len(models) - 1:,} others"
    if len(alone) == len(questions):
        return f"{leader} beats {others} on {scope(alone, questions)}"
    text = f"{leader} is highest on {scope(most, questions)}"
    if alone:
        text += f" and beats {others} on {scope(alone, questions)}"
    else:
        beaten = max((beaten_by(question, leader) for question in most), key=len)
        text += f", significantly above {some(beaten, most=FEW)}" if beaten else ", significantly above no other"
    rest = [f"{name} on {scope(of_name, questions)}" for name, of_name in leads.items() if name != leader]
    return f"{text}; {', '.join(rest[:FEW])}" if rest else text


def beaten_by(question: ShownQuestion, model: str) -> list[str]:
    """The models that one is significantly above, in order of their values."""
    pairs = [question.difference(model, estimate.model) for estimate in question.estimates]
    return [pair.baseline for pair in pairs if pair is not None and pair.verdict in SHOWN_ABOVE]
