"""Results question by question: one clip of each, the highest values first; who beats whom, in one sentence.

Summaries, charts and pages start here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from truerank.core.errors import some
from truerank.core.record import record
from truerank.core.results import INSUFFICIENT, NOT_SHOWN, SHOWN_ABOVE, SHOWN_BELOW, Comparison, Estimate, Results

MOST_MODELS = 20  # in a picture or a table
MOST_DIFFERENCES = 30
FEW = 3  # that a sentence names
WORDS = {NOT_SHOWN: "inconclusive", INSUFFICIENT: "insufficient evidence"}  # verdicts as they are displayed
SIGNIFICANT = (*SHOWN_ABOVE, *SHOWN_BELOW)

Key = tuple[str, str, str]
Entry = TypeVar("Entry", Estimate, Comparison)


@record
class ShownQuestion:
    """One metric, estimator and reward: an estimate of each model, highest first, and all differences.

    Where there are several clips, those of the clip that the data chose, or else of the largest. `label` is the metric
    with what tells it from other questions, `title` names the estimator too.
    """

    label: str
    title: str
    metric: str
    estimator: str
    reward: str
    estimates: tuple[Estimate, ...]
    differences: tuple[Comparison, ...]

    @property
    def key(self) -> Key:
        return self.metric, self.estimator, self.reward

    @property
    def estimand(self) -> str:
        return self.estimates[0].estimand

    @property
    def leader(self) -> Estimate | None:
        """The highest value; none where none is defined."""
        return self.estimates[0] if self.estimates and not math.isnan(self.estimates[0].value) else None

    @property
    def for_comparison(self) -> bool:
        """Whether its estimator is biased by design, such as a judge whose errors nothing corrects."""
        codes = {message.code for estimate in self.estimates for message in estimate.warnings}
        return "for-comparison" in codes

    @property
    def directed(self) -> bool:
        """Whether a larger value is better, not only higher."""
        return all(estimate.directed for estimate in self.estimates)

    @property
    def family(self) -> str:
        """The metric without its cut-off."""
        k = self.estimates[0].k
        return self.metric if k is None else self.metric.replace(f"@{k}", "", 1)

    @property
    def baseline(self) -> str | None:
        """The model that all others are compared with, where it is one."""
        names = {comparison.baseline for comparison in self.differences}
        return names.pop() if len(names) == 1 else None

    def difference(self, model: str, baseline: str) -> Comparison | None:
        """The difference model - baseline."""
        for comparison in self.differences:
            if (comparison.model, comparison.baseline) == (model, baseline):
                return comparison
            if (comparison.baseline, comparison.model) == (model, baseline):
                return comparison.reverse()
        return None

    def beaten_by(self, model: str) -> list[str]:
        """The models that one is significantly above, in order of their values."""
        pairs = [self.difference(model, estimate.model) for estimate in self.estimates]
        return [pair.baseline for pair in pairs if pair is not None and pair.verdict in SHOWN_ABOVE]

    def beats_all(self, model: str) -> bool:
        return len(self.beaten_by(model)) == len(self.estimates) - 1

    def top(self) -> tuple[Estimate, ...]:
        """The highest values, and that of the baseline."""
        rest = self.estimates[MOST_MODELS:]
        return (*self.estimates[:MOST_MODELS], *(estimate for estimate in rest if estimate.model == self.baseline))

    def top_differences(self, most: int = MOST_DIFFERENCES) -> tuple[Comparison, ...]:
        """Differences that a picture can hold: all, or those of the highest values with the leader or the baseline."""
        against = self.baseline is not None and len(self.estimates) > 2  # of two models it is winner - loser
        turned = [comparison if comparison.difference >= 0 or against else comparison.reverse()
                  for comparison in self.differences]  # fmt: skip
        if len(turned) > most:
            rank = {estimate.model: place for place, estimate in enumerate(self.estimates)}
            centre = self.baseline or (None if self.leader is None else self.leader.model)
            turned = [comparison for comparison in turned if centre in (comparison.model, comparison.baseline)]
            turned.sort(key=lambda pair: min(rank.get(pair.model, 0) + rank.get(pair.baseline, 0), len(rank) * 2))
        return tuple(sorted(turned[:most], key=lambda comparison: -comparison.difference))


def questions_of(results: Results) -> list[ShownQuestion]:
    """Every question about all items, in the order of the results."""
    estimates, differences = _by_key(results.estimates), _by_key(results.comparisons)
    chosen = {
        (choice["of"], choice["estimator"], choice["reward"]): choice["clip"]
        for choice in results.provenance.details.get("chosen", ())
    }
    rewards = len({reward for _, _, reward in estimates}) > 1
    estimators = len({estimator for _, estimator, _ in estimates})
    several = estimators > 1 and len({(metric, reward) for metric, _, reward in estimates}) < len(estimates)
    return [
        ShownQuestion(
            ", ".join((metric, *([estimator] if several else []), *([reward] if rewards else []))),
            ", ".join((metric, estimator, *([reward] if rewards else []))),
            metric,
            estimator,
            reward,
            tuple(sorted(_main_clip(entries, chosen), key=descending)),
            tuple(_main_clip(differences.get((metric, estimator, reward), ()), chosen)),
        )
        for (metric, estimator, reward), entries in estimates.items()
    ]


def item_groups(results: Results) -> dict[str, Results]:
    """Results of each group of items, as if there were no others."""
    names = dict.fromkeys(estimate.segment for estimate in results.estimates if estimate.segment is not None)

    def within(entries: Iterable[Entry], name: str) -> tuple[Entry, ...]:
        return tuple(replace(entry, segment=None) for entry in entries if entry.segment == name)

    return {
        name: replace(results, estimates=within(results.estimates, name), comparisons=within(results.comparisons, name))
        for name in names
    }


def _by_key(entries: Iterable[Entry]) -> dict[Key, list[Entry]]:
    by_key: dict[Key, list[Entry]] = {}
    for entry in entries:
        if entry.segment is None:
            by_key.setdefault((entry.metric, entry.estimator, entry.reward), []).append(entry)
    return by_key


def _main_clip(entries: Sequence[Entry], chosen: Mapping[Key, float | None]) -> list[Entry]:
    """Those of the clip that the data chose for a model or a difference, else of the largest."""
    largest = max((clip_limit(entry) for entry in entries), default=math.inf)

    def wanted(entry: Entry) -> float:
        clip = chosen.get((entry.name, entry.estimator, entry.reward), largest)
        return math.inf if clip is None else clip

    return [entry for entry in entries if clip_limit(entry) == wanted(entry)]


def clip_limit(entry: Estimate | Comparison) -> float:
    return math.inf if entry.clip is None else entry.clip


def descending(estimate: Estimate) -> float:
    """For sorting: the highest first, what is undefined last."""
    return math.inf if math.isnan(estimate.value) else -estimate.value


# ------------------------------------------------------------------------------------------------------------ verdicts


def ranked_models(questions: Sequence[ShownQuestion]) -> list[str]:
    """Models by how many questions they lead, then by the first question."""
    names = dict.fromkeys(estimate.model for question in questions for estimate in question.estimates)
    leads = [question.leader.model for question in questions if question.leader is not None]
    wins = [winner(pair) for question in questions for pair in question.differences if pair.verdict in SIGNIFICANT]
    return sorted(names, key=lambda name: (-leads.count(name), -wins.count(name)))


def winner(comparison: Comparison) -> str:
    return comparison.model if comparison.verdict in SHOWN_ABOVE else comparison.baseline


def verdict(questions: Sequence[ShownQuestion], models: Sequence[str]) -> str:
    """Who beats whom on what, in one sentence."""
    compared = decisive(questions)
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


def decisive(questions: Sequence[ShownQuestion]) -> list[ShownQuestion]:
    """The questions with comparisons, without estimators that are for comparison where there are others."""
    compared = [question for question in questions if question.differences]
    return [question for question in compared if not question.for_comparison] or compared


def evidence(questions: Sequence[ShownQuestion]) -> str:
    """Whether the comparisons carry verdicts."""
    verdicts = [comparison.verdict for question in decisive(questions) for comparison in question.differences]
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
        (f"{part}s" for part in ("metric", "reward", "estimator")
         if len({getattr(question, part) for question in every}) == total),
        "estimates",
    )  # fmt: skip
    if len(chosen) == total > 1:
        return f"both {noun}" if total == 2 else f"all {total:,} {noun}"
    if len(chosen) > FEW:
        return f"{len(chosen):,} of {total:,} {noun}"
    *first, last = (question.label for question in chosen)
    return f"{', '.join(first)} and {last}" if first else last


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
    words = {kind: f"{kind} on" for kind in ("better", "higher", "worse", "lower")} | {
        NOT_SHOWN: "no significant difference on",
        INSUFFICIENT: "insufficient evidence on",
    }
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
    alone = [question for question in most if question.beats_all(leader)]
    others = "both others" if len(models) == 3 else f"all {len(models) - 1:,} others"
    if len(alone) == len(questions):
        return f"{leader} beats {others} on {scope(alone, questions)}"
    text = f"{leader} is highest on {scope(most, questions)}"
    if alone:
        text += f" and beats {others} on {scope(alone, questions)}"
    else:
        beaten = max((question.beaten_by(leader) for question in most), key=len)
        on = [question for question in most if {*beaten} <= {*question.beaten_by(leader)}]
        text += f", significantly above {some(beaten, most=FEW) if beaten else 'no other'}"
        text += "" if len(on) == len(most) else f" on {scope(on, questions)}"
    rest = [f"{name} on {scope(led, questions)}" for name, led in leads.items() if name != leader]
    return f"{text}; {', '.join(rest[:FEW])}" if rest else text
