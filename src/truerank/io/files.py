"""Tables in files: Parquet, CSV, TSV and TREC text, read whole or refused, written whole or not at all."""

from __future__ import annotations

import codecs
import gzip
import operator
import os
import re
import stat
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import reduce
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from truerank.core.errors import REMEDIES, InputError, error_number, some
from truerank.core.log import Log
from truerank.core.plugins import plugins
from truerank.core.record import record
from truerank.core.sizes import bytes_text, check_size
from truerank.core.validation import checked_arguments
from truerank.io.atomic_write import check_member, whole_file
from truerank.io.footers import unpacked_bytes
from truerank.io.paths import (
    EXPECTED,
    FileVersion,
    is_hive,
    is_remote,
    partition_types,
    partition_values,
    parts_of,
    reading_store,
    scan_store,
    unchanged,
    url_of,
    versions_of,
    with_partitions,
)
from truerank.io.text import ENDINGS as TREC
from truerank.io.text import MOVIELENS, TextTypes, parsed, read_movielens, read_trec

# RecBole writes tables with tabs under endings of its own
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".inter": "\t", ".item": "\t", ".user": "\t"}
BY_LINES = {*TREC, *MOVIELENS}
BLOCK = 2**24  # bytes of a text that are looked through at a time, and of a line at most
MOST_COLUMNS = 100  # of a text table that is read in batches; a wider one is read at once


def kind_of(path: Path) -> str:
    """The ending that tells the format, without .gz; empty where it is none that can be read.

    >>> kind_of(Path("labels.CSV.gz")), kind_of(Path("labels.xlsx"))
    ('.csv', '')
    """
    ending = path.suffix.lower()
    if ending == ".gz":
        inner = Path(path.stem).suffix.lower()
        return inner if inner in SEPARATORS or inner in BY_LINES else ""
    return ending if ending == ".parquet" or ending in SEPARATORS or ending in BY_LINES else ""


@record
class Piece:
    """Rows of one file or frame that have not been read: their columns and types, and how many there are.

    Fields of a text table are text in `rows`, and get their types when they are selected. `seekable` says that rows in
    the middle can be read without those before them.
    """

    rows: pl.LazyFrame
    n_rows: int
    schema: Mapping[str, pl.DataType]
    path: Path | None = None
    text: TextTypes | None = None  # of a text table: types that its fields could have
    seekable: bool = True
    versions: tuple[FileVersion, ...] = ()  # of the file when it was opened
    unpacked: Mapping[str, int] = field(default_factory=dict)  # bytes of each column of a Parquet file, as it declares

    @classmethod
    def of(cls, rows: pl.LazyFrame, **options: Any) -> Piece:
        """Rows that are counted now."""
        n_rows = int(rows.select(pl.len()).collect(engine="streaming").item())
        return cls(rows, n_rows, dict(rows.collect_schema()), **options)

    def is_text(self, name: str) -> bool:
        """Whether a column is text in the file, whatever its fields can be read as."""
        return self.text is not None and name in self.text.possible

    def declared(self, names: Collection[str]) -> int:
        """The bytes of these columns when they are unpacked, as far as the file declares them."""
        return sum(self.unpacked.get(name, 0) for name in names)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read rows of it here: what goes wrong names the file, and a file that has changed is refused."""
        if self.path is None:
            yield
            return
        with unchanged(self.versions), reading(self.path):
            yield

    def typed(self, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        """The named columns in these types, perhaps wider ones than its own."""
        return self.rows.select(
            (parsed(name, kind) if self.is_text(name) else pl.col(name).cast(kind)).alias(name)
            for name, kind in schema.items()
        )


def scan_file(path: Path) -> Piece:
    """What a file holds, its format told by the ending: Parquet by its footer, text in one pass over it."""
    check_readable(path)
    kind = kind_of(path)
    reader = plugins("truerank.readers").get(path.suffix.removeprefix(".")) if not kind else None
    if not kind and reader is None:
        raise InputError(f"{path}: unknown ending {path.suffix!r}; expected {EXPECTED}.")
    versions = versions_of([path])
    with unchanged(versions), reading(path):
        if reader is not None:
            return Piece.of(pl.DataFrame(reader(path)).lazy(), path=path, versions=versions)
        if kind == ".parquet":
            rows = pl.scan_parquet(path, glob=False)
            return Piece.of(rows, path=path, versions=versions, unpacked=unpacked_bytes(path))
        if kind in SEPARATORS:
            rows, text = _text(path, separator=SEPARATORS[kind])
        else:
            rows = (read_trec if kind in TREC else read_movielens)(_bytes(path), ending=kind, where=str(path)).lazy()
            text = TextTypes.of(rows.select(pl.col(pl.String))).ids()
        schema = {**rows.collect_schema(), **text.schema()}
        return Piece(rows, text.n_rows, schema, path, text, seekable=kind not in SEPARATORS, versions=versions)


def read_table(path: Path) -> pl.DataFrame:
    """The whole table in a file."""
    piece = scan_file(path)
    with piece.reading():
        return piece.typed(piece.schema).collect()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read, in one sentence that names it."""
    if is_remote(path):
        with reading_store(path):
            yield
        return
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error}). Save it as UTF-8.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cannot be read as gzip ({error}). Write the file anew.") from None
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        number = error_number(error)
        if number in REMEDIES:  # nothing is wrong with the file
            raise InputError(f"{path}: cannot be read ({os.strerror(number)}). {REMEDIES[number]}") from None
        reason = str(error).strip().split("\n")[0]
        zipped = path.suffix.lower() == ".gz" and isinstance(error, OSError)
        name = "gzip" if zipped else "a Parquet" if kind_of(path) == ".parquet" else "a text table"
        raise InputError(f"{path}: cannot be read as {name} ({reason}). Write the file anew.") from None


def _text(path: Path, *, separator: str) -> tuple[pl.LazyFrame, TextTypes]:
    """The fields of a text table, and what types they may have, from one pass over all of it."""
    _check_returns(path, separator=separator.encode())
    try:
        rows = _fields(path, path, separator=separator)
        return rows, TextTypes.of(rows)
    except OSError:
        if path.suffix.lower() != ".gz":
            raise
        # blocks of zeros after the end are no damage, but polars takes them for it: unpacked in memory, or refused
        rows = _fields(path, _bytes(path), separator=separator)
        return rows, TextTypes.of(rows)


def _fields(path: Path, source: Path | bytes, *, separator: str) -> pl.LazyFrame:
    """The fields of a text table, all as text."""
    with _open(path) as stream:
        first = stream.readline(2**16)
    if not first:
        raise InputError(f"{path}: the file is empty; expected a header line with column names.")
    codecs.getincrementaldecoder("utf-8-sig")().decode(first)
    fields = pl.scan_csv(source, separator=separator, infer_schema=False, glob=False)
    header = pl.read_csv(source, separator=separator, infer_schema=False, has_header=False, n_rows=1, glob=False)
    names = pl.Series(header.row(0) if len(header) else (), dtype=pl.String).drop_nulls()
    twice = names.filter(names.is_duplicated())  # polars would call the second NAME_duplicated_0
    if len(twice):
        raise InputError(f"{path}: two columns are called {twice[0]!r}; expected each name once. Rename one of them.")
    filled = ~pl.all_horizontal(pl.all().is_null())  # no blank lines
    if len(fields.collect_schema()) > MOST_COLUMNS:  # the plan of a scan grows with the square of its columns
        check_size(str(path), memory=path.stat().st_size, instead="Keep the columns that are needed.")
        return fields.collect().filter(filled).lazy()
    return fields.filter(filled)


def _check_returns(path: Path, *, separator: bytes) -> None:
    """Refuse a carriage return at the end of a field that does not end a line: polars would drop it from the field."""
    odd, last, quotes = re.compile(rb"\r(?=[\r" + separator + b"])"), b"", 0
    for more in _blocks(path):
        if quotes % 2 and len(more) == BLOCK and b'"' not in more:
            raise _too_long(path, "field")
        block, counted = last + more, len(last)  # a return may be the last of a block
        for match in odd.finditer(block) if b"\r" in block else ():
            quotes += block.count(b'"', counted, match.start())
            counted = max(counted, match.start())
            if quotes % 2 == 0:
                raise InputError(
                    f"{path}: a carriage return stands at the end of a field within a line; expected lines that "
                    "end with LF or CRLF. Remove it, or put the field in quotes."
                )
        quotes += block.count(b'"', counted)
        last = block[-1:]


def _open(path: Path) -> IO[bytes]:
    return path.open("rb") if path.suffix.lower() != ".gz" else cast(IO[bytes], gzip.open(path, "rb"))


def _blocks(path: Path) -> Iterator[bytes]:
    """The content of a text, unpacked; refused as soon as it is more than memory can hold, as packed text must be."""
    size, is_packed = 0, path.suffix.lower() == ".gz"
    with _open(path) as stream:
        while block := stream.read(BLOCK):
            size += len(block)
            if is_packed:
                check_size(f"{path}, unpacked,", memory=size, instead="Convert it to Parquet, or read a part of it.")
            if len(block) == BLOCK and b"\n" not in block:
                raise _too_long(path, "line")
            yield block


def _too_long(path: Path, what: str) -> InputError:
    return InputError(
        f"{path}: a {what} of more than {bytes_text(BLOCK)}; expected lines of a table. Check what wrote it."
    )


def _bytes(path: Path) -> bytes:
    return b"".join(_blocks(path))


def check_readable(path: Path) -> None:
    """Refuse what cannot be opened, has a name that cannot be shown, or was altered in a folder that truerank wrote.

    A pipe is refused, too: files are read more than once, and it may never begin.
    """
    if is_remote(path):
        raise InputError(
            f"{url_of(path)}: only tables in Parquet are read from object stores; copy it to this machine first."
        )
    try:
        str(path).encode()
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise InputError(
                f"{path}: is a pipe or a device; expected a file, which can be read twice. Save it to one first."
            )
        path.open("rb").close()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise InputError(f"{shown}: the name is not UTF-8. Rename the file.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; expected a file.") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    check_member(path)


def write_table(table: pl.DataFrame, path: Path, *, advice: str | None = None) -> None:
    """Write a table in the format told by the ending; `advice` is what to do where it cannot be written."""
    with whole_file(path, advice=advice) as temporary:
        if path.suffix.lower() == ".parquet":
            table.write_parquet(temporary, compression="zstd")
        elif path.suffix.lower() in SEPARATORS:
            table.write_csv(temporary, separator=SEPARATORS[path.suffix.lower()])
        else:
            raise InputError(f"{path}: unknown ending {path.suffix!r}; expected .parquet, .csv or .tsv.")


def scan_path(path: Path) -> tuple[list[Piece], dict[str, pl.DataType]]:
    """The files at a path in the order of their names, and the types that hold the columns of all.

    What lies in an object store is read by polars as one. Folders called `day=1` (Hive partitions) are columns.

    In a folder, files and folders whose names begin with `.` or `_` (such as `_SUCCESS`, `_temporary`) are no data, nor
    are links to files that are read already. All others must be of one kind and have the same columns: what a folder
    holds is read whole or refused.
    """
    if is_remote(path):
        with reading(path):
            piece = Piece.of(scan_store(path), path=path)
        return [piece], dict(piece.schema)
    paths = parts_of(path)
    if paths is None:
        piece = scan_file(path)
        return [piece], dict(piece.schema)
    kinds = {part: kind_of(part) for part in paths}
    odd = next((part for part, kind in kinds.items() if kind != kinds[paths[0]] or not kind), None)
    if odd is not None:
        names = f"{paths[0].name} and {odd.name}" if odd != paths[0] else odd.name
        raise InputError(
            f"{path}: {names}; expected files of one kind, {EXPECTED}. "
            f"Move other files away, or name the right ones with a glob, such as '{paths[0].parent}/*.csv'."
        )
    parts = [scan_file(part) for part in paths]
    if is_hive(path):
        parts = _with_partition_columns(parts, [part.relative_to(path).parent for part in paths])
    for part in parts:
        if set(part.schema) != set(parts[0].schema):
            raise InputError(
                f"{part.path}: columns {some(list(part.schema))}, but {paths[0].name} has "
                f"{some(list(parts[0].schema))}; expected the same columns in every part."
            )
    return parts, _common(path, parts)


def _with_partition_columns(parts: Sequence[Piece], folders: Sequence[Path]) -> list[Piece]:
    """The same parts with the columns that their folders name; values are whole numbers where all are plain ones."""
    partitions, full = [partition_values(folder) for folder in folders], []
    kinds = partition_types(partitions, [part.path for part in parts])
    for part, values in zip(parts, partitions, strict=True):
        texts = {key: pl.lit(values[key], dtype=pl.String) for key in kinds}
        with part.reading():
            rows = with_partitions(part.rows, part.schema, kinds, texts, pl.lit(str(part.path)))
        full.append(replace(part, rows=rows, schema={**part.schema, **kinds, **part.schema}))
    return full


def _common(where: Path, parts: Sequence[Piece]) -> dict[str, pl.DataType]:
    """Types that hold the columns of all parts; a part without rows says nothing about types."""
    names = list(parts[0].schema)
    filled = [part for part in parts if part.n_rows] or list(parts[:1])
    texts = [part.text for part in filled if part.text is not None]
    if texts:  # all parts of a text table decide its types together, as one file does
        return {**parts[0].schema, **reduce(operator.add, texts).schema()}
    try:
        empty = [pl.DataFrame(schema={name: part.schema[name] for name in names}) for part in filled]
        kinds = dict(pl.concat(empty, how="vertical_relaxed").schema)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{where}: columns differ in type between parts ({reason}). Write them alike.") from None
    for part in filled:
        for name, kind in kinds.items():
            if kind == pl.String != part.schema[name]:
                raise InputError(
                    f"{part.path}: column {name!r} is {part.schema[name]}, but text in other parts of {where}; "
                    "expected one type in every part. Write them alike."
                )
    return kinds


def to_frame(log: Log) -> pl.DataFrame:
    """The rows of a log as a polars frame, ids as they came."""
    frame = log.to_polars()
    return frame.with_columns(pl.col("label").cast(pl.Int8)) if "label" in log.rewards else frame


@checked_arguments()
def write(log: Log, path: str | Path) -> None:
    """Write a log to Parquet, CSV or TSV.

    Parameters
    ----------
    log
        The log.
    path
        The file to write; its ending says the format.
    """
    write_table(to_frame(log), Path(path))
