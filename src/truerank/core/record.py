"""Records: the frozen dataclasses with slots that all values of truerank are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """A frozen dataclass with slots; without equality where its fields are arrays, which have no single truth.

    >>> @record
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(2.0)
    Point(x=2.0, y=0.0)
    """
    decorate = dataclass(frozen=True, slots=True, eq=eq, kw_only=kw_only)
    return decorate if cls is None else decorate(cls)
