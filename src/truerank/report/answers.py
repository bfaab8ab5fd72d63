"""What is shown of results in every form: one answer for each question, and what to know about all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from truerank.core.errors import some
from truerank.core.results import (
    BETTER,
    HIGHER,
    INSUFFICIENT,
    LOWER,
    NOT_SHOWN,
    SHOWN_ABOVE,
    SHOWN_BELOW,
    Comparison,
    Estimate,
    Results,
)

Chosen = set[tuple[str, float | None]]
MANY_LINES = 500  # of one table, beyond which it shows the highest values alone
MANY_MODELS = 20  # that it then shows
FEW = 3  # that a sentence names


@dataclass(frozen=True, slots=True)
class Answer:
    """The estimates of one question and their differences: all that a reader can take in, of how many."""

    metric: str
    estimator: str
    estimand: str
    estimates: Sequence[Estimate]
    differences: Sequence[Comparison]
    n_estimates: int
    n_differences: int
    chosen: Chosen  # clips that were chosen by the data, each with the value or difference it is of

    @property
    def left_out(self) -> str | None:
        """How much of it is not shown, and where that is."""
        if len(self.estimates) == self.n_estimates and len(self.differences) == self.n_differences:
            return None
        return (
            f"The highest {len(self.estimates):,} of {self.n_estimates:,} values and {len(self.differences):,} of "
            f"{self.n_differences:,} differences; the others are in JSON and CSV."
        )

    @property
    def clipped(self) -> bool:
        every: list[Estimate | Comparison] = [*self.estimates, *self.differences]
        return any(each.clip is not None for each in every)


def answers(results: Results) -> list[Answer]:
    """One answer for each run of estimates that ask the same."""
    found = []
    for (metric, estimator, estimand, reward, _), run in groupby(results.estimates, key=_question):
        every = list(run)
        differences = _differences(results, every)
        estimates, shown = _best(every, differences)
        chosen = _chosen(results, estimator, reward)
        found.append(
            Answer(metric, estimator, estimand, estimates, shown, len(every), len(differences), chosen)
        )  # fmt: skip
    return found


def verdict(comparison: Comparison) -> str:
    """Who is better (or higher), where that is shown; a verdict of another kind in its own words."""
    for shown, who in ((SHOWN_ABOVE, comparison.model), (SHOWN_BELOW, comparison.baseline)):
        if comparison.verdict in shown:
            return f"{who} is {SHOWN_ABOVE[shown.index(comparison.verdict)]}"
    return comparison.verdict


def summed_up(differences: Sequence[Comparison]) -> str:
    """What all differences of a question show, in a sentence.

    >>> summed_up([])
    ''
    """
    if not differences:
        return ""
    better = [(each.model, each.baseline) for each in differences if each.verdict in SHOWN_ABOVE]
    better += [(each.baseline, each.model) for each in differences if each.verdict in SHOWN_BELOW]
    word = HIGHER if any(each.verdict in (HIGHER, LOWER) for each in differences) else BETTER
    above: dict[str, list[str]] = {}
    for winner, other in better:
        above.setdefault(winner, []).append(other)
    parts = [f"{winner} is {word} than {some(others)}" for winner, others in list(above.items())[:FEW]]
    parts += [f"{len(above) - FEW} more are {word} than others"] if len(above) > FEW else []
    for unshown in (NOT_SHOWN, INSUFFICIENT):
        open_ones = [f"{each.model} - {each.baseline}" for each in differences if each.verdict == unshown]
        parts += [f"{unshown}: {some(open_ones)}"] if open_ones else []
    return "; ".join(parts)


def adjusted(results: Results) -> str:
    """Over how many comparisons p and intervals are adjusted."""
    sizes = sorted({comparison.family for comparison in results.comparisons})
    chosen = " at chosen clips" if results.provenance.details.get("chosen") else ""
    if sizes == [1]:
        return f"p is of one comparison for each metric and estimator{chosen}, so nothing is adjusted"
    of = " or ".join(f"{size:,}" for size in sizes)
    return f"p and intervals of differences are adjusted together over families of {of} comparisons{chosen}"


def assumptions(results: Results) -> list[str]:
    """Each assumption once, with the estimators that make it where not all do."""
    made: dict[str, list[str]] = {}
    for estimate in results.estimates:
        for text in estimate.assumptions:
            made.setdefault(text, []).append(estimate.estimator)
    everyone = {estimate.estimator for estimate in results.estimates}
    return [
        f"Assumed{'' if set(names) == everyone else ' by ' + ', '.join(dict.fromkeys(names))}: {text}."
        for text, names in made.items()
    ]


def warnings(results: Results, *, for_cli: bool) -> list[str]:
    """Each warning once, with all it applies to; then why there are comparisons without a verdict."""
    where: dict[str, list[str]] = {}
    said = {message for estimate in results.estimates for message in estimate.warnings}
    for estimate in results.estimates:
        for message in estimate.warnings:
            place = f"{estimate.model} {estimate.metric} {estimate.estimator}"
            where.setdefault(message.said(for_cli=for_cli), []).append(place)
    for comparison in results.comparisons:
        for message in comparison.reasons:
            if message not in said:
                place = f"{comparison.model} - {comparison.baseline} {comparison.metric} {comparison.estimator}"
                where.setdefault(f"insufficient: {message.said(for_cli=for_cli)}", []).append(place)
    return [
        f"{places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''}: {sentence}"
        for sentence, places in where.items()
    ]


def _question(estimate: Estimate) -> tuple[str, str, str, str, str]:
    return estimate.metric, estimate.estimator, estimate.estimand, estimate.reward, estimate.segment or ""


def _same(shown: Estimate | Comparison) -> tuple[str, str, str, float | None, str | None]:
    return shown.metric, shown.estimator, shown.reward, shown.clip, shown.segment


def _differences(results: Results, group: Sequence[Estimate]) -> list[Comparison]:
    """The comparisons of the estimates in a group, and of no others of the same estimator."""
    shown = {_same(estimate) for estimate in group}
    return [comparison for comparison in results.comparisons if _same(comparison) in shown]


def _best(
    estimates: Sequence[Estimate], differences: Sequence[Comparison]
) -> tuple[Sequence[Estimate], Sequence[Comparison]]:
    """What a table shows: all that a reader can take in, else the highest values and the differences among them.

    A baseline that all were compared with stays, whatever its value.
    """
    names = dict.fromkeys(estimate.model for estimate in estimates)
    if len(names) <= MANY_MODELS or (len(estimates) <= MANY_LINES and len(differences) <= MANY_LINES):
        return estimates, differences
    ranked = sorted(estimates, key=lambda each: -math.inf if math.isnan(each.value) else each.value, reverse=True)
    kept = set(list(dict.fromkeys(estimate.model for estimate in ranked))[:MANY_MODELS])
    baselines = {comparison.baseline for comparison in differences}
    kept |= baselines if len(baselines) == 1 else set()
    return (
        [estimate for estimate in estimates if estimate.model in kept],
        [each for each in differences if each.model in kept and each.baseline in kept],
    )


def _chosen(results: Results, estimator: str, reward: str) -> Chosen:
    choices = results.provenance.details.get("chosen", ())
    return {
        (choice["of"], choice["clip"])
        for choice in choices
        if (choice["estimator"], choice["reward"]) == (estimator, reward)
    }
