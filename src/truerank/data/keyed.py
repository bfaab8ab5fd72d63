"""Which chunk a row belongs to: a function of its key alone, so that tables cut alike have the same keys in a chunk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Keys, as_ids
from truerank.data.batches import LazyTable

SEED = 20  # of the hash of texts; which chunk a row lies in changes no result


@dataclass(frozen=True, slots=True)
class Keyed:
    """A table and what keeps its rows together: the column of an id, or all columns that say what a row is.

    With one column, rows of equal ids stay together, integers of any width alike. With several (`content`), rows that
    say the same stay together. `columns` are those that chunks have; all by default.
    """

    table: LazyTable
    key: str
    columns: tuple[str, ...] = ()
    content: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return list(self.columns or self.table.columns)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: self.table.schema[name] for name in self.names}

    @property
    def key_columns(self) -> list[str]:
        return list(self.content) or [self.key]

    @property
    def is_text(self) -> bool:
        return isinstance(self.table.schema[self.key], pl.String | pl.Categorical | pl.Enum)

    def batches(self, *, all_columns: bool = True) -> Iterator[tuple[pl.DataFrame, int]]:
        """Batches of rows with the number of rows before each."""
        start = 0
        for batch in self.table.batches([*(self.names if all_columns else ()), *self.key_columns]):
            yield batch, start
            start += len(batch)

    def ids(self, batch: pl.DataFrame, start: int) -> pl.Series:
        """The ids of a batch of rows."""
        column, where = batch[self.key], f"{self.table.where}, column {self.key!r}"
        if column.null_count():
            row = start + int(column.is_null().arg_true()[0])
            raise InputError(f"{where}: row {row + 1} has no id; every row needs one. Remove or fill the empty ids.")
        return as_ids(column, where=where)

    def hashes(self, batch: pl.DataFrame, start: int) -> Keys:
        if not self.content:
            return hashed(self.ids(batch, start))
        flat = [name for name in self.content if not batch[name].dtype.is_nested()]
        return batch.select(flat).hash_rows(seed=SEED).to_numpy()


def check_same_kind(sources: Mapping[str, Keyed]) -> None:
    """Refuse keys of which some are text and some are numbers: no id of one would be found in the other."""
    by_id = [source for source in sources.values() if source.table.n_rows and not source.content]
    for first, other in itertools.pairwise(by_id):
        if other.is_text != first.is_text:
            words = {True: "text", False: "numbers"}
            raise InputError(
                f"{other.table.where}, column {other.key!r}: ids are {words[other.is_text]} where those of "
                f"{first.table.where} are {words[first.is_text]}; text never matches numbers. Store both as the same "
                "type."
            )


def hashed(ids: pl.Series) -> Keys:
    """A number of 64 bits for each id, the same for equal ids; fast, and good for nothing but spreading rows.

    >>> narrow, wide = (hashed(as_ids(pl.Series([7, -1], dtype=kind), where="")) for kind in (pl.Int8, pl.Int64))
    >>> bool((narrow == wide).all())
    True
    """
    if ids.dtype == pl.Int128:  # those that fit into 64 bits are found like all others of their value
        small = ids.cast(pl.Int64, strict=False)
        keys = hashed(small.fill_null(0)).copy()
        large = small.is_null().to_numpy()
        keys[large] = ids.filter(small.is_null()).cast(pl.String).hash(seed=SEED).to_numpy()
        return keys
    if ids.dtype == pl.Int64:
        return cell_keys(SEED, "chunks", ids.to_numpy().view(np.uint64), np.zeros(1, dtype=np.uint64))
    return ids.cast(pl.String).hash(seed=SEED).to_numpy()


class ChunkRule(Protocol):
    """Which of `n_chunks` chunks each row belongs to."""

    @property
    def n_chunks(self) -> int: ...

    def __call__(self, source: Keyed, batch: pl.DataFrame, start: int) -> Ints: ...

    def of_ids(self, ids: pl.Series) -> Ints:
        """The chunk of each id, whether or not a row has it: so users without rows find theirs."""
        ...


@dataclass(frozen=True, slots=True)
class ByHash:
    """Chunks by the hash of the key: any order of rows, chunks of about the same size."""

    n_chunks: int

    def __call__(self, source: Keyed, batch: pl.DataFrame, start: int) -> Ints:
        return self.of(source.hashes(batch, start))

    def of_ids(self, ids: pl.Series) -> Ints:
        return self.of(hashed(ids))

    def of(self, keys: Keys) -> Ints:
        """A hash of 64 bits as a number below `n_chunks`, by multiplication: no division is as fast."""
        return ((keys >> np.uint64(32)) * np.uint64(self.n_chunks) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ByRange:
    """Chunks by ranges of ids, for tables sorted by them: chunk i has the ids from border i - 1 on, below border i."""

    borders: pl.Series

    @property
    def n_chunks(self) -> int:
        return len(self.borders) + 1

    def __call__(self, source: Keyed, batch: pl.DataFrame, start: int) -> Ints:
        return self.of_ids(source.ids(batch, start))

    def of_ids(self, ids: pl.Series) -> Ints:
        borders = self.borders
        if len(ids) == 0 or len(borders) == 0:
            return np.zeros(len(ids), dtype=np.int64)
        if ids.dtype != borders.dtype:
            ids, borders = ids.cast(pl.Int128), borders.cast(pl.Int128)
        return borders.search_sorted(ids, side="right").to_numpy().astype(np.int64)


def sorted_borders(source: Keyed, *, size: int) -> pl.Series | None:
    """The ids that begin chunks of at least `size` rows in a table sorted by its ids; None where it is not sorted.

    One pass over the key column, which ends at the first row out of order.
    """
    borders: list[pl.Series] = []
    last: pl.Series | None = None
    wanted = size
    for batch, start in source.batches(all_columns=False):
        ids = source.ids(batch, start)
        if len(ids) == 0:
            continue
        joined = ids if last is None else _joined([last, ids])
        if not joined.is_sorted():
            return None
        first_row = start - (0 if last is None else 1)  # of what is joined
        changes = np.flatnonzero((joined != joined.shift(1)).fill_null(value=False).to_numpy())
        while (at := int(np.searchsorted(changes, wanted - first_row))) < len(changes):
            borders.append(joined.slice(int(changes[at]), 1))
            wanted = first_row + int(changes[at]) + size
        last = ids.tail(1)
    return _joined(borders) if borders else pl.Series([], dtype=pl.Int64 if last is None else last.dtype)


def _joined(parts: Sequence[pl.Series]) -> pl.Series:
    kinds = {str(part.dtype) for part in parts}
    return pl.concat([part if len(kinds) == 1 else part.cast(pl.Int128) for part in parts])
