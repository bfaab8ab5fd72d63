"""What is requested, apart from the data, and the plan that is made of it, for `measure` and `conclude`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain, combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from truerank.core.estimator import Estimator, Exposed, Learned, Request
from truerank.core.language import Kind, as_values
from truerank.core.messages import Message
from truerank.core.provenance import Provenance
from truerank.core.ranking import Pool
from truerank.core.record import record
from truerank.core.results import Evidence
from truerank.inference.intervals import Interval, Population
from truerank.inference.linearization import Bounds
from truerank.inference.verdicts import UnseenExposure

if TYPE_CHECKING:
    from truerank.evaluation.counts import MeasuredCounts, ModelCounts
    from truerank.evaluation.measure import Evaluation, MeasuredEstimate

Cell = tuple[str, int]  # a model, and the number of an estimate of the plan
Pair = tuple[str, str]  # a model, and the one it is compared with
POPULATION = Population()


class Adjust(StrEnum):
    """Over which comparisons p and intervals are adjusted: those of one metric and estimator, or all of them."""

    ESTIMAND = "estimand"
    ALL = "all"


@record(kw_only=True)
class Question:
    """What is requested of any kind of data, as values or their texts; None leaves a choice to the defaults."""

    kind: ClassVar[Kind[Any]]  # of estimators

    estimators: Any = None
    clips: tuple[float, ...] | None = None
    baseline: str | None = None
    interval: Interval = POPULATION
    level: float = 0.95
    adjust: Adjust = Adjust.ESTIMAND
    seed: int = 0

    def __post_init__(self) -> None:
        self._parse(estimators=self.kind)

    def _parse(self, **kinds: Kind[Any]) -> None:
        """The fields of these names as values."""
        for name, kind in kinds.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_values(getattr(self, name), kind, what=name))

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
    `left_out` are units without a value, which are reported from the share `few_left_out` on.
    """

    estimator: Estimator
    request: Request
    name: str
    models: tuple[str, ...]
    block: int = 0
    cutoff: int | None = None
    directed: bool = True
    bounds: Bounds | None = None
    assumptions: tuple[str, ...] = ()
    refitted: bool = False
    left_out: str = ""
    few_left_out: float = 0.01


@record
class Basis:
    """What the weights of an estimate show: the share that a clip takes away, the share of a target's exposure that the
    log cannot show, an effective size, and what of the value is unseen."""

    lost: float | None = None
    unsupported: float | None = None
    effective: float | None = None
    unseen: UnseenExposure = UnseenExposure()


@record
class Examined:
    """What an estimate rests on beside its spread; `reasons` take verdicts away from comparisons with it."""

    evidence: Evidence
    basis: Basis
    warnings: tuple[Message, ...]
    reasons: tuple[Message, ...] = ()


class RowMaker:
    """How chunks of one kind of data become rows, and what is particular to values that rest on them.

    `exposed` says how rows were observed, `fitted` what may be fitted to them. `excluded` is where exclusions come from
    and how many rows they have, `description` is of the propensities, `segments` are groups of items; `absent` counts
    sessions of each target's table that were left out; `tables` names these.
    """

    __slots__ = ()

    exposed: Exposed
    fitted: ClassVar[str]
    excluded: tuple[str, int] | None = None
    description: str | None = None
    absent: Mapping[str, int] = MappingProxyType({})
    segments: Mapping[str, Any] = MappingProxyType({})
    tables: Mapping[str, str] = MappingProxyType({})

    def views(self, plan: Plan[Any], chunk: Any) -> dict[str, dict[Pool, Any]]:
        """What estimators see of a chunk through each model, by the pool of candidates."""
        raise NotImplementedError

    def count(self, plan: Plan[Any], chunk: Any) -> MeasuredCounts:
        """What is counted for diagnostics; counts of other chunks add."""
        raise NotImplementedError

    def count_model(self, plan: Plan[Any], chunk: Any, model: str, views: Mapping[Pool, Any]) -> ModelCounts:
        """What is counted of one model."""
        raise NotImplementedError

    def within(self, chunk: Any, segment: str) -> Any:
        """The chunk in which only items of a segment have a gain."""
        raise NotImplementedError

    def equal_clusters(self, estimate: MeasuredEstimate) -> float:
        """How many equally weighted clusters a value at a bound of its metric rests on."""
        return 0.0

    def basis(self, estimate: MeasuredEstimate) -> Basis:
        """What the weights of an estimate show."""
        raise NotImplementedError

    def details(self, evaluation: Evaluation) -> dict[str, Any]:
        """What else is for the record."""
        return {}


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
    estimates: tuple[PlannedEstimate, ...] = ()
    learned: Learned = Learned()
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


def run_checks(checks: Sequence[Callable[..., Iterable[Message]]], *subject: Any) -> tuple[Message, ...]:
    """The messages of all checks of a list, in its order."""
    return tuple(chain.from_iterable(check(*subject) for check in checks))
