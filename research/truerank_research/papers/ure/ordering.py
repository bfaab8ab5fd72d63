"""E-U3: does the URE estimate order models as their true recall does, and the traditional scheme not? (Figure 5)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.estimators import terms_of
from truerank.estimators.ratios import PostStratified
from truerank.metrics.additive import Recall
from truerank_research.claims import Cell, Cells, Claim, Finding, below, cell_rows, numbers, share, span
from truerank_research.papers.ure.data import (
    SCALE,
    AgreementCurve,
    Block,
    RecallGrid,
    SampledRecall,
    Split,
    coefficient,
    curve,
    cutoffs_up_to,
    split_of,
)
from truerank_research.papers.ure.reevaluation import converged_positions, describe_models
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

LEAST = 30  # models
SCALES = (250.0, SCALE, float("inf"))  # λ: how biased the training log is; at inf it is not
K, OWN_K = 30, (5, 30, 100, 500)  # K of the text, and the K' of Figure 5b
HIGH, APART, SIGNIFICANT = 0.9, 0.2, 0.01
SCHEMES = ("URE@K", "Recall@1̄", "Recall@5̄")
FIGURE = "Figure 5a: {} with Recall@K, {}"
CRITERION = "URE@30 against Recall@5̄: Kendall's τ with Recall@30"
MOST = "what exact values could gain"  # over the order at K = K̄ N / N̄
OWN = "Figure 5b: Kendall's τ of URE@K' with Recall@K"
OWN_PEAKS = "Figure 5b: the K at which URE@K' agrees most with Recall@K"


def measure(run: Run) -> Measured:
    block = Block(run.setting)
    positions, split = converged_positions(run, block), split_of(block)
    n = int(split.count.min())
    sizes = (20, 80) if run.full else (20, 40)
    agreeing = {agreeing_cutoff(split, size) for size in sizes}
    cutoffs = tuple(k for k in sorted({*cutoffs_up_to(n), *OWN_K, *agreeing}) if k <= n)
    grid = RecallGrid(cutoffs, sizes, (1, 5), 20 if run.full else 2)
    agreements = Agreements(grid, grid.measure(split, positions, seed=run.seed))
    cells = [
        *agreements.scheme_cells(),
        *agreements.own_cells(),
        *agreements.criterion_cells(block, split, positions, seed=run.seed),
    ]
    at_chosen = replace(grid, cutoffs=tuple(sorted({K, *agreeing})))
    for scale in SCALES if run.full else SCALES[1:]:
        if scale != block.scale:
            other = replace(block, scale=scale)
            ranked, parts = converged_positions(run, other), split_of(other)
            agreements = Agreements(at_chosen, at_chosen.measure(parts, ranked, seed=run.seed))
            cells += agreements.criterion_cells(other, parts, ranked, seed=run.seed)
    settings, differences = describe_models(len(positions), grid.draws, split)
    return Measured(
        {"cells": cell_rows(cells)},
        settings,
        [
            *block.differences,
            *differences,
            "The short version says correlation, the long one Kendall: both coefficients were computed.",
            "The paper has no post-stratified recall, which varies less and estimates pooled recall; its order of "
            "models was compared with their mean over users. Noise is the standard deviation of an estimate over "
            "draws, spread that of the true Recall@30 over models.",
        ],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreements:
    """Agreement of estimates with true recall, over models."""

    grid: RecallGrid
    recall: SampledRecall

    def curves(self, at: int, *, kendall: bool) -> dict[str, AgreementCurve]:
        """The curve of each scheme at one size of the sample."""
        ure, sampled = self.recall.ure[:, :, at], self.recall.traditional[:, :, at]
        estimates = zip(SCHEMES, (ure, sampled[:, :, 0], sampled[:, :, 1]), strict=True)
        return {scheme: curve(values, self.recall.truth, kendall=kendall) for scheme, values in estimates}

    def scheme_cells(self) -> Iterator[Cell]:
        cutoffs = self.grid.cutoffs[:-1]  # with every candidate recall is 1
        for kind, kendall in (("Kendall's τ", True), ("Pearson's r", False)):
            for at, n in enumerate(self.grid.judged):
                table = FIGURE.format(kind, f"N̄ = {n}")
                for scheme, agreement in self.curves(at, kendall=kendall).items():
                    yield from agreement.cells(table, scheme, cutoffs)
                    for k, p in zip(cutoffs, agreement.p, strict=False):
                        yield Cell(table, f"K = {k}", f"largest p of {scheme}", p)

    def own_cells(self) -> Iterator[Cell]:
        """The agreement of URE@K' with Recall@K over K, at the largest sample, and where it is highest."""
        cutoffs = self.grid.cutoffs[:-1]
        for k in (k for k in OWN_K if k in cutoffs):
            at = cutoffs.index(k)
            agreement = curve(self.recall.ure[:, :, -1, at], self.recall.truth[:, :-1], kendall=True)
            row, best = f"K' = {k}", agreement.best
            yield from (Cell(OWN, f"K = {x}", row, value) for x, value in zip(cutoffs, agreement.mean, strict=True))
            yield Cell(OWN_PEAKS, row, "best K", float(cutoffs[best]))
            yield Cell(OWN_PEAKS, row, "steps from K'", float(best - at))
            yield Cell(OWN_PEAKS, row, "τ at the best K", float(agreement.mean[best]))
            yield Cell(OWN_PEAKS, row, "τ at K'", float(agreement.mean[at]))

    def criterion_cells(self, block: Block, split: Split, positions: Sequence[Ints], *, seed: int) -> Iterator[Cell]:
        """At K = 30: how well models are ordered, by post-stratified recall too, and the noise of the estimates."""
        at = self.grid.cutoffs.index(K)
        truth = self.recall.truth[:, [at]]
        strata = post_stratified(split, self.grid, positions, seed=seed)
        for size, n in enumerate(self.grid.judged):
            curves = self.curves(size, kendall=True)
            ure, sampled = (float(curves[scheme].mean[at]) for scheme in ("URE@K", "Recall@5̄"))
            large = self.recall.truth[:, self.grid.cutoffs.index(agreeing_cutoff(split, n))]
            values = {
                "URE@30": ure,
                "Recall@5̄": sampled,
                "difference": ure - sampled,
                "post-stratified@30": float(curve(strata[:, :, size], truth, kendall=True).mean[0]),
                "noise of URE@30 over spread": noise(self.recall.ure[:, :, size, at], truth[:, 0]),
                "noise of post-stratified@30 over spread": noise(strata[:, :, size], truth[:, 0]),
                MOST: 1 - coefficient(truth[:, 0], large, kendall=True)[0],
                "models": float(len(positions)),
            }
            row = f"λ = {block.scale:g}, N̄ = {n}"
            yield from (Cell(CRITERION, row, column, value) for column, value in values.items())


def agreeing_cutoff(split: Split, judged: int) -> int:
    """K̄ N / N̄, where recall among the labelled items agrees with recall on all (Theorem 1), for K̄ = 5."""
    return round(5 * split.n_candidates / judged)


def post_stratified(split: Split, grid: RecallGrid, positions: Sequence[Ints], *, seed: int) -> Floats:
    """Post-stratified Recall@30 of every model from the same draws [models x draws x N-bar]."""
    values = np.empty((len(positions), grid.draws, len(grid.judged)))
    for number in range(grid.draws):
        drawn = split.draw(max(grid.judged), seed=seed, number=number)
        for at, n in enumerate(grid.judged):
            column = drawn[:, :n]
            log = split.sampled_log(column)
            for model, position in enumerate(positions):
                (terms,) = terms_of(PostStratified(), log, split.ranks(position, column), metrics=[Recall(K)])
                values[model, number, at] = terms.value()
    return values


def noise(estimate: Floats, truth: Floats) -> float:
    """The standard deviation of an estimate [models x draws] over draws, in those of the truth over models.

    >>> noise(np.array([[1.0, 3.0], [2.0, 4.0]]), np.array([2.0, 4.0]))
    1.0
    """
    return float(estimate.std(axis=1, ddof=1).mean() / truth.std(ddof=1))


def _at_k(cells: Cells) -> tuple[str, list[float]]:
    """The largest sample, and τ of the three schemes at K = 30."""
    most = cells.select(CRITERION)[-1].row.split(", ")[1]
    return most, [cells.value(FIGURE.format("Kendall's τ", most), f"K = {K}", scheme) for scheme in SCHEMES]


def _high_rule(cells: Cells) -> Finding:
    most, (ure, *_) = _at_k(cells)
    return share([ure > HIGH], f"τ of URE@{K} is {ure:.2f} ({most}).")


def _poor_rule(cells: Cells) -> Finding:
    most, (ure, one, five) = _at_k(cells)
    why = f"τ is {one:.2f} for Recall@1̄ and {five:.2f} for Recall@5̄, {ure:.2f} for URE ({most})."
    return share([ure - tau >= APART for tau in (one, five)], why)


def _better_rule(cells: Cells) -> Finding:
    differences = {cell.row: cell.obtained or 0.0 for cell in cells.select(CRITERION, column="difference")}
    models = min(numbers(cells.select(CRITERION, column="models")))
    by_size = {
        n: span((value for row, value in differences.items() if row.endswith(n)), "+.2f")
        for n in dict.fromkeys(row.split(", ")[1] for row in differences)
    }
    text = "; ".join(f"{n}: {values}" for n, values in by_size.items())
    gains = numbers(cells.select(CRITERION, column=MOST))
    exact = (
        f" Without noise it could be {span(gains)}: one minus τ of Recall@30 with Recall@K at K = K̄ N / N̄."
        if gains
        else ""
    )
    parts = [value >= APART for value in differences.values()] if models >= LEAST else []
    return share(parts, f"Difference of τ over {len(parts)} cases of λ and N̄, {text}; {models:g} models.{exact}")


def _same_rule(cells: Cells) -> Finding:
    away = {cell.row: cell.obtained or 0.0 for cell in cells.select(OWN_PEAKS, column="steps from K'")}
    text = ", ".join(f"{row} {value:+g}" for row, value in away.items())
    return share([abs(value) <= 1 for value in away.values()], f"Steps between K' and the best K: {text}.")


def _significant_rule(cells: Cells) -> Finding:
    table = FIGURE.format("Kendall's τ", _at_k(cells)[0])
    return below(numbers(cells.select(table, column="largest p of URE@K")), SIGNIFICANT, "p of all draws")


CLAIMS = (
    Claim(
        "high", "At small K (30) Kendall's τ of URE@K with Recall@K is above 0.9.", "Figure 5a",
        "At N̄ = 80 the mean over draws is above 0.9.", _high_rule,
    ),
    Claim(
        "poor", "At small K (30) Recall@1̄ and Recall@5̄ agree poorly with Recall@K.", "Figure 5a",
        "At N̄ = 80 τ of both is at least 0.2 below that of URE@30.", _poor_rule,
    ),
    Claim(
        "better", "URE orders models at K = 30 better than the traditional scheme, by at least 0.2.",
        "Figure 5a, as a criterion",
        "Kendall's τ of URE@30 with Recall@30 minus that of Recall@5̄, over at least 30 models, is at least 0.2 at "
        "N̄ = 20 and at 80 with every λ of the biased log (the paper names none).", _better_rule,
    ),
    Claim(
        "same", "URE@K' agrees most with Recall@K at K = K'.", "Figure 5b",
        "At N̄ = 80, for each K' the K with the highest mean τ is K' or next to it among the tried K.", _same_rule,
    ),
    Claim(
        "significant", "The rank correlations are significant (p < 0.01).", "Figure 5",
        "At N̄ = 80, p of URE@K with Recall@K is below 0.01 in every draw at every K.", _significant_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-U3", "Does the URE estimate order models as their true recall does, and the traditional scheme?", measure,
        data=("kuairec",), minutes=30, claims=CLAIMS, shows={"ure": ("Figure 5",), "ure-short": ("Figure 3",)},
    ),
)  # fmt: skip
