"""The command line: what a call becomes, and the exit code of every end. Ctrl-C, SIGTERM and SIGHUP end it alike.

Only what handles signals and closed streams loads before they are handled; all else, `click` first, loads after.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import warnings
from types import FrameType
from typing import Any

from truerank.cli import terminal

INTERRUPTED = 3  # the exit code
HANDLED = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
AGAIN = 0.05  # seconds until a signal is raised again whose exception was swallowed


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


class Interruption:
    """Whether the process was asked to stop.

    The exception that a signal becomes can turn into another one on its way, say into an ImportError by a module that
    was half loaded: whoever handles errors looks here first.
    """

    def __init__(self) -> None:
        self.asked = False
        self.code: int | None = None  # once it is known

    def watch(self) -> None:
        """Handle the signals that were not ignored when the process was started (nohup, jobs in the background)."""
        for number in HANDLED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)
        sys.unraisablehook = self._unraisable
        atexit.register(_ignore)  # the first to be registered is the last to run

    def leave(self, code: int) -> None:
        """All is told: further signals change nothing but the time."""
        self.code = code
        # a signal inside of exec(), which makes dataclasses, leaves a mark by which Python would end as if killed; the
        # next exec() takes it away
        exec("")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self.code is not None:
            os._exit(self.code)
        raise KeyboardInterrupt

    def _unraisable(self, failure: Any) -> None:
        """A signal met Python where no exception can leave, such as a destructor: it is raised again soon."""
        if not issubclass(failure.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(failure)
            return
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGTERM))
        again.daemon = True
        again.start()


def _ignore() -> None:
    """Python takes its handlers away when it ends, and a signal would then be the exit code of what is done."""
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)
