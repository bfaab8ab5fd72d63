"""Footers of Parquet files: what a file declares of its columns, read before any of its rows.

polars does not give these sizes, so the footer is read here: a structure in Thrift's compact protocol.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

END = 8  # bytes after the footer: its length and the signature of the format
# ids of fields: of the file, of a group of rows, of a column in it, and of its description
GROUPS, COLUMNS, DESCRIPTION, NAMES, UNPACKED = 4, 1, 3, 3, 6


def unpacked_bytes(path: Path) -> Mapping[str, int]:
    """How many bytes each column of a Parquet file has when it is unpacked, as its footer says; encrypted: none."""
    total: Counter[str] = Counter()
    try:
        with path.open("rb") as file:
            file.seek(-END, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-END - length, os.SEEK_END)
            footer = _struct(BytesIO(file.read(length)))
        for group in footer[GROUPS]:
            for column in group[COLUMNS]:
                description = column[DESCRIPTION]
                total[description[NAMES][0].decode()] += description[UNPACKED]
    # polars refuses what is damaged
    except (OSError, IndexError, KeyError, TypeError, UnicodeDecodeError, RecursionError):
        return {}
    return total


def _struct(stream: BytesIO) -> dict[int, Any]:
    """The fields of a structure by their ids."""
    fields: dict[int, Any] = {}
    last = 0
    while head := stream.read(1)[0]:
        last = last + (head >> 4) if head >> 4 else _integer(stream)
        kind = head % 16
        fields[last] = kind if kind < 3 else _value(kind, stream)  # true and false stand in the type of a field
    return fields


def _value(kind: int, stream: BytesIO) -> Any:
    """The value of a type that comes next."""
    if kind <= 3:
        return stream.read(1)[0]
    if kind <= 6:
        return _integer(stream)
    if kind == 7:
        return stream.read(8)[7]
    if kind == 8:
        return stream.read(_number(stream))
    if kind == 12:
        return _struct(stream)
    head = stream.read(1)[0]
    length = head >> 4 if head >> 4 < 15 else _number(stream)
    return [_value(head % 16, stream) for _ in range(length)]


def _number(stream: BytesIO) -> int:
    """A number of seven bits in each byte, the lowest first."""
    number = shift = 0
    while (byte := stream.read(1)[0]) >= 128:
        number |= (byte & 127) << shift
        shift += 7
    return number | byte << shift


def _integer(stream: BytesIO) -> int:
    number = _number(stream)
    return (number >> 1) ^ -(number & 1)
