"""How far long work has come: told to a function, shown as a bar, or said in lines where no bar can be."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from truerank.core.escaping import printable, sentence

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much
Watching = Progress | bool | None  # as callers ask for it: True shows it

PATIENCE = 1.0  # seconds of work that nothing is shown of
PAUSE = 10.0  # seconds between lines
REDRAWN = 0.1  # seconds between drawings of a bar


@contextmanager
def watching(progress: Watching) -> Iterator[Progress | None]:
    """The function that is told of progress: the given one, or for True a bar in a terminal or a notebook.

    Whatever ends the work, Ctrl-C too, takes the bar away; no thread draws it.

    >>> with watching(None) as nobody, watching(False) as nobody_either, watching(print) as printed:
    ...     printed("ranking a", 1, 2)
    ranking a 1 2
    >>> nobody, nobody_either
    (None, None)
    """
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        yield progress
    elif sys.stderr is None:
        yield None
    elif sys.stderr.isatty() or _in_notebook():
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.stop()
    else:
        yield _Lines()


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class _Bar:
    """Drawn when it is told something, so that no thread has to."""

    def __init__(self) -> None:
        self.due, self.tasks = time.monotonic() + PATIENCE, dict[str, Any]()
        self.bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self.bar is None:
            if now < self.due:
                return
            self.bar = _rich_bar()
            self.bar.start()
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(printable(what), total=total)
        self.bar.update(self.tasks[what], completed=done, total=total)
        if now >= self.due or done == total:
            self.due = now + REDRAWN
            self.bar.refresh()

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def _rich_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True, auto_refresh=False,
    )  # fmt: skip


class _Lines:
    """A line after the first second and every ten seconds, with the time left once there is something to go by."""

    def __init__(self) -> None:
        self.due, self.begun = time.monotonic() + PATIENCE, dict[str, tuple[float, int]]()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        begin, before = self.begun.setdefault(what, (now, done))
        if now < self.due:
            return
        self.due = now + PAUSE
        # what was there at the first report may come from an earlier run and says nothing of the pace
        seconds = (now - begin) / (done - before) * (total - done) if done > before else 0.0
        with suppress(OSError, ValueError):  # full, closed, or its reader has left: work goes on
            sys.stderr.write(
                sentence(f"{what}: {done:,} of {total:,} ({done / max(total, 1):.0%}){_left(seconds)}") + "\n"
            )
            sys.stderr.flush()


def _left(seconds: float) -> str:
    if not seconds:
        return ""
    return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
