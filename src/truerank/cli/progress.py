"""Progress on standard error for anything that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from truerank.cli.terminal import say
from truerank.core.printable import printable

Report = Callable[[str, int, int], None]  # what is done, how much of it, of how much


@contextmanager
def progress(*, quiet: bool) -> Iterator[Report | None]:
    """A bar, or lines where none can be."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    shown = _Bar(bar)
    try:
        yield shown
    finally:
        if shown.started:
            bar.stop()


class _Bar:
    def __init__(self, bar: Any) -> None:
        self.bar, self.begin, self.started, self.tasks = bar, time.monotonic(), False, dict[str, Any]()

    def __call__(self, what: str, done: int, total: int) -> None:
        if not self.started and time.monotonic() - self.begin > 1:
            self.bar.start()
            self.started = True
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(printable(what), total=total)
        self.bar.update(self.tasks[what], completed=done, total=total)


class _Lines:
    """A line after the first second and every ten seconds, with the time left once there is something to go by."""

    def __init__(self) -> None:
        self.due, self.begun = time.monotonic() + 1, dict[str, tuple[float, int]]()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        begin, before = self.begun.setdefault(what, (now, done))
        if now < self.due:
            return
        self.due = now + 10
        # what was there at the first report may come from an earlier run and says nothing of the pace
        seconds = (now - begin) / (done - before) * (total - done) if done > before else 0.0
        say(f"{what}: {done:,} of {total:,} ({done / max(total, 1):.0%}){_left(seconds)}")


def _left(seconds: float) -> str:
    if not seconds:
        return ""
    return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
