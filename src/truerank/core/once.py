"""What several terms share is worked on once, and is shared again: columns of many questions are often the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints
from truerank.core.record import record

Made = TypeVar("Made")


@record(eq=False)
class Once:
    """What one step makes of values: once for the very same values, whoever asks.

    >>> once, values = Once(), np.array([3, 1, 2])
    >>> once.taken(values, np.array([0, 2])) is once.taken(values, np.array([0, 2]))
    True
    """

    made: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict, repr=False)

    def of(self, values: Sequence[Any], make: Callable[[], Made]) -> Made:
        same = tuple(map(id, values))
        if same not in self.made:
            self.made[same] = list(values), make()  # they are held, so that nothing else is known by their ids
        result: Made = self.made[same][1]
        return result

    def joined(self, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The values of all parts."""
        return self.of(parts, lambda: np.concatenate(parts))

    def taken(self, values: npt.NDArray[Any], order: Ints) -> npt.NDArray[Any]:
        """The values of these rows."""
        return self.of([values], lambda: values[order])

    def reduced(self, values: npt.NDArray[Any], group: Ints, n: int) -> npt.NDArray[Any]:
        """The value of each of n groups of rows that have the same one."""

        def make() -> npt.NDArray[Any]:
            result = np.zeros(n, dtype=values.dtype)
            result[group] = values
            return result

        return self.of([values], make)
