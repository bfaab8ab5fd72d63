"""E-U1: at which K recall on a random sample goes with recall on everything (Figures 1 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    Cells,
    ClaimFinding,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
    by_steps,
)
from truerank.studies.papers.ure import PAPER, SHORT
from truerank.studies.papers.ure.agree import AgreementCurve, curve
from truerank.studies.papers.ure.block import UreBlock, split_of
from truerank.studies.papers.ure.lists import RecallGrid, SampledRecall, steps
from truerank.studies.papers.ure.plain import plainly
from truerank.studies.papers.ure.training import autodebias_pieces, kept_positions
from truerank.studies.work import Keep, StudySize, StudySource

MODELS, DRAWS = 34, 20
JUDGED, WITHIN = (20, 40, 80, 160, 320), (1, 3, 5, 10, 20)
USUAL_N, USUAL_K = 80, 5
BY_N, BY_K, KENDALL = (
    "Figure 3a: Pearson's r, K̄ = 5",
    "Figure 3b: Pearson's r, N̄ = {n}",
    "Figure 3c: Kendall's τ, K̄ = 5",
)
PEAKS = "Figure 3: where agreement is highest"
FOUR = "Figure 1: order of four models, best first"
LARGE_K, SMALL_K, STRONG, WEAK = 100, 10, 0.9, 0.6  # what the text says of Figure 3
FACTOR = 2.0
SIGNIFICANT = 0.01


@dataclass(frozen=True, slots=True)
class SampledCorrelation:
    """Recall of AutoDebias models on a random sample against recall on all candidates, over K, N-bar and K-bar."""

    name: ClassVar[str] = "E-U1"
    about: ClassVar[str] = (
        "At which K recall on a random sample, where only judged items compete, agrees with recall on all candidates."
    )
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 1", "Figure 3"), SHORT: ("Figure 1",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec",)
    minutes: ClassVar[float] = 8.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "large",
            "Recall@5̄ agrees with Recall@K for large K (r > 0.9 for K > 100), not for small (r < 0.6 for K < 10).",
            "Figure 3a, section 3.2",
            "At N̄ = 80: holds if r is above 0.9 at every K from 100 to a half of the candidates and below 0.6 at "
            "every K under 10; in part if at some.",
        ),
        PaperClaim(
            "falls",
            "K_max, where agreement is highest, falls as N̄ grows.",
            "Figure 3a and 3c",
            "Holds if K_max of Pearson's and of Kendall's coefficient falls or stays at each step of N̄; in part if "
            "at more than half of them.",
        ),
        PaperClaim(
            "rises",
            "K_max rises with K̄.",
            "Figure 3b",
            "Holds if K_max rises or stays at each step of K̄; in part if at more than half of them.",
        ),
        PaperClaim(
            "place",
            "Agreement is highest around K = K̄ N / N̄ (Theorem 1).",
            "section 3.1",
            "Holds if K_max is within a factor of 2 of K̄ N / N̄ for every N̄ and K̄; in part if for some.",
        ),
        PaperClaim(
            "kendall",
            "The highest Kendall coefficient rises with N̄.",
            "Figure 3c",
            "Holds if it rises or stays at each step of N̄; in part if at more than half of them.",
        ),
        PaperClaim(
            "significant",
            "The correlations are significant (p < 0.01).",
            "Figure 3",
            "At K_max: holds if p < 0.01 in every draw for every N̄ and K̄; in part if for some.",
        ),
        PaperClaim(
            "four",
            "Four models are ordered differently by Recall@5̄ and by Recall@K for K up to 100.",
            "Figure 1",
            "Holds if the orders of the four models at the quartiles of Recall@5̄ differ at every K up to 100; in "
            "part if at some.",
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
        judged = JUDGED if full else (5, 10, 20, 40)
        grid = RecallGrid(steps(int(split.count.min()))[:-1], judged, WITHIN, DRAWS if full else 2)
        positions = kept_positions(tables, split)
        found = grid.measured(split, positions, seed=seed)
        usual = judged.index(USUAL_N) if USUAL_N in judged else len(judged) - 2
        shown = _Shown.of(grid, found, split.n_candidates, usual)
        return Measurements(
            cells=(*shown.curves(), *shown.peaks(), *shown.four()),
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
                f"Coefficients are means over {grid.draws} draws of D_rand, with the range of nine tenths of them; "
                "the paper has one draw.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        n_names = _columns(cells, BY_N)
        k_table = _k_table(cells)
        k_names = _columns(cells, k_table)
        usual = k_table.rsplit("N̄ = ", 1)[1]
        by_cutoff = {int(cell.row[4:]): cell.obtained for cell in cells.of(BY_N, column=f"N̄ = {usual}")}
        half = max(by_cutoff) / 2
        strong = [r is not None and r > STRONG for k, r in by_cutoff.items() if LARGE_K < k <= half]
        weak = [r is not None and r < WEAK for k, r in by_cutoff.items() if k < SMALL_K]
        falls = [
            after <= before
            for kind in ("Pearson", "Kendall")
            for before, after in _pairs([cells.value(PEAKS, f"{n}, K̄ = 5", f"K_max, {kind}") for n in n_names])
        ]
        rows = [f"{n}, K̄ = 5" for n in n_names] + [f"N̄ = {usual}, {k}" for k in k_names if k != "K̄ = 5"]
        peaks = [cells.value(PEAKS, f"N̄ = {usual}, {k}", "K_max, Pearson") for k in k_names]
        ratios = [cells.value(PEAKS, row, "K_max, Pearson") / cells.value(PEAKS, row, "K̄ N / N̄") for row in rows]
        tops = [cells.value(PEAKS, f"{n}, K̄ = 5", "highest, Kendall") for n in n_names]
        p_values = cells.values([cell for cell in cells.of(PEAKS) if cell.column.startswith("largest p")])
        orders = {row: [cell.obtained for cell in cells.of(FOUR, row=row)] for row in _rows(cells, FOUR)}
        told, *true = orders
        small = [row for row in true if int(row.split("@")[1]) <= LARGE_K]
        return (
            by_share(
                "large",
                [*strong, *weak],
                f"r is above {STRONG} at {sum(strong)} of {len(strong)} large K and below {WEAK} at "
                f"{sum(weak)} of {len(weak)} small K.",
            ),
            by_steps(
                "falls",
                falls,
                f"{sum(falls)} of {len(falls)} steps; Pearson's K_max "
                f"{_list(cells.value(PEAKS, f'{n}, K̄ = 5', 'K_max, Pearson') for n in n_names)}.",
            ),
            by_steps("rises", [b >= a for a, b in _pairs(peaks)], f"K_max is {_list(peaks)} at {', '.join(k_names)}."),
            by_share(
                "place",
                [1 / FACTOR <= each <= FACTOR for each in ratios],
                f"K_max over K̄ N / N̄ is between {min(ratios):.2f} and {max(ratios):.2f}.",
            ),
            by_steps(
                "kendall", [b >= a for a, b in _pairs(tops)], f"Highest τ: {_list(tops, 2)} at {', '.join(n_names)}."
            ),
            by_share(
                "significant", [p < SIGNIFICANT for p in p_values], f"The largest p of any draw is {max(p_values):.2g}."
            ),
            by_share(
                "four",
                [orders[row] != orders[told] for row in small],
                f"{sum(orders[row] != orders[told] for row in small)} of {len(small)} orders differ.",
            ),
        )

    def graphs(self, obtained: Obtained) -> tuple[PaperGraph, ...]:
        return tuple(map(plainly, _graphs(obtained.cells)))


@dataclass(frozen=True, slots=True)
class _Shown:
    """What was measured, as cells; `usual` is the place of N-bar = 80."""

    grid: RecallGrid
    found: SampledRecall
    n_candidates: float
    usual: int
    known: Mapping[tuple[int, int, bool], AgreementCurve]  # by N-bar, K-bar and whether it is Kendall's

    @classmethod
    def of(cls, grid: RecallGrid, found: SampledRecall, n_candidates: float, usual: int) -> _Shown:
        asked = {(n, USUAL_K) for n in grid.judged} | {(grid.judged[usual], within) for within in grid.within}
        known = {
            (n, within, kendall): curve(
                found.traditional[:, :, grid.judged.index(n), grid.within.index(within)], found.truth, kendall=kendall
            )
            for n, within in sorted(asked)
            for kendall in (False, True)
        }
        return cls(grid, found, n_candidates, usual, known)

    def agreement(self, n: int, within: int, *, kendall: bool) -> AgreementCurve:
        return self.known[n, within, kendall]

    def tables(self) -> dict[str, dict[str, AgreementCurve]]:
        """The curves of each part of the figure by what they vary."""
        n = self.grid.judged[self.usual]
        return {
            BY_N: {f"N̄ = {each}": self.agreement(each, USUAL_K, kendall=False) for each in self.grid.judged},
            BY_K.format(n=n): {f"K̄ = {each}": self.agreement(n, each, kendall=False) for each in self.grid.within},
            KENDALL: {f"N̄ = {each}": self.agreement(each, USUAL_K, kendall=True) for each in self.grid.judged},
        }

    def curves(self) -> list[Cell]:
        return [
            Cell(table, f"K = {k}", column, each.mean[at], low=each.low[at], high=each.high[at])
            for table, columns in self.tables().items()
            for at, k in enumerate(self.grid.cutoffs)
            for column, each in columns.items()
        ]

    def peaks(self) -> list[Cell]:
        usual = self.grid.judged[self.usual]
        asked = [(n, USUAL_K) for n in self.grid.judged] + [(usual, k) for k in self.grid.within if k != USUAL_K]
        cells = []
        for n, within in asked:
            row = f"N̄ = {n}, K̄ = {within}"
            linear, order = (self.agreement(n, within, kendall=kendall) for kendall in (False, True))
            numbers = {"K̄ N / N̄": within * self.n_candidates / n}
            for kind, each in (("Pearson", linear), ("Kendall", order)):
                numbers[f"K_max, {kind}"] = self.grid.cutoffs[each.best]
                numbers[f"highest, {kind}"] = float(each.mean[each.best])
                numbers[f"largest p, {kind}"] = float(each.p[each.best])
            cells += [Cell(PEAKS, row, column, value) for column, value in numbers.items()]
        return cells

    def four(self) -> list[Cell]:
        """Four models from worst to best by Recall@5-bar of the first draw, and their places by it and by Recall@K."""
        old = self.found.traditional[:, 0, self.usual, self.grid.within.index(USUAL_K)]
        order = np.argsort(-old, kind="stable")
        chosen = order[np.round(np.linspace(0, len(order) - 1, 4)).astype(int)]
        rows = {f"Recall@{USUAL_K}̄": old[chosen]} | {
            f"Recall@{k}": self.found.truth[chosen, at] for at, k in enumerate(self.grid.cutoffs)
        }
        return [
            Cell(FOUR, row, f"model {at + 1}", float(place))
            for row, values in rows.items()
            for at, place in enumerate(_places(values))
        ]


def _graphs(cells: Cells) -> tuple[PaperGraph, ...]:
    n_names, k_table = _columns(cells, BY_N), _k_table(cells)
    k_names, usual = _columns(cells, k_table), k_table.rsplit("= ", 1)[1]

    def drawn(name: str, title: str, sentence: str, table: str) -> PaperGraph:
        panel, _ = table.split(":")
        points = tuple(
            GraphPoint(int(cell.row[4:]), cell.obtained, group=column, panel=panel, low=cell.low, high=cell.high)
            for column in _columns(cells, table)
            for cell in cells.of(table, column=column)
        )
        return PaperGraph(
            name, title, sentence, GraphKind.LINES, x="K", y="agreement over models", points=points, log=True
        )

    def peak(n: str, k: str, column: str) -> float:
        return cells.value(PEAKS, f"{n}, {k}", column)

    few, many = (name.rsplit("= ", 1)[1] for name in (n_names[0], n_names[-1]))
    by_n = [peak(n, f"K̄ = {USUAL_K}", "K_max, Pearson") for n in n_names]
    by_k = [peak(f"N̄ = {usual}", k, "K_max, Pearson") for k in k_names]
    high = [peak(n, f"K̄ = {USUAL_K}", "highest, Kendall") for n in n_names]
    orders = {row: [cell.obtained for cell in cells.of(FOUR, row=row)] for row in _rows(cells, FOUR)}
    sample, *true = orders
    small = [row for row in true if int(row[7:]) <= LARGE_K]
    same = sum(orders[row] == orders[sample] for row in small)
    places = tuple(
        GraphPoint("K̄ = 5" if cell.row == sample else f"K = {cell.row[7:]}", cell.obtained, group=cell.column)
        for cell in cells.of(FOUR)
        if cell.row == sample or int(cell.row[7:]) <= 3 * LARGE_K
    )
    return (
        drawn(
            "figure-3a",
            "Pearson's r of Recall@5̄ on N̄ judged items with Recall@K on all candidates",
            f"Agreement is highest at K = {by_n[0]:.0f} with {few} judged items, at K = {by_n[-1]:.0f} with {many}.",
            BY_N,
        ),
        drawn(
            "figure-3b",
            f"Pearson's r of Recall@K̄ on {usual} judged items with Recall@K on all candidates",
            f"Agreement is highest at K = {by_k[0]:.0f} for {k_names[0]}, at K = {by_k[-1]:.0f} for {k_names[-1]}.",
            k_table,
        ),
        drawn(
            "figure-3c",
            "Kendall's τ of Recall@5̄ on N̄ judged items with Recall@K on all candidates",
            f"The highest τ is {high[0]:.2f} with {few} judged items and {high[-1]:.2f} with {many}.",
            KENDALL,
        ),
        PaperGraph(
            "figure-1",
            "Places of four models, 1 is best: by Recall@5̄ on the sample, then by Recall@K on all candidates",
            f"The order on the sample is that of Recall@K at {same} of {len(small)} K up to {LARGE_K}.",
            GraphKind.PLACES,
            x="",
            y="place",
            points=places,
        ),
    )


def _places(values: Floats) -> list[int]:
    """1 for the highest value."""
    return [int(1 + np.count_nonzero(values > each)) for each in values]


def _columns(cells: Cells, table: str) -> list[str]:
    return list(dict.fromkeys(cell.column for cell in cells.of(table)))


def _k_table(cells: Cells) -> str:
    """The name of the table of Figure 3b, with its N-bar."""
    return next(cell.table for cell in cells.all if cell.table.startswith("Figure 3b"))


def _rows(cells: Cells, table: str) -> list[str]:
    return list(dict.fromkeys(cell.row for cell in cells.of(table)))


def _pairs(values: list[float]) -> list[tuple[float, float]]:
    return list(pairwise(values))


def _list(values: object, digits: int = 0) -> str:
    return ", ".join(f"{each:.{digits}f}" for each in values)  # type: ignore[attr-defined]
