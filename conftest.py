"""What holds for all tests: which files are collected without torch (`make test TORCH=0`), and that Ctrl-C is heard."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

NEEDS_TORCH = re.compile(r"^(import|from) (torch|truerank\.models\.learners)\b", flags=re.M)


def pytest_configure() -> None:
    """In the background SIGINT comes in ignored, and so would it in every process that a test starts and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Whether a file is left out; None leaves the question to pytest."""
    left_out = os.environ.get("TORCH") == "0" and collection_path.suffix == ".py"
    own = collection_path.parent.name == "torch"
    return True if left_out and (own or NEEDS_TORCH.search(collection_path.read_text())) else None
