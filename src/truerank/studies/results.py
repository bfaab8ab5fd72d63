"""Results of studies as small files that hold no clock: numbers as they are kept, written and read in one way."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from truerank.core.errors import InputError

DIGITS = 6  # significant digits of what is kept: enough for any page, and small changes stay small

T = TypeVar("T")


def rounded(value: float | None, digits: int = DIGITS) -> float | None:
    """A number as it is kept; what is not finite is none.

    >>> rounded(2 / 3), rounded(math.nan)
    (0.666667, None)
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{float(value):.{digits}g}")


def encoded(result: Any) -> bytes:
    """The content of its file."""
    return msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"


def read_result(path: Path, cls: type[T], *, what: str, again: str) -> T:
    """The result that a file holds; `again` is the command that makes such a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=cls)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no result of {what} ({error}). Make it again: {again}.") from None
