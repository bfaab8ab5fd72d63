"""What must be shown before something is shipped: a line of text that results meet, or not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from truerank.core.errors import InputError, some
from truerank.core.record import record
from truerank.core.results import INSUFFICIENT, SHOWN_ABOVE, Comparison, Results
from truerank.core.values import pieces


class Outcome(IntEnum):
    """Whether a requirement is met; the number is the exit code of a command."""

    SHOWN = 0
    INSUFFICIENT = 4
    NOT_SHOWN = 5


@record
class Requirement:
    """`model` must be shown to be better than `baseline` in all comparisons that have all of `words`.

    Of a metric without a better side, such as Coverage, it must be shown to be higher.

    A word is a metric, an estimator, a reward, a segment, or `clip=8`; what is left out must hold for all. A name with
    signs that mean something here stands in quotes.

    >>> str(Requirement.parse("als > pop: Recall@50, pooled"))
    'als > pop: Recall@50, pooled'
    >>> Requirement.parse('"a > b: x" > pop').model
    'a > b: x'
    """

    model: str
    baseline: str
    words: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Requirement:
        try:
            names, *rest = pieces(text, ":")
            compared = [part.strip('"') for part in pieces(names, ">")]
            words = tuple(word for word in pieces(":".join(rest), ",") if word)
        except ValueError:
            raise InputError(f"requirement {text!r}: brackets or quotes do not match.") from None
        if len(compared) != 2 or not all(compared) or compared[0] == compared[1]:
            raise InputError(
                f"requirement {text!r}; expected MODEL > OTHER, or MODEL > OTHER: METRIC, ESTIMATOR. A name that holds "
                'other signs than letters, digits and hyphens stands in quotes: "my > model" > OTHER.'
            )
        return cls(compared[0], compared[1], words)

    def __str__(self) -> str:
        words = f": {', '.join(self.words)}" if self.words else ""
        return f"{_quoted(self.model)} > {_quoted(self.baseline)}{words}"

    def check(self, models: Sequence[str]) -> None:
        """Refuse names that no model has, before any work."""
        for name in (self.model, self.baseline):
            if name not in models:
                raise InputError(f"requirement {str(self)!r}: no model {name!r}; there are {some(list(models))}.")

    def comparisons(self, results: Results) -> tuple[Comparison, ...]:
        """The comparisons that it is about, as model - baseline."""
        comparisons = results.compare(self.model, self.baseline)
        words = {word.lower() for word in self.words}
        chosen = tuple(comparison for comparison in comparisons if words <= _words(comparison))
        if not chosen:
            present = dict.fromkeys(word for comparison in comparisons for word in _words(comparison))
            raise InputError(f"requirement {str(self)!r}: no such comparison; they are of {some(list(present))}.")
        return chosen

    def outcome(self, results: Results) -> tuple[Outcome, str]:
        """Whether results meet it, and a sentence that says so."""
        compared = self.comparisons(results)
        tested = [part for part in compared if "clip-not-chosen" not in {reason.code for reason in part.reasons}]
        failed = [comparison for comparison in tested if comparison.verdict not in (*SHOWN_ABOVE, INSUFFICIENT)]
        unsure = [comparison for comparison in tested if comparison.verdict == INSUFFICIENT]
        if failed or not tested:
            return Outcome.NOT_SHOWN, f"{self}: not shown{_where(failed)}."
        if unsure:
            reasons = dict.fromkeys(text for comparison in unsure for text in comparison.reason_texts)
            return Outcome.INSUFFICIENT, f"{self}: insufficient evidence{_where(unsure)}: {'; '.join(reasons)}."
        return Outcome.SHOWN, f"{self}: shown{_where(tested)}."


def _quoted(name: str) -> str:
    """A name as it is written in a rule: in quotes where it holds signs that mean something there."""
    return f'"{name}"' if set(name) & set(">:,(){}") else name


def _words(comparison: Comparison) -> set[str]:
    clip = "none" if comparison.clip is None else format(comparison.clip, "g")
    words = (comparison.metric, comparison.estimator, comparison.reward, comparison.segment or "", f"clip={clip}")
    return {word.lower() for word in words if word}


def _where(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    names = [f"{result.metric} {result.estimator} ({result.verdict})" for result in comparisons]
    return f" ({some(names)})"
