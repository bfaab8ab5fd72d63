"""Footers of Parquet files: what a file declares of its columns, read before any of its rows.

polars does not give these sizes, so the footer is read here: a structure in Thrift's compact protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

END = 8  # bytes after the footer: its length and the signature of the format
# ids of fields: of the file, of a group of rows, of a column in it, and of its description
GROUPS, COLUMNS, DESCRIPTION, NAMES, UNPACKED = 4, 1, 3, 3, 6


def footer(path: Path, size: int, *, most: int | None = None) -> bytes:
    """The last bytes of a Parquet file: at most `most` of its footer, and what follows it."""
    with path.open("rb", buffering=0) as stream:
        stream.seek(max(size - END, 0))
        end = stream.read(END)
        length = min(int.from_bytes(end[:4], "little"), size if most is None else min(most, size))
        stream.seek(max(size - END - length, 0))
        return stream.read(length) + end


def unpacked_bytes(path: Path) -> Mapping[str, int]:
    """How many bytes each column of a Parquet file has when it is unpacked, as its footer says; encrypted: none."""
    total: Counter[str] = Counter()
    try:
        file, _ = _struct(footer(path, path.stat().st_size), 0)
        for group in file[GROUPS]:
            for column in group[COLUMNS]:
                description = column[DESCRIPTION]
                total[description[NAMES][0].decode()] += description[UNPACKED]
    except (IndexError, KeyError, TypeError, UnicodeDecodeError, RecursionError):  # polars refuses what is damaged
        return {}
    return total


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure by their ids, and where it ends."""
    fields: dict[int, Any] = {}
    last = 0
    while head := data[at]:
        number, at = (head >> 4, at + 1) if head >> 4 else _integer(data, at + 1)
        last = last + number if head >> 4 else number
        # true and false stand in the type of a field
        fields[last], at = (head % 16, at) if head % 16 < 3 else _value(head % 16, data, at)
    return fields, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    """A value of a type, and where it ends."""
    if kind <= 3:
        return data[at], at + 1
    if kind <= 6:
        return _integer(data, at)
    if kind == 7:
        return data[at + 7], at + 8
    if kind == 8:
        length, at = _number(data, at)
        return data[at : at + length], at + length
    if kind == 12:
        return _struct(data, at)
    head, at = data[at], at + 1
    length, at = (head >> 4, at) if head >> 4 < 15 else _number(data, at)
    values = []
    for _ in range(length):
        value, at = _value(head % 16, data, at)
        values.append(value)
    return values, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits in each byte, the lowest first."""
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        if data[at] < 128:
            return number, at + 1
        at, shift = at + 1, shift + 7


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _number(data, at)
    return (number >> 1) ^ -(number & 1), at
