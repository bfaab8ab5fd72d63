"""A reproduced experiment as a small file: settings, numbers, pictures as data, verdicts. It holds no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.provenance import plain
from truerank.studies.papers.experiment import EXPERIMENTS, Experiment, Measurements, Obtained, PicturedExperiment
from truerank.studies.papers.paper import Cell, Cells, ClaimFinding, PaperGraph
from truerank.studies.results import encoded, read_result, rounded
from truerank.studies.work import StudySize
from truerank.version import __version__


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What a run of an experiment found, with all that its page says.

    `data` is by file what it was read from (SHA-256), empty for a synthetic world or none.
    """

    experiment: str
    size: StudySize
    seed: int
    synthetic: bool
    truerank: str
    data: Mapping[str, str]
    settings: Mapping[str, Any]
    differs: tuple[str, ...]
    findings: tuple[ClaimFinding, ...]
    cells: tuple[Cell, ...]
    graphs: tuple[PaperGraph, ...]

    @property
    def file_name(self) -> str:
        """The name of its file: of an experiment that has data, a synthetic run stands beside the real one."""
        needs = EXPERIMENTS.named(self.experiment).data
        return f"{self.experiment}{'-synthetic' if self.synthetic and needs else ''}.json"

    def table(self) -> pl.DataFrame:
        """A tidy table of obtained against published: a row for each number."""
        names = ("table", "row", "column", "obtained", "published", "low", "high", "tolerance")
        kinds = [pl.String] * 3 + [pl.Float64] * 5
        rows = [tuple(getattr(cell, name) for name in names) for cell in self.cells]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def encoded(self) -> bytes:
        return encoded(self)

    @classmethod
    def read(cls, path: Path) -> Reproduced:
        return read_result(path, cls, what="an experiment", again="truerank reproduce ID")


def reproduced(
    experiment: Experiment,
    found: Measurements,
    *,
    size: StudySize,
    seed: int,
    synthetic: bool,
    data: Mapping[str, str],
) -> Reproduced:
    """Numbers as they are kept, and the verdicts and pictures that these numbers give."""
    cells = tuple(_cell(cell) for cell in found.cells)
    places = Counter((cell.table, cell.row, cell.column) for cell in cells)
    twice = [place for place, count in places.items() if count > 1]
    if twice:
        raise ValueError(f"{experiment.name} has more than one number in {twice[0]}")
    obtained = Obtained(Cells(cells), synthetic, size)
    return Reproduced(
        experiment=experiment.name,
        size=size,
        seed=seed,
        synthetic=synthetic,
        truerank=__version__,
        data=dict(data),
        settings=plain(found.settings),
        differs=found.differs,
        findings=experiment.judge(obtained),
        cells=cells,
        graphs=_graphs(experiment, obtained, found.graphs),
    )


def told_again(result: Reproduced) -> Reproduced:
    """A result with the verdicts that its numbers give by the rules of now, and its pictures if they need no more."""
    experiment: Experiment = EXPERIMENTS.named(result.experiment)()
    obtained = Obtained(Cells(result.cells), result.synthetic, result.size)
    return replace(result, findings=experiment.judge(obtained), graphs=_graphs(experiment, obtained, result.graphs))


def _cell(cell: Cell) -> Cell:
    return replace(
        cell,
        obtained=rounded(cell.obtained),
        published=rounded(cell.published),
        low=rounded(cell.low),
        high=rounded(cell.high),
        tolerance=rounded(cell.tolerance),
    )


def _graphs(experiment: Experiment, obtained: Obtained, given: tuple[PaperGraph, ...]) -> tuple[PaperGraph, ...]:
    """The pictures that the kept numbers give, else those that were given."""
    drawn = experiment.graphs(obtained) if isinstance(experiment, PicturedExperiment) else given
    return tuple(map(_graph, drawn))


def _graph(graph: PaperGraph) -> PaperGraph:
    points = tuple(
        replace(
            point,
            x=point.x if isinstance(point.x, str) else float(rounded(point.x) or 0.0),
            y=rounded(point.y),
            low=rounded(point.low),
            high=rounded(point.high),
        )
        for point in graph.points
    )
    return replace(graph, points=points, level=rounded(graph.level))
