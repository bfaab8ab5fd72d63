"""Libraries that are only needed by some models: imported when they are used, and named when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from truerank.core.errors import InputError


def load(module: str, *, install: str, who: str) -> Any:
    """A module of a library that is not always there; a missing one is named with what pip has to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        why = "is not installed" if getattr(error, "name", None) == library else f"cannot be loaded ({error})"
        raise InputError(f"{who} needs {library}, which {why}: pip install {install}.") from None
