"""What happens at the moment at which Python opens or renames a file: hooks that see every such call."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Seen = Callable[[str, str], None]
_WATCHING: list[Seen] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _WATCHING or event not in ("open", "os.rename"):
        return
    path = arguments[0] if event == "open" else arguments[1]
    if isinstance(path, str | os.PathLike):
        for seen in tuple(_WATCHING):
            seen(event, os.fspath(path))


sys.addaudithook(_hook)  # stays for the process; does nothing where nobody watches


@contextmanager
def watching_opens(seen: Seen) -> Iterator[None]:
    """Call `seen` with ("open", path) or ("os.rename", new name) before the call is made."""
    _WATCHING.append(seen)
    try:
        yield
    finally:
        _WATCHING.remove(seen)
