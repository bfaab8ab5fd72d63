"""What an experiment of a paper is: a value with a name, which is run on real data or on a synthetic world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from truerank.core.language import Kind
from truerank.core.progress import Progress
from truerank.studies.papers.paper import Cell, Cells, ClaimFinding, Paper, PaperClaim, PaperGraph
from truerank.studies.work import Keep, StudySize, StudySource


@dataclass(frozen=True, slots=True)
class Measurements:
    """What a run of an experiment gives: numbers, pictures, what was done, and how data differ from the paper's.

    `graphs` is empty where pictures come from the numbers alone (`PicturedExperiment`).
    """

    cells: tuple[Cell, ...]
    graphs: tuple[PaperGraph, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    differs: tuple[str, ...] = ()  # sentences: what was not as in the paper


@dataclass(frozen=True, slots=True)
class Obtained:
    """What verdicts and pictures are made of: the numbers, and what they were obtained from."""

    cells: Cells
    synthetic: bool
    size: StudySize


class Experiment(Protocol):
    """An experiment of a paper.

    `shows` has the tables and figures by paper, that of the experiment first; `data` the names of the datasets, none
    where it needs none; `minutes` what the full size takes on two cores. `instead` is empty, or says why it cannot be
    run here and what to run.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]]
    data: ClassVar[tuple[str, ...]]
    minutes: ClassVar[float]
    claims: ClassVar[tuple[PaperClaim, ...]]
    instead: ClassVar[str]

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        """Obtain the numbers; long work is done in pieces that `keep` keeps."""
        ...

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        """A verdict on every claim, from the numbers alone."""
        ...


@runtime_checkable
class PicturedExperiment(Protocol):
    """An experiment whose pictures come from its numbers alone; then they can be made again from a kept result."""

    def graphs(self, obtained: Obtained) -> tuple[PaperGraph, ...]:
        """All its pictures, from the numbers alone."""
        ...


EXPERIMENTS: Kind[Experiment] = Kind("experiment", "truerank.studies.papers", Experiment, deep=True)


def paper_of(experiment: type[Experiment]) -> Paper:
    """The paper that an experiment belongs to."""
    return next(iter(experiment.shows))


def catalogued() -> list[type[Experiment]]:
    """Every experiment, in the order of papers and of names."""
    return sorted(EXPERIMENTS.catalogue().values(), key=lambda cls: (paper_of(cls).key, cls.name))
