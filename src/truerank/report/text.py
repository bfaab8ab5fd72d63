"""Summaries as text, for a terminal of some columns, with or without colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill

from truerank.core.escaping import printable
from truerank.core.record import record
from truerank.report.numbers import number
from truerank.report.view import AnswerSummary, Cell, ResultTable

COLUMNS = 80  # where there is no terminal
GAP = 2  # between columns
STYLES = {"bold": "\x1b[1m", "yellow": "\x1b[33m", "dim": "\x1b[2m"}
NARROW, WIDE = 16, 30  # columns of an axis: below these it tells nothing, beyond those it tells no more


def render(
    summary: AnswerSummary,
    *,
    parts: Mapping[str, AnswerSummary] | None = None,
    width: int | None = None,
    color: bool = False,
    verbose: bool = False,
) -> str:
    """The answer first; with `verbose` all details, assumptions and messages behind it, and those of the groups."""
    page = TextPage(width or COLUMNS, color=color)
    page.answer(summary, "" if verbose else summary.more)
    for name, part in {"": summary, **(parts or {})}.items() if verbose else ():
        page.paragraph(name, "bold")
        page.rest(part)
    return "".join(f"{line}\n" for line in page.lines)


class TextPage:
    """Paragraphs and tables, wrapped at a width; a table wider than that is split by columns, no cell is cut."""

    def __init__(self, width: int, *, color: bool) -> None:
        self.width, self.color = width, color
        self.lines: list[str] = []

    def answer(self, summary: AnswerSummary, more: str) -> None:
        """Verdict, table, warnings, estimands."""
        evidence = f"Evidence: {summary.evidence}" if summary.evidence else ""
        verdict = printable(summary.verdict)
        room = self.width - columns_of(evidence) - columns_of(verdict)
        if room >= GAP:
            self.lines.append(f"{self._styled(verdict, 'bold')}{' ' * room}{evidence}".rstrip())
        else:
            self.paragraph(verdict, "bold")
            self.paragraph(evidence)
        if summary.table is not None:
            self.lines.append("")
            self._table(summary.table)
        for note in summary.notes:
            self.paragraph(note)
        for head, table in summary.groups:
            self.lines.append("")
            self.paragraph(head)
            self._table(table)
        for warning in summary.warnings:
            self.paragraph(f"! {warning}", "yellow")
        self.paragraph(f"{summary.estimands}{more}".strip(), "dim")
        if summary.commands:
            self.lines += ["Next:", *(f"  {printable(command)}" for command in summary.commands)]

    def rest(self, summary: AnswerSummary) -> None:
        """Every question with its tables, then assumptions and messages."""
        for detail in summary.details():
            self.lines.append("")
            self.paragraph(": ".join(filter(None, [detail.title, detail.estimand])), "bold")
            for table in detail.tables:
                self._table(table.texts())
                self.paragraph(table.cut)
        self.lines.append("")
        for remark in summary.remarks:
            self.paragraph(remark)

    def paragraph(self, text: str, style: str = "") -> None:
        if text:
            lines = fill(printable(text), self.width, break_long_words=False, break_on_hyphens=False).splitlines()
            self.lines += [self._styled(line, style) for line in lines]

    def _table(self, table: ResultTable) -> None:
        """Names to the left, numbers to the right with their marks behind them, intervals drawn where there is room."""
        for head, *rows in self._blocks(table):
            self.lines += [self._styled(head, "dim"), *rows]

    def _blocks(self, table: ResultTable) -> Iterator[list[str]]:
        columns = [self._column(table, place) for place in range(len(table.head))]
        names, rest = columns[: table.names], columns[table.names :]
        while names or rest:
            block = [*names, *rest[:1]]
            rest = rest[1:]
            while rest and _wide([*block, rest[0]]) <= self.width:
                block.append(rest.pop(0))
            if not rest:
                block += _drawn(table, self.width - _wide(block) - GAP)
            yield [(" " * GAP).join(cells).rstrip() for cells in zip(*block, strict=True)]
            names = names if rest else []

    def _column(self, table: ResultTable, place: int) -> list[str]:
        """The cells of one column, all of the same width."""
        cells = [Cell(table.head[place]), *(row[place] for row in table.rows)]
        texts = [printable(cell.text) for cell in cells]
        wide, marks = max(map(columns_of, texts)), max(len(cell.mark) for cell in cells)
        lines = []
        for cell, text in zip(cells, texts, strict=True):
            space = " " * (wide - columns_of(text))
            shown = self._styled(text, "bold" if cell.bold else "")
            padded = f"{shown}{space}" if place < table.names else f"{space}{shown}"
            lines.append(f"{padded} {cell.mark:{marks}}" if marks else padded)
        return lines

    def _styled(self, text: str, style: str) -> str:
        return f"{STYLES[style]}{text}\x1b[0m" if self.color and style and text else text


def _drawn(table: ResultTable, room: int) -> list[list[str]]:
    """A column with the intervals of a table, where there is room for it."""
    ruler = Ruler.fitting((end for row in table.intervals for end in row), room, zero="difference" in table.head)
    return [] if ruler is None else [[ruler.head(), *(ruler.line(*row) for row in table.intervals)]]


def _wide(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(columns_of(_unstyled(cell)) for cell in column) + GAP for column in columns) - GAP


def _unstyled(text: str) -> str:
    for style in (*STYLES.values(), "\x1b[0m"):
        text = text.replace(style, "")
    return text


def columns_of(text: str) -> int:
    """How many columns a text takes: wide letters take two.

    >>> columns_of("abc"), columns_of("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


# ----------------------------------------------------------------------------------------------------------- intervals


@record
class Ruler:
    """Intervals as lines of text on one axis of `width` columns; with `zero` it holds 0, which every line shows.

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
    def fitting(cls, ends: Iterable[float], width: int, *, zero: bool = False) -> Ruler | None:
        """The axis that holds all ends of intervals; none where they are all the same, or there is no room."""
        finite = [end for end in (*ends, *([0.0] if zero else [])) if math.isfinite(end)]
        if width < NARROW or not finite or not max(finite) / 2 - min(finite) / 2 > 0:
            return None
        return cls(min(finite), max(finite), min(width, WIDE), zero)

    def head(self) -> str:
        """The ends of the axis, and 0 where there is room for it between them."""
        left, right = (number(end) if end else "0" for end in (self.low, self.high))
        line = f"{left}{right:>{self.width - len(left)}}"
        column = self._column(0.0)
        if self.zero and len(left) < column < self.width - len(right) - 1:
            line = f"{line[:column]}0{line[column + 1 :]}"
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
        for mark, place in (("●", value), ("◆", truth)):
            if self.low <= place <= self.high:
                cells[self._column(place)] = mark
        return "".join(cells)

    def _column(self, value: float) -> int:
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves: their differences do not overflow
        return round(share * (self.width - 1))
