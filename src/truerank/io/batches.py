"""A table of rows that need not fit into memory: its columns and types are known, its rows come in batches."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.record import record
from truerank.core.sizes import check_size
from truerank.io.files import Piece, scan_path
from truerank.io.frames import as_frame, is_sparse
from truerank.io.paths import is_remote, left_out, url_of
from truerank.io.spill import is_stream, taken

BATCH_ROWS = 2**20
BATCH_BYTES = 2**26
LOOKED_AT = 1024  # rows that tell how large a row is
UNNAMED = FRAME, MATRIX = ("frame", "matrix")  # what sources are called that nobody has named
WRITTEN = ("user", "item", "session", "surface", "group", "logger")  # columns of ids and names, as they are written


@record
class LazyTable:
    """Rows of a file, of part files or of a frame, in their order; nothing is read before it is needed."""

    pieces: tuple[Piece, ...]
    schema: Mapping[str, pl.DataType]
    where: str
    folder: Any = field(default=None, repr=False, compare=False)  # of a stream, as long as it is needed
    notes: tuple[str, ...] = ()  # what to report of how it is read

    @classmethod
    def of(cls, source: Any, *, name: str | None = None, columns: Mapping[str, str] | None = None) -> LazyTable:
        """From a path, a folder of parts, a glob, an object store, a polars, pandas or arrow frame, a scipy.sparse
        matrix, or rows that come as a stream: anything with `__arrow_c_stream__`, Dask and Spark frames.

        `columns` maps this library's names to the source's: those that hold ids are read as they are written.

        >>> table = LazyTable.of(pl.DataFrame({"user": [1, 2, 3]}))
        >>> table.n_rows, [len(batch) for batch in table.batches(most=2)]
        (3, [2, 1])
        """
        return cls._of(source, name).as_written(columns or {})

    @classmethod
    def _of(cls, source: Any, name: str | None) -> LazyTable:
        if isinstance(source, LazyTable):
            return source if name is None else replace(source, where=name)
        if isinstance(source, str | Path):
            parts, schema = scan_path(Path(source))
            return cls(tuple(parts), schema, name or url_of(source), notes=left_out(Path(source)))
        where = name or (MATRIX if is_sparse(source) else FRAME)
        if isinstance(source, pl.LazyFrame):
            piece = Piece.of(source, seekable=False)
            return cls((piece,), piece.schema, where)
        if is_stream(source):  # rows come only once: taken now, batch by batch, and set aside where they are many
            source, folder = taken(source, where=where)
            if isinstance(source, Path):
                return replace(cls._of(source, where), folder=folder)
        piece = Piece.of(as_frame(source).lazy())
        return cls((piece,), piece.schema, where)

    def as_written(self, columns: Mapping[str, str]) -> LazyTable:
        """The same rows, in which ids and names are what stands in the file.

        A column of a text table whose fields are no plain whole numbers may be one of numbers (1e3, 7.0) or of true and
        false; as ids these are text, because 1e3 and 1000 are two ids.
        """
        names = {name for key in WRITTEN for name in (key, columns.get(key, key))}
        return self._as_text([name for name in names if self.schema.get(name) in (pl.Float64, pl.Boolean)])

    def fields(self) -> LazyTable:
        """The same rows, in which all columns of text tables are the text that stands there."""
        return self._as_text(self.columns)

    def _as_text(self, names: Collection[str]) -> LazyTable:
        """These columns as text, where they are that in the files; the types of others stay."""
        texts = {name: pl.String() for name in names if all(piece.is_text(name) for piece in self.pieces)}
        return replace(self, schema={**self.schema, **texts}) if self.pieces else self

    @property
    def columns(self) -> list[str]:
        return list(self.schema)

    @property
    def n_rows(self) -> int:
        return sum(piece.n_rows for piece in self.pieces)

    @property
    def seekable(self) -> bool:
        return all(piece.seekable for piece in self.pieces)

    @property
    def in_memory(self) -> bool:
        return self.seekable and all(piece.path is None for piece in self.pieces)

    @property
    def portable(self) -> bool:
        """Whether its rows can be read on any machine: none of them lies on a disk of this one."""
        return all(piece.path is None or is_remote(piece.path) for piece in self.pieces)

    def without_rows(self) -> LazyTable:
        """Its name, columns and types alone."""
        return replace(self, pieces=(), folder=None)

    def between(self, start: int, end: int) -> LazyTable:
        """The rows `start ... end - 1` alone; of a text file all rows before them are read, too."""
        pieces = []
        for piece in self.pieces:
            first, last = (min(max(row, 0), piece.n_rows) for row in (start, end))
            start, end = start - piece.n_rows, end - piece.n_rows
            if last > first:
                rows = piece.rows.slice(first, last - first)
                pieces.append(replace(piece, rows=rows, n_rows=last - first, unpacked={}))
        return replace(self, pieces=tuple(pieces), folder=None)

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        """All rows at once."""
        schema, frames = self._schema(columns), []
        if not self.in_memory:  # equal values pack to next to nothing
            empty = pl.DataFrame(schema=schema).clear(LOOKED_AT).estimated_size() / LOOKED_AT
            texts = [name for name, kind in schema.items() if not kind.is_numeric()]
            least = self.n_rows * empty + sum(piece.declared(texts) for piece in self.pieces)
            check_size(f"{self.where}: {self.n_rows:,} rows", memory=least, instead="Read a part of them.")
        for piece in self.pieces:
            with piece.reading():
                frames.append(piece.typed(schema).collect())
        return pl.concat(frames) if frames else pl.DataFrame(schema=schema)

    def batches(self, columns: Collection[str] | None = None, *, most: int | None = None) -> Iterator[pl.DataFrame]:
        """The rows in their order, some columns of them, at most `most` at a time (by default about 64 MB)."""
        schema = self._schema(columns)
        size = most or self.batch_rows(schema)
        for piece in self.pieces:
            with piece.reading():
                rows = piece.typed(schema)
                if piece.seekable:
                    for start in range(0, piece.n_rows, size):
                        yield rows.slice(start, size).collect()
                else:
                    # several batches are under way at a time, and fields are larger than what they become
                    yield from rows.collect_batches(chunk_size=max(size // 4, 1), maintain_order=True)

    def row_bytes(self, columns: Collection[str] | None = None) -> float:
        """How large a row is in memory, told by the first ones, or on average as its file declares."""
        piece = next((piece for piece in self.pieces if piece.n_rows), None)
        if piece is None:
            return 1.0
        schema = self._schema(columns)
        declared = sum(piece.declared(schema) for piece in self.pieces) / self.n_rows
        with piece.reading():
            head = piece.typed(schema).head(max(min(LOOKED_AT, int(BATCH_BYTES // (declared + 1))), 1)).collect()
        return max(head.estimated_size() / max(len(head), 1), declared, 1.0)

    def batch_rows(self, columns: Collection[str] | None = None) -> int:
        """Rows of a batch of about 64 MB, and at most about a million."""
        return max(min(BATCH_ROWS, math.floor(BATCH_BYTES / self.row_bytes(columns))), 1)

    def _schema(self, columns: Collection[str] | None) -> dict[str, pl.DataType]:
        return {name: self.schema[name] for name in (self.columns if columns is None else columns)}
