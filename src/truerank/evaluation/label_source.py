"""Where labels come from: read, laid over the catalogue, and cut into chunks of whole users."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Ints, frozen
from truerank.core.errors import InputError
from truerank.core.estimator import Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log, has_user_units
from truerank.core.progress import Progress
from truerank.core.provenance import Input
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.core.record import record
from truerank.core.wording import option
from truerank.engines.engine import Chunked
from truerank.evaluation.sources import Part, fits_in_memory, in_memory, streamed
from truerank.exposure.kinds import Exposure
from truerank.io.batches import UNNAMED
from truerank.io.columns import PositiveRule
from truerank.io.log_schema import LogSchema
from truerank.io.partition import Chunks, together
from truerank.io.read import read, scan
from truerank.io.spill import Scratch, is_stream
from truerank.ranking.candidates import CHUNK_USERS, Catalogue, Overlap, Setting, chunks_of, lay_out

EVERY_LABEL = (Exposed.FULL, Exposed.HOLDOUT)  # known, or taken to be

HELD_OUT = f"If this is a hold-out, where other pairs count as irrelevant, say {option('exposure holdout')}"
NEGATIVE = (
    "if pairs that are not listed are known to be negative, say "
    f"""{option("unlisted negative", 'exposure="full(unlisted=negative)"')}"""
)


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


@record
class CatalogueLayout:
    """How rows are laid over the catalogue: the same for all rows at once and for those of some users."""

    catalogue: Catalogue
    exposure: Exposure
    overlap: Overlap

    def lay(self, rows: Mapping[str, Log]) -> Setting:
        labels, returned = self.exposure.joined(rows["labels"])
        setting = lay_out(
            replace(self.exposure.labelled(labels), complete=self.exposure.complete),
            self.catalogue,
            exclude=rows.get("exclude"),
            overlap=self.overlap,
            candidates=rows.get("candidates"),
        )
        if self.exposure.exposed is Exposed.FULL and not self.exposure.complete:
            _check_complete(setting)
        return replace(setting, returned=returned)


def _check_rate(setting: Setting, rate: float) -> None:
    """A declared rate must agree with the data, and users whose sample came out empty must be there."""
    n = setting.pools[Pool.CATALOGUE].count
    if np.isnan(n).any():
        return
    source, labelled = setting.labels.source, setting.pools[Pool.JUDGED].count
    expected, noise = rate * float(n.sum()), math.sqrt(rate * (1 - rate) * float(n.sum()))
    if abs(float(labelled.sum()) - expected) > 6 * noise + 1:
        raise InputError(
            f"{source}: {int(labelled.sum()):,} pairs are judged where a rate of {rate:g} gives about {expected:,.0f}; "
            f"check the rate, or declare all users with {option('population', 'truerank.read(..., users=...)')}."
        )
    empty = float(((1 - rate) ** n).sum())
    if empty >= 3 and (labelled > 0).all():
        raise InputError(
            f"{source}: with a rate of {rate:g} about {empty:,.0f} users would have no labelled item, but all have "
            "one. Users without one count too: name all users with "
            f"{option('population FILE', 'truerank.read(..., users=...)')}."
        )


def _check_complete(setting: Setting) -> None:
    """With full exposure every candidate carries a label."""
    n = setting.pools[Pool.CATALOGUE].count
    labelled = setting.pools[Pool.JUDGED].count
    missing = np.flatnonzero(~(labelled == n))
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
        f"{needs}, but user {user} has {int(labelled[unit]):,} labels for {int(n[unit]):,} candidates "
        f"({len(missing):,} users so). {HELD_OUT}; {NEGATIVE}; if the labelled items are a random sample, say "
        f"{option('exposure random')}."
    )


Rows = Log | LogSchema  # rows in memory, or what is known of rows that are read in chunks


def rows_of(source: Any, *, role: str, progress: Progress | None = None) -> Rows:
    """The rows of a source: a Log as it is, a file that does not fit in memory as what is known of it."""
    values = role == "labels"
    if has_user_units(source):
        return replace(source, source=role) if source.source in UNNAMED else source
    if isinstance(source, str | Path):
        source = scan(source, values=values, progress=progress)
    elif is_stream(source):
        source = scan(source, name=role, values=values, progress=progress)
    if not isinstance(source, LogSchema):
        return read(source, name=role, values=values)
    if not fits_in_memory(source.table, source.needed):
        return source
    return source.read(source.table.read(source.needed), units=source.users)


def first_rows(labels: Rows, n: int = 1000) -> Log:
    """Some rows, which tell what values there are."""
    return labels if isinstance(labels, Log) else labels.read(labels.table.between(0, n).read(labels.needed))


def label_by(rows: Rows, rule: PositiveRule) -> Rows:
    """Rows with labels by a rule, where they have values that are not 0/1 and were read without a rule."""
    if isinstance(rows, LogSchema):
        has_labels = rows.value_facts is None or rows.value_facts.binary or rows.rule is not None
        return rows if has_labels else replace(rows, rule=rule)
    if not rows.rewards or "label" in rows.rewards:
        return rows
    label = rule.apply(pl.Series(next(iter(rows.rewards.values())))).cast(pl.Float64).to_numpy()
    return replace(rows, rewards={"label": frozen(label), **rows.rewards})


def inputs_of(rows: Mapping[str, Rows], models: Mapping[str, Scores]) -> Iterator[Input]:
    """What went in, by its role."""
    for role, part in rows.items():
        yield Input(role=role, source=part.source, rows=len(part), users=len(part.users), items=len(part.items))
    for name, scores in models.items():
        yield Input(role="scores", source=name, name=name, users=len(scores.users), items=len(scores.items))


# -------------------------------------------------------------------------------------------------------------- chunks


LabelSource = Chunked[JudgedChunk]


def chunked(
    layout: CatalogueLayout, rows: Mapping[str, Rows], *, space: Scratch, progress: Progress | None, n_chunks: int
) -> tuple[LabelSource, Chunks | None]:
    """The rows in chunks of whole users: in memory, at least `n_chunks`, where they fit, else read chunk by chunk.

    With the tables on disk, where there are some.
    """
    held = {role: part for role, part in rows.items() if isinstance(part, Log)}
    schemas = {role: part for role, part in rows.items() if isinstance(part, LogSchema)}
    if not schemas:
        setting = layout.lay(held)
        if layout.exposure.rate is not None:
            _check_rate(setting, layout.exposure.rate)
        size = max(1, min(CHUNK_USERS, -(-setting.labels.n_units // n_chunks)))
        first, *others = chunks_of(setting, users=size)
        first = replace(first, dropped=setting.dropped, returned=setting.returned)
        return in_memory((first, *others), first.labels.items), None
    keyed = {role: schema.keyed for role, schema in schemas.items()}
    tables = together(keyed, scratch=space, progress=progress)
    users, place = rows["labels"].users, tables.place
    chunk_of_user = place.of_ids(users.values)

    def beside(chunk: int) -> tuple[Ints, Ids, dict[str, Log]]:
        """The users of a chunk, by their places in the population, also those without a row; and rows in memory."""
        unit = np.flatnonzero(chunk_of_user == chunk)
        own, parts = Ids(users.values[unit]), {}
        for role, log in held.items():
            part = log.select((place.of_ids(log.users.values) == chunk)[log.user])
            if role == "labels":
                part = replace(part, users=own, unit=own.locate(part.users)[part.user])
            parts[role] = part
        return unit, own, parts

    read = partial(_laid_out, layout, {role: schema.without_rows() for role, schema in schemas.items()})
    return streamed(tables, read, beside), tables


def _laid_out(layout: CatalogueLayout, schemas: Mapping[str, LogSchema], part: Part) -> JudgedChunk:
    """The rows of a chunk of users, laid over the catalogue."""
    (unit, users, held), tables = part
    # other tables may have users who are not evaluated
    rows = {
        role: schema.read(tables[role].read(), units=users if role == "labels" else None)
        for role, schema in schemas.items()
    }
    setting = layout.lay({**rows, **held})
    return JudgedChunk(setting.labels, setting.pools, unit, setting.dropped, setting.returned)


def training_rows(tables: Chunks | None, rows: Rows | None) -> Iterator[Log]:
    """The rows of the excluded log, of whole users at a time."""
    if isinstance(rows, Log):
        yield rows
    elif rows is not None and tables is not None:
        for chunk in range(tables.n_chunks):
            yield rows.read(tables.chunk(chunk)["exclude"])
