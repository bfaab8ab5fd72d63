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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.io.fingerprint import unchanged, versions_of
from truerank.io.frames import is_sparse
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


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class StreamFolder:
    """Where a stream is set aside; the files vanish with the last reference to it, and at the end of the process."""

    path: Path


def taken(source: Any, *, where: str) -> pl.DataFrame | StreamFolder:
    """All rows of a stream: in memory where they are few, else in files, which go at once where it breaks off."""
    names = getattr(source, "files", None) if _is_dataset(source) else None  # of a dataset of pyarrow
    files = [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    waiting: list[pl.DataFrame] = []
    folder, remove = None, None
    n_rows = n_waiting = n_files = 0
    size = 0.0
    try:
        with unchanged(versions_of(files)):
            for batch in _unbroken(source, where=where):
                if waiting and batch.schema != waiting[0].schema:
                    raise InputError(
                        f"{where}: columns or types change within the stream; expected the same in every batch."
                    )
                waiting.append(batch)
                size, n_rows, n_waiting = size + batch.estimated_size(), n_rows + len(batch), n_waiting + len(batch)
                if size > HELD and (folder is None or n_waiting >= GATHERED):
                    with writing(None if folder is None else folder.path):
                        if folder is None:
                            folder = StreamFolder(new_scratch())
                            remove = weakref.finalize(folder, shutil.rmtree, folder.path, ignore_errors=True)
                        pl.concat(waiting).write_parquet(folder.path / f"{n_files:06}.parquet", compression="lz4")
                    # of no rows, so that the columns of the next batch can be compared
                    n_files, n_waiting, waiting = n_files + 1, 0, [batch.clear()]
        if not n_rows and hasattr(type(source), "read_next_batch"):
            raise InputError(
                f"{where}: a reader without rows; one that was read before has none left. Open it again, or give a "
                "table where there are no rows on purpose."
            )
        if folder is None:
            return pl.concat(waiting) if waiting else pl.DataFrame()
        if n_waiting:
            with writing(folder.path):
                pl.concat(waiting).write_parquet(folder.path / f"{n_files:06}.parquet", compression="lz4")
        return folder
    except BaseException:
        if remove is not None:
            remove()
        raise


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
