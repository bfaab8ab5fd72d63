"""The command line: what a call becomes, and what every way to end is worth.

Only what handles signals and closed streams loads before they are handled; all else, `click` first, loads after.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings

from truerank.cli import terminal
from truerank.cli.signals import INTERRUPTED, Interruption


def main() -> None:
    """Run a command: 0 done, 1 internal error, 2 wrong input or call, 3 interrupted; 4 and 5 see `--require`."""
    interruption = Interruption()
    atexit.register(gc.freeze)  # a search for garbage at the end of a process would take a quarter of a short command
    usual, warnings.formatwarning = warnings.formatwarning, _as_line
    try:
        interruption.watch()
        terminal.open_closed()
        from truerank.cli.outcome import run

        code = run()
        interruption.leave(code)
    except BaseException as error:
        try:
            code = _code_of(error, interruption)
        except KeyboardInterrupt:  # one more, while the first was told
            code = INTERRUPTED
        interruption.leave(code)
    finally:
        warnings.formatwarning = usual
    if code:
        sys.exit(code)


def _code_of(error: BaseException, interruption: Interruption) -> int:
    """Tell what went wrong, and how it counts."""
    if interruption.asked or isinstance(error, KeyboardInterrupt):
        interruption.leave(INTERRUPTED)
        terminal.say("truerank: interrupted.")
        return INTERRUPTED
    panic = type(error).__name__ == "PanicException"  # of polars; others that are no Exception are not for commands
    if not (panic or isinstance(error, Exception)):
        raise error
    from truerank.cli.outcome import told

    sentence, code = told(error)
    if os.environ.get("TRUERANK_DEBUG"):
        import traceback

        from truerank.core.escaping import printable

        terminal.tell(printable("".join(traceback.format_exception(error)), lines=True))
        return code
    terminal.say(f"truerank: {sentence}")
    return code


def _as_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning of a library as one line: what it says, without the place in a source that says nothing to a user."""
    return f"truerank: {' '.join(str(message).split())}\n"
