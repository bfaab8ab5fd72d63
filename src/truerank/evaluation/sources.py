"""Data in chunks of whole units, held in memory or read from disk, for engines; and what calls have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from truerank.core.errors import InputError
from truerank.core.estimator import Groups, Learned, Learner, learn
from truerank.core.ids import Ids, Keys
from truerank.core.progress import Progress
from truerank.core.ranking import JudgedChunk
from truerank.engines.engine import Chunked, Workers, as_chunks, map_chunks
from truerank.io.batches import LazyTable
from truerank.io.partition import MEMORY_BYTES, MEMORY_ROWS, Chunks
from truerank.io.sessions import RankedChunk
from truerank.io.spill import RowsOfPart

GROUPS = 40  # of clusters, without each of which models are fitted again


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


def learn_models(
    learners: Sequence[Learner],
    source: Any,
    keys: Keys | None,
    *,
    seed: int,
    facts: Mapping[str, Any],
    workers: Workers,
    progress: Progress | None,
) -> Learned:
    """What must be fitted to all units, and again without each group of the clusters of these keys."""
    if not learners:
        return Learned(facts=facts)
    groups = Groups(seed, "jackknife")
    if keys is not None:
        groups = Groups.of(keys, n=GROUPS, seed=seed, purpose="jackknife")

    def mapped(work: Callable[[Any], list[Any]]) -> Iterator[list[Any]]:
        return map_chunks(workers, work, source, progress=progress, what="learning", ordered=True)

    return learn(list(dict.fromkeys(learners)), mapped, groups=groups, facts=facts)


def check_call(models: Mapping[str, Any], *, baseline: str | None = None, word: str = "scores") -> None:
    """What a caller can get wrong of models (or targets), before any work is done."""
    if not models:
        raise InputError(f"no {word} given; expected at least one, as {{name: {word}}}.")
    if baseline is not None and baseline not in models:
        raise InputError(f"baseline {baseline!r} is not among the {word}; expected one of {', '.join(models)}.")
