"""A table in one file, in a folder of part files, or in the files that a glob names."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from truerank.core.errors import InputError, some
from truerank.data.files import EXPECTED, kind_of, read_table


def read_path(path: Path) -> pl.DataFrame:
    """The table at a path; parts are put together in the order of their names, and must have the same columns.

    In a folder, files whose names begin with `.` or `_` (such as `_SUCCESS`) are no data. All others must be of one
    kind: what a folder holds is read whole or refused.
    """
    parts = parts_of(path)
    return read_table(path) if parts is None else _together(path, parts)


def parts_of(path: Path) -> list[Path] | None:
    """The part files of a folder or a glob; None for one file, whether it is there or not."""
    try:
        folder, there = path.is_dir(), path.exists()
    except OSError:
        return None  # reading it says what is wrong with it
    if folder:
        return _in_folder(path)
    return _matching(path) if glob.has_magic(str(path)) and not there else None


def _in_folder(folder: Path) -> list[Path]:
    found = sorted(each for each in folder.iterdir() if each.name[0] not in "._")
    for each in found:
        if each.is_dir():
            raise InputError(
                f"{folder}: holds the folder {each.name}; expected data files only. "
                f"Name the files with a glob, such as '{folder}/*/*.parquet'."
            )
    if not found:
        raise InputError(f"{folder}: a folder without data files; expected a file, or a folder of files {EXPECTED}.")
    return found


def _matching(pattern: Path) -> list[Path]:
    found = [Path(name) for name in sorted(glob.glob(str(pattern), recursive=True))]  # noqa: PTH207
    found = [each for each in found if each.name[0] not in "._" and not each.is_dir()]
    if not found:
        raise InputError(f"{pattern}: no such file, and no file has a name like that. Check the path.")
    return found


def _together(where: Path, parts: Sequence[Path]) -> pl.DataFrame:
    kinds = {path: kind_of(path) for path in parts}
    odd = next((path for path, kind in kinds.items() if kind != kinds[parts[0]] or not kind), None)
    if odd is not None:
        found = f"{parts[0].name} and {odd.name}" if odd != parts[0] else odd.name
        raise InputError(
            f"{where}: {found}; expected files of one kind, {EXPECTED}. "
            f"Move other files away, or name the right ones with a glob, such as '{parts[0].parent}/*.csv'."
        )
    tables = [read_table(path) for path in parts]
    for path, table in zip(parts, tables, strict=True):
        _check_columns(parts[0], tables[0], path, table)
    names = tables[0].columns
    # a part without rows says nothing about types
    kept = [(path, table.select(names)) for path, table in zip(parts, tables, strict=True) if len(table)]
    if len(kept) <= 1:
        return kept[0][1] if kept else tables[0]
    mixed = frozenset(name for name in names if len({table[name].dtype == pl.String for _, table in kept}) > 1)
    if mixed:
        kept = [(path, _as_text(where, path, table, mixed)) for path, table in kept]
    try:
        return pl.concat([table for _, table in kept], how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{where}: columns differ in type between parts ({reason}). Write them alike.") from None


def _check_columns(first: Path, reference: pl.DataFrame, path: Path, table: pl.DataFrame) -> None:
    if set(table.columns) != set(reference.columns):
        raise InputError(
            f"{path}: columns {some(table.columns)}, but {first.name} has {some(reference.columns)}; "
            "expected the same columns in every part."
        )


def _as_text(where: Path, path: Path, table: pl.DataFrame, mixed: frozenset[str]) -> pl.DataFrame:
    """The part with these columns as text: in text files all parts together decide the type, as in one file."""
    numbers = frozenset(name for name in mixed if table[name].dtype != pl.String)
    if not numbers:
        return table
    if kind_of(path) == ".parquet":
        name = min(numbers)
        raise InputError(
            f"{path}: column {name!r} is {table[name].dtype}, but text in other parts of {where}; "
            "expected one type in every part. Write them alike."
        )
    return read_table(path, text=numbers).select(table.columns)
