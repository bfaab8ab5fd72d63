"""What a reader sees of any result: the answer first, then its table and warnings; behind it, all details.

evaluate, offpolicy, watch, plan and advise give this view; terminals, notebooks, Markdown, LaTeX and pages render it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Any, NamedTuple

import polars as pl

from truerank.core.record import record
from truerank.report.numbers import cell_text, interval, kind_of_values


class Cell(NamedTuple):
    """A text of a table; `mark` stands raised behind it: letters of models, or a star."""

    text: str
    mark: str = ""
    bold: bool = False


class ResultTable(NamedTuple):
    """Cells under their head; the first `names` columns are names, the others numbers.

    `intervals` are (low, value, high) of each row, to be drawn where there is room.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    names: int = 1
    intervals: Sequence[tuple[float, float, float]] = ()


@record(eq=False)
class DataTable:
    """Values under their titles, and which of them are left out (`cut`)."""

    caption: str
    frame: pl.DataFrame
    cut: str = ""

    @classmethod
    def first(cls, caption: str, frame: pl.DataFrame, most: int) -> DataTable:
        """As many rows as there is room for."""
        cut = f"The first {most:,} of {len(frame):,} rows; all are in JSON and CSV." if len(frame) > most else ""
        return cls(caption, frame.head(most), cut)

    def texts(self) -> ResultTable:
        """The table as text, in which low and high are one interval."""
        columns: dict[str, list[str]] = {}
        names = list(takewhile(lambda name: self.frame[name].dtype == pl.String, self.frame.columns))
        intervals: list[Any] = []
        for column in self.frame:
            columns[column.name] = [cell_text(value, kind_of_values(column)) for value in column]
        if {"low", "high"} <= {*columns}:
            value = self.frame.columns[self.frame.columns.index("low") - 1]
            intervals = self.frame.select("low", value, "high").rows()
            del columns["high"]
            columns["low"] = [interval(low, high) for low, _, high in intervals]
        head = ["CI" if name == "low" else name for name in columns]
        rows = [[Cell(text) for text in row] for row in zip(*columns.values(), strict=True)]
        return ResultTable(head, rows, len(names), intervals)


class Detail(NamedTuple):
    """The full tables of one question."""

    title: str
    estimand: str
    tables: Sequence[DataTable]


@record
class AnswerSummary:
    """The answer, and behind it the rest."""

    verdict: str
    evidence: str = ""
    table: ResultTable | None = None
    notes: tuple[str, ...] = ()
    groups: tuple[tuple[str, ResultTable], ...] = ()
    warnings: tuple[str, ...] = ()
    estimands: str = ""
    more: str = ""  # how to see the rest
    details: Callable[[], Iterable[Detail]] = tuple
    remarks: tuple[str, ...] = ()  # assumptions, and all messages
    effect: str = ""  # of the winner on the primary metric
    next_step: str = ""
    commands: tuple[str, ...] = ()  # to run next


@record(eq=False)
class Answer:
    """A summary with what other forms hold: a table for CSV, a document for JSON, panels of a picture, and a page.

    `parts` are the summaries of groups of units. Without a `page` of its own an answer has that of all answers.
    """

    question: str
    summary: AnswerSummary
    frame: Callable[[], pl.DataFrame]
    document: Any
    panels: Callable[[], Sequence[Any]] = tuple
    parts: Mapping[str, AnswerSummary] = field(default_factory=dict)
    page: Callable[[], Any] | None = None
