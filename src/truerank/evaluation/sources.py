"""Data in chunks of whole units, held in memory or read from disk, for engines; and what calls have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from truerank.core.ids import Ids
from truerank.core.ranking import JudgedChunk
from truerank.engines.engine import Chunked, as_chunks
from truerank.io.batches import LazyTable
from truerank.io.partition import MEMORY_BYTES, MEMORY_ROWS, Chunks, RowsOfPart
from truerank.io.sessions import RankedChunk

AnyChunk = TypeVar("AnyChunk")
SomeChunk = TypeVar("SomeChunk", JudgedChunk, RankedChunk)


def in_memory(chunks: Sequence[SomeChunk], items: Ids) -> Chunked[SomeChunk]:
    """Chunks in memory; the names of items, which they share, travel once."""
    n_rows = np.array([chunk.n_rows for chunk in chunks], dtype=np.int64)
    read = partial(_with_items, items=items)
    return as_chunks(chunks, n_rows=n_rows, send=lambda chunk: chunk.to_send(), read=read)


def _with_items(chunk: SomeChunk, *, items: Ids) -> SomeChunk:
    return chunk.with_items(items)


Part = tuple[Any, Mapping[str, RowsOfPart]]  # what belongs to a chunk beside its tables, and these


def streamed(
    tables: Chunks, read: Callable[[Part], AnyChunk], beside: Callable[[int], Any], names: tuple[str, ...] = ()
) -> Chunked[AnyChunk]:
    """Chunks on disk, of which those under way are in memory; `names` are the tables they need, by default all."""

    def part(at: int, *, same_disk: bool) -> Part:
        rows = tables.part(at, same_disk=same_disk)
        return beside(at), {name: rows[name] for name in names or rows if name in rows}

    return Chunked(tables.n_rows, lambda at: read(part(at, same_disk=True)), part, read, tables.notes)


def fits_in_memory(table: LazyTable, columns: Sequence[str] | None = None) -> bool:
    """Whether a table is small enough to be read at once."""
    return table.n_rows <= MEMORY_ROWS and table.n_rows * table.row_bytes(columns) <= MEMORY_BYTES
