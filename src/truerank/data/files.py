"""Tables in files: Parquet, CSV, TSV and TREC text, read whole or refused, written whole or not at all."""

from __future__ import annotations

import codecs
import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import polars as pl

from truerank.core.errors import InputError
from truerank.data.text_types import TextTypes, parsed
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


@dataclass(frozen=True, slots=True)
class Scanned:
    """A file whose rows have not been read: its columns, their types, and how many rows it has.

    `seekable` says that rows in the middle can be read without those before them.
    """

    path: Path
    kind: str
    rows: pl.LazyFrame
    n_rows: int
    schema: Mapping[str, pl.DataType]
    text: TextTypes | None = None  # of a text table: types that its fields could have

    @property
    def seekable(self) -> bool:
        return self.kind not in SEPARATORS

    def typed(self, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        """The named columns in these types, perhaps wider ones than its own."""
        fields = self.text.possible if self.text is not None else ()
        return self.rows.select(
            (parsed(name, kind) if name in fields else pl.col(name).cast(kind)).alias(name)
            for name, kind in schema.items()
        )


def scan_file(path: Path) -> Scanned:
    """What a file holds, its format told by the ending: Parquet by its footer, text in one pass over it."""
    check_readable(path)
    kind = kind_of(path)
    if not kind:
        raise InputError(f"{path}: unknown ending {path.suffix!r}; expected {EXPECTED}.")
    with reading(path):
        if kind == ".parquet":
            rows = pl.scan_parquet(path, glob=False)
            n_rows = int(rows.select(pl.len()).collect().item())
            return Scanned(path, kind, rows, n_rows, dict(rows.collect_schema()))
        if kind in TREC:
            rows = read_trec(_bytes(path), ending=kind, where=str(path)).lazy()
            types = TextTypes.of(rows.select(pl.col(pl.String))).ids()
            return Scanned(path, kind, rows, types.n_rows, {**rows.collect_schema(), **types.schema()}, types)
        rows = _scan_text(path, separator=SEPARATORS[kind])
        types = TextTypes.of(rows)
        return Scanned(path, kind, rows, types.n_rows, types.schema(), types)


def read_table(path: Path) -> pl.DataFrame:
    """The whole table in a file."""
    scanned = scan_file(path)
    with reading(path):
        return scanned.typed(scanned.schema).collect()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read, in one sentence that names it."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error}). Save it as UTF-8.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cannot be read as gzip ({error}). Write the file anew.") from None
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n")[0]
        zipped = path.suffix.lower() == ".gz" and isinstance(error, OSError)
        name = "gzip" if zipped else "a Parquet" if kind_of(path) == ".parquet" else "a text table"
        raise InputError(f"{path}: cannot be read as {name} ({reason}). Write the file anew.") from None


def _scan_text(path: Path, *, separator: str) -> pl.LazyFrame:
    """The fields of a text table, all as text."""
    with _open(path) as stream:
        first = stream.readline(2**16)
    if not first:
        raise InputError(f"{path}: the file is empty; expected a header line with column names.")
    codecs.getincrementaldecoder("utf-8-sig")().decode(first)
    fields = pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)
    return fields.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


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
