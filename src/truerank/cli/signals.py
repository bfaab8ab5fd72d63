"""Ctrl-C, SIGTERM and SIGHUP are one thing: stop in good order, whatever is going on, also while modules load."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

INTERRUPTED = 3  # the exit code
HANDLED = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
AGAIN = 0.05  # seconds until a signal is raised again whose exception was swallowed


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
