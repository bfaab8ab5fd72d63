"""What damaged files say, by other and simpler parsers than the library's: Python's csv module, numpy, arrow.

Each gives a clean file of the same content, or None where the content is no table (or no archive): then the library
must refuse the file, too.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

WHOLE = re.compile(r"0|-?[1-9][0-9]*", flags=re.ASCII)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", flags=re.I | re.ASCII)
BOOLEANS = {"true", "True", "TRUE", "false", "False", "FALSE"}
IDS = ("user", "item", "session", "surface", "group", "logger")
WIDEST = 2**127
RETURN, EMPTY = "\ue000", "\ue001"


def of_text(data: bytes, separator: str) -> bytes | None:
    """The same rows as a Parquet file; rows without any field are none. Lines end with LF or CRLF.

    What csv.reader would not tell apart has a sign of its own while it reads: "" from an empty field, CR from an end.
    """
    try:
        text = re.sub(r"\r(?!\n|\Z)", RETURN, data.decode("utf-8-sig"))
        text = re.sub(rf'((?:^|{separator}|\n))""(?={separator}|\r?\n|$)', rf"\1{EMPTY}", text)
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True) if line]
    except (UnicodeDecodeError, csv.Error):
        return None
    if not lines or len(set(lines[0])) < len(lines[0]):
        return None
    names, rows = lines[0], [line for line in lines[1:] if any(line)]
    if any(len(row) > len(names) for row in rows):
        return None
    full = [[_field(field) for field in row] + [None] * (len(names) - len(row)) for row in rows]
    return _parquet({name: typed([row[at] for row in full], ids=name in IDS) for at, name in enumerate(names)})


def _field(text: str) -> str | None:
    return text.replace(RETURN, "\r").replace(EMPTY, "") if text else None


def of_gzip(data: bytes, separator: str) -> bytes | None:
    try:
        return of_text(gzip.decompress(data), separator)
    except (OSError, EOFError, zlib.error):
        return None


def of_trec(data: bytes, width: int) -> bytes | None:
    """The same as user, item and rating or score."""
    try:
        lines = [re.split(r"[ \t\r\v\f]+", line.strip(" \t\r\v\f")) for line in data.decode("utf-8-sig").split("\n")]
    except UnicodeDecodeError:
        return None
    rows = [line for line in lines if line != [""]]
    try:
        value = [float(row[3 if width == 4 else 4]) for row in rows]
    except (ValueError, IndexError):
        return None
    if not rows or any(len(row) != width for row in rows):
        return None
    ids = {"user": typed([row[0] for row in rows], ids=True), "item": typed([row[2] for row in rows], ids=True)}
    return _parquet({**ids, **({"rating": pl.Series(value).clip(0)} if width == 4 else {"score": pl.Series(value)})})


def typed(fields: Sequence[str | None], *, ids: bool) -> pl.Series:
    """A column as whole numbers, true and false, numbers or text; ids as whole numbers or text."""
    known = [field for field in fields if field is not None]
    if known and all(WHOLE.fullmatch(field) and abs(int(field)) < WIDEST for field in known):
        return pl.Series([None if field is None else int(field) for field in fields], dtype=pl.Int128)
    if known and not ids and set(known) <= BOOLEANS:
        return pl.Series([None if field is None else field.lower() == "true" for field in fields])
    if known and not ids and all(NUMBER.fullmatch(field) for field in known):
        return pl.Series([None if field is None else float(field) for field in fields])
    return pl.Series(fields, dtype=pl.String)


def of_parquet(data: bytes) -> bytes | None:
    """By arrow, which is another reader."""
    try:
        table = pq.read_table(io.BytesIO(data))
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError):
        return None
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def of_arrays(data: bytes, names: Collection[str]) -> bytes | None:
    """The named arrays by numpy, in a new archive; without what else there was."""
    damaged = (ValueError, KeyError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error, MemoryError)
    try:
        with warnings.catch_warnings(action="ignore"), np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name in names}
    except (*damaged, TypeError, SyntaxError, NotImplementedError, OverflowError, AttributeError):
        return None
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _parquet(columns: dict[str, pl.Series]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()
