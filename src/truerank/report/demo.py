"""The demo as text."""

from __future__ import annotations

import io
import math
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import fill

from rich.text import Text

from truerank.core.progress import Progress
from truerank.report.console import console_on
from truerank.report.ruler import Ruler
from truerank.simulation.demo import COMMAND, Picture, make_demo, make_lesson, write_demo

AXIS = 70  # columns of a picture
READABLE = 110  # columns of text


def run_demo(
    out: Path, *, seed: int, force: bool, progress: AbstractContextManager[Progress | None], width: int | None
) -> str:
    """Run the demo, leave its files in a folder (`force` replaces those of another demo), and return its text.

    For a terminal of `width` columns, or unwrapped.
    """
    stream = io.StringIO()
    console = console_on(stream, width=width, color=width is not None)
    with progress as report:
        if report is not None:
            report("simulating a dataset and fitting models", 0, 1)
        made = make_demo(out, seed=seed)
        write_demo(made, seed=seed, force=force, say=report)
        lesson = make_lesson(made)
    columns = min(console.width, READABLE)
    console.print(Text(lesson.question, style="bold"))
    for part in lesson.parts:
        if isinstance(part, Picture):
            room = columns - 12 - max(len(bar.name) for bar in part.bars)
            console.print(Text("\n".join(draw(part, columns=min(AXIS, room)))), soft_wrap=True)
        else:
            text = part if part.startswith(COMMAND) else fill(part, columns)
            console.print(Text(text), soft_wrap=True)
    return stream.getvalue()


def draw(picture: Picture, *, columns: int = AXIS) -> list[str]:
    """Each interval on an axis from 0 to the largest number, with the truth as a diamond.

    >>> from truerank.simulation.demo import Bar
    >>> picture = Picture("share found", (Bar("a", 0.4, 0.1, 0.2), Bar("bb", 0.1, 0.05, 0.15)))
    >>> print("\\n".join(draw(picture, columns=41)))
    share found
      a             ├─────────┤                   ◆ 0.4000
      bb       ├────◆────┤                          0.1000
    """
    longest = max(len(bar.name) for bar in picture.bars)
    ruler = Ruler(0.0, max(max(bar.truth, bar.high) for bar in picture.bars), columns)
    lines = [
        f"  {bar.name:{longest}}  {ruler.line(bar.low, math.nan, bar.high, truth=bar.truth)} {bar.truth:.4f}"
        for bar in picture.bars
    ]
    return [picture.title, *lines]
