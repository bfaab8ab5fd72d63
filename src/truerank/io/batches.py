"""A table of rows that need not fit into memory: its columns and types are known, its rows come in batches."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.io.files import Scanned, scan_path
from truerank.io.matrices import is_sparse, rows_of, stored
from truerank.io.stores import is_remote, url_of
from truerank.io.streams import Spool, is_stream, taken

BATCH_ROWS = 2**20
BATCH_BYTES = 2**26
LOOKED_AT = 1024  # rows that tell how large a row is
UNNAMED = FRAME, MATRIX = ("frame", "matrix")  # what sources are called that nobody has named
WRITTEN = ("user", "item", "session", "surface", "group", "logger")  # columns of ids and names, as they are written


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one file or frame.

    `seekable` says that rows in the middle can be had without reading those before them.
    """

    rows: pl.LazyFrame
    n_rows: int
    seekable: bool = True
    file: Scanned | None = None

    @classmethod
    def of(cls, file: Scanned, schema: Mapping[str, pl.DataType]) -> Piece:
        """The rows of a file in these types."""
        return cls(file.typed(schema), file.n_rows, file.seekable, file)

    def reading(self) -> Any:
        return nullcontext() if self.file is None else self.file.reading()


@dataclass(frozen=True, slots=True)
class LazyTable:
    """Rows of a file, of part files or of a frame, in their order; nothing is read before it is asked for."""

    pieces: tuple[Piece, ...]
    schema: Mapping[str, pl.DataType]
    where: str
    kept: Spool | None = field(default=None, repr=False, compare=False)  # of a stream, as long as it is needed

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
            return source
        if isinstance(source, str | Path):
            return cls._at(Path(source), name or url_of(source))
        if isinstance(source, pl.LazyFrame):
            n_rows = int(source.select(pl.len()).collect(engine="streaming").item())
            return cls((Piece(source, n_rows, seekable=False),), dict(source.collect_schema()), name or FRAME)
        if is_stream(source):
            return cls._of_stream(source, name or FRAME)
        frame = _frame(source)
        where = name or (MATRIX if is_sparse(source) else FRAME)
        return cls((Piece(frame.lazy(), len(frame)),), dict(frame.schema), where)

    @classmethod
    def _of_stream(cls, source: Any, where: str) -> LazyTable:
        """Rows that come only once: taken now, batch by batch, and set aside where they are many."""
        rows = taken(source, where=where)
        if isinstance(rows, pl.DataFrame):
            return cls((Piece(rows.lazy(), len(rows)),), dict(rows.schema), where)
        return replace(cls._at(rows.folder, where), kept=rows)

    @classmethod
    def _at(cls, path: Path, where: str) -> LazyTable:
        parts, schema = scan_path(path)
        return cls(tuple(Piece.of(part, schema) for part in parts), schema, where)

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
        files = [piece.file for piece in self.pieces if piece.file is not None]
        texts = {name for name in names if files and all(file.is_text(name) for file in files)}
        if all(self.schema[name] == pl.String for name in texts):
            return self
        schema = {name: pl.String() if name in texts else kind for name, kind in self.schema.items()}
        return replace(self, pieces=tuple(Piece.of(file, schema) for file in files), schema=schema)

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
        return self.seekable and all(piece.file is None for piece in self.pieces)

    @property
    def portable(self) -> bool:
        """Whether its rows can be read on any machine: none of them lies on a disk of this one."""
        return all(piece.file is None or is_remote(piece.file.path) for piece in self.pieces)

    def without_rows(self) -> LazyTable:
        """Its name, columns and types alone."""
        return replace(self, pieces=(), kept=None)

    def around(self, start: int, end: int) -> tuple[LazyTable, int]:
        """The files that hold the rows from `start` to `end`, and how many rows there are before these files."""
        edges = list(accumulate((piece.n_rows for piece in self.pieces), initial=0))
        kept = [at for at, (first, last) in enumerate(pairwise(edges)) if first < end and last > start]
        if not kept:
            return replace(self, pieces=self.pieces[:1], kept=None), 0
        return replace(self, pieces=self.pieces[kept[0] : kept[-1] + 1], kept=None), edges[kept[0]]

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        """All rows at once."""
        frames = []
        for piece in self.pieces:
            with piece.reading():
                frames.append(piece.rows.select(self._names(columns)).collect())
        return frames[0] if len(frames) == 1 else pl.concat(frames)

    def batches(self, columns: Collection[str] | None = None, *, most: int | None = None) -> Iterator[pl.DataFrame]:
        """The rows in their order, some columns of them, at most `most` at a time (by default about 64 MB)."""
        names = self._names(columns)
        size = most or self.batch_rows(names)
        for piece in self.pieces:
            with piece.reading():
                rows = piece.rows.select(names)
                if piece.seekable:
                    for start in range(0, piece.n_rows, size):
                        yield rows.slice(start, size).collect()
                else:
                    # several batches are under way at a time, and fields are larger than what they become
                    yield from rows.collect_batches(chunk_size=max(size // 4, 1), maintain_order=True)

    def slice(self, start: int, n: int, columns: Collection[str] | None = None) -> pl.DataFrame:
        """The rows `start ... start + n - 1`; of a text file all rows before them are read, too."""
        names, frames = self._names(columns), []
        for piece in self.pieces:
            inside = min(max(start, 0), piece.n_rows), min(max(start + n, 0), piece.n_rows)
            start -= piece.n_rows
            if inside[1] > inside[0] or not piece.n_rows:
                with piece.reading():
                    frames.append(piece.rows.select(names).slice(inside[0], inside[1] - inside[0]).collect())
        return pl.concat(frames) if frames else pl.DataFrame(schema={name: self.schema[name] for name in names})

    def row_bytes(self, columns: Collection[str] | None = None) -> float:
        """How large a row is in memory, told by the first ones."""
        piece = next((piece for piece in self.pieces if piece.n_rows), None)
        if piece is None:
            return 1.0
        with piece.reading():
            head = piece.rows.select(self._names(columns)).head(LOOKED_AT).collect()
        return max(head.estimated_size() / max(len(head), 1), 1.0)

    def batch_rows(self, columns: Collection[str] | None = None) -> int:
        """Rows of a batch of about 64 MB, and at most about a million."""
        return max(min(BATCH_ROWS, math.floor(BATCH_BYTES / self.row_bytes(columns))), 1)

    def _names(self, columns: Collection[str] | None) -> list[str]:
        return self.columns if columns is None else list(dict.fromkeys(columns))


def _frame(source: Any) -> pl.DataFrame:
    source = _of_lenskit(source) if type(source).__module__.startswith("lenskit") else source
    if isinstance(source, pl.DataFrame):
        return source
    if is_pandas(source):
        # column by column: needs neither pandas nor pyarrow to be importable here
        names = [str(name) for name in source.columns]
        indices = [str(name) for name in source.index.names if name is not None]
        repeated = [name for at, name in enumerate([*indices, *names]) if name in [*indices, *names][:at]]
        if repeated:
            raise InputError(f"frame: two columns are called {repeated[0]!r}; expected each name once. Rename one.")
        named = source.reset_index() if indices else source
        return pl.DataFrame({str(name): _from_pandas(named[name], str(name)) for name in named.columns})
    if isinstance(source, Mapping | list):
        return by_user(source) if isinstance(source, Mapping) else by_row(source)
    if is_sparse(source):
        return rows_of(stored(source, name="matrix"), users=None, items=None, name="matrix")
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pl.Series):
        with suppress(pl.exceptions.PolarsError):  # a single column is no table
            return pl.DataFrame(source)
    raise InputError(
        f"cannot read rows from a {type(source).__name__}; expected a path, a polars, pandas or arrow frame, "
        "a scipy.sparse matrix, a dict of users, {user: [items]} or {user: {item: value}}, or a list of rows, "
        "[(user, item)] or [(user, item, value)]."
    )


def is_pandas(source: Any) -> bool:
    """Whether it is a table of pandas, which need not be importable here."""
    return type(source).__module__.startswith("pandas") and hasattr(source, "columns")


def by_user(source: Mapping[Any, Any], *, value: str = "score") -> pl.DataFrame:
    """Rows of a dict: items of each user, best first where they are a list, with a value where they are a dict.

    A dict of columns is a table as it is.

    >>> by_user({"u": ["b", "a"], "v": ["c"]}).rows()
    [('u', 'b', 1), ('u', 'a', 2), ('v', 'c', 1)]
    >>> by_user({"u": {"b": 0.5}}).to_dicts()
    [{'user': 'u', 'item': 'b', 'score': 0.5}]
    """
    if {"user", "item"} <= {*source}:
        return pl.DataFrame(dict(source))
    rows: list[tuple[Any, ...]] = []
    valued = any(isinstance(items, Mapping) for items in source.values())
    for user, items in source.items():
        if valued != isinstance(items, Mapping) or isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise InputError(
                f"a dict of users: {user!r} has a {type(items).__name__}; expected the items of each user, as "
                "{user: [items]} or {user: {item: value}}."
            )
        if isinstance(items, Mapping):
            rows += [(user, item, value) for item, value in items.items()]
        else:
            listed = sorted(items, key=str) if isinstance(items, Set) else items
            rows += [(user, item, rank) for rank, item in enumerate(listed, start=1)]
    users, of_items, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"user": list(users), "item": list(of_items), value if valued else "rank": list(numbers)}
    try:
        return pl.DataFrame({name: pl.Series(name, values, strict=True) for name, values in columns.items()})
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(f"a dict of users: ids or values of mixed types. {error}") from None


def by_row(rows: Sequence[Any]) -> pl.DataFrame:
    """A table of rows: (user, item), (user, item, rating), or named tuples such as Surprise's predictions.

    >>> by_row([("u", "a", 4.0), ("u", "b", 3.0)]).columns
    ['user', 'item', 'rating']
    """
    kinds = {getattr(row, "_fields", len(row)) if isinstance(row, tuple) else None for row in rows}
    kind = kinds.pop() if len(kinds) == 1 else None
    names = kind if isinstance(kind, tuple) else ("user", "item", "rating")[: kind or 0]
    if len(names) < 2 or (isinstance(kind, int) and kind > 3):
        raise InputError(
            "a list of rows: expected (user, item) or (user, item, rating) in every row, or named tuples of one kind."
        )
    plain = [name for at, name in enumerate(names) if not any(isinstance(row[at], Mapping) for row in rows)]
    try:
        return pl.DataFrame({name: pl.Series([row[names.index(name)] for row in rows], strict=True) for name in plain})
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(f"a list of rows: ids or values of mixed types. {error}") from None


def _of_lenskit(source: Any) -> Any:
    """The rows of LensKit's lists of items, of a dataset or of a table of interactions, as a table of pandas."""
    if hasattr(source, "to_df"):
        return source.to_df()
    if hasattr(source, "interaction_table"):
        return source.interaction_table(format="pandas", original_ids=True)
    raise InputError(
        f"cannot read rows from LensKit's {type(source).__name__}; expected lists of items or a dataset (a pipeline: "
        "truerank.models.from_lenskit)."
    )


def _from_pandas(series: Any, name: str) -> pl.Series:
    # numbers with nulls become doubles in numpy, which rounds large ones
    with_nulls = hasattr(series.dtype, "numpy_dtype") and bool(series.isna().any())
    array = series.astype(object).to_numpy() if with_nulls else series.to_numpy()
    values = [None if _missing(value) else value for value in array.tolist()] if array.dtype == object else array
    try:
        return pl.Series(values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        kinds = sorted({type(value).__name__ for value in array.tolist() if not _missing(value)})
        raise InputError(
            f"frame, column {name!r}: values of several types ({', '.join(kinds)}); expected one. Convert it, such as "
            "with .astype(str)."
        ) from None


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"
