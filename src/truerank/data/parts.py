"""A table in one file, in a folder of part files, or in the files that a glob names."""

from __future__ import annotations

import glob
import operator
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import polars as pl

from truerank.core.errors import InputError, some
from truerank.data.files import EXPECTED, Scanned, kind_of, scan_file


def scan_path(path: Path) -> tuple[list[Scanned], dict[str, pl.DataType]]:
    """The files at a path in the order of their names, and the types that hold the columns of all.

    In a folder, files whose names begin with `.` or `_` (such as `_SUCCESS`) are no data. All others must be of one
    kind and have the same columns: what a folder holds is read whole or refused.
    """
    paths = parts_of(path)
    if paths is None:
        scanned = scan_file(path)
        return [scanned], dict(scanned.schema)
    _check_kinds(path, paths)
    parts = [scan_file(part) for part in paths]
    for part in parts:
        _check_columns(parts[0], part)
    return parts, _common(path, parts)


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


def _check_kinds(where: Path, parts: Sequence[Path]) -> None:
    kinds = {path: kind_of(path) for path in parts}
    odd = next((path for path, kind in kinds.items() if kind != kinds[parts[0]] or not kind), None)
    if odd is not None:
        names = f"{parts[0].name} and {odd.name}" if odd != parts[0] else odd.name
        raise InputError(
            f"{where}: {names}; expected files of one kind, {EXPECTED}. "
            f"Move other files away, or name the right ones with a glob, such as '{parts[0].parent}/*.csv'."
        )


def _check_columns(first: Scanned, part: Scanned) -> None:
    if set(part.schema) != set(first.schema):
        raise InputError(
            f"{part.path}: columns {some(list(part.schema))}, but {first.path.name} has {some(list(first.schema))}; "
            "expected the same columns in every part."
        )


def _common(where: Path, parts: Sequence[Scanned]) -> dict[str, pl.DataType]:
    """Types that hold the columns of all parts; a part without rows says nothing about types."""
    names = list(parts[0].schema)
    kept = [part for part in parts if part.n_rows] or list(parts[:1])
    texts = [part.text for part in kept if part.text is not None]
    if texts:  # all parts of a text table decide its types together, as one file does
        return {**parts[0].schema, **reduce(operator.add, texts).schema()}
    for name in names:
        text = next((part for part in kept if part.schema[name] == pl.String), None)
        number = next((part for part in kept if part.schema[name] != pl.String), None)
        if text is not None and number is not None:
            raise InputError(
                f"{number.path}: column {name!r} is {number.schema[name]}, but text in other parts of {where}; "
                "expected one type in every part. Write them alike."
            )
    try:
        empty = [pl.DataFrame(schema={name: part.schema[name] for name in names}) for part in kept]
        return dict(pl.concat(empty, how="vertical_relaxed").schema)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{where}: columns differ in type between parts ({reason}). Write them alike.") from None
