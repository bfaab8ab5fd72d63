"""Results of studies: settings and tables in one JSON file, without a clock, so that a rerun gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from truerank.core.errors import InputError
from truerank.core.provenance import plain

DIGITS = 9  # significant digits in the file
Row = Mapping[str, Any]  # plain values by column


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, and the values of each row in the same order."""

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> Table:
        """A table from rows that all have the same columns.

        >>> Table.from_rows([{"model": "EASE", "value": 2 / 3}]).values
        (('EASE', 0.666666667),)
        """
        columns = tuple(rows[0]) if rows else ()
        if any(tuple(row) != columns for row in rows):
            raise ValueError("rows of one table have different columns")
        return cls(columns, tuple(tuple(_stored(value) for value in row.values()) for row in rows))

    def rows(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a study measures: tables by name, the settings, and how the run differs from the paper's, in sentences."""

    tables: Mapping[str, Sequence[Row]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    differences: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a study. `data` has the SHA-256 of every file that was read; `synthetic` is true where a simulated
    dataset replaced the data that the study needs."""

    study: str
    size: str
    seed: int
    synthetic: bool
    truerank: str
    data: Mapping[str, str]
    settings: Mapping[str, Any]
    differences: tuple[str, ...]
    tables: Mapping[str, Table]

    @property
    def file_name(self) -> str:
        return f"{self.study}{'-synthetic' * self.synthetic}.json"

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, empty where there is none of that name."""
        return self.tables[table].rows() if table in self.tables else []

    def encode(self) -> bytes:
        """The content of the file, with one line for each row, so that differences can be read."""
        head = {name.name: getattr(self, name.name) for name in fields(self) if name.name != "tables"}
        start = msgspec.json.format(msgspec.json.encode(head), indent=1).decode().removesuffix("\n}")
        tables = ",\n".join(f"  {_json(name)}: {_encode_table(table)}" for name, table in self.tables.items())
        return f'{start},\n "tables": {{\n{tables}\n }}\n}}\n'.encode()


def read_results(folder: Path) -> list[Result]:
    """All results in a folder and the folders below it, in the order of file names."""
    return [_read(path) for path in sorted(folder.rglob("*.json"))]


def _read(path: Path) -> Result:
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no result of a study ({error}). Run the study again.") from None
    if path.name != result.file_name:
        raise InputError(f"{path}: holds the result of {result.study}. Rename it to {result.file_name}.")
    return result


def stored_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): _stored(value) for name, value in settings.items()}


def _stored(value: Any) -> Any:
    """A plain value; numbers in nine digits, None where they are not finite."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return stored_settings(value)
    if isinstance(value, list | tuple):
        return [_stored(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return plain(value)


def _encode_table(table: Table) -> str:
    rows = ",\n".join(f"    {_json(row)}" for row in table.values)
    return f'{{\n   "columns": {_json(table.columns)},\n   "values": [\n{rows}\n   ]\n  }}'


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
