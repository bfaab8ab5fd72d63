"""The demo as text."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import fill

from truerank.core.escaping import printable
from truerank.core.progress import Progress
from truerank.report.text import STYLES, Ruler
from truerank.simulation.demo import COMMAND, Picture, make_demo, make_lesson, write_demo

AXIS = 70  # columns of a picture
READABLE = 110  # columns of text


def run_demo(
    out: Path, *, seed: int, force: bool, progress: AbstractContextManager[Progress | None], width: int | None
) -> str:
    """Run the demo, leave its files in a folder (`force` replaces those of another demo), and return its text.

    For a terminal of `width` columns, or without colours.
    """
    with progress as report:
        if report is not None:
            report("simulating a dataset and fitting models", 0, 1)
        demo = make_demo(out, seed=seed)
        write_demo(demo, seed=seed, force=force, say=report)
        lesson = make_lesson(demo)
    columns = min(width or READABLE, READABLE)
    question = printable(fill(lesson.question, columns), lines=True)
    lines = [question if width is None else f"{STYLES['bold']}{question}\x1b[0m"]
    for part in lesson.parts:
        if isinstance(part, Picture):
            room = columns - 12 - max(len(bar.name) for bar in part.bars)
            text = "\n".join(draw(part, columns=min(AXIS, room)))
        else:
            text = part if part.startswith(COMMAND) else fill(part, columns)
        lines.append(printable(text, lines=True))
    return "\n".join(lines) + "\n"


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
