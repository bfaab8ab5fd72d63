"""E-S0: the data, the grid of scenarios and the models of the study (table 1, figure 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.evaluation.judged import evaluate
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
)
from truerank.studies.papers.reliability import PAPER
from truerank.studies.papers.reliability.questions import DIFFERS, MADE
from truerank.studies.papers.reliability.studied import fitted, scores_of
from truerank.studies.papers.reliability.worlds import StudiedData, StudiedSetting, settings_of
from truerank.studies.reliability import Grid
from truerank.studies.work import Keep, StudySize, StudySource

# users, items, positive and other interactions, density
PUBLISHED = {"Train": (7176, 10_728, 936_390, 11_594_416, 0.163), "Test": (1411, 3327, 217_175, 4_459_395, 0.996)}
COLUMNS = ("users", "items", "positive", "other", "density")
EXACT = ("users", "items", "positive")
TABLE, GRID, MODELS, PAIRS = "Table 1", "Scenarios", "True means of models", "Pairs of models"
SCENARIOS = 1512


@dataclass(frozen=True, slots=True)
class ScenarioGrid:
    """What is studied, before anything is."""

    name: ClassVar[str] = "E-S0"
    about: ClassVar[str] = "The data of the study, its scenarios, and how good the models truly are."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 1", "Figure 1")}
    data: ClassVar[tuple[str, ...]] = ("kuairec", "jester")
    minutes: ClassVar[float] = 3
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "test", "The counts of the test matrix.", "Table 1",
            "Holds if users, items and positives are what is printed; other interactions cannot be counted here.",
        ),
        PaperClaim(
            "train", "The counts of the training matrix.", "Table 1",
            "Holds if users, items and positives are what is printed.",
        ),
        PaperClaim(
            "scenarios", "3 loggers, 8 sparsities and 63 samplers are 1,512 scenarios.", "section 4.3",
            "Holds if the grid of the paper has as many.",
        ),
        PaperClaim(
            "models", "The models cover distinct families, so that there is an order to recover.", "section 4.4",
            "Holds if the true means of every two models differ clearly: the interval of the difference leaves 0 out.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        cells: list[Cell] = []
        for setting in settings_of(source, size):
            data = setting.data(source)
            cells += _counts(setting, data)
            cells += _truths(setting, data, fitted(source, setting, keep, seed=seed))
        paper = Grid.of()
        own = len(paper.loggers) * len(paper.sparsities) * paper.n_candidates
        cells.append(Cell(GRID, "the paper's grid", "scenarios", float(own), float(SCENARIOS), tolerance=0.0))
        return Measurements(
            tuple(cells),
            (_graph(cells),),
            settings={"models": [entry.title for entry in settings_of(source, size)[0].entries]},
            differs=(*DIFFERS[:-1], *((MADE,) if source.is_synthetic else ())),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        counts = []
        for part in PUBLISHED:
            known = [cell for cell in cells.of(TABLE) if cell.row.endswith(f", {part}") and cell.is_within is not None]
            said = ", ".join(f"{cell.column} {cell.obtained or 0:,.0f} ({cell.published or 0:,.0f})" for cell in known)
            key = part.lower()
            counts.append(
                by_share(key, [cell.is_within is True for cell in known], f"Here (printed): {said}.")
                if known
                else ClaimFinding(key, ClaimVerdict.UNTESTED, "The counts are of KuaiRec; this world is synthetic.")
            )
        grid = cells.of(GRID)[0]
        clear = {}
        for cell in (each for each in cells.of(PAIRS) if each.column == "difference"):
            clear[cell.row] = cell.low is not None and cell.high is not None and not cell.low <= 0 <= cell.high
        apart = ", ".join(pair for pair, own in clear.items() if not own) or "none"
        return (
            *reversed(counts),
            by_share("scenarios", [grid.is_within is True], f"{grid.obtained or 0:,.0f}."),
            by_share("models", list(clear.values()), f"{sum(clear.values())} of {len(clear)} pairs; not: {apart}."),
        )  # fmt: skip


def _counts(setting: StudiedSetting, data: StudiedData) -> Iterator[Cell]:
    """Table 1; what data here cannot tell has no number of ours."""
    liked = float(data.world.label.sum())
    ours = {
        "Train": (len(data.train.users), len(data.train.items), len(data.train), None, None),
        "Test": (len(data.world.users), len(data.world.items), liked, len(data.world) - liked, None),
    }
    for part, values in ours.items():
        for at, column in enumerate(COLUMNS):
            known = PUBLISHED[part][at] if setting.name == "kuairec" else None
            if known is not None or values[at] is not None:
                yield Cell(
                    TABLE, f"{setting.title}, {part}", column, values[at], known,
                    tolerance=0.0 if known is not None and column in EXACT else None,
                )  # fmt: skip


def _truths(setting: StudiedSetting, data: StudiedData, scores: Mapping[str, pl.DataFrame]) -> Iterator[Cell]:
    """The true mean of every model over all pairs, and of every two their difference, for the population of users."""
    world = data.world
    known = scores_of(tuple(scores.items()), world)
    found = evaluate(known, world, items=world.items, metrics=[setting.metrics[0]])
    for each in found.estimates:
        yield Cell(
            MODELS, each.model, f"{setting.title}, {setting.scale.metric}", each.value, None, each.low, each.high
        )
    for pair in found.comparisons:
        row = f"{setting.title}: {pair.model} - {pair.baseline}"
        yield Cell(PAIRS, row, "difference", pair.difference, None, pair.low, pair.high)


def _graph(cells: Sequence[Cell]) -> PaperGraph:
    points = [
        GraphPoint(cell.row, cell.obtained, panel=cell.column, low=cell.low, high=cell.high)
        for cell in cells
        if cell.table == MODELS
    ]
    panels = list(dict.fromkeys(point.panel for point in points))  # that of the paper first
    points.sort(key=lambda point: (panels.index(point.panel), -(point.y or 0.0)))
    best = points[0]
    rivals = sum(point.panel == best.panel for point in points)
    return PaperGraph(
        "models", "True mean of every model over all pairs, with the interval for the population of users",
        f"{best.x} is the best of {rivals} models in {best.panel}.",
        GraphKind.RANGES, x="model", y="true mean", points=tuple(points),
    )  # fmt: skip
