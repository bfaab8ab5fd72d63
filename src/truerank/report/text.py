"""Summaries as text: for a terminal of some columns, with or without colours; and other content as lines, CSV, JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any

from truerank.core.escaping import csv_cell, json_bytes, printable
from truerank.core.results import Results
from truerank.core.wording import option, worded
from truerank.report.details import Cell, ResultTable
from truerank.report.ruler import Ruler
from truerank.report.summary import ResultSummary, summarize

COLUMNS = 80  # where there is no terminal
GAP = 2  # between columns
STYLES = {"bold": "\x1b[1m", "yellow": "\x1b[33m", "dim": "\x1b[2m"}


def render(
    results: Results,
    *,
    groups: Mapping[str, Results] | None = None,
    width: int | None = None,
    color: bool = False,
    for_cli: bool = False,
    verbose: bool = False,
) -> str:
    """The answer first; with `verbose` all estimates, assumptions and messages behind it, and those of the groups."""
    page = TextPage(width or COLUMNS, color=color)
    summary = summarize(results, groups=groups, for_cli=for_cli)
    more = f" More: {option('verbose', 'print(results.details())')}, {option('report FILE.html', 'results.html(path)')}"
    page.answer(summary, "" if verbose else worded(more, for_cli=for_cli))
    if verbose:
        page.rest(summary)
        for name, part in (groups or {}).items():
            page.paragraph(name, "bold")
            page.rest(summarize(part, for_cli=for_cli))
    return page.text()


class TextPage:
    """Paragraphs and tables, wrapped at a width; a table wider than that is split by columns, no cell is cut."""

    def __init__(self, width: int, *, color: bool) -> None:
        self.width, self.color = width, color
        self.lines: list[str] = []

    def answer(self, summary: ResultSummary, more: str) -> None:
        """Verdict, table, warnings, estimands."""
        evidence = f"Evidence: {summary.evidence}" if summary.evidence else ""
        verdict = printable(summary.verdict)
        room = self.width - columns_of(evidence) - columns_of(verdict)
        if room >= GAP:
            self.lines.append(f"{self.styled(verdict, 'bold')}{' ' * room}{evidence}".rstrip())
        else:
            self.paragraph(verdict, "bold")
            self.paragraph(evidence)
        if summary.table is not None:
            self.table(summary.table)
        for note in summary.notes:
            self.paragraph(note)
        for head, table in summary.groups:
            self.lines.append("")
            self.paragraph(head)
            self.table(table, before=False)
        for warning in summary.warnings:
            self.paragraph(f"! {warning}", "yellow")
        self.paragraph(f"{summary.estimands}{more}", "dim")

    def rest(self, summary: ResultSummary) -> None:
        """Every question with its tables, then assumptions and messages."""
        for detail in summary.details:
            self.lines.append("")
            self.paragraph(f"{detail.title}: {detail.estimand}", "bold")
            for table in detail.tables:
                self.table(table, before=False)
            for note in detail.notes:
                self.paragraph(note)
        self.lines.append("")
        for remark in summary.remarks:
            self.paragraph(remark)

    def paragraph(self, text: str, style: str = "") -> None:
        if text:
            lines = fill(printable(text), self.width, break_long_words=False, break_on_hyphens=False).splitlines()
            self.lines += [self.styled(line, style) for line in lines]

    def table(self, table: ResultTable, *, before: bool = True) -> None:
        """Names to the left, numbers to the right with their marks behind them, intervals drawn where there is room."""
        self.lines += [""] if before else []
        for head, *rows in self._blocks(table):
            self.lines += [self.styled(head, "dim"), *rows]

    def _blocks(self, table: ResultTable) -> Iterator[list[str]]:
        columns = [self._column(table, place) for place in range(len(table.head))]
        names, rest = columns[: table.names], columns[table.names :]
        while names or rest:
            block = [*names, *rest[:1]]
            rest = rest[1:]
            while rest and _wide([*block, rest[0]]) <= self.width:
                block.append(rest.pop(0))
            if not rest:
                block += self._drawn(table, self.width - _wide(block) - GAP)
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
            shown = self.styled(text, "bold" if cell.bold else "")
            padded = f"{shown}{space}" if place < table.names else f"{space}{shown}"
            lines.append(f"{padded} {cell.mark:{marks}}" if marks else padded)
        return lines

    def _drawn(self, table: ResultTable, room: int) -> list[list[str]]:
        ends = [end for row in table.intervals for end in row]
        ruler = Ruler.of(ends, room, zero=table.head[0] == "difference")
        return [] if ruler is None else [[ruler.head(), *(ruler.line(*row) for row in table.intervals)]]

    def styled(self, text: str, style: str) -> str:
        return f"{STYLES[style]}{text}\x1b[0m" if self.color and style and text else text

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


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


# ---------------------------------------------------------------------------------------------------------------- forms


def encoded(text: str) -> bytes:
    """Plain text as it goes out, without what a terminal would obey."""
    return printable(text, lines=True).encode()


def as_json(content: Any) -> bytes:
    return json_bytes(content)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A line for each row, all with the names of the first; nothing that a spreadsheet would run."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue().encode()


def as_lines(values: Mapping[str, Any], *, width: int | None = None) -> str:
    """A line for each name and its value.

    >>> print(as_lines({"users": 3, "first items": "a, b"}), end="")
    users        3
    first items  a, b
    """
    wide = width or max(len(name) for name in values)
    return "".join(f"{printable(name):{wide}}  {printable(str(value))}\n" for name, value in values.items())
