"""What a study of our own is: a value with a name, which is run and leaves small tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from truerank.core.language import Kind
from truerank.core.progress import Progress
from truerank.studies.work import Keep, StudySize, StudySource

Row = Mapping[str, Any]  # plain values by column


@dataclass(frozen=True, slots=True)
class StudyTables:
    """What a run of a study gives: tables by name, and what was done; all that its page says comes from here."""

    tables: Mapping[str, Sequence[Row]]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Study(Protocol):
    """A study of our own.

    `data` has the names of the datasets, none where it needs none; `minutes` is what the full size takes on two cores.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    data: ClassVar[tuple[str, ...]]
    minutes: ClassVar[float]

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        """Measure; long work is done in pieces that `keep` keeps."""
        ...


STUDIES: Kind[Study] = Kind("study", "truerank.studies.own", Study, deep=True)
