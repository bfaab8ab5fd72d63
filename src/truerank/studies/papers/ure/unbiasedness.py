"""E-U3: does the URE estimate order models as the truth does, and the traditional scheme not? (Figure 5)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.estimators import terms_of
from truerank.estimators.judged.post_stratified import PostStratified
from truerank.metrics.recall import Recall
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    ClaimFinding,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
)
from truerank.studies.papers.ure import PAPER, SHORT
from truerank.studies.papers.ure.agree import AgreementCurve, curve
from truerank.studies.papers.ure.block import SCALE, UreBlock, split_of
from truerank.studies.papers.ure.lists import RecallGrid, SampledRecall, steps
from truerank.studies.papers.ure.plain import plainly
from truerank.studies.papers.ure.training import autodebias_pieces, kept_positions
from truerank.studies.work import Keep, StudySize, StudySource

MODELS, DRAWS, LEAST = 34, 20, 30
SCALES = (250.0, 500.0, SCALE, 2000.0, float("inf"))  # λ: how biased the log is that models learn from
JUDGED, WITHIN = (20, 80), (1, 5)
CHOSEN, OWN = 30, (5, 30, 100, 500)  # K of the text, and the K' of Figure 5b
HIGH, APART, SIGNIFICANT = 0.9, 0.2, 0.01
KINDS = {"Kendall's τ": True, "Pearson's r": False}
SCHEMES = ("URE@K", "Recall@1̄", "Recall@5̄")


@dataclass(frozen=True, slots=True)
class OrderKept:
    """Agreement of the URE estimate and of the traditional scheme with Recall@K, over AutoDebias models."""

    name: ClassVar[str] = "E-U3"
    about: ClassVar[str] = (
        "Whether the URE estimate orders models as their true recall does, and the traditional scheme."
    )
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 5",), SHORT: ("Figure 3",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec",)
    minutes: ClassVar[float] = 30.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "high",
            "At small K (30) Kendall's τ of URE@K with Recall@K is above 0.9.",
            "Figure 5a",
            "At N̄ = 80, the mean over draws: holds if above 0.9, does not hold if not.",
        ),
        PaperClaim(
            "poor",
            "At small K (30) Recall@1̄ and Recall@5̄ agree poorly with Recall@K.",
            "Figure 5a",
            "At N̄ = 80: holds if τ of both is at least 0.2 below that of URE@30; in part if of one.",
        ),
        PaperClaim(
            "better",
            "URE orders models at K = 30 better than the traditional scheme, by at least 0.2.",
            "Figure 5a, as a criterion",
            "Kendall's τ of URE@30 with Recall@30 less that of Recall@5̄, over at least 30 models: holds if at "
            "least 0.2 at N̄ = 20 and at 80 with every λ that makes the log biased (the paper names none), in part if "
            "at some.",
        ),
        PaperClaim(
            "same",
            "URE@K' agrees most with Recall@K at K = K'.",
            "Figure 5b",
            "At N̄ = 80: holds if for each K' the K with the highest mean τ is K' or beside it among the K that "
            "were tried; in part if for some.",
        ),
        PaperClaim(
            "significant",
            "The rank correlations are significant (p < 0.01).",
            "Figure 5",
            "At N̄ = 80: holds if p of URE@K with Recall@K is below 0.01 in every draw at every K; in part if at "
            "some K.",
        ),
    )

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        full = size is StudySize.FULL
        block = UreBlock.of(source, size=size, seed=seed)
        tables = keep(autodebias_pieces(block, MODELS if full else 4, size=size, seed=seed), about="training models")
        split = split_of(block)
        if progress is not None:
            progress("measuring recall", 0, 1)
        n = int(split.count.min())
        cutoffs = tuple(k for k in sorted({*steps(n), *OWN}) if k <= n)
        grid = RecallGrid(cutoffs, JUDGED if full else (20, 40), WITHIN, DRAWS if full else 2)
        positions = kept_positions(tables, split)
        shown = _Shown(grid, grid.measured(split, positions, seed=seed), len(positions))
        others = [replace(block, scale=scale) for scale in (SCALES if full else SCALES[-2:]) if scale != block.scale]
        biased = [cell for each in others for cell in self._biased(each, grid, size=size, seed=seed, keep=keep)]
        cells = [*shown.schemes(), *shown.own(), *shown.criterion(block, positions, seed=seed), *biased]
        return Measurements(
            cells=tuple(cells),
            graphs=tuple(map(plainly, shown.graphs())),
            settings={
                "models": len(positions),
                "diverged": len(tables) - len(positions),
                "draws of D_rand": grid.draws,
                "users": len(split.count),
                "candidates per user": round(split.n_candidates, 1),
            },
            differs=(
                *block.differs,
                "The paper does not say how many AutoDebias models it trained, nor their settings: here they are "
                "drawn at "
                f"random, in batches of 65,536 rows and at most 12 epochs ({len(positions)} matrix factorisations).",
                "The short version says correlation, the long one Kendall: both coefficients stand here.",
                "The paper has no post-stratified recall, which varies less and estimates pooled recall: how it orders "
                "models by their mean over users stands beside. Noise is the standard deviation of an estimate over "
                "draws, spread that of the true Recall@30 over models.",
                f"Coefficients are means over {grid.draws} draws of D_rand, with the range of nine tenths of them; "
                "the paper has one draw.",
            ),
        )

    def _biased(self, block: UreBlock, grid: RecallGrid, *, size: StudySize, seed: int, keep: Keep) -> list[Cell]:
        """The criterion alone, where models learn from a log that is biased otherwise."""
        about = f"training models, λ = {block.scale:g}"
        number = MODELS if size is StudySize.FULL else 4
        positions = kept_positions(
            keep(autodebias_pieces(block, number, size=size, seed=seed), about=about), split_of(block)
        )
        asked = replace(grid, cutoffs=(CHOSEN,))
        shown = _Shown(asked, asked.measured(split_of(block), positions, seed=seed), len(positions))
        return shown.criterion(block, positions, seed=seed)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        scales = list(dict.fromkeys(cell.row.split(", ")[0] for cell in cells.of(CRITERION)))
        judged = list(dict.fromkeys(cell.row.split(", ")[1] for cell in cells.of(CRITERION)))
        most = judged[-1]
        table = _name("Kendall's τ", most)
        ure, one, five = (cells.value(table, f"K = {CHOSEN}", scheme) for scheme in SCHEMES)
        models = min(cells.values(cells.of(CRITERION, column="models")))
        apart = {scale: [cells.value(CRITERION, f"{scale}, {n}", "difference") for n in judged] for scale in scales}
        best = max(scales, key=lambda scale: min(apart[scale]))
        enough = models >= LEAST
        peaks = {cell.row: cell.obtained for cell in cells.of(OWN_TABLE, column="steps from K'")}
        p_values = cells.values([cell for cell in cells.of(table) if cell.column == "largest p of URE@K"])
        named = list(dict.fromkeys([scales[0], best]))
        others = [value for scale in scales if scale not in named for value in apart[scale]]
        said = "; ".join(
            f"{scale}: " + ", ".join(f"{n} {value:+.2f}" for n, value in zip(judged, apart[scale], strict=True))
            for scale in named
        )
        said += f"; at {len(scales) - len(named)} other λ {min(others):+.2f} to {max(others):+.2f}" if others else ""
        return (
            by_share("high", [ure > HIGH], f"τ of URE@{CHOSEN} is {ure:.2f} ({most})."),
            by_share(
                "poor",
                [ure - each >= APART for each in (one, five)],
                f"τ is {one:.2f} of Recall@1̄ and {five:.2f} of Recall@5̄, {ure:.2f} of URE ({most}).",
            ),
            by_share(
                "better",
                [each >= APART for scale in scales for each in apart[scale]] if enough else [],
                f"Difference of τ, {said}; {models:g} models.",
            ),
            by_share(
                "same",
                [abs(float(each or 0.0)) <= 1 for each in peaks.values()],
                f"Steps between K' and the best K: {', '.join(f'{row} {value:+g}' for row, value in peaks.items())}.",
            ),
            by_share(
                "significant",
                [p < SIGNIFICANT for p in p_values],
                f"p is below {SIGNIFICANT} in every draw at {sum(p < SIGNIFICANT for p in p_values)} of "
                f"{len(p_values)} K.",
            ),
        )


CRITERION = "URE@30 against Recall@5̄: Kendall's τ with Recall@30"
OWN_TABLE = "Figure 5b: the K at which URE@K' agrees most with Recall@K"


def _name(kind: str, judged: str) -> str:
    return f"Figure 5a: {kind} with Recall@K, {judged}"


def by_strata(block: UreBlock, grid: RecallGrid, positions: Sequence[Ints], *, seed: int) -> Floats:
    """Post-stratified Recall@30 of every model from the same draws [models x draws x N-bar]."""
    split = split_of(block)
    found = np.empty((len(positions), grid.draws, len(grid.judged)))
    for number in range(grid.draws):
        place = split.drawn(max(grid.judged), seed=seed, number=number)
        for at, n in enumerate(grid.judged):
            log = split.judged(place[:, :n])
            for model, position in enumerate(positions):
                ranks = split.ranks(position, place[:, :n])
                (terms,) = terms_of(PostStratified(), log, ranks, metrics=[Recall(CHOSEN)])
                found[model, number, at] = terms.value()
    return found


def noise(estimate: Floats, truth: Floats) -> float:
    """The standard deviation of an estimate [models x draws] over draws, in those of the truth over models.

    >>> noise(np.array([[1.0, 3.0], [2.0, 4.0]]), np.array([2.0, 4.0]))
    1.0
    """
    return float(estimate.std(axis=1, ddof=1).mean() / truth.std(ddof=1))


@dataclass(frozen=True, slots=True)
class _Shown:
    """What was measured, as cells and graphs."""

    grid: RecallGrid
    found: SampledRecall
    models: int
    known: dict[tuple[int, bool], dict[str, AgreementCurve]] = field(default_factory=dict)  # what was asked before

    def estimates(self, at: int) -> dict[str, Floats]:
        """What each scheme says of every model in every draw, at this size of the sample."""
        ure, old = self.found.ure[:, :, at], self.found.traditional[:, :, at]
        return dict(zip(SCHEMES, (ure, old[:, :, 0], old[:, :, 1]), strict=True))

    def agreements(self, at: int, *, kendall: bool) -> dict[str, AgreementCurve]:
        if (at, kendall) not in self.known:
            self.known[at, kendall] = {
                scheme: curve(values, self.found.truth, kendall=kendall)
                for scheme, values in self.estimates(at).items()
            }
        return self.known[at, kendall]

    def schemes(self) -> list[Cell]:
        cells = []
        for kind, kendall in KINDS.items():
            for place, n in enumerate(self.grid.judged):
                found, table = self.agreements(place, kendall=kendall), _name(kind, f"N̄ = {n}")
                for at, k in enumerate(self.grid.cutoffs[:-1]):  # with every candidate recall is 1
                    for scheme, each in found.items():
                        cells.append(
                            Cell(table, f"K = {k}", scheme, each.mean[at], low=each.low[at], high=each.high[at])
                        )
                        cells.append(Cell(table, f"K = {k}", f"largest p of {scheme}", each.p[at]))
        return cells

    def own(self) -> list[Cell]:
        """For each K', where agreement over K is highest, at the largest sample."""
        cells = []
        for k, each in self.curves_of_own().items():
            at = self.grid.cutoffs.index(k)
            numbers = {
                "best K": float(self.grid.cutoffs[each.best]),
                "steps from K'": float(each.best - at),
                "τ at the best K": float(each.mean[each.best]),
                "τ at K'": float(each.mean[at]),
            }
            cells += [Cell(OWN_TABLE, f"K' = {k}", column, value) for column, value in numbers.items()]
        return cells

    def curves_of_own(self) -> dict[int, AgreementCurve]:
        kept = [k for k in OWN if k in self.grid.cutoffs[:-1]]
        last = len(self.grid.judged) - 1
        truth = self.found.truth[:, :-1]
        return {k: curve(self.found.ure[:, :, last, self.grid.cutoffs.index(k)], truth, kendall=True) for k in kept}

    def criterion(self, block: UreBlock, positions: Sequence[Ints], *, seed: int) -> list[Cell]:
        """At K = 30: how well models are ordered, by recall in strata too, and the noise that stands in the way."""
        at = self.grid.cutoffs.index(CHOSEN)
        truth = self.found.truth[:, [at]]
        strata = by_strata(block, self.grid, positions, seed=seed)
        cells = []
        for place, n in enumerate(self.grid.judged):
            found = self.agreements(place, kendall=True)
            ure, old = (float(found[scheme].mean[at]) for scheme in ("URE@K", "Recall@5̄"))
            numbers = {
                "URE@30": ure,
                "Recall@5̄": old,
                "difference": ure - old,
                "post-stratified@30": float(curve(strata[:, :, place], truth, kendall=True).mean[0]),
                "noise of URE@30 over spread": noise(self.found.ure[:, :, place, at], truth[:, 0]),
                "noise of post-stratified@30 over spread": noise(strata[:, :, place], truth[:, 0]),
                "models": float(self.models),
            }
            row = f"λ = {block.scale:g}, N̄ = {n}"
            cells += [Cell(CRITERION, row, column, value) for column, value in numbers.items()]
        return cells

    def graphs(self) -> tuple[PaperGraph, ...]:
        schemes = tuple(
            GraphPoint(k, each.mean[at], group=scheme, panel=f"N̄ = {n}", low=each.low[at], high=each.high[at])
            for place, n in enumerate(self.grid.judged)
            for scheme, each in self.agreements(place, kendall=True).items()
            for at, k in enumerate(self.grid.cutoffs[:-1])
        )
        own = tuple(
            GraphPoint(self.grid.cutoffs[at], float(value), group=f"K' = {k}")
            for k, each in self.curves_of_own().items()
            for at, value in enumerate(each.mean)
            if np.isfinite(value)
        )
        last = len(self.grid.judged) - 1
        at = self.grid.cutoffs.index(CHOSEN)
        ure, one, five = (float(each.mean[at]) for each in self.agreements(last, kendall=True).values())
        best = ", ".join(f"{self.grid.cutoffs[each.best]} for K' = {k}" for k, each in self.curves_of_own().items())
        return (
            PaperGraph(
                "figure-5a",
                "Kendall's τ with Recall@K on all candidates, over AutoDebias models; mean and nine tenths of draws",
                f"At K = {CHOSEN} and N̄ = {self.grid.judged[-1]}, τ is {ure:.2f} of the URE estimate, "
                f"{one:.2f} of Recall@1̄ and {five:.2f} of Recall@5̄.",
                GraphKind.LINES,
                x="K",
                y="Kendall's τ",
                points=schemes,
                log=True,
            ),
            PaperGraph(
                "figure-5b",
                f"Kendall's τ of URE@K' with Recall@K, N̄ = {self.grid.judged[-1]}",
                f"URE@K' agrees most with Recall@K at K = {best}.",
                GraphKind.LINES,
                x="K",
                y="Kendall's τ",
                points=own,
                log=True,
            ),
        )
