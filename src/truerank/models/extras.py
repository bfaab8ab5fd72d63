"""Libraries that are only needed by some models: imported when they are used, and named when they are missing."""

from __future__ import annotations

import importlib
from typing import Any


def load(module: str, *, extra: str, who: str) -> Any:
    """A module of a library of an extra; a missing one is named with the command that installs it."""
    from truerank.errors import InputError

    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        why = "is not installed" if getattr(error, "name", None) == library else f"cannot be loaded ({error})"
        raise InputError(f'{who} needs {library}, which {why}: pip install "truerank[{extra}]".') from None
