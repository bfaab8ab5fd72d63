"""Rows that come as a stream and only once: anything with an Arrow stream, datasets of Arrow and Lance, Dask and Spark
frames.

They are taken batch by batch. Few rows stay in memory; more are set aside in temporary Parquet files of this run, since
an evaluation looks at its rows more than once. Nothing here imports what the rows come from.
"""

from __future__ import annotations

import io
import shutil
import warnings
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.io.file_version import unchanged, versions_of
from truerank.io.matrices import is_sparse
from truerank.io.spill import new_scratch, writing

HELD = 2**26  # bytes that stay in memory
GATHERED = 2**17  # rows that are written together: streams may come in tiny batches


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
    in_memory = hasattr(type(source), "num_rows") or _is_pandas(source)
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


def _is_pandas(source: Any) -> bool:
    return type(source).__module__.startswith("pandas")


def batches_of(source: Any) -> Iterator[pl.DataFrame]:
    """The rows of a stream, a batch at a time."""
    if is_spark(source):
        # said of pandas 3 whenever a frame is mapped; no pandas is used here
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        for row in source.mapInArrow(_as_bytes, "rows binary").toLocalIterator(prefetchPartitions=True):
            yield pl.read_ipc_stream(io.BytesIO(row[0]))
    elif is_dask(source):
        for at in range(source.npartitions):
            yield pl.DataFrame(source.get_partition(at).compute())
    else:
        try:
            from pyarrow import RecordBatchReader
        except ImportError:  # all at once, then
            yield pl.DataFrame(source)
            return
        reader = _reader_of(source, RecordBatchReader)
        yield pl.DataFrame(reader.schema.empty_table())  # so that columns are known where no batch follows
        for batch in reader:
            yield pl.DataFrame(batch)


def _reader_of(source: Any, kind: Any) -> Any:
    """A reader of pyarrow; one that is there is taken as it is, so that what it raises keeps its kind."""
    scanned = source.scanner() if _is_dataset(source) and hasattr(source, "scanner") else source
    opened = scanned.to_reader() if _is_dataset(scanned) else scanned
    return opened if isinstance(opened, kind) else kind.from_stream(opened)


def _as_bytes(batches: Iterable[Any]) -> Iterator[Any]:
    """On an executor of Spark: each batch of rows as the bytes of an Arrow stream."""
    import pyarrow

    for batch in batches:
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        rows = pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([rows], ["rows"])


@dataclass(slots=True, weakref_slot=True, eq=False)
class Spool:
    """Where a stream is set aside; the files vanish with the last reference to it, and at the end of the process."""

    folder: Path
    n_files: int = 0
    ends: Any = field(default=None, repr=False)

    @classmethod
    def new(cls) -> Spool:
        with writing(None):
            folder = new_scratch()
        spool = cls(folder)
        spool.ends = weakref.finalize(spool, shutil.rmtree, folder, ignore_errors=True)
        return spool

    def add(self, frames: list[pl.DataFrame]) -> None:
        with writing(self.folder):
            pl.concat(frames).write_parquet(self.folder / f"{self.n_files:06}.parquet", compression="lz4")
        self.n_files += 1


def taken(source: Any, *, where: str) -> pl.DataFrame | Spool:
    """All rows of a stream: in memory where they are few, else in files, which go at once where it breaks off."""
    waiting = _Waiting()
    try:
        with unchanged(versions_of(_local_files(source))):
            for batch in _unbroken(source, where=where):
                waiting.add(batch, where=where)
        return waiting.all_rows(empty=_refused(where) if hasattr(type(source), "read_next_batch") else None)
    except BaseException:
        if waiting.spool is not None:
            waiting.spool.ends()
        raise


def _local_files(source: Any) -> list[Path]:
    """The files of a dataset of pyarrow; those of others, and what lies elsewhere, nobody can look at here."""
    names = getattr(source, "files", None) if _is_dataset(source) else None
    return [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _refused(where: str) -> InputError:
    return InputError(
        f"{where}: a reader without rows; one that was read before has none left. Open it again, or give a table "
        "where there are no rows on purpose."
    )


@dataclass(slots=True)
class _Waiting:
    """Batches that came, of which the first are set aside when they are too many."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    schema: dict[str, pl.DataType] | None = None
    spool: Spool | None = None
    size: float = 0.0
    n_rows: int = 0
    n_waiting: int = 0

    def add(self, batch: pl.DataFrame, *, where: str) -> None:
        if self.schema is not None and dict(batch.schema) != self.schema:
            raise InputError(f"{where}: columns or types change within the stream; expected the same in every batch.")
        self.schema = dict(batch.schema)
        self.frames.append(batch)
        self.size += batch.estimated_size()
        self.n_rows += len(batch)
        self.n_waiting += len(batch)
        if self.size > HELD and (self.spool is None or self.n_waiting >= GATHERED):
            self.spool = Spool.new() if self.spool is None else self.spool
            self._set_aside(self.spool)

    def all_rows(self, *, empty: InputError | None) -> pl.DataFrame | Spool:
        """What came; `empty` is raised where nothing did."""
        if not self.n_rows and empty is not None:
            raise empty
        if self.spool is None:
            return pl.concat(self.frames) if self.frames else pl.DataFrame()
        if self.n_waiting:
            self._set_aside(self.spool)
        return self.spool

    def _set_aside(self, spool: Spool) -> None:
        spool.add(self.frames)
        self.frames, self.n_waiting = [], 0


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
