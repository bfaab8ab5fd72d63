"""Intervals as lines of text on one axis: ├──●──┤ under the ends of the axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from truerank.report.numbers import number

NARROW, WIDE = 16, 30  # columns of an axis: below these it tells nothing, beyond those it tells no more


@dataclass(frozen=True, slots=True)
class Ruler:
    """One axis of `width` columns; with `zero` it holds 0, which every line shows.

    >>> ruler = Ruler(-1.0, 1.0, 21, zero=True)
    >>> for line in (ruler.head(), ruler.line(-1.0, -0.2, 0.5), ruler.line(0.2, 0.6, 1.0)):
    ...     print(line.rstrip())
    -1.0000   0    1.0000
    ├───────●─┼────┤
              │ ├───●───┤
    """

    low: float
    high: float
    width: int
    zero: bool = False

    @classmethod
    def of(cls, ends: Iterable[float], width: int, *, zero: bool = False) -> Ruler | None:
        """The axis that holds all ends of intervals; none where they are all the same, or there is no room."""
        finite = [end for end in (*ends, *([0.0] if zero else [])) if math.isfinite(end)]
        if width < NARROW or not finite or not max(finite) / 2 - min(finite) / 2 > 0:
            return None
        return cls(min(finite), max(finite), min(width, WIDE), zero)

    def head(self) -> str:
        """The ends of the axis, and 0 where there is room for it between them."""
        left, right = (number(end) if end else "0" for end in (self.low, self.high))
        line = f"{left}{right:>{self.width - len(left)}}"
        at = self._column(0.0)
        if self.zero and len(left) < at < self.width - len(right) - 1:
            line = f"{line[:at]}0{line[at + 1 :]}"
        return line

    def line(self, low: float, value: float, high: float, *, truth: float = math.nan) -> str:
        """An interval with its value; the value alone where it has no interval. A truth that is known is a diamond.

        >>> Ruler(0.0, 1.0, 11).line(0.1, math.nan, 0.4, truth=0.8)
        ' ├──┤   ◆  '
        """
        cells = [" "] * self.width
        if self.zero:
            cells[self._column(0.0)] = "│"
        if math.isfinite(low) and math.isfinite(high):
            first, last = self._column(low), self._column(high)
            cells[first : last + 1] = ["┼" if cell == "│" else "─" for cell in cells[first : last + 1]]
            cells[first], cells[last] = "├", "┤"
        if self.low <= value <= self.high:
            cells[self._column(value)] = "●"
        if self.low <= truth <= self.high:
            cells[self._column(truth)] = "◆"
        return "".join(cells)

    def _column(self, at: float) -> int:
        share = (at / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves: their differences do not overflow
        return round(share * (self.width - 1))
