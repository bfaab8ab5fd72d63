"""Labelled rows on their way to other processes: each chunk with what models say of its own users, and of no others.

Factors and rows of scores of all users may be many times what a worker has memory for. What belongs to all users, such
as item factors, travels once to each process; what belongs to a user travels with the chunk that the user is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from truerank.core.arrays import Ints
from truerank.core.ids import Ids
from truerank.core.progress import Progress
from truerank.core.ranking import JudgedChunk
from truerank.engines.engine import Workers, map_chunks
from truerank.evaluation.label_rows import LabelRows
from truerank.evaluation.label_source import LabelSource
from truerank.evaluation.measure import Measured, measure
from truerank.evaluation.question import Plan
from truerank.ranking.kernel.rank import Aligned, UnitSide

ScoredChunk = tuple[JudgedChunk, Mapping[str, Aligned]]  # labelled rows, and what every model says of their users


def measured_by(
    workers: Workers, plan: Plan[LabelRows], source: LabelSource, *, progress: Progress | None
) -> Iterator[Measured]:
    """What is measured of every chunk, as it is done; threads of this process have all scores anyway."""
    if workers.here:
        return map_chunks(workers, partial(measure, plan), source, progress=progress)
    rows = replace(plan.rows, models={}, users=Ids.of([]), progress=None)
    work = partial(measure_scored, replace(plan, rows=rows, ids=None))
    return map_chunks(workers, work, ScoredRows(source, plan.rows.models), progress=progress)


def measure_scored(plan: Plan[LabelRows], chunk: ScoredChunk) -> Measured:
    """On a worker: the plan has all but the models, which come with the chunk."""
    rows, models = chunk
    return measure(replace(plan, rows=replace(plan.rows, models=models)), rows)


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Chunks of labelled rows, with the scores of their users."""

    source: LabelSource
    models: Mapping[str, Aligned]

    @property
    def n_chunks(self) -> int:
        return self.source.n_chunks

    @property
    def n_rows(self) -> Ints:
        return self.source.n_rows

    def chunk(self, at: int) -> ScoredChunk:
        return self.reader()(self.part(at, same_disk=True))

    def reader(self) -> Callable[[Any], ScoredChunk]:
        return partial(_read, self.source.reader(), {name: model.shared() for name, model in self.models.items()})

    def part(self, at: int, *, same_disk: bool) -> tuple[Any, dict[str, UnitSide]]:
        """A chunk before it is read, with what belongs to its users."""
        rows = self.source.part(at, same_disk=same_disk)
        unit = rows.unit if isinstance(rows, JudgedChunk) else rows[0][0]
        return rows, {name: model.side(unit) for name, model in self.models.items()}


def _read(
    read: Callable[[Any], JudgedChunk], models: Mapping[str, Aligned], part: tuple[Any, Mapping[str, UnitSide]]
) -> ScoredChunk:
    """A chunk, with what models say of its users put to what they say of all."""
    rows, sides = part
    return read(rows), {name: model.with_side(sides[name]) for name, model in models.items()}
