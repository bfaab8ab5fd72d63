"""Tables in files: Parquet, CSV, TSV and TREC text, read whole or refused, written whole or not at all."""

from __future__ import annotations

import codecs
import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from truerank.core.errors import InputError
from truerank.data.trec import ENDINGS as TREC
from truerank.data.trec import read_trec

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
EXPECTED = ".parquet, .csv or .tsv, or TREC .qrels, .run or .trec; text also with .gz"


def kind_of(path: Path) -> str:
    """The ending that tells the format, without .gz; empty where it is none that can be read.

    >>> kind_of(Path("labels.CSV.gz")), kind_of(Path("labels.xlsx"))
    ('.csv', '')
    """
    ending = path.suffix.lower()
    if ending == ".gz":
        inner = Path(path.stem).suffix.lower()
        return inner if inner in SEPARATORS or inner in TREC else ""
    return ending if ending == ".parquet" or ending in SEPARATORS or ending in TREC else ""


def read_table(path: Path, *, text: frozenset[str] = frozenset()) -> pl.DataFrame:
    """The table in a file, its format told by the ending; columns named in `text` are read as text."""
    check_readable(path)
    kind = kind_of(path)
    if not kind:
        raise InputError(f"{path}: unknown ending {path.suffix!r}; expected {EXPECTED}.")
    try:
        if kind == ".parquet":
            return pl.read_parquet(path, glob=False)
        if kind in TREC:
            return read_trec(_bytes(path), ending=kind, where=str(path), text=text)
        return _read_text(path, separator=SEPARATORS[kind], text=text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error}). Save it as UTF-8.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cannot be read as gzip ({error}). Write the file anew.") from None
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n")[0]
        name = "Parquet" if kind == ".parquet" else "text table"
        raise InputError(f"{path}: cannot be read as a {name} ({reason}). Write the file anew.") from None


def _read_text(path: Path, *, separator: str, text: frozenset[str]) -> pl.DataFrame:
    with _open(path) as stream:
        first = stream.readline(2**16)
    if not first:
        raise InputError(f"{path}: the file is empty; expected a header line with column names.")
    codecs.getincrementaldecoder("utf-8-sig")().decode(first)
    source: Any = path if path.suffix.lower() != ".gz" else _bytes(path)
    options: dict[str, Any] = {} if isinstance(source, bytes) else {"glob": False}
    # the whole file decides the types: ids that look like numbers at first may be text further down
    table = pl.read_csv(
        source,
        separator=separator,
        infer_schema_length=None,
        schema_overrides=dict.fromkeys(text, pl.String) or None,
        **options,
    )
    return table.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _open(path: Path) -> IO[bytes]:
    return path.open("rb") if path.suffix.lower() != ".gz" else cast(IO[bytes], gzip.open(path, "rb"))


def _bytes(path: Path) -> bytes:
    with _open(path) as stream:
        return stream.read()


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
