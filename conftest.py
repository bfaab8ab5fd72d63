"""What holds for all tests: Ctrl-C is heard."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """In the background SIGINT comes in ignored, and so would it in every process that a test starts and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
