"""What a study found, as a small file: settings and tables. It holds no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank.core.errors import InputError
from truerank.core.provenance import plain
from truerank.studies.own.study import Row, StudyTables
from truerank.studies.results import encoded, read_result, rounded
from truerank.studies.work import StudySize
from truerank.version import __version__

DIGITS = 9  # significant digits of what is kept: pages show up to seven


@dataclass(frozen=True, slots=True)
class KeptRows:
    """A table as it is kept: its columns once, and the values of each row in their order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a run of a study found, with all that its page says.

    `command` makes it again; `data` is by file what it was read from (SHA-256); `synthetic` says that a made world
    stood for data that it needs.
    """

    study: str
    command: str
    size: StudySize
    seed: int
    synthetic: bool
    truerank: str
    data: Mapping[str, str]
    settings: Mapping[str, Any]
    tables: Mapping[str, KeptRows]

    @property
    def file_name(self) -> str:
        return f"{self.study}.json"

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, values by column."""
        kept = self.tables[table]
        return [dict(zip(kept.columns, row, strict=True)) for row in kept.rows]

    def frame(self, table: str) -> pl.DataFrame:
        """A table as a frame."""
        kept = self.tables[table]
        return pl.DataFrame(kept.rows, schema=list(kept.columns), orient="row", infer_schema_length=None)

    def encoded(self) -> bytes:
        """The content of its file: a line for each row of a table, so that changes can be read."""
        head = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "tables"}
        tables = [f"  {_json(name)}: {_table_json(kept)}" for name, kept in self.tables.items()]
        begun = encoded(head).decode().removesuffix("\n}\n")
        return (begun + ',\n "tables": {\n' + ",\n".join(tables) + "\n }\n}\n").encode()

    @classmethod
    def read(cls, path: Path) -> StudyResult:
        return read_result(path, cls, what="a study", again="truerank study NAME")


def study_result(
    study: str, found: StudyTables, *, command: str, size: StudySize, seed: int, synthetic: bool = False,
    data: Mapping[str, str] | None = None,
) -> StudyResult:  # fmt: skip
    """Tables as they are kept: plain values, numbers in nine digits, none where they are not finite."""
    return StudyResult(
        study=study,
        command=command,
        size=size,
        seed=seed,
        synthetic=synthetic,
        truerank=__version__,
        data=dict(data or {}),
        settings={str(name): _kept(value) for name, value in found.settings.items()},
        tables={name: _rows(name, rows) for name, rows in found.tables.items()},
    )


def read_results(folder: Path) -> dict[str, StudyResult]:
    """All result files of a folder, by the name of their study."""
    found = {path.name: StudyResult.read(path) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise InputError(f"{folder}: holds no result of a study (*.json).")
    for name, result in found.items():
        if name != result.file_name:
            raise InputError(f"{folder / name}: holds {result.file_name}. Give it that name.")
    return {result.study: result for result in found.values()}


def _rows(name: str, rows: Sequence[Row]) -> KeptRows:
    columns = tuple(rows[0]) if rows else ()
    if any(tuple(row) != columns for row in rows):
        raise ValueError(f"rows of {name} have different columns")
    return KeptRows(columns, tuple(tuple(_kept(value) for value in row.values()) for row in rows))


def _kept(value: Any) -> Any:
    """A plain value; what is not finite is none.

    >>> [_kept(each) for each in (3, 2 / 3, float("inf"), "a", (1.5, None))]
    [3, 0.666666667, None, 'a', [1.5, None]]
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _kept(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_kept(each) for each in value]
    return rounded(value, DIGITS) if isinstance(value, float) else plain(value)


def _table_json(kept: KeptRows) -> str:
    rows = ",\n".join(f"    {_json(row)}" for row in kept.rows)
    return f'{{\n   "columns": {_json(kept.columns)},\n   "rows": [\n{rows}\n   ]\n  }}'


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
