"""Options and helpers that commands share."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import polars as pl

from truerank.core.errors import InputError
from truerank.core.ids import as_ids
from truerank.core.language import pieces
from truerank.core.results import Results
from truerank.data.files import whole_file
from truerank.data.parts import parts_of
from truerank.data.read import KEYS, as_table, column
from truerank.evaluation.judged_plan import Report
from truerank.report import document, frames, text

LONGEST_NAME = 200  # leaves room for the temporary name beside it

Command = TypeVar("Command", bound=Callable[..., Any])


def common(command: Command) -> Command:
    """--format, --out and --quiet."""
    for option in (
        click.option("--quiet", is_flag=True, help="No messages and no progress on standard error."),
        click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the results to a file."),
        click.option(
            "--format", "form", type=click.Choice(["table", "json", "csv"]),
            help="What the results look like; by default a table, or what the ending of --out says.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def columns_of(given: str | None, *, more: tuple[str, ...] = ()) -> dict[str, str]:
    """A mapping from `user=user_id,item=video_id`; `more` keys than the common ones may be allowed."""
    known = (*KEYS, *more)
    mapping: dict[str, str] = {}
    for part in (given or "").split(","):
        key, separator, name = part.partition("=")
        if part.strip() and not (separator and key.strip() and name.strip()):
            raise InputError(f"--columns {given!r}: {part!r} is not NAME=COLUMN, as in user=user_id,item=video_id.")
        if part.strip() and key.strip() not in known:
            raise InputError(f"--columns {given!r}: {key.strip()!r} is not known; expected one of {', '.join(known)}.")
        if part.strip():
            mapping[key.strip()] = name.strip()
    return mapping


def listed(text: str) -> list[str]:
    """Parts between commas that are not in brackets."""
    try:
        return [part for part in pieces(text, ",") if part]
    except ValueError:
        raise InputError(f"{text!r}: brackets do not match; expected a list with commas.") from None


def numbers(text: str, option: str, *, kind: type[int] | type[float]) -> list[float]:
    """Numbers between commas."""
    found = []
    for part in listed(text):
        try:
            found.append(kind(part))
        except ValueError:
            raise InputError(f"{option} {part!r}; expected numbers with commas between them.") from None
    return found


def id_column(path: Path | None, kind: str, mapping: dict[str, str]) -> pl.Series | None:
    """A file's column `user` or `item`, in the order of its rows; a file with one column needs no name."""
    if path is None:
        return None
    table, where = as_table(path)
    only = table.columns[0] if len(table.columns) == 1 else None
    found = table[only] if only is not None else column(table, kind, mapping, where=where)
    return as_ids(found, where=f"{where}, column {found.name!r}")


def named_paths(values: Sequence[str]) -> dict[str, Path]:
    """NAME=PATH, split at the first `=`; a bare path is named after the file."""
    found: dict[str, Path] = {}
    for value in values:
        name, separator, path = value.partition("=")
        name, path = (name, path) if separator else (Path(value).stem, value)
        if not name or not path:
            raise InputError(f"--scores {value!r}: expected NAME=FILE.")
        if name in found:
            raise InputError(f"--scores {value!r}: the name {name!r} is given twice; names must differ.")
        found[name] = Path(path)
    return found


def check_out(out: Path | None, *, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse an output that cannot be written, or that would replace an input, before any work is done."""
    if out is None:
        return
    if len(out.name.encode()) > LONGEST_NAME:
        raise InputError(f"{out}: cannot be written, the name is too long. Choose a shorter one.")
    if out.is_dir():
        raise InputError(f"{out}: is a folder; expected the name of a file to write.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"{out}: cannot be written, its folder is missing or closed. Choose another place.")
    for path in inputs if out.exists() else ():
        if path is not None and out.resolve() in {each.resolve() for each in parts_of(path) or [path]}:
            raise InputError(f"--out {out}: is read as {path}, and would be replaced. Choose another name.")


def rendered(results: Results, form: str | None, out: Path | None) -> bytes:
    """Results in the asked form; by default a table, or what the ending of the file says."""
    form = form or (out.suffix[1:] if out is not None and out.suffix in (".json", ".csv") else "table")
    if form == "json":
        return document.encode(results)
    if form == "csv":
        return frames.csv(results)
    to_terminal = out is None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if to_terminal else None
    return text.render(results, width=width, color=to_terminal, for_cli=True).encode()


def deliver(content: bytes, out: Path | None) -> None:
    """Results to a file, whole or not at all, or to standard output."""
    if out is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with whole_file(out) as temporary:
        temporary.write_bytes(content)


def messages(lines: Sequence[str], *, quiet: bool) -> None:
    for line in () if quiet else lines:
        click.echo(line, err=True)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Report | None]:
    """Progress on standard error for anything that takes longer than a second: a bar, or lines where none can be."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
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
            self.tasks[what] = self.bar.add_task(what, total=total)
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
        left = (
            f", about {seconds / 60:.0f} min left"
            if seconds >= 90
            else f", about {seconds:.0f} s left"
            if seconds
            else ""
        )
        click.echo(f"{what}: {done:,} of {total:,} ({done / max(total, 1):.0%}){left}", err=True)
