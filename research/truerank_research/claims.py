"""Claims of papers as data, the cells that they are tested on, and the rules of verdicts that several claims share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from truerank_research.results import Result


class Verdict(StrEnum):
    REPLICATES = "replicates"
    IN_PART = "replicates in part"
    FAILS = "does not replicate"
    UNTESTABLE = "cannot be tested here"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on a claim, and why."""

    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One number: obtained, and published where the paper has it, in its row and column of a table.

    `low` and `high` are the interval of what was obtained; `tolerance` is the distance from the published number that
    sampling error and settings that the paper does not state can explain.

    >>> Cell("Table 1", "R", "DCG", obtained=1.2, published=1.25, tolerance=0.1).is_within
    True
    """

    table: str
    row: str
    column: str
    obtained: float | None = None
    published: float | None = None
    low: float | None = None
    high: float | None = None
    tolerance: float | None = None

    @property
    def is_within(self) -> bool | None:
        """Whether it is within the tolerance of the published number; None where either is missing."""
        if self.obtained is None or self.published is None or self.tolerance is None:
            return None
        return abs(self.obtained - self.published) <= self.tolerance + 1e-12


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a result, whether its data are simulated, and whether it has the full size."""

    cells: tuple[Cell, ...]
    synthetic: bool = False
    full: bool = True

    @classmethod
    def read(cls, result: Result) -> Cells:
        return cls(tuple(Cell(**row) for row in result.rows("cells")), result.synthetic, result.size == "full")

    def select(self, table: str | None = None, row: str | None = None, column: str | None = None) -> list[Cell]:
        """Cells of this table, row and column, in order.

        >>> cells = Cells((Cell("t", "a", "x", 1.0), Cell("t", "b", "x", 2.0)))
        >>> [cell.row for cell in cells.select("t", column="x")]
        ['a', 'b']
        """
        return [
            cell
            for cell in self.cells
            if table in (None, cell.table) and row in (None, cell.row) and column in (None, cell.column)
        ]

    def value(self, table: str, row: str, column: str) -> float:
        """The obtained number of a cell; NaN where there is none."""
        return next(iter(numbers(self.select(table, row, column))), math.nan)


def numbers(cells: Iterable[Cell]) -> list[float]:
    """The obtained numbers of cells, where there is one."""
    return [cell.obtained for cell in cells if cell.obtained is not None]


def cell_rows(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Cells as rows of the table `cells`; two numbers in one place are an error."""
    listed = list(cells)
    places = {(cell.table, cell.row, cell.column) for cell in listed}
    if len(places) < len(listed):
        raise ValueError("two cells have the same table, row and column")
    return [{field.name: getattr(cell, field.name) for field in fields(Cell)} for cell in listed]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim: the paper's text and where it stands, and the rule of the verdict in words and as a function.

    `ours` marks a question that the paper leaves open; it is counted with no paper.
    """

    key: str
    text: str
    where: str
    criterion: str
    rule: Callable[[Cells], Finding]
    ours: bool = False


def judge(claims: Sequence[Claim], result: Result) -> Iterator[tuple[Claim, Finding]]:
    cells = Cells.read(result)
    return ((claim, claim.rule(cells)) for claim in claims)


def share(parts: Sequence[bool], why: str) -> Finding:
    """A claim of several parts replicates if all parts do, in part if some do, and does not if none does.

    >>> share([True, False], "1 of 2").verdict.value
    'replicates in part'
    """
    if not parts:
        return Finding(Verdict.UNTESTABLE, why)
    some = Verdict.IN_PART if any(parts) else Verdict.FAILS
    return Finding(Verdict.REPLICATES if all(parts) else some, why)


def steps(parts: Sequence[bool], why: str) -> Finding:
    """What rises or falls replicates in part only if it does at more than half of the steps, because noise rises too.

    >>> [steps(parts, "").verdict.value for parts in ([True, True, False], [True, False])]
    ['replicates in part', 'does not replicate']
    """
    return share(parts if 2 * sum(parts) > len(parts) else [False] * len(parts), why)


def untestable(why: str) -> Callable[[Cells], Finding]:
    """The rule of a claim that no data here can test."""
    return lambda _: Finding(Verdict.UNTESTABLE, why)


def within(table: str, column: str | None = None, *, real: bool = False) -> Callable[[Cells], Finding]:
    """The rule that every number of a table is within the tolerance of the printed one; `real`: of real data."""

    def rule(cells: Cells) -> Finding:
        parts = [bool(cell.is_within) for cell in cells.select(table, column=column) if cell.is_within is not None]
        if real and cells.synthetic:
            return Finding(Verdict.UNTESTABLE, "The printed numbers describe other data than the simulated ones.")
        return share(parts, f"{sum(parts)} of {len(parts)} numbers are within the tolerance.")

    return rule


def printed_table(text: str) -> dict[str, tuple[float, ...]]:
    """The numbers of a printed table by row: a name, a bar, numbers.

    >>> printed_table("MF Bias | .35 -80")
    {'MF Bias': (0.35, -80.0)}
    """
    rows = (line.split("|") for line in text.strip().splitlines())
    return {name.strip(): tuple(map(float, numbers.split())) for name, numbers in rows}


def where_given(table: str, rule: Callable[[Cells], Finding], why: str) -> Callable[[Cells], Finding]:
    """The rule of a claim on data that few have: it cannot be tested where a result has no such table."""
    return lambda cells: rule(cells) if cells.select(table) else Finding(Verdict.UNTESTABLE, why)


def span(values: Iterable[float], form: str = ".2f") -> str:
    """From the smallest to the largest.

    >>> span([0.5, -0.25])
    '-0.25 to 0.50'
    """
    listed = list(values)
    return f"{min(listed):{form}} to {max(listed):{form}}"


def below(values: Sequence[float], limit: float, name: str) -> Finding:
    """All values are below a limit."""
    parts = [value < limit for value in values]
    return share(parts, f"{name} is below {limit:g} in {sum(parts)} of {len(parts)} cases, at most {max(values):.2g}.")
