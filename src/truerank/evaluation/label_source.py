"""Where judged rows come from: held in memory, or read in chunks of whole users; both give the same chunks of users."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.calls import shown
from truerank.core.errors import InputError
from truerank.core.estimator import Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.provenance import Input
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.core.wording import either, option
from truerank.exposure.kinds import DesignedExposure, Exposure, FullExposure, RandomExposure
from truerank.io.batches import UNNAMED
from truerank.io.partition import MEMORY_BYTES, MEMORY_ROWS, Chunks, together
from truerank.io.read import LogSchema, read, scan
from truerank.io.spill import RowsOfPart, Scratch
from truerank.io.streams import is_stream
from truerank.ranking.candidates import CHUNK_USERS, Catalogue, Overlap, Setting, chunks_of, lay_out
from truerank.ranking.scores.scores import Lists

EVERY_LABEL = (Exposed.FULL, Exposed.HOLDOUT)  # known, or taken to be

Option = TypeVar("Option", bound=StrEnum)

HELD_OUT = f"If this is a hold-out, where other pairs count as irrelevant, say {option('exposure holdout')}"
NEGATIVE = (
    "if pairs that are not listed are known to be negative, say "
    f"""{option("unlisted negative", 'exposure="full(unlisted=negative)"')}"""
)


def check_call(scores: Mapping[str, Any], *, baseline: str | None, level: float) -> None:
    """What a caller can get wrong, said before any work is done."""
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    if not isinstance(scores, Mapping):
        raise InputError(f"scores are a {type(scores).__name__}; expected a name for each model: {{name: scores}}.")
    odd = [name for name in scores if not isinstance(name, str)]
    if odd:
        raise InputError(f"a model is called {shown(odd[0])}; expected text as the name of each model.")
    if not scores:
        raise InputError(f"no scores given; expected at least one model, as {either('NAME=FILE', '{name: scores}')}.")
    if baseline is not None and baseline not in scores:
        raise InputError(f"baseline {baseline!r} is not among the models; expected one of {', '.join(scores)}.")


def check_sizes(**sizes: int | None) -> None:
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; expected a whole number from 1.")


def check_users(models: Mapping[str, Scores], users: Ids, source: str) -> None:
    """Every model must have a user in common with the labels."""
    for name, scores in models.items():
        where = f"{source}, column 'user', against the users of {name}"
        if (scores.users.locate(users, where=where) < 0).all():
            raise InputError(
                f"{name} and {source} have no user in common: {name} has users such as "
                f"{', '.join(scores.users.texts(np.arange(min(3, len(scores.users)))))}, the labels "
                f"{', '.join(users.texts(np.arange(min(3, len(users)))))}. Check the id columns."
            )


@dataclass(frozen=True, slots=True)
class CatalogueLayout:
    """How rows are laid over the catalogue: the same for all rows at once and for those of some users."""

    catalogue: Catalogue
    exposure: Exposure
    overlap: Overlap

    def lay(self, labels: Log, *, exclude: Log | None, candidates: Log | None) -> Setting:
        complete, returned = self.exposure.complete, None
        if isinstance(self.exposure, DesignedExposure):
            labels, returned = self.exposure.joined(labels)
        setting = lay_out(
            replace(self.exposure.labelled(labels), complete=complete),
            self.catalogue,
            exclude=exclude,
            overlap=self.overlap,
            candidates=candidates,
        )
        setting = replace(setting, returned=returned)
        if isinstance(self.exposure, FullExposure) and not complete:
            _check_complete(setting)
        return setting

    def check_rate(self, setting: Setting) -> None:
        """A declared rate must agree with the data; looked at where all users are there."""
        if isinstance(self.exposure, RandomExposure) and self.exposure.rate is not None:
            _check_rate(setting, self.exposure.rate)


def _check_rate(setting: Setting, rate: float) -> None:
    """A declared rate must agree with the data, and users whose sample came out empty must be there."""
    n = setting.pools[Pool.CATALOGUE].count
    if np.isnan(n).any():
        return
    source, judged = setting.labels.source, setting.pools[Pool.JUDGED].count
    expected, noise = rate * float(n.sum()), math.sqrt(rate * (1 - rate) * float(n.sum()))
    if abs(float(judged.sum()) - expected) > 6 * noise + 1:
        raise InputError(
            f"{source}: {int(judged.sum()):,} pairs are judged where a rate of {rate:g} gives about {expected:,.0f}; "
            f"check the rate, or declare all users with {option('population', 'truerank.read(..., users=...)')}."
        )
    empty = float(((1 - rate) ** n).sum())
    if empty >= 3 and (judged > 0).all():
        raise InputError(
            f"{source}: with a rate of {rate:g} about {empty:,.0f} users would have no judged item, but all have one. "
            "Users without one count too: name all users with "
            f"{option('population FILE', 'truerank.read(..., users=...)')}."
        )


def _check_complete(setting: Setting) -> None:
    """With full exposure every candidate carries a label."""
    n = setting.pools[Pool.CATALOGUE].count
    judged = setting.pools[Pool.JUDGED].count
    missing = np.flatnonzero(~(judged == n))
    if len(missing) == 0:
        return
    unit = int(missing[0])
    user = setting.labels.users.texts(missing[:1])[0]
    needs = f"{setting.labels.source}: full exposure needs a label for every candidate"
    if np.isnan(n[unit]):
        raise InputError(
            f"{needs}, and top lists do not tell how many there are. {HELD_OUT}; {NEGATIVE}; else give the catalogue "
            f"with {option('items FILE')} or {option('n_items N')}."
        )
    raise InputError(
        f"{needs}, but user {user} has {int(judged[unit]):,} labels for {int(n[unit]):,} candidates "
        f"({len(missing):,} users so). {HELD_OUT}; {NEGATIVE}; if the judged items are a random sample, say "
        f"{option('exposure random')}."
    )


Rows = Log | LogSchema  # rows in memory, or what is known of rows that are read in chunks


def rows_of(source: Any, *, role: str, values: bool, progress: Progress | None = None) -> Rows:
    """The rows of a source: a Log as it is, a file as what is known of it, anything else read at once."""
    if isinstance(source, Log):
        return replace(source, source=role) if source.source in UNNAMED else source
    if isinstance(source, LogSchema):
        return _in_memory(source)
    if isinstance(source, str | Path):
        return _in_memory(scan(source, values=values, progress=progress))
    if is_stream(source):
        return _in_memory(scan(source, name=role, values=values, progress=progress))
    return read(source, name=role, values=values)


def _in_memory(schema: LogSchema) -> Rows:
    """Rows that are few are read at once."""
    table = schema.table
    if table.n_rows > MEMORY_ROWS or table.n_rows * table.row_bytes(schema.needed) > MEMORY_BYTES:
        return schema
    return schema.read(table.read(schema.needed), users=schema.users)


def source_of(rows: Rows) -> str:
    return rows.source if isinstance(rows, Log) else rows.table.where


def n_rows_of(rows: Rows) -> int:
    return len(rows) if isinstance(rows, Log) else rows.table.n_rows


def notes_of(read: Rows | Scores) -> tuple[str, ...]:
    """What is to be said of how rows or scores were read."""
    return read.notes if isinstance(read, Log | LogSchema | Lists) else ()


def inputs_of(rows: Mapping[str, Rows], models: Mapping[str, Scores]) -> tuple[Input, ...]:
    """What went in, by its role."""
    return (
        *(
            Input(role=role, source=source_of(each), rows=n_rows_of(each), users=len(each.users), items=len(each.items))
            for role, each in rows.items()
        ),
        *(
            Input(role="scores", source=name, name=name, users=len(scores.users), items=len(scores.items))
            for name, scores in models.items()
        ),
    )


class JudgedSource(Protocol):
    """Judged rows in chunks of whole users, laid over the catalogue."""

    @property
    def n_chunks(self) -> int: ...
    @property
    def n_rows(self) -> Ints: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def chunk(self, at: int) -> JudgedChunk: ...
    def reader(self) -> Callable[[Any], JudgedChunk]: ...
    def part(self, at: int, *, same_disk: bool) -> Any: ...
    def train(self) -> Iterator[Log]:
        """The rows of the excluded log that are not in memory, of whole users at a time, also of others."""
        ...


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows in memory, laid over the catalogue once and cut by users."""

    chunks: tuple[JudgedChunk, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, layout: CatalogueLayout, labels: Log, *, exclude: Log | None, candidates: Log | None, n_chunks: int = 1
    ) -> HeldRows:
        """In `n_chunks` chunks of about the same number of users, or more of them where each must stay small."""
        setting = layout.lay(labels, exclude=exclude, candidates=candidates)
        layout.check_rate(setting)
        first, *others = chunks_of(setting, users=max(1, min(CHUNK_USERS, -(-labels.n_units // n_chunks))))
        return cls((replace(first, dropped=setting.dropped, returned=setting.returned), *others))

    @property
    def n_chunks(self) -> int:
        return len(self.chunks)

    @property
    def n_rows(self) -> Ints:
        return np.array([len(chunk.labels) for chunk in self.chunks], dtype=np.int64)

    def chunk(self, at: int) -> JudgedChunk:
        return self.chunks[at]

    def reader(self) -> HeldReader:
        return HeldReader(self.chunks[0].labels.items)

    def part(self, at: int, *, same_disk: bool) -> JudgedChunk:
        """The chunk without the names of all items, which travel once."""
        chunk = self.chunks[at]
        return replace(chunk, labels=replace(chunk.labels, items=Ids.places(0)))

    def train(self) -> Iterator[Log]:
        return iter(())


@dataclass(frozen=True, slots=True)
class HeldReader:
    """Gives chunks of rows in memory the names of all items."""

    items: Ids

    def __call__(self, chunk: JudgedChunk) -> JudgedChunk:
        return replace(chunk, labels=replace(chunk.labels, items=self.items))


@dataclass(frozen=True, slots=True)
class StreamedRows:
    """Rows on disk, of which the chunks under way are in memory.

    `place_of_user` is the chunk of every user of the population, so that users without a row find theirs.
    """

    layout: CatalogueLayout
    users: Ids
    rows: Mapping[str, Rows]
    tables: Chunks
    place_of_user: Ints

    @classmethod
    def of(
        cls,
        layout: CatalogueLayout,
        rows: Mapping[str, Rows],
        *,
        users: Ids,
        scratch: Scratch,
        progress: Progress | None,
    ) -> StreamedRows:
        keyed = {role: part.keyed for role, part in rows.items() if isinstance(part, LogSchema)}
        tables = together(keyed, scratch=scratch, progress=progress)
        return cls(layout, users, rows, tables, tables.place.of_ids(users.values))

    @property
    def n_chunks(self) -> int:
        return self.tables.n_chunks

    @property
    def n_rows(self) -> Ints:
        return self.tables.n_rows

    @property
    def notes(self) -> tuple[str, ...]:
        return self.tables.notes

    def chunk(self, at: int) -> JudgedChunk:
        return self.reader()(self.part(at, same_disk=True))

    def reader(self) -> StreamedReader:
        schemas = {role: rows.without_rows() for role, rows in self.rows.items() if isinstance(rows, LogSchema)}
        return StreamedReader(self.layout, tuple(self.rows), schemas)

    def part(self, at: int, *, same_disk: bool) -> StreamedPart:
        unit = np.flatnonzero(self.place_of_user == at)
        users = Ids(self.users.values[unit])
        held = {role: self._held(role, rows, users, at) for role, rows in self.rows.items() if isinstance(rows, Log)}
        return StreamedPart(unit, users, self.tables.part(at, same_disk=same_disk), held)

    def train(self) -> Iterator[Log]:
        rows = self.rows["exclude"]
        if isinstance(rows, LogSchema):
            frames = (self.tables.chunk(at).get("exclude") for at in range(self.n_chunks))
            yield from (rows.read(frame) for frame in frames if frame is not None)

    def _held(self, role: str, rows: Log, users: Ids, at: int) -> Log:
        """The rows of a chunk of what is in memory."""
        mine = self.tables.place.of_ids(rows.users.values) == at
        part = rows.select(mine[rows.user])
        if role != "labels":
            return part
        here = users.locate(part.users)
        return replace(part, users=users, user=here[part.user])


@dataclass(frozen=True, slots=True)
class StreamedPart:
    """A chunk of users before it is read: their places, their rows on disk and those in memory."""

    unit: Ints
    users: Ids
    tables: Mapping[str, RowsOfPart]
    held: Mapping[str, Log]


@dataclass(frozen=True, slots=True)
class StreamedReader:
    """Reads chunks of users and lays them over the catalogue."""

    layout: CatalogueLayout
    roles: tuple[str, ...]
    schemas: Mapping[str, LogSchema]

    def __call__(self, part: StreamedPart) -> JudgedChunk:
        logs = {role: self._log(role, part) for role in self.roles}
        setting = self.layout.lay(logs["labels"], exclude=logs.get("exclude"), candidates=logs.get("candidates"))
        return JudgedChunk(setting.labels, setting.pools, part.unit, setting.dropped, setting.returned)

    def _log(self, role: str, part: StreamedPart) -> Log:
        if role in part.held:
            return part.held[role]
        # other tables may have users who are not evaluated
        return self.schemas[role].read(part.tables[role].read(), users=part.users if role == "labels" else None)


def check_rows(labels: Rows) -> None:
    if n_rows_of(labels) == 0:
        raise InputError(f"{source_of(labels)}: no rows; expected judged pairs of users and items.")


def first_rows(labels: Rows, n: int = 1000) -> Log:
    """Some rows, which tell what values there are."""
    return labels if isinstance(labels, Log) else labels.read(labels.table.slice(0, n, labels.needed))


def chunked(
    layout: CatalogueLayout, rows: Mapping[str, Rows], *, space: Scratch, progress: Progress | None, n_chunks: int = 1
) -> HeldRows | StreamedRows:
    """The rows in chunks of whole users: all in memory where they fit, else read chunk by chunk."""
    held = {role: part for role, part in rows.items() if isinstance(part, Log)}
    if len(held) == len(rows):
        exclude, candidates = held.get("exclude"), held.get("candidates")
        return HeldRows.of(layout, held["labels"], exclude=exclude, candidates=candidates, n_chunks=n_chunks)
    return StreamedRows.of(layout, rows, users=rows["labels"].users, scratch=space, progress=progress)
