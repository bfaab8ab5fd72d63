"""What is asked, apart from the data; and what a plan is: the question with all that was learned from the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Protocol

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Asked, Estimator, Learned
from truerank.core.messages import Message
from truerank.core.provenance import Provenance
from truerank.core.ranking import Ties
from truerank.core.results import Estimate, Evidence
from truerank.core.terms import Terms
from truerank.inference.intervals import Interval
from truerank.inference.linearization import Bounds, Spread
from truerank.inference.verdicts import UnseenExposure

if TYPE_CHECKING:
    from truerank.evaluation.measure import Measured

Tallies = Mapping[tuple[Any, ...], Any]
Cell = tuple[str, int]  # a model, and the number of what is asked
Pair = tuple[str, str]  # a model, and the one it is compared with


class Adjust(StrEnum):
    """Over which comparisons p and intervals are adjusted: those of one metric and estimator, or all of them."""

    ESTIMAND = "estimand"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Question:
    """Models, and what is asked of each: estimators with a metric or a reward and a clip, in the order of output."""

    models: tuple[str, ...]
    asked: tuple[tuple[Estimator, Asked], ...]
    interval: Interval
    level: float = 0.95
    baseline: str | None = None
    seed: int = 0
    adjust: Adjust = Adjust.ESTIMAND

    def pairs(self, models: Sequence[str]) -> list[Pair]:
        """The comparisons among these models: all pairs, or each with the baseline."""
        if self.baseline is None:
            return [(second, first) for first, second in combinations(models, 2)]
        return [(name, self.baseline) for name in models if name != self.baseline] if self.baseline in models else []

    def by_estimator(self, numbers: Sequence[int]) -> list[tuple[Estimator, list[int]]]:
        """The numbers of what is asked of each estimator, in the order in which they first come."""
        groups: list[tuple[Estimator, list[int]]] = []
        for number in numbers:
            estimator = self.asked[number][0]
            own = next((group for known, group in groups if known is estimator or known == estimator), None)
            if own is None:
                groups.append((estimator, [number]))
            else:
                own.append(number)
        return groups


class Sight(Protocol):
    """How one model looks at a chunk; `view` is what an estimator sees through it, given what was learned."""

    def view(self, estimator: Estimator, learned: Learned) -> Any: ...
    def tallies(self) -> Tallies:
        """What is counted for messages, by what it is; values add."""
        ...


@dataclass(frozen=True, slots=True)
class Points:
    """The spread of every value, and of every difference."""

    values: Mapping[Cell, Spread]
    differences: Mapping[tuple[Pair, int], Spread]


@dataclass(frozen=True, slots=True)
class Remarks:
    """What is said of values beside themselves: differences that are no test, messages, facts for the record."""

    untested: frozenset[tuple[Pair, int]] = frozenset()
    messages: tuple[Message, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def run_checks(checks: Sequence[Callable[..., Iterable[Message]]], *subject: Any) -> tuple[Message, ...]:
    """The messages of all checks of a list, in its order."""
    return tuple(chain.from_iterable(check(*subject) for check in checks))


class Plan(Protocol):
    """The question and what was learned from the whole: all that `measure` and `conclude` need; small, to be sent."""

    @property
    def question(self) -> Question: ...
    @property
    def learned(self) -> Learned: ...
    @property
    def unit(self) -> str:
        """What a unit is, in words."""
        ...

    @property
    def cluster(self) -> str:
        """What a cluster is, in words."""
        ...

    @property
    def keeps_units(self) -> bool:
        """Whether every unit is kept, or the sums of its cluster alone."""
        ...

    @property
    def keeps_rows(self) -> bool:
        """Whether single judged rows are kept: for an interval, or to say what more of them would show."""
        ...

    # ---- for measure

    def answers(self, model: str) -> Sequence[int]:
        """The numbers of what is asked that can be had of this model."""
        ...

    def learns(self, estimator: Estimator) -> bool:
        """Whether an estimator rests on something that is learned again without each group of clusters."""
        ...

    def places(self, chunk: Any) -> Ints:
        """The place of each unit of a chunk in the population, which gives units their order."""
        ...

    def n_rows(self, chunk: Any) -> int: ...
    def earning(self, chunk: Any, segment: str | None) -> Any:
        """The chunk in which only the items of a segment earn; all of them where there is none."""
        ...

    def look(self, chunk: Any, model: str) -> Sight: ...
    def counted(self, chunk: Any) -> Tallies:
        """What is counted in a chunk whatever the model."""
        ...

    # ---- for conclude

    def named(self, estimator: Estimator, asked: Asked) -> tuple[str, int | None]:
        """The name of a metric in results, and its cut-off."""
        ...

    def directed(self, estimator: Estimator, asked: Asked) -> bool:
        """Whether a larger value is better."""
        ...

    def assumptions(self, estimator: Estimator) -> tuple[str, ...]: ...
    def bounds(self, estimator: Estimator, asked: Asked) -> Bounds | None:
        """What a value must lie between, None where nothing is known."""
        ...

    def known(self, number: int, spread: Spread, terms: Sequence[Terms]) -> Spread:
        """The spread of a value or (of two terms) of a difference, without interval where nothing tells one."""
        ...

    def equal_clusters(self, cell: Cell, terms: Terms, measured: Measured) -> float:
        """How many equally weighted clusters a value at a bound rests on."""
        ...

    def evidence(self, cell: Cell, spread: Spread, measured: Measured) -> Evidence: ...
    def doubts(self, cell: Cell, measured: Measured) -> tuple[Message, ...]:
        """What takes verdicts away from every comparison that rests on a value."""
        ...

    def unseen(self, cell: Cell, terms: Terms, measured: Measured) -> UnseenExposure:
        """What the data cannot show of a value."""
        ...

    def family(self, number: int) -> int:
        """Comparisons of one family are adjusted together."""
        ...

    def effective(self, cell: Cell, terms: Terms, measured: Measured) -> float | None:
        """The number of equally weighted rows that the rows of an estimate are worth."""
        ...

    def warnings(self, cell: Cell, terms: Terms, measured: Measured) -> tuple[Message, ...]: ...
    def ids(self, measured: Measured) -> tuple[Any, Any]:
        """The id of each row's unit, and of its cluster."""
        ...

    def activity(self, measured: Measured) -> Floats:
        """How active the unit of each row was."""
        ...

    def order(self, number: int) -> tuple[int, ...]:
        """By what estimates and comparisons are ordered before the models, and (second) after them."""
        ...

    def remarks(self, measured: Measured, points: Points) -> Remarks: ...
    def messages(self, measured: Measured, estimates: Sequence[Estimate]) -> Sequence[Message]: ...
    def provenance(self, measured: Measured, remarks: Remarks) -> Provenance: ...


def settings_of(question: Question, *, exposure: object, ties: Ties) -> dict[str, Any]:
    """The settings of an evaluation, in words that parse back."""
    return {
        "models": list(question.models),
        "exposure": str(exposure),
        "ties": ties.value,
        "interval": str(question.interval),
        "level": question.level,
        "baseline": question.baseline,
        "seed": question.seed,
    }
