"""What a reader sees of any result: the answer first, then its table and warnings; behind it, all details.

evaluate, offpolicy, watch, plan and advise give this view; terminals, notebooks, Markdown, LaTeX and pages render it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from truerank.core.record import record


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

    @classmethod
    def from_texts(cls, head: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> ResultTable:
        return cls(head, [[Cell(text) for text in row] for row in rows], names)


class Detail(NamedTuple):
    """The full tables of one question."""

    title: str
    estimand: str
    tables: Sequence[ResultTable]
    note: str = ""


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
    details: tuple[Detail, ...] = field(default=(), repr=False)
    remarks: tuple[str, ...] = field(default=(), repr=False)  # assumptions, and all messages
    next_step: str = ""
    commands: tuple[str, ...] = ()  # to run next


@record(eq=False)
class Answer:
    """A summary with what other forms hold: rows of CSV, a JSON document, and the panels of a picture or page."""

    question: str
    summary: AnswerSummary
    rows: Sequence[Mapping[str, Any]]
    document: Mapping[str, Any]
    panels: Callable[[], Sequence[Any]] = tuple
