"""Intervened test sets of logs that need not fit into memory: counted, weighed and drawn by the workers of an engine.

What is drawn follows from seed, users and items alone, so that neither chunks nor engines change a row.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Ints
from truerank.core.errors import InputError, TruerankError
from truerank.core.ids import Ids, Keys
from truerank.core.log import Log, has_user_units
from truerank.core.progress import Progress, Watching, watching
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.validation import ANYTHING, checked_arguments, shown
from truerank.engines.engine import Chunked, Workers, chunks_wanted, map_chunks
from truerank.engines.named import as_engine, of_the_kind_of
from truerank.evaluation.sources import Part, streamed
from truerank.exposure.counts import PAIR, PURPOSE, DrawingRule, Margins, check_largest, pair_order
from truerank.exposure.interventions import (
    EqualPerItemIntervention,
    PopularityStratifiedIntervention,
    Strategy,
    drawing_rule,
    index_of_dispersion,
    unseen_notes,
)
from truerank.io.atomic_write import whole_file
from truerank.io.batches import LazyTable
from truerank.io.files import SEPARATORS, Piece, write_table
from truerank.io.log_schema import LogSchema
from truerank.io.partition import MEMORY_BYTES, MEMORY_ROWS, Keyed, together
from truerank.io.read import label_schema, scanned
from truerank.io.spill import Scratch, scratch
from truerank.sampling.pools import DrawKeys, DrawThreshold, LastCells, Share

ROW = "row"  # the number of a row in its table, where no column is called so


# ------------------------------------------------------------------------------------------------------------ chunks


@record
class PairChunk:
    """The pairs of some users: `unit` are the places of these among all, `row` the rows of the table, `key` theirs."""

    log: Log
    unit: Ints
    row: Ints
    key: Keys


def pairs_of(schema: LogSchema, *, space: Scratch, workers: Workers, progress: Progress | None) -> Chunked[PairChunk]:
    """The pairs of a table that was scanned, in chunks of whole users."""
    table, users, items = schema.table, schema.users, schema.items
    row = unused(ROW, table.schema)
    names = (schema.user, schema.item, row)
    keyed = Keyed(numbered(table, row), schema.user, names)
    small = table.n_rows <= MEMORY_ROWS and table.n_rows * table.row_bytes(names[:2]) <= MEMORY_BYTES
    n_chunks = chunks_wanted(workers) if small else None
    tables = together({"log": keyed}, scratch=space, n_chunks=n_chunks, progress=progress)
    chunk_of_user = tables.place.of_ids(users.values)

    def beside(at: int) -> tuple[Ints, Ids]:
        unit = np.flatnonzero(chunk_of_user == at)
        return unit, Ids(users.values[unit])

    return streamed(tables, partial(_read, schema.without_rows(), row, items.keys()), beside)


def _read(schema: LogSchema, row: str, item_key: Keys, part: Part) -> PairChunk:
    """A chunk of pairs over all items, whose keys are made once; `row` is the column of row numbers."""
    (unit, users), tables = part
    table = tables["log"].read()
    where = schema.table.where
    user, item = (
        ids.locate(table[name], where=f"{where}, column {name!r}")
        for ids, name in ((users, schema.user), (schema.items, schema.item))
    )
    key = cell_keys(0, PAIR, users.keys()[user], item_key[item])
    log = Log(users, schema.items, user, item, {}, source=where)
    return PairChunk(log, unit, table[row].to_numpy(), key)


def unused(name: str, names: Collection[str]) -> str:
    """A name like this that none of those is.

    >>> unused("row", ["user", "row"])
    'row_'
    """
    return name if name not in names else unused(f"{name}_", names)


def numbered(table: LazyTable, row: str) -> LazyTable:
    """The same rows with their numbers, in a column of this name."""
    pieces, start = list[Piece](), 0
    for piece in table.pieces:
        number = pl.col(row).cast(pl.Int64) + start
        pieces.append(replace(piece, rows=piece.rows.with_row_index(row).with_columns(number)))
        start += piece.n_rows
    return replace(table, pieces=tuple(pieces), schema={**table.schema, row: pl.Int64()})


# ------------------------------------------------------------------------------------------------------------ counts


def margins_of(source: Any, *, columns: Mapping[str, str] | None = None, name: str) -> Margins:
    """How many rows users and items have; of a table in two passes, with memory for the ids."""
    if isinstance(source, Margins):
        return source
    if has_user_units(source):
        return Margins.of(source)
    schema = scanned(_pairs(source, columns, name))
    table, users, items = schema.table, schema.users, schema.items
    by_user, by_item = np.zeros(len(users), dtype=np.int64), np.zeros(len(items), dtype=np.int64)
    for batch in table.batches([schema.user, schema.item]):
        by_user += np.bincount(users.locate(batch[schema.user]), minlength=len(users))
        by_item += np.bincount(items.locate(batch[schema.item]), minlength=len(items))
    return Margins(users, items, by_user, by_item, table.where)


def _pairs(source: Any, columns: Mapping[str, str] | None, name: str, *, strict: bool = False) -> LogSchema:
    """The pairs of a table, before any row is read."""
    named = None if isinstance(source, str | Path) else name
    return label_schema(source, columns=columns, values=False, name=named, strict=strict)


def _counted(chunk: PairChunk) -> tuple[Ints, Ints, Ints]:
    """The places of a chunk's users, and the rows of these and of all items."""
    pair_order(chunk.log)
    counts = Margins.of(chunk.log)
    return chunk.unit, counts.by_user, counts.by_item


# ------------------------------------------------------------------------------------------------------------ drawing


@record
class PairDrawing:
    """How the rows of a chunk are drawn: the rule, and the largest weight of all rows."""

    rule: DrawingRule
    seed: int
    largest: float = 1.0

    def keys(self, chunk: PairChunk) -> tuple[Ints, DrawKeys]:
        """The rows of a chunk that can be drawn, and their keys."""
        rows, members = self.rule.members(chunk.log, chunk.key, largest=self.largest, unit=chunk.unit)
        if members.weight is not None:
            rows = rows[members.weight > 0]
        return rows, DrawKeys.of(members, seed=self.seed, purpose=PURPOSE)


def _heaviest(rule: DrawingRule, chunk: PairChunk) -> float:
    return float(rule.weights(chunk.log, chunk.unit).max(initial=0.0))


def _cells(drawing: PairDrawing, chunk: PairChunk) -> Ints:
    return LastCells.counts(drawing.keys(chunk)[1], n_pools=drawing.rule.n_pools)


def _within(drawing: PairDrawing, last: LastCells, chunk: PairChunk) -> DrawKeys:
    keys = drawing.keys(chunk)[1]
    return keys.select(last.within(keys))


def _drawn(drawing: PairDrawing, threshold: DrawThreshold, chunk: PairChunk) -> tuple[Ints, Ints]:
    """The rows of the table that are drawn, and how many of each item."""
    rows, keys = drawing.keys(chunk)
    rows = rows[threshold.drawn(keys)]
    return chunk.row[rows], np.bincount(chunk.log.item[rows], minlength=len(chunk.log.items))


@record(eq=False)
class DrawnRows:
    """The rows of a table that were drawn, which is read again to write them; and what is to be said of it."""

    table: LazyTable
    drawn: Bools
    log: Margins
    train: Margins | None
    by_item: Ints  # how many rows of each item were drawn

    def __len__(self) -> int:
        return int(np.count_nonzero(self.drawn))

    def batches(self, table: LazyTable | None = None) -> Iterator[pl.DataFrame]:
        start = 0
        for batch in (self.table if table is None else table).batches():
            yield batch.filter(pl.Series(self.drawn[start : start + len(batch)]))
            start += len(batch)

    def read(self, table: LazyTable | None = None) -> pl.DataFrame:
        return pl.concat(self.batches(table))

    def write(self, path: Path, *, text: bool, space: Scratch) -> None:
        """With the columns of the table, in its order; a batch at a time where they are many."""
        table = self.table.fields() if text else self.table
        if len(self) * table.row_bytes() <= MEMORY_BYTES:
            write_table(self.read(table), path)
            return
        folder = space.make("drawn")
        for number, batch in enumerate(self.batches(table)):
            batch.write_parquet(folder / f"{number:08}.parquet", compression="lz4")
        rows = pl.scan_parquet(folder / "*.parquet")
        with whole_file(path) as temporary:
            if text:
                rows.sink_csv(temporary, separator=SEPARATORS[path.suffix.lower()])
            else:
                rows.sink_parquet(temporary, compression="zstd")

    def notes(self, strategy: Strategy, *, fraction: float) -> list[str]:
        """How many rows were drawn, how level the items are, and what the weights could not see."""
        notes, n, source = unseen_notes(self.log, strategy, self.train), len(self.log), self.log.source
        if not len(self):
            return [*notes, f"none of {n:,} rows drawn: {fraction:g} of them is less than one."]
        before, after = index_of_dispersion(self.log.by_item), index_of_dispersion(self.by_item)
        notes.append(
            f"{len(self):,} of {n:,} rows drawn; variance / mean of rows per item {after:.2f}, "
            f"{before:.2f} in {source} (about 1 at random)."
        )
        requested = Share(fraction).of(n)
        if len(self) < requested:
            why = "all other rows have weight 0 and are never drawn"
            if isinstance(strategy, PopularityStratifiedIntervention):
                why = "each stratum gives the same number, rounded down, or all the rows it has"
            elif isinstance(strategy, EqualPerItemIntervention):
                why = "each item gives the same number, rounded down, and items with fewer rows give none"
            notes.append(f"{requested:,} rows were asked for; {why}.")
        return notes


@checked_arguments(log=ANYTHING, train=ANYTHING, random=ANYTHING)
def intervene(
    log: Any,
    strategy: Strategy | str,
    *,
    train: Any = None,
    random: Any = None,
    fraction: float = 0.5,
    seed: int,
    columns: Mapping[str, str] | None = None,
    engine: Any = None,
    threads: int | None = None,
    progress: Watching = None,
) -> Any:
    """Draw floor(fraction x rows) rows of a log without replacement, weighted by a strategy; all users are one pool.

    Labels are not used. Rows keep their order.

    Parameters
    ----------
    log
        A held-out set or a training set: a Log, a file or folder, a frame, or rows that come as a stream.
    strategy
        A strategy or its name, such as "skew" or "wtd".
    train
        The biased log whose counts the strategy uses.
    random
        Randomly exposed rows, for WTD.
    fraction
        Share of the rows that is drawn.
    seed
        The same seed gives the same results.
    columns
        Column names of the table by the names of this library, as {"user": "user_id"}; usual names are recognised.
    engine
        "local" (threads of this process), "dask", "dask:ADDRESS", "spark" or "spark:URL", a Dask `Client` or a
        `SparkSession`. Results do not depend on it.
    threads
        Number of threads; by default all cores. Results do not depend on it.
    progress
        True shows a progress bar; a function is called with (what, done, of how much).

    Returns
    -------
    Log or frame
        A Log for a Log, whose populations stay; a Spark or Dask frame for one of its kind; else a polars frame with all
        columns.

    Examples
    --------
    >>> import polars as pl
    >>> log = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8], "label": [1, 0, 1, 1]})
    >>> intervene(log, "skew", train=log, seed=2)["item"].to_list()
    [7, 8]
    """
    if isinstance(log, Log):
        for name, other in (("train", train), ("random", random)):
            if not (other is None or isinstance(other, Log)):
                raise InputError(f"intervene: {name} is {shown(other)}; expected a log, as log is one.")
        rule = drawing_rule(log, strategy, train=train, random=random, fraction=fraction, seed=seed)
        return log.select(rule.draw(log, seed=seed))
    drawn = draw_table(
        log, strategy, train=train, random=random, fraction=fraction, seed=seed, columns=columns, engine=engine,
        threads=threads, progress=progress,
    )  # fmt: skip
    return of_the_kind_of(log, drawn.read())


def draw_table(
    source: Any,
    strategy: Strategy | str,
    *,
    train: Any = None,
    random: Any = None,
    fraction: float = 0.5,
    seed: int,
    columns: Mapping[str, str] | None = None,
    engine: Any = None,
    threads: int | None = None,
    progress: Watching = None,
) -> DrawnRows:
    """The rows of a table that `intervene` draws, which need not fit into memory; `train` and `random` may be files."""
    schema = _pairs(source, columns, "log", strict=True)
    table, where = schema.table, schema.table.where
    counted = {"train": train, "random": random}
    beside = {
        role: None if rows is None else margins_of(rows, columns=columns, name=role) for role, rows in counted.items()
    }
    opened = as_engine(engine, threads=threads).open()
    with watching(progress) as say, scratch() as space, opened as workers:
        schema = scanned(schema, progress=say)
        pairs = pairs_of(schema, space=space, workers=workers, progress=say)
        users, items = schema.users, schema.items
        mapped = partial(map_chunks, workers, chunks=pairs, progress=say)
        by_user, by_item = (np.zeros(len(ids), dtype=np.int64) for ids in (users, items))
        for unit, of_users, of_items in mapped(work=_counted, what="counting pairs"):
            by_user[unit] = of_users
            by_item += of_items
        log = Margins(users, items, by_user, by_item, where)
        if len(log) != table.n_rows:
            raise TruerankError(f"{table.n_rows:,} rows went in, and {len(log):,} were counted.")  # never in silence
        rule = drawing_rule(log, strategy, train=beside["train"], random=beside["random"], fraction=fraction, seed=seed)
        drawing = PairDrawing(rule, seed)
        if rule.weighs:  # the largest weight, only rows tell
            largest = max(mapped(work=partial(_heaviest, rule), what="weighing"))
            check_largest(largest, log.source)
            drawing = PairDrawing(rule, seed, largest)
        cells = mapped(work=partial(_cells, drawing), what="finding the last")
        last = LastCells.of(rule.n, reduce(operator.add, cells))
        threshold = last.threshold(list(mapped(work=partial(_within, drawing, last), what="finding the last")))
        drawn, drawn_by_item = np.zeros(table.n_rows, dtype=bool), np.zeros(len(log.items), dtype=np.int64)
        for rows, of_items in mapped(work=partial(_drawn, drawing, threshold), what="drawing"):
            drawn[rows] = True
            drawn_by_item += of_items
    return DrawnRows(table, drawn, log, beside["train"], drawn_by_item)
