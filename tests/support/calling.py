"""The command line called in this process as a user calls it: its exit code and what it wrote."""

from __future__ import annotations

import io
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self
from unittest.mock import patch

import click

import truerank.cli
from truerank.cli.commands import cli

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class TooLongError(BaseException):
    """No handler of the code under test may catch it."""


@dataclass(frozen=True, slots=True)
class Called:
    """How a call ended: the exit code, or what else happened, and both streams."""

    code: int | str
    out: str
    err: str

    def fine(self) -> Self:
        """Itself, of a call that ended well."""
        assert self.code == 0, self.err
        return self

    @property
    def message(self) -> str:
        """The one message on standard error: its only non-empty line that is not one of click's usage lines."""
        lines = [line for line in self.err.splitlines() if line.strip() and not line.startswith(("Usage:", "Try '"))]
        assert len(lines) == 1, f"expected exactly one message, found {lines}"
        return lines[0]


Run = Callable[..., Called]
DECIDED = {"--exposure", "--like", "--design", "--propensity", "--rate", "--unlisted", "--help", "--help-all"}


def words_of(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a command that is one text, as a shell takes it apart; or those that are given."""
    return tuple(shlex.split(arguments[0])) if len(arguments) == 1 else arguments


def with_exposure(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """A command whose labels are full where it says nothing else."""
    asks = arguments[:1] in (("evaluate",), ("watch",)) and len(arguments) > 2 and not DECIDED & {*arguments}
    return (*arguments, "--exposure", "full") if asks else arguments


def call(*arguments: str, seconds: int = 20) -> Called:
    """Run a command, given as one text or by its words; `seconds` after which it is taken for one that hangs."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    hook = sys.unraisablehook
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(seconds)
    try:
        with (
            patch.object(sys, "argv", ["truerank", *with_exposure(words_of(arguments))]),
            patch("sys.stdout", out),
            patch("sys.stderr", err),
        ):
            code = _code(seconds)
    finally:
        signal.alarm(0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
    return Called(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def _code(seconds: int) -> int | str:
    try:
        truerank.cli.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else str(stop.code)
    except TooLongError:
        return f"longer than {seconds} seconds"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return 0


def _too_long(signum: int, frame: Any) -> Any:
    raise TooLongError


def every_command(group: Any = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands by their words, those of groups too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name), command
