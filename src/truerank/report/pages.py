"""Pages of text: as wide as what they hold, or on a terminal of some width, which folds and has colours.

Both show the same where there is room. Only a terminal needs rich, which takes longer to load than to write a page.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from truerank.core.escaping import printable
from truerank.report.drawn import SIGNS

GAP = 2  # between columns
_NARROW = str.maketrans(dict.fromkeys(SIGNS, "-"))

Part = tuple[str, str]  # a text and its style
Lines = Sequence[Sequence[str]]  # of a table, its head first


class TextPage(Protocol):
    """What results are written on; nothing in data reaches it as something that a terminal would obey."""

    @property
    def width(self) -> int | None: ...

    def say(self, *parts: Part) -> None:
        """A paragraph."""

    def table(self, lines: Lines, *, left: Sequence[int]) -> None:
        """A table; columns stand on the right, but for those that are `left`."""

    def text(self) -> str: ...


@dataclass(slots=True)
class Uncut:
    """A page without a width.

    >>> page = Uncut()
    >>> page.table([["model", "value"], ["a\\n", "0.5"]], left=[0])
    >>> page.text()
    'model  value\\na\\\\n      0.5\\n'
    """

    lines: list[str] = field(default_factory=list)
    width: None = None

    def say(self, *parts: Part) -> None:
        self.lines.append(printable("".join(text for text, _ in parts), lines=True))

    def table(self, lines: Lines, *, left: Sequence[int]) -> None:
        cells = [[printable(cell) for cell in line] for line in lines]
        widths = [max(map(columns_of, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            spaces = [" " * (wide - columns_of(cell)) for cell, wide in zip(line, widths, strict=True)]
            pairs = enumerate(zip(line, spaces, strict=True))
            padded = [cell + space if at in left else space + cell for at, (cell, space) in pairs]
            self.lines.append((" " * GAP).join(padded))

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


class OnTerminal:
    """A page that rich lays out: cells fold where the terminal is narrow, nothing is cut."""

    def __init__(self, *, width: int, color: bool) -> None:
        from truerank.report.console import console_on

        self.width, self.stream = width, io.StringIO()
        self.console = console_on(self.stream, width=width, color=color)

    def say(self, *parts: Part) -> None:
        from rich.text import Text

        self.console.print(Text.assemble(*parts))

    def table(self, lines: Lines, *, left: Sequence[int]) -> None:
        from rich.table import Table
        from rich.text import Text

        table: Any = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        head, *rows = lines
        for at, name in enumerate(head):
            table.add_column(Text(name), justify="left" if at in left else "right", overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self.console.print(table)

    def text(self) -> str:
        return self.stream.getvalue()


def columns_of(text: str) -> int:
    """How many columns a text takes: wide letters take two.

    >>> columns_of("abc"), columns_of("日本")
    (3, 4)
    """
    if text.translate(_NARROW).isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
