"""What is requested, apart from the data, and the plan that is made of it, for `measure` and `conclude`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from truerank.core.estimator import Estimator, Learned, Request
from truerank.core.messages import Message
from truerank.core.provenance import Provenance
from truerank.core.ranking import Pool
from truerank.core.record import record
from truerank.core.results import Estimate, Evidence
from truerank.core.terms import Terms
from truerank.inference.intervals import Interval, Population
from truerank.inference.linearization import Bounds, Spread
from truerank.inference.verdicts import UnseenExposure

if TYPE_CHECKING:
    from truerank.evaluation.measure import Measured, MeasuredEstimate

Cell = tuple[str, int]  # a model, and the number of an estimate of the plan
Pair = tuple[str, str]  # a model, and the one it is compared with
POPULATION = Population()


class Adjust(StrEnum):
    """Over which comparisons p and intervals are adjusted: those of one metric and estimator, or all of them."""

    ESTIMAND = "estimand"
    ALL = "all"


@record(kw_only=True)
class Question:
    """What is requested of any kind of data; None leaves a choice to the defaults."""

    estimators: Sequence[Estimator] | None = None
    clips: tuple[float, ...] | None = None
    baseline: str | None = None
    interval: Interval = POPULATION
    level: float = 0.95
    adjust: Adjust = Adjust.ESTIMAND
    seed: int = 0

    def pairs(self, models: Sequence[str]) -> list[Pair]:
        """The comparisons among these models: all pairs, or each with the baseline."""
        if self.baseline is None:
            return [(second, first) for first, second in combinations(models, 2)]
        return [(name, self.baseline) for name in models if name != self.baseline] if self.baseline in models else []


@record(kw_only=True)
class PlannedEstimate:
    """One estimator with one metric or reward and one clip, and what is known of its value before it is measured.

    `name` is the metric in results, `models` are those it can be estimated for. Estimates of one `block` differ in
    their clips alone. `refitted` says that it rests on models that are fitted again without each group of clusters.
    """

    estimator: Estimator
    request: Request
    name: str
    models: tuple[str, ...]
    block: int
    cutoff: int | None = None
    directed: bool = True
    bounds: Bounds | None = None
    assumptions: tuple[str, ...] = ()
    refitted: bool = False


@record
class Examined:
    """What an estimate rests on beside its spread; `reasons` take verdicts away from comparisons with it."""

    evidence: Evidence
    unseen: UnseenExposure
    effective: float | None
    warnings: tuple[Message, ...]
    reasons: tuple[Message, ...] = ()


@record
class Points:
    """The spread of every value, and of every difference."""

    values: Mapping[Cell, Spread]
    differences: Mapping[tuple[Pair, int], Spread]


@record
class Remarks:
    """What is reported beside values: messages, facts for the record, differences that are no test."""

    messages: tuple[Message, ...]
    counts: Mapping[str, int | None]
    details: Mapping[str, Any] = field(default_factory=dict)
    untested: frozenset[tuple[Pair, int]] = frozenset()


class RowMaker:
    """How chunks of one kind of data become rows, and what is particular to values that rest on them."""

    __slots__ = ()

    def views(self, plan: Plan[Any], chunk: Any) -> dict[str, dict[Pool, Any]]:
        """What estimators see of a chunk through each model, by the pool of candidates."""
        raise NotImplementedError

    def count(self, plan: Plan[Any], chunk: Any, views: Mapping[str, Mapping[Pool, Any]]) -> Any:
        """What is counted for diagnostics; counts of other chunks add."""
        raise NotImplementedError

    def within(self, chunk: Any, segment: str | None) -> Any:
        """The chunk in which only items of a segment have a gain; all of them where there is none."""
        return chunk

    def check(self, plan: Plan[Any], measured: Measured) -> None:
        """Refuse what only all chunks together show to be wrong."""

    def visible(self, plan: Plan[Any], spread: Spread, terms: Sequence[Terms]) -> Spread:
        """The spread of a value or (of two terms) of a difference, without interval where the rows show none."""
        raise NotImplementedError

    def equal_clusters(self, estimate: MeasuredEstimate) -> float:
        """How many equally weighted clusters a value at a bound of its metric rests on."""
        return 0.0

    def examine(self, estimate: MeasuredEstimate) -> Examined:
        raise NotImplementedError

    def remarks(self, plan: Plan[Any], measured: Measured, points: Points, estimates: Sequence[Estimate]) -> Remarks:
        raise NotImplementedError


Maker = TypeVar("Maker", bound=RowMaker)


@record(kw_only=True, eq=False)
class Plan(Generic[Maker]):
    """The question and what was learned from all data: what `measure` and `conclude` need; small, to be sent.

    `n_rows` of `n_units` must be measured. `ids` are the ids of units and of their clusters, where every unit is kept;
    `keeps_rows` says that single rows are kept, for an interval or to tell what more of them would show.
    `chooses_clip` says that one clip of each block is chosen by the data.
    """

    question: Question
    models: tuple[str, ...]
    estimates: tuple[PlannedEstimate, ...]
    learned: Learned
    rows: Maker
    n_rows: int
    n_units: int
    record: Provenance
    unit: str = "user"
    cluster: str = "user"
    ids: tuple[Any, Any] | None = None
    keeps_units: bool = True
    keeps_rows: bool = False
    chooses_clip: bool = False
    messages: tuple[Message, ...] = ()
    last_messages: tuple[Message, ...] = ()


def run_checks(checks: Sequence[Callable[..., Iterable[Message]]], *subject: Any) -> tuple[Message, ...]:
    """The messages of all checks of a list, in its order."""
    return tuple(chain.from_iterable(check(*subject) for check in checks))
