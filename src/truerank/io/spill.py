"""Rows set aside on disk: numbered parts in a temporary folder that vanishes whatever happens, and streams.

A stream comes only once: anything with an Arrow stream, datasets of Arrow and Lance, Dask and Spark frames. It is taken
batch by batch. Few rows stay in memory; more are set aside in temporary Parquet files of this run, since an evaluation
looks at its rows more than once. Nothing here imports what the rows come from.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.io.atomic_write import writing
from truerank.io.frames import is_sparse
from truerank.io.paths import locked, unchanged, versions_of


@dataclass(slots=True, weakref_slot=True, eq=False)
class Scratch:
    """A temporary folder, made when something is written for the first time; gone with this value, or the process.

    Its name has the machine and the process; it is locked as long as the process lives.
    """

    within: Path | None = None
    folder: Path | None = None
    n_folders: int = 0
    remove: Callable[[], object] = lambda: None

    def make(self, name: str) -> Path:
        """A new folder inside."""
        with setting_aside(self.folder or self.within):
            if self.folder is None:
                _remove_abandoned(self.within)
                self.folder, handle = _new_folder(self.within)
                self.remove = weakref.finalize(self, _remove, self.folder, handle)
            self.n_folders += 1
            folder = self.folder / f"{self.n_folders}-{name}"
            folder.mkdir()
        return folder


@contextmanager
def scratch(within: Path | None = None) -> Iterator[Scratch]:
    """A place for parts; what was written is removed at the end, after errors and Ctrl-C, too.

    What killed processes have left is removed, once for each process and place.
    """
    place = Scratch(within)
    _remove_abandoned(within)
    try:
        yield place
    finally:
        place.remove()


def _new_folder(within: Path | None) -> tuple[Path, int | None]:
    """A new temporary folder, locked; one that another process takes for abandoned before that is left to it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"truerank-{_machine()}-{os.getpid()}-", dir=within))
        with suppress(BlockingIOError, FileNotFoundError):
            handle = locked(folder)
            if folder.exists():
                return folder, handle


def _remove(folder: Path, handle: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


def _remove_abandoned(within: Path | None) -> None:
    with suppress(OSError):  # there may be no place for temporary files, which is reported when one is needed
        _remove_abandoned_in(tempfile.gettempdir() if within is None else str(within))


@cache
def _remove_abandoned_in(parent: str) -> None:
    """Remove temporary folders that this user's killed processes have left on this machine, and nothing else."""
    own = re.compile(rf"truerank-{_machine()}-\d+-\w{{8}}")
    with os.scandir(parent) as entries:
        for entry in entries:
            if not own.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError, AttributeError):  # of a living process; or there are no users and no locks
                handle = locked(Path(entry.path)) if entry.stat().st_uid == os.getuid() else None
                if handle is not None:
                    _remove(Path(entry.path), handle)


def _machine() -> str:
    """Temporary folders may be shared by machines, which do not see each other's locks."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def setting_aside(folder: Path | None) -> AbstractContextManager[None]:
    """What goes wrong while parts are written, in one sentence."""
    return writing(folder or Path("temporary files"), advice="Set TMPDIR to a folder with space for the rows.")


@record
class RowsHeld:
    """Rows in memory, which go wherever they are sent."""

    rows: pl.DataFrame

    portable: ClassVar[bool] = True

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        return self.rows if columns is None else self.rows.select(columns)


@record
class SpilledRows:
    """The rows of one part: segments of a file, each a stream of Arrow IPC."""

    path: Path
    schema: Mapping[str, pl.DataType]
    segments: tuple[tuple[int, int], ...]

    portable: ClassVar[bool] = False  # the file is on this machine

    def read(self, columns: Collection[str] | None = None) -> pl.DataFrame:
        """The rows in the order in which they were added."""
        names = list(self.schema) if columns is None else list(columns)
        if not self.segments:
            return pl.DataFrame(schema={name: self.schema[name] for name in names})
        try:
            with self.path.open("rb") as file:
                frames = []
                for start, length in self.segments:
                    file.seek(start)
                    content = file.read(length)
                    if len(content) != length:
                        raise OSError(f"{length:,} bytes were written, {len(content):,} are there")
                    frames.append(pl.read_ipc_stream(io.BytesIO(content), columns=names))
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                f"{self.path}: rows that were set aside there cannot be read again ({reason}). Check the disk, or name "
                "another place with TMPDIR, and start it again."
            ) from None
        return pl.concat(frames, rechunk=True)


@dataclass(slots=True)
class Spill:
    """Parts that rows are added to, all in one file; a part is read when all rows are in.

    Every batch adds a segment for each part: a stream of Arrow IPC whose place is kept here. So memory is that of one
    batch.
    """

    path: Path
    schema: Mapping[str, pl.DataType]
    n_rows: Ints
    segments: list[list[tuple[int, int]]] = field(default_factory=list)
    n_bytes: int = 0

    @classmethod
    def new(cls, folder: Path, schema: Mapping[str, pl.DataType], *, n_parts: int) -> Spill:
        return cls(folder / "rows", dict(schema), np.zeros(n_parts, dtype=np.int64), [[] for _ in range(n_parts)])

    def add(self, rows: pl.DataFrame, part: Ints) -> None:
        """Add rows to their parts, in their order; those of part -1 are left out."""
        n_parts = len(self.n_rows)
        narrow = part.astype(np.int16 if n_parts < 2**15 else np.int64)  # sorted by radix
        order = np.argsort(narrow, kind="stable")
        count = np.bincount(part + 1, minlength=n_parts + 1)
        end = np.cumsum(count)
        ordered = rows.select(list(self.schema))[order]
        with setting_aside(self.path), self.path.open("ab") as file:
            for number in np.flatnonzero(count[1:]).tolist():
                stream = io.BytesIO()
                ordered.slice(int(end[number]), int(count[number + 1])).write_ipc_stream(stream, compression="lz4")
                length = file.write(stream.getbuffer())
                self.segments[number].append((self.n_bytes, length))
                self.n_bytes += length
        self.n_rows += count[1:]

    def part(self, part: int) -> SpilledRows:
        """The rows of a part, in the order in which they were added; any process of this machine can read them."""
        return SpilledRows(self.path, self.schema, tuple(self.segments[part]))


HELD = 2**25  # bytes that stay in memory


def is_stream(source: Any) -> bool:
    """Whether rows come batch by batch: an Arrow stream that is no table in memory, a dataset, a Dask or a Spark frame.

    >>> is_stream(pl.DataFrame({"user": [1]})), is_stream({"user": [1]})
    (False, False)
    """
    if isinstance(source, pl.DataFrame | pl.LazyFrame | pl.Series) or is_sparse(source):
        return False
    if is_spark(source) or is_dask(source) or _is_dataset(source):
        return True
    # asked of its class: tables of some libraries have their columns as attributes
    in_memory = hasattr(type(source), "num_rows") or type(source).__module__.startswith("pandas")
    return hasattr(source, "__arrow_c_stream__") and not in_memory


def is_spark(source: Any) -> bool:
    """Whether it is a frame of Spark."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "mapInArrow")


def is_dask(source: Any) -> bool:
    """Whether it is a frame of Dask."""
    return type(source).__module__.startswith(("dask.dataframe", "dask_expr")) and hasattr(source, "npartitions")


def _is_dataset(source: Any) -> bool:
    """A dataset of pyarrow or Lance, or what scans one: these give a stream when they are asked."""
    kind = type(source)
    return hasattr(kind, "to_batches") and (hasattr(kind, "scanner") or hasattr(kind, "count_rows"))


def batches_of(source: Any) -> Iterator[pl.DataFrame]:
    """The rows of a stream, a batch at a time."""
    if is_spark(source):
        # said of pandas 3 whenever a frame is mapped; no pandas is used here
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        for row in source.mapInArrow(_as_bytes, "rows binary").toLocalIterator(prefetchPartitions=True):
            yield pl.read_ipc_stream(io.BytesIO(row[0]))
    elif is_dask(source):
        for number in range(source.npartitions):
            yield pl.DataFrame(source.get_partition(number).compute())
    else:
        try:
            from pyarrow import RecordBatchReader
        except ImportError:  # all at once, then
            yield pl.DataFrame(source)
            return
        source = source.scanner() if _is_dataset(source) and hasattr(source, "scanner") else source
        source = source.to_reader() if _is_dataset(source) else source
        # a reader that is there is taken as it is, so that what it raises keeps its kind
        reader = source if isinstance(source, RecordBatchReader) else RecordBatchReader.from_stream(source)
        yield pl.DataFrame(reader.schema.empty_table())  # so that columns are known where no batch follows
        yield from map(pl.DataFrame, reader)


def _as_bytes(batches: Iterable[Any]) -> Iterator[Any]:
    """On an executor of Spark: each batch of rows as the bytes of an Arrow stream."""
    import pyarrow

    for batch in batches:
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        rows = pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([rows], ["rows"])


def taken(source: Any, *, where: str) -> tuple[pl.DataFrame | Path, Scratch]:
    """All rows of a stream: in memory where they are few, else a folder of files, which goes where it breaks off."""
    names = getattr(source, "files", None) if _is_dataset(source) else None  # of a dataset of pyarrow
    files = [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    space = Scratch()
    try:
        with unchanged(versions_of(files)):
            groups = _grouped(_unbroken(source, where=where), where=where)
            held = list(islice(groups, 2))
            if len(held) == 2:
                folder = space.make("stream")
                for number, rows in enumerate(chain(held, groups)):
                    with setting_aside(folder):
                        rows.write_parquet(folder / f"{number:06}.parquet", compression="lz4")
                return folder, space
    except BaseException:
        space.remove()
        raise
    rows = held[0] if held else pl.DataFrame()
    if not len(rows) and hasattr(type(source), "read_next_batch"):
        raise InputError(
            f"{where}: a reader without rows; one that was read before has none left. Open it again, or give a "
            "table where there are no rows on purpose."
        )
    return rows, space


def _grouped(batches: Iterable[pl.DataFrame], *, where: str) -> Iterator[pl.DataFrame]:
    """The rows of batches, which may be tiny, as much at a time as stays in memory."""
    waiting: list[pl.DataFrame] = []
    size = 0.0
    for batch in batches:
        if waiting and batch.schema != waiting[0].schema:
            raise InputError(f"{where}: columns or types change within the stream; expected the same in every batch.")
        if size > HELD:
            yield pl.concat(waiting)
            waiting, size = [], 0.0
        waiting.append(batch)
        size += batch.estimated_size()
    if waiting:
        yield pl.concat(waiting)


def _unbroken(source: Any, *, where: str) -> Iterator[pl.DataFrame]:
    """The batches of a stream; one that breaks off is told in one sentence, whatever its library raises."""
    n_rows = 0
    try:
        for batch in batches_of(source):
            yield batch
            n_rows += len(batch)
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(
            f"{where}: the stream broke off after {n_rows:,} rows ({reason}). Nothing was evaluated; open it again."
        ) from error
