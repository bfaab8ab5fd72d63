"""What the demo finds, told as text."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import fill

from rich.console import Console
from rich.table import Table
from rich.text import Text

from truerank.report.console import console_on
from truerank.report.drawn import Ruler
from truerank.studies.demo.chapter import COMMAND, Chapter, Picture, Say, Sheet
from truerank.studies.demo.first import tell_first
from truerank.studies.demo.made import Made, keep, make

AXIS = 70  # columns of a picture
READABLE = 110  # columns of text
Telling = Callable[[Made, Say | None], Chapter]


def story(
    out: Path,
    topics: Sequence[str],
    *,
    seed: int,
    force: bool,
    progress: AbstractContextManager[Say | None],
    width: int | None,
) -> str:
    """Run the demo, leave its files in a folder (`force` replaces that of another demo), and tell what it finds.

    Without topics it is one question and one picture. For a terminal of `width` columns, or uncut.
    """
    from truerank.studies.demo import TOPICS

    values = [TOPICS.parse(each) for each in topics]
    stream = io.StringIO()
    console = console_on(stream, width=width, color=width is not None)
    with progress as say:
        if say is not None:
            say("making a world and fitting models", 0, 1)
        made = make(out, seed=seed)
        keep(made, seed=seed, force=force, say=say)
        told = [each.tell(made, seed=seed, say=say) for each in values] or [tell_first(made)]
    for at, chapter in enumerate(told):
        if at:
            console.print()
        print_chapter(chapter, console)
    return stream.getvalue()


def print_chapter(chapter: Chapter, console: Console) -> None:
    """A chapter on a console; what belongs together stands together."""
    width = min(console.width, READABLE)
    console.print(Text(chapter.title, style="bold"))
    for part in chapter.parts:
        if isinstance(part, Picture):
            room = width - 12 - max(len(each.name) for each in part.bars)
            console.print(Text("\n".join(drawn(part, columns=min(AXIS, room)))), soft_wrap=True)
        elif isinstance(part, Sheet):
            _print_sheet(part, console)
        else:
            console.print(Text(_wrapped(part, width=width)), soft_wrap=True)


def _wrapped(text: str, *, width: int) -> str:
    """Paragraphs in lines that are easy to read; a command stays whole, to be copied."""
    lines = text.splitlines()
    return "\n".join(
        line if line.startswith(COMMAND) else fill(line, width, subsequent_indent=_indent(line)) for line in lines
    )


def _indent(line: str) -> str:
    return " " * 4 if line.startswith(" ") else ""


def drawn(picture: Picture, *, columns: int = AXIS) -> list[str]:
    """Each interval on an axis from 0 to the largest number shown, with the truth as a diamond.

    >>> from truerank.studies.demo.chapter import Bar
    >>> picture = Picture("share found", (Bar("a", 0.4, 0.1, 0.2), Bar("bb", 0.1, 0.05, 0.15)))
    >>> print("\\n".join(drawn(picture, columns=41)))
    share found
      a             ├─────────┤                   ◆ 0.4000
      bb       ├────◆────┤                          0.1000
    """
    longest = max(len(each.name) for each in picture.bars)
    most = max(max(each.truth, each.high) for each in picture.bars)
    ruler = Ruler(0.0, most, columns)
    lines = [
        f"  {each.name:{longest}}  {ruler.line(each.low, math.nan, each.high, truth=each.truth)} {each.truth:.4f}"
        for each in picture.bars
    ]
    return [picture.title, *lines]


def _print_sheet(sheet: Sheet, console: Console) -> None:
    if sheet.title:
        console.print(Text(sheet.title, style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(sheet.header))
    for at, name in enumerate(sheet.header):
        words = at == 0 or not any(_is_number(row[at]) for row in sheet.rows)
        table.add_column(name, justify="left" if words else "right", no_wrap=at > 0)
    for row in sheet.rows:
        table.add_row(*row, style="bold" if row[0] == "truth" else "")
    console.print(table)
    console.print()


def _is_number(cell: str) -> bool:
    return cell[:1] in ("+", "-") or cell[:1].isdigit()
