"""Results in a folder: `results.json`, and `units.parquet` where single units are held."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from truerank.core.errors import InputError, some
from truerank.core.results import Results
from truerank.core.units import UnitFile
from truerank.data.files import check_readable
from truerank.report import document

RESULTS, UNITS = "results.json", "units.parquet"


def save(results: Results, path: Path) -> None:
    """Write the folder whole or not at all; one that holds earlier results is replaced, any other is refused."""
    with _whole_folder(path) as folder:
        (folder / RESULTS).write_bytes(document.encode(results))
        if results.unit_table is not None:
            results.unit_table.frame().write_parquet(folder / UNITS, compression="zstd")


def read(path: Path) -> Results:
    """The results of a folder, with units that are read when asked for, or of a JSON file."""
    file = path / RESULTS if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise InputError(f"{path}: has no {RESULTS}; expected a folder that Results.save has written, or its JSON.")
    check_readable(file)
    results = document.decode(file.read_bytes(), where=str(file))
    units = path / UNITS
    return replace(results, unit_table=UnitFile.of(units)) if path.is_dir() and units.exists() else results


@contextmanager
def _whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place if all goes well and vanishes if not."""
    path = path.resolve()
    _check_place(path)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o777 & ~mask)
        _check_place(path)
        _take_place(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_place(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path}: is a file; expected the name of a folder to write.")
    others = sorted({entry.name for entry in path.iterdir()} - {RESULTS, UNITS})
    if others:
        raise InputError(f"{path}: holds {some(others)}, which is no part of results. Choose another folder.")


def _take_place(temporary: Path, path: Path) -> None:
    """Rename; what was there is moved aside before and comes back if that fails."""
    if not path.exists():
        temporary.rename(path)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    try:
        path.rename(aside)  # onto an empty folder
        try:
            temporary.rename(path)
        except OSError:
            aside.rename(path)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
