"""Which values count as positive."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from truerank.core.calls import Wanted
from truerank.core.errors import InputError

_COMPARE = {
    ">": pl.Series.__gt__,
    ">=": pl.Series.__ge__,
    "<": pl.Series.__lt__,
    "<=": pl.Series.__le__,
    "==": pl.Series.__eq__,
    "!=": pl.Series.__ne__,
}
ALL = "all"  # every row is a positive, also where there is no value column


@dataclass(frozen=True, slots=True)
class PositiveRule:
    """A value is positive if `value comparison threshold`, for example > 3; with the comparison "all" each value is.

    >>> PositiveRule.parse(">3").apply(pl.Series([3.0, 4.0])).to_list()
    [False, True]
    """

    comparison: str
    threshold: float = 0.0

    @classmethod
    def parse(cls, text: str) -> PositiveRule:
        if text.strip() == ALL:
            return cls(ALL)
        found = re.fullmatch(r"\s*(>=|<=|==|!=|>|<)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*", text)
        try:
            if found:
                return cls(found[1], float(found[2]))
        except ValueError:
            pass
        raise InputError(
            f'positive rule {text!r} is not understood; expected a comparison such as ">3" or ">=4", or all.'
        )

    def apply(self, values: pl.Series) -> pl.Series:
        if self.comparison == ALL:
            return pl.repeat(value=True, n=len(values), eager=True)
        return _COMPARE[self.comparison](values, self.threshold)

    def __str__(self) -> str:
        return ALL if self.comparison == ALL else f"{self.comparison}{self.threshold:g}"


RULE = Wanted('a rule such as ">3", or all', lambda value: isinstance(value, str | PositiveRule))
