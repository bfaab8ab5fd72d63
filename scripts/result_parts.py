"""What the beginnings of pages of results are made of: tables of a page read again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*")

Row = dict[str, str]
Table = list[Row]


@dataclass(frozen=True, slots=True)
class Head:
    """What a page begins with: a picture, what it shows for those who do not see it, and three sentences."""

    chart: Any
    alternative: str
    sentences: tuple[str, str, str]


# --------------------------------------------------------------------------------------------------------------- tables


def tables(text: str) -> list[Table]:
    """Every table of a page, a dict for each row."""
    found: list[Table] = []
    names: list[str] | None = None
    for line in text.splitlines():
        if not line.startswith("|"):
            names = None
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if names is None:
            names = cells
            found.append([])
        elif not set(line) <= set("|-: "):
            found[-1].append(dict(zip(names, cells, strict=True)))
    return found


def having(found: Sequence[Table], *columns: str) -> list[Table]:
    """Tables with all these columns."""
    return [table for table in found if table and set(columns) <= set(table[0])]


def rows_having(found: Sequence[Table], *columns: str) -> Table:
    """Rows of all tables with these columns."""
    return [row for table in having(found, *columns) for row in table]


def number(text: str) -> float:
    """The first number of a cell; a share where it is a percentage."""
    match = NUMBER.search(text)
    if match is None:
        return float("nan")
    value = float(match[0].replace(",", ""))
    return value / 100 if text[match.end() :].lstrip().startswith("%") else value


def numbers(text: str) -> list[float]:
    """All numbers of a cell, `0.1 (0.05 to 0.15)`."""
    return [float(each.replace(",", "")) for each in NUMBER.findall(text)]
