"""Plain values as JSON, CSV or lines: what commands list that are no results."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def as_json(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A line for each row, all with the names of the first."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def as_lines(values: Mapping[str, Any], *, width: int | None = None) -> str:
    """A line for each name and its value.

    >>> print(as_lines({"users": 3, "first items": "a, b"}), end="")
    users        3
    first items  a, b
    """
    wide = width or max(len(name) for name in values)
    return "".join(f"{name:{wide}}  {value}\n" for name, value in values.items())
