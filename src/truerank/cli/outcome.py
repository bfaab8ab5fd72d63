"""How a command ends: its exit code, and one sentence for whatever went wrong."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from truerank.cli import terminal
from truerank.cli.commands import cli
from truerank.core.errors import REMEDIES, InputError, TruerankError, error_number
from truerank.core.escaping import printable
from truerank.core.sizes import out_of_memory

WRONG, INTERNAL = 2, 1
LEAST_SPACE = 7 * 2**28  # bytes of addresses that libraries need to load
FOR_A_CORE = 2**27  # and for the threads of each core


def run() -> int:
    """The exit code of a command that ended as it should, or by a mistake in how it was called."""
    try:
        _check_arguments(sys.argv[1:])
        code = cli.main(standalone_mode=False)  # click gives the code of an Exit back
        terminal.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        stream = io.StringIO()
        error.show(stream)
        terminal.tell(printable(stream.getvalue(), lines=True))
        return WRONG


def _check_arguments(arguments: Sequence[str]) -> None:
    """Refuse what is no UTF-8: it can neither be shown, nor stand in results, nor name a column."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise InputError(f"{shown}: not UTF-8; expected names of files, columns and models in UTF-8.") from None


def told(error: BaseException) -> tuple[str, int]:
    """One sentence about an error, and its exit code.

    >>> told(OSError(28, "No space left on device", "results.json"))
    ('results.json: cannot be read or written (No space left on device). Make room, or choose another place.', 2)
    """
    if isinstance(error, TruerankError):
        return error.said(for_cli=True), WRONG if isinstance(error, InputError) else INTERNAL
    if isinstance(error, MemoryError):
        return out_of_memory(error), WRONG
    cause = _system_error(error)
    if cause is not None:
        place = os.fsdecode(cause.filename) if isinstance(cause.filename, str | bytes) else "a file"
        remedy = REMEDIES.get(cause.errno or 0, "Check the path, or choose another place.")
        return f"{place}: cannot be read or written ({cause.strerror or cause}). {remedy}", WRONG
    sentence = f"internal error, {type(error).__name__}: {error}. Set TRUERANK_DEBUG=1 to see where, and report it."
    return sentence, INTERNAL


def _system_error(error: BaseException) -> OSError | None:
    """What the system refused, also where polars tells it."""
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return error
    number = error_number(error) if type(error).__module__.startswith("polars") else 0
    return OSError(number, os.strerror(number)) if number else None


def check_space() -> None:
    """Refuse a limit of address space in which the libraries cannot even load: they crash, or spin for ever."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    least = LEAST_SPACE + FOR_A_CORE * (os.cpu_count() or 1)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < least:
        raise InputError(
            f"memory: the process may use {limit / 2**20:,.0f} MB of addresses; expected at least "
            f"{least / 2**20:,.0f} MB. Raise the limit (ulimit -v)."
        )
