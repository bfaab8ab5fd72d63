"""What a reproduced experiment says, as values: claims and verdicts, cells of tables, graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, and all its tables and figures by their numbers; `key` is the name of its page.

    `says` is what it claims, for those who have not read it, as it goes on after "They say that".
    `main` has what the paper is remembered for: experiment and key of each claim.
    """

    key: str
    short: str  # a few words for tables
    title: str
    authors: str
    year: int
    says: str
    parts: tuple[str, ...]
    main: tuple[tuple[str, str], ...] = ()


class ClaimVerdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    DOES_NOT = "does not hold"
    UNTESTED = "cannot be tested here"


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """What a paper says, where, and by which rule a verdict on it comes from the numbers."""

    key: str
    text: str
    where: str
    rule: str
    ours: bool = False  # a question that the paper leaves, and does not claim: counted with no paper


@dataclass(frozen=True, slots=True)
class ClaimFinding:
    """The verdict on a claim, and why."""

    claim: str
    verdict: ClaimVerdict
    why: str


def by_share(claim: str, kept: Sequence[bool], why: str) -> ClaimFinding:
    """The usual rule: a claim of several parts holds if all do, in part if some do, and does not hold if none does.

    >>> by_share("a", [True, False], "1 of 2").verdict.value
    'holds in part'
    """
    if not kept:
        return ClaimFinding(claim, ClaimVerdict.UNTESTED, why)
    some = ClaimVerdict.IN_PART if any(kept) else ClaimVerdict.DOES_NOT
    return ClaimFinding(claim, ClaimVerdict.HOLDS if all(kept) else some, why)


def by_steps(claim: str, kept: Sequence[bool], why: str) -> ClaimFinding:
    """The rule of what rises or falls: in part only if it does at more than half of its steps.

    What goes nowhere rises at some of them too.

    >>> [by_steps("a", kept, "").verdict.value for kept in ([True, True, False], [True, False])]
    ['holds in part', 'does not hold']
    """
    return by_share(claim, kept if 2 * sum(kept) > len(kept) else [False] * len(kept), why)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number: obtained, and published where the paper has it, in its row and column of a table.

    `low` and `high` are the interval of what was obtained; `tolerance` is how far from the published number it may be,
    by rights of chance and of settings that the paper does not give.

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
        """Whether it is within the tolerance of what was published; None where either is missing."""
        if self.obtained is None or self.published is None or self.tolerance is None:
            return None
        return abs(self.obtained - self.published) <= self.tolerance + 1e-12


class GraphKind(StrEnum):
    """How points are drawn: over each other, joined by lines, or a line of text for each."""

    POINTS = "points"
    LINES = "lines"
    RANGES = "ranges"  # x is a text, and each has a line; y runs from left to right
    PLACES = "places"  # joined by lines; y is a place, and 1, the best, is at the top


@dataclass(frozen=True, slots=True)
class GraphPoint:
    """A point, of a group (its colour) in a panel, with its interval."""

    x: float | str
    y: float | None
    group: str = ""
    panel: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class PaperGraph:
    """A picture as plain data: what it is about, the sentence that it shows, and its points.

    `level` is a line at that height (of RANGES at that place), for what would mean no difference; `log` is of the
    horizontal axis.
    """

    name: str
    title: str
    sentence: str
    kind: GraphKind
    x: str
    y: str
    points: tuple[GraphPoint, ...]
    level: float | None = None
    log: bool = False


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of an experiment, to find what a rule needs."""

    all: tuple[Cell, ...]

    def of(self, table: str | None = None, row: str | None = None, column: str | None = None) -> list[Cell]:
        """Cells of this table, row and column, in order.

        >>> cells = Cells((Cell("t", "a", "x", 1.0), Cell("t", "b", "x", 2.0)))
        >>> [cell.row for cell in cells.of("t", column="x")]
        ['a', 'b']
        """
        wanted = (table, row, column)
        return [
            cell
            for cell in self.all
            if all(name in (None, own) for name, own in zip(wanted, (cell.table, cell.row, cell.column), strict=True))
        ]

    def value(self, table: str, row: str, column: str) -> float:
        """What was obtained in a cell; NaN where there is no such number."""
        found = [cell.obtained for cell in self.of(table, row, column) if cell.obtained is not None]
        return found[0] if found else math.nan

    def values(self, cells: Iterable[Cell] | None = None) -> list[float]:
        """What was obtained in these cells (all by default), where there is a number."""
        return [cell.obtained for cell in (self.all if cells is None else cells) if cell.obtained is not None]
