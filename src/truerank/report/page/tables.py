"""Tables of a page: columns of values, of which the first rows are in its HTML and all in its data."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from truerank.core.escaping import printable
from truerank.report.numbers import number, p_value

FIRST = 25  # rows that a table shows before it is asked for more
MANY = 500  # numbers of a column from which they are written as eight bytes each, half as long and as exact
MOST = 60_000  # values of one kind that a page takes: beyond, it would be too large to open


class CellKind(StrEnum):
    """What a column holds, and so how it is written and ordered."""

    TEXT = "text"
    NUMBER = "number"
    COUNT = "count"
    P = "p"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column; a number that is None is not there, and NaN is undefined."""

    name: str
    kind: CellKind
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table with its caption; `shown` rows stand in the HTML, and `cut` says what was left out of it."""

    name: str
    caption: str
    columns: tuple[TableColumn, ...]
    cut: str | None = None

    @property
    def n(self) -> int:
        return len(self.columns[0].values)

    @property
    def head(self) -> list[tuple[str, bool]]:
        """Names, and whether a column holds numbers."""
        return [(printable(each.name), each.kind is not CellKind.TEXT) for each in self.columns]

    @property
    def first_rows(self) -> list[list[tuple[str, bool]]]:
        return [
            [(cell(each.values[at], each.kind), each.kind is not CellKind.TEXT) for each in self.columns]
            for at in range(min(self.n, FIRST))
        ]

    def data(self) -> dict[str, Any]:
        """All values, for sorting, searching and copying; texts that repeat are written once."""
        return {"first": FIRST, "columns": [_packed(each) for each in self.columns]}


def cell(value: Any, kind: CellKind) -> str:
    """
    >>> cell(0.25, CellKind.NUMBER), cell(None, CellKind.NUMBER), cell(1200, CellKind.COUNT), cell("a", CellKind.TEXT)
    ('0.2500', '', '1,200', 'a')
    """
    if value is None:
        return ""
    if kind is CellKind.TEXT:
        return printable(value)
    if kind is CellKind.COUNT:
        return f"{value:,}"
    return p_value(value) if kind is CellKind.P else number(value)


def _packed(column: TableColumn) -> dict[str, Any]:
    packed: dict[str, Any] = {"name": printable(column.name), "kind": column.kind.value}
    if column.kind in (CellKind.NUMBER, CellKind.P) and len(column.values) > MANY and None not in column.values:
        return packed | {"base64": base64.b64encode(np.array(column.values, dtype="<f8").tobytes()).decode()}
    if column.kind is not CellKind.TEXT:
        return packed | {"values": [_number(value) for value in column.values]}
    words = {word: at for at, word in enumerate(dict.fromkeys(column.values))}
    return packed | {
        "words": ["" if word is None else printable(word) for word in words],
        "values": [words[value] for value in column.values],
    }


def _number(value: Any) -> Any:
    """JSON has no NaN: undefined is the text nan, and infinite the text inf."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
