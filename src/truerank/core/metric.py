"""Metrics: what one relevant item earns at a rank."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

from truerank.core.arrays import Floats
from truerank.core.counted import CountForm
from truerank.core.log import Log
from truerank.core.options import Denominator
from truerank.core.values import check, text_of


@runtime_checkable
class Metric(Protocol):
    """A frozen value such as Recall(50); its text form `Recall@50` parses back.

    `cutoff` is the deepest rank that counts, None where every rank does. `on_full_labels` says in words what one
    unit's value is averaged over. `gains` are what rows add, and those that add something are relevant; `graded` says
    whether these are grades, or the label.
    """

    name: ClassVar[str]

    @property
    def on_full_labels(self) -> str: ...
    @property
    def cutoff(self) -> int | None: ...
    @property
    def graded(self) -> bool: ...
    def gains(self, log: Log) -> Floats: ...


@runtime_checkable
class Additive(Metric, Protocol):
    """A metric that is a sum over relevant items of gain x `rank_discount(rank)`, divided by `denominator`.

    Only these can be estimated without bias from partial labels. The gain is the label, unless a metric has its own.
    """

    @property
    def denominator(self) -> Denominator: ...
    def rank_discount(self, rank: Floats) -> Floats: ...


@runtime_checkable
class Listwise(Metric, Protocol):
    """A metric of all relevant items of a unit at once; `values` has NaN where a unit's value is undefined.

    `partial` says why partial labels cannot give it, and what to use instead.
    """

    partial: ClassVar[str]

    def values(self, positives: Any) -> Floats: ...


class ListNeed(StrEnum):
    """What a metric of lists must know beside them.

    CATALOGUE   how many items there are
    POPULARITY  how many users have each item in the training log
    FEATURES    features of items
    LABELS      which items are relevant, all of them
    """

    CATALOGUE = "catalogue"
    POPULARITY = "popularity"
    FEATURES = "features"
    LABELS = "labels"


class BaseMetric:
    """Defaults of metrics: options are checked, the text form parses back, and `k` is the cut-off."""

    __slots__ = ()

    name: ClassVar[str]
    partial: ClassVar[str]
    on_full_labels: ClassVar[str] = "users"

    @property
    def graded(self) -> bool:
        return False

    def gains(self, log: Log) -> Floats:
        return log.label

    def __post_init__(self) -> None:
        check(self)

    def __str__(self) -> str:
        return text_of(self)

    @property
    def cutoff(self) -> int | None:
        """The deepest rank that counts, None where every rank does."""
        return getattr(self, "k", None)


class OfLists(BaseMetric):
    """A metric of what is recommended: the top K of every unit, whatever else is known of it.

    `needs` is what it must know beside the lists; `directed` whether a larger value is better, or only larger, as of
    shares; `bounds` what it lies between; `on_lists` what it is, in words.
    """

    __slots__ = ()

    on_full_labels: ClassVar[str] = "users with a recommended item"
    directed: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @property
    def needs(self) -> frozenset[ListNeed]:
        raise NotImplementedError

    @property
    def on_lists(self) -> str:
        raise NotImplementedError


class PerList(OfLists):
    """A metric that every list has: Σ numerator / Σ denominator over units, NaN where a unit has none."""

    __slots__ = ()

    def sums(self, lists: Any) -> tuple[Floats, Floats]:
        raise NotImplementedError


class OfCounts(OfLists):
    """A metric of how often each item is recommended to all units together; a list alone has none."""

    __slots__ = ()

    def form(self, facts: Any) -> CountForm:
        raise NotImplementedError


def is_directed(metric: Metric) -> bool:
    """Whether a larger value is better; of most metrics of lists it is only larger."""
    return not isinstance(metric, OfLists) or metric.directed
