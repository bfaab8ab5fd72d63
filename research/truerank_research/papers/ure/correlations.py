"""E-U1: at which K recall on a random sample agrees with recall on everything (Figures 1 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from truerank_research.claims import Cell, Cells, Claim, Finding, below, cell_rows, numbers, share, steps
from truerank_research.papers.ure.data import (
    AgreementCurve,
    Block,
    RecallGrid,
    SampledRecall,
    curve,
    cutoffs_up_to,
    split_of,
)
from truerank_research.papers.ure.reevaluation import converged_positions, describe_models
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

JUDGED, WITHIN = (20, 40, 80, 160, 320), (1, 3, 5, 10, 20)
USUAL_N, USUAL_K = 80, 5
BY_N = "Figure 3a: Pearson's r, K̄ = 5"
BY_K = "Figure 3b: Pearson's r, N̄ = {}"
KENDALL = "Figure 3c: Kendall's τ, K̄ = 5"
PEAKS = "Figure 3: where agreement is highest"
FOUR = "Figure 1: order of four models, best first"
LARGE_K, SMALL_K, STRONG, WEAK = 100, 10, 0.9, 0.6  # what the text says of Figure 3
FACTOR = 2.0
SIGNIFICANT = 0.01


def measure(run: Run) -> Measured:
    block = Block(run.setting)
    positions, split = converged_positions(run, block), split_of(block)
    judged = JUDGED if run.full else (5, 10, 20, 40)
    usual = judged.index(USUAL_N) if USUAL_N in judged else len(judged) - 2
    grid = RecallGrid(cutoffs_up_to(int(split.count.min()))[:-1], judged, WITHIN, 20 if run.full else 2)
    recall = grid.measure(split, positions, seed=run.seed)
    settings, differences = describe_models(len(positions), grid.draws, split)
    return Measured(
        {
            "cells": cell_rows(
                [*_curve_cells(grid, recall, split.n_candidates, usual), *_four_cells(grid, recall, usual)]
            )
        },
        settings,
        [*block.differences, *differences],
    )


def _curve_cells(grid: RecallGrid, recall: SampledRecall, n_candidates: float, usual: int) -> Iterator[Cell]:
    """The curves of Figure 3, then their peaks; `usual` is the index of N-bar = 80."""
    usual_n = grid.judged[usual]
    pairs = [(n, USUAL_K) for n in grid.judged] + [(usual_n, k) for k in grid.within if k != USUAL_K]

    def agreement(n: int, within: int, *, kendall: bool) -> AgreementCurve:
        sampled = recall.traditional[:, :, grid.judged.index(n), grid.within.index(within)]
        return curve(sampled, recall.truth, kendall=kendall)

    curves = {(n, k): [agreement(n, k, kendall=kendall) for kendall in (False, True)] for n, k in pairs}
    for n in grid.judged:
        linear, order = curves[n, USUAL_K]
        yield from linear.cells(BY_N, f"N̄ = {n}", grid.cutoffs)
        yield from order.cells(KENDALL, f"N̄ = {n}", grid.cutoffs)
    for k in grid.within:
        yield from curves[usual_n, k][0].cells(BY_K.format(usual_n), f"K̄ = {k}", grid.cutoffs)
    for (n, k), both in curves.items():
        row = f"N̄ = {n}, K̄ = {k}"
        yield Cell(PEAKS, row, "K̄ N / N̄", k * n_candidates / n)
        for kind, peak in zip(("Pearson", "Kendall"), both, strict=True):
            yield Cell(PEAKS, row, f"K_max, {kind}", float(grid.cutoffs[peak.best]))
            yield Cell(PEAKS, row, f"highest, {kind}", float(peak.mean[peak.best]))
            yield Cell(PEAKS, row, f"largest p, {kind}", float(peak.p[peak.best]))


def _four_cells(grid: RecallGrid, recall: SampledRecall, usual: int) -> Iterator[Cell]:
    """Four models from worst to best by Recall@5-bar of the first draw, and their ranks by it and by Recall@K."""
    sampled = recall.traditional[:, 0, usual, grid.within.index(USUAL_K)]
    order = np.argsort(-sampled, kind="stable")
    four = order[np.round(np.linspace(0, len(order) - 1, 4)).astype(int)]
    rows = {f"Recall@{USUAL_K}̄": sampled[four]} | {
        f"Recall@{k}": recall.truth[four, at] for at, k in enumerate(grid.cutoffs)
    }
    for row, values in rows.items():
        for number, value in enumerate(values, 1):
            yield Cell(FOUR, row, f"model {number}", float(1 + np.count_nonzero(values > value)))


@dataclass(frozen=True, slots=True)
class Figure3:
    """The curves and peaks of a result, with its sizes of samples and cutoffs within them."""

    cells: Cells
    n_names: list[str]
    k_names: list[str]
    usual: str

    @classmethod
    def read(cls, cells: Cells) -> Figure3:
        k_table = next(cell.table for cell in cells.cells if cell.table.startswith("Figure 3b"))
        n_names, k_names = (list(dict.fromkeys(cell.column for cell in cells.select(t))) for t in (BY_N, k_table))
        return cls(cells, n_names, k_names, k_table.split(", ")[1])

    def peaks(self, column: str, *, by_k: bool = False) -> list[float]:
        rows = [f"{self.usual}, {k}" for k in self.k_names] if by_k else [f"{n}, K̄ = 5" for n in self.n_names]
        return [self.cells.value(PEAKS, row, column) for row in rows]


def _listed(values: Sequence[float], names: Sequence[str], digits: int = 0) -> str:
    return f"{', '.join(f'{value:.{digits}f}' for value in values)} at {', '.join(names)}"


def _large_rule(cells: Cells) -> Finding:
    usual = Figure3.read(cells).usual
    by_cutoff = {int(cell.row[4:]): cell.obtained for cell in cells.select(BY_N, column=usual)}
    half = max(by_cutoff) / 2
    strong = [r is not None and r > STRONG for k, r in by_cutoff.items() if LARGE_K < k <= half]
    weak = [r is not None and r < WEAK for k, r in by_cutoff.items() if k < SMALL_K]
    why = f"r is above {STRONG} at {sum(strong)} of {len(strong)} large K"
    return share([*strong, *weak], f"{why} and below {WEAK} at {sum(weak)} of {len(weak)} small K.")


def _falls_rule(cells: Cells) -> Finding:
    figure = Figure3.read(cells)
    series = [figure.peaks(f"K_max, {kind}") for kind in ("Pearson", "Kendall")]
    falls = [after <= before for peaks in series for before, after in pairwise(peaks)]
    return steps(falls, f"{sum(falls)} of {len(falls)} steps; Pearson's K_max {_listed(series[0], figure.n_names)}.")


def rising_rule(column: str, *, by_k: bool, digits: int = 0) -> Callable[[Cells], Finding]:
    """A column of the peaks rises or stays at each step of K̄ or N̄."""

    def rule(cells: Cells) -> Finding:
        figure = Figure3.read(cells)
        values = figure.peaks(column, by_k=by_k)
        names = figure.k_names if by_k else figure.n_names
        parts = [after >= before for before, after in pairwise(values)]
        return steps(parts, f"{column}: {_listed(values, names, digits)}.")

    return rule


def _place_rule(cells: Cells) -> Finding:
    rows = dict.fromkeys(cell.row for cell in cells.select(PEAKS))
    ratios = [cells.value(PEAKS, row, "K_max, Pearson") / cells.value(PEAKS, row, "K̄ N / N̄") for row in rows]
    why = f"K_max over K̄ N / N̄ is between {min(ratios):.2f} and {max(ratios):.2f}."
    return share([1 / FACTOR <= ratio <= FACTOR for ratio in ratios], why)


def _significant_rule(cells: Cells) -> Finding:
    p_values = numbers(cell for cell in cells.select(PEAKS) if cell.column.startswith("largest p"))
    return below(p_values, SIGNIFICANT, "p of all draws")


def _four_rule(cells: Cells) -> Finding:
    rows = dict.fromkeys(cell.row for cell in cells.select(FOUR))
    sampled, *orders = [[cell.obtained for cell in cells.select(FOUR, row)] for row in rows]
    small = [order for row, order in zip(list(rows)[1:], orders, strict=True) if int(row.split("@")[1]) <= LARGE_K]
    different = [order != sampled for order in small]
    return share(different, f"{sum(different)} of {len(different)} orders differ.")


CLAIMS = (
    Claim(
        "large", "Recall@5̄ agrees with Recall@K for large K (r > 0.9 for K > 100), not for small (r < 0.6 for K < 10).",
        "Figure 3a, section 3.2",
        "At N̄ = 80: r is above 0.9 at every K from 100 to half of the candidates and below 0.6 at every K under 10.",
        _large_rule,
    ),
    Claim(
        "falls", "K_max, where agreement is highest, falls as N̄ grows.", "Figure 3a and 3c",
        "K_max of Pearson's and of Kendall's coefficient falls or stays at each step of N̄; in part if at more than "
        "half.", _falls_rule,
    ),
    Claim(
        "rises", "K_max rises with K̄.", "Figure 3b",
        "K_max rises or stays at each step of K̄; in part if at more than half of them.",
        rising_rule("K_max, Pearson", by_k=True),
    ),
    Claim(
        "place", "Agreement is highest around K = K̄ N / N̄ (Theorem 1).", "section 3.1",
        "K_max is within a factor of 2 of K̄ N / N̄ for every N̄ and K̄.", _place_rule,
    ),
    Claim(
        "kendall", "The highest Kendall coefficient rises with N̄.", "Figure 3c",
        "It rises or stays at each step of N̄; in part if at more than half of them.",
        rising_rule("highest, Kendall", by_k=False, digits=2),
    ),
    Claim(
        "significant", "The correlations are significant (p < 0.01).", "Figure 3",
        "At K_max: p < 0.01 in every draw for every N̄ and K̄.", _significant_rule,
    ),
    Claim(
        "four", "Four models are ordered differently by Recall@5̄ and by Recall@K for K up to 100.", "Figure 1",
        "The orders of the four models at the quartiles of Recall@5̄ differ at every K up to 100.", _four_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-U1", "At which K does recall among a random sample of labelled items agree with recall on all candidates?",
        measure, data=("kuairec",), minutes=8, claims=CLAIMS,
        shows={"ure": ("Figure 1", "Figure 3"), "ure-short": ("Figure 1",)},
    ),
)  # fmt: skip
