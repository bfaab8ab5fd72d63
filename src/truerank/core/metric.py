"""Metrics: what one relevant item at a rank is worth."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from truerank.core.arrays import Floats
from truerank.core.options import Denominator


@runtime_checkable
class Metric(Protocol):
    """A frozen value such as Recall(50); its text form `Recall@50` parses back.

    `cutoff` is the deepest rank that counts, None where every rank does. `on_full_labels` says in words what one
    unit's value is averaged over.
    """

    name: ClassVar[str]

    @property
    def on_full_labels(self) -> str: ...
    @property
    def cutoff(self) -> int | None: ...


@runtime_checkable
class Additive(Metric, Protocol):
    """A metric that is a sum over relevant items of gain x `worth(rank)`, divided by `denominator`.

    Only these can be estimated without bias from partial labels. The gain is the label, unless a metric has its own.
    """

    @property
    def denominator(self) -> Denominator: ...
    def worth(self, rank: Floats) -> Floats: ...


@runtime_checkable
class Listwise(Metric, Protocol):
    """A metric of all relevant items of a unit at once; `values` has NaN where a unit's value is undefined.

    `partial` says why partial labels cannot give it, and what to use instead.
    """

    partial: ClassVar[str]

    def values(self, positives: Any) -> Floats: ...


def cutoff(metric: Any) -> int | None:
    """The deepest rank that counts, for metrics that have a cut-off `k`: `cutoff = property(cutoff)`."""
    k: int | None = metric.k
    return k
