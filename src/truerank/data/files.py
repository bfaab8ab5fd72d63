"""Tables in files: Parquet, CSV and TSV, read whole or refused, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from truerank.errors import InputError

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_table(path: Path) -> pl.DataFrame:
    """The table in a file, its format told by the ending."""
    check_readable(path)
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            return pl.read_parquet(path)
        if ending in SEPARATORS:
            return _read_text(path, separator=SEPARATORS[ending])
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error}). Save it as UTF-8.") from None
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        kind = "Parquet" if ending == ".parquet" else "text table"
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{path}: cannot be read as a {kind} ({reason}). Write the file anew.") from None
    raise InputError(f"{path}: unknown ending {path.suffix!r}; expected .parquet, .csv or .tsv.")


def _read_text(path: Path, *, separator: str) -> pl.DataFrame:
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; expected a header line with column names.")
    with path.open("rb") as stream:
        stream.readline(2**16).decode("utf-8-sig")
    # the whole file decides the types: ids that look like numbers at first may be text further down
    table = pl.read_csv(path, separator=separator, infer_schema_length=None)
    return table.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def check_readable(path: Path) -> None:
    """Refuse what is no file that can be opened."""
    try:
        path.open("rb").close()
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; expected a file.") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table in the format told by the ending."""
    with whole_file(path) as temporary:
        if path.suffix.lower() == ".parquet":
            table.write_parquet(temporary, compression="zstd")
        elif path.suffix.lower() in SEPARATORS:
            table.write_csv(temporary, separator=SEPARATORS[path.suffix.lower()])
        else:
            raise InputError(f"{path}: unknown ending {path.suffix!r}; expected .parquet, .csv or .tsv.")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` that becomes `path` if all goes well and vanishes if not."""
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path  # a pipe or a device is written to, never replaced
        return
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        try:
            temporary.replace(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    finally:
        temporary.unlink(missing_ok=True)
