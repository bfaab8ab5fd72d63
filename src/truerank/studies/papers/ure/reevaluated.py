"""Table 4 as cells, pictures and verdicts: what was true of each model, and what estimates said in each draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats
from truerank.studies.papers.experiment import Obtained
from truerank.studies.papers.paper import (
    Cell,
    Cells,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    PaperGraph,
    by_share,
)

ESTIMATES = ("published mean (URE)", "pooled", "post-stratified", "weighted, N⁺ known", "corrected")
OF_PAIRS = ("pooled", "post-stratified")  # these estimate recall over all relevant pairs
CRITERION = ("pooled", "weighted, N⁺ known")
TABLE, BIAS, SIZES = "Table 4, KuaiRec", "Bias over draws, in % of what is estimated", "Table 2: sizes"
EXACT = "limit of the published mean"
LIMIT, LEAST_DRAWS, NEAR = 3.0, 200, 0.1
COLUMNS = ("Recall@5̄", "Recall@5", "URE@5", "URE@500", "Recall@500")
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "MF Bias": (0.3546, 0.0215, 0.0213, 0.3280, 0.3237),
    "MF IPS": (0.3102, 0.0213, 0.0230, 0.2771, 0.2743),
    "MF DR": (0.5465, 0.0353, 0.0362, 0.5077, 0.5050),
    "MF AutoDebias": (0.5482, 0.0355, 0.0352, 0.5129, 0.5097),
    "MF NegS": (0.5358, 0.0327, 0.0326, 0.5052, 0.5012),
    "LightGCN Bias": (0.4859, 0.0257, 0.0267, 0.4503, 0.4482),
    "LightGCN IPS": (0.4889, 0.0266, 0.0273, 0.4539, 0.4522),
    "LightGCN DR": (0.4849, 0.0262, 0.0267, 0.4500, 0.4457),
    "LightGCN AutoDebias": (0.5181, 0.0317, 0.0323, 0.4571, 0.4558),
    "LightGCN NegS": (0.5288, 0.0237, 0.0245, 0.4954, 0.4944),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A model at one N-bar and K: mean and pooled recall on D_full, the limit of the published mean, and all draws."""

    model: str
    judged: int
    k: int
    mean: float
    pooled: float
    limit: float
    estimates: Mapping[str, Floats]
    traditional: Floats

    @property
    def name(self) -> str:
        return f"{self.model}, K = {self.k}, N̄ = {self.judged}"

    def target(self, estimate: str) -> float:
        """What an estimate is of: mean recall over users, or recall over all relevant pairs."""
        return self.pooled if estimate in OF_PAIRS else self.mean


def table_cells(rows: Sequence[Row], models: Sequence[str]) -> list[Cell]:
    """The columns of Table 4 for every size of the sample, and the other estimates beside them."""
    cells = []
    found = {(row.model, row.judged, row.k): row for row in rows}
    sizes, cutoffs = (sorted({getattr(row, name) for row in rows}) for name in ("judged", "k"))
    few, many = cutoffs[0], cutoffs[-1]
    for model in models:
        printed = dict(zip(COLUMNS, PUBLISHED[model], strict=True))
        first, last = found[model, sizes[0], few], found[model, sizes[0], many]
        cells += [
            Cell(TABLE, model, f"Recall@{few}", first.mean, printed["Recall@5"]),
            Cell(TABLE, model, f"Recall@{many}", last.mean, printed["Recall@500"]),
        ]
        for n in sizes:
            old = f"Recall@{few}̄, N̄ = {n}"
            cells.append(_spread(TABLE, model, old, found[model, n, few].traditional, printed["Recall@5̄"]))
            for k, name in ((few, "URE@5"), (many, "URE@500")):
                row = found[model, n, k]
                for estimate, values in row.estimates.items():
                    ure = estimate == ESTIMATES[0]
                    column = f"URE@{k}, N̄ = {n}" if ure else f"{estimate}@{k}, N̄ = {n}"
                    cells.append(_spread(TABLE, model, column, values, printed[name] if ure else None))
        cells += [
            Cell(TABLE, model, f"pooled Recall@{few}", first.pooled),
            Cell(TABLE, model, f"pooled Recall@{many}", last.pooled),
        ]
    return cells


def _spread(table: str, row: str, column: str, values: Floats, published: float | None) -> Cell:
    """The mean over draws, and the range of nine tenths of them."""
    known = values[np.isfinite(values)]
    if not len(known):
        return Cell(table, row, column, None, published)
    low, high = np.quantile(known, [0.05, 0.95]).tolist()
    return Cell(table, row, column, float(known.mean()), published, low, high)


def bias_cells(rows: Sequence[Row]) -> list[Cell]:
    """Bias over draws with 3 Monte-Carlo standard errors on either side, in % of what is estimated.

    A draw that gives no number leaves the bias of that estimate undefined: an average of the others would be of
    another quantity.
    """
    cells = []
    for row in rows:
        cells += [
            Cell(BIAS, row.name, "mean recall", row.mean),
            Cell(BIAS, row.name, "pooled recall", row.pooled),
            Cell(BIAS, row.name, EXACT, 100 * (row.limit / row.mean - 1) if row.mean > 0 else None),
            Cell(BIAS, row.name, "draws", float(len(row.estimates[ESTIMATES[0]]))),
        ]
        for estimate, values in row.estimates.items():
            target = row.target(estimate)
            if not np.isfinite(values).all() or target <= 0 or len(values) < 2:
                cells.append(Cell(BIAS, row.name, estimate))
                continue
            off = 100 * (float(values.mean()) / target - 1)
            error = 100 * LIMIT * float(values.std(ddof=1)) / np.sqrt(len(values)) / target
            cells.append(Cell(BIAS, row.name, estimate, off, low=off - error, high=off + error))
    return cells


def judged_claims(obtained: Obtained, models: Sequence[str]) -> tuple[ClaimFinding, ...]:
    """A verdict on every claim of Table 4."""
    cells = obtained.cells
    columns = list(dict.fromkeys(cell.column for cell in cells.of(TABLE)))
    there = [model for model in models if cells.of(TABLE, row=model)]
    few, many = columns[0], columns[1]  # Recall at the small and the large K
    old = [column for column in columns if "̄, N̄ = " in column]
    ure = next(column for column in columns if column.startswith("URE@"))
    true, late, near = ({m: cells.value(TABLE, m, c) for m in there} for c in (few, many, ure))
    sampled = [{m: cells.value(TABLE, m, column) for m in there} for column in old]
    close = [abs(near[m] / true[m] - 1) <= NEAR for m in there]
    far = [all(sampled[0][m] > 2 * true[m] for m in there), _order(sampled[0]) != _order(true)]
    above, below = (
        sum((each[m] > late[m]) == up for m in there) for each, up in zip(sampled, (True, False), strict=True)
    )
    parts = [[m for m in there if m.startswith(f"{backbone} ")] for backbone in ("MF", "LightGCN")]
    worse = [any(true[m] < true[part[0]] for m in part[1:4]) for part in parts]
    hard = [max(true[m] for m in part) > true[part[-1]] for part in parts]
    cutoff = [_order({m: true[m] for m in part}) != _order({m: late[m] for m in part}) for part in parts]
    lowest = [min((m for m in part), key=lambda m: true[m]) for part in parts]
    best = [max((m for m in part), key=lambda m: true[m]) for part in parts]
    biased = [_covers(cell) for cell in cells.of(BIAS, column=ESTIMATES[0])]
    return (
        by_share(
            "close",
            close,
            f"{sum(close)} of {len(close)} within 10 %; the largest difference is "
            f"{max(abs(near[m] / true[m] - 1) for m in there):.0%}.",
        ),
        by_share(
            "unbiased",
            biased,
            f"{sum(biased)} of {len(biased)} biases are within 3 standard errors; they reach "
            f"{_worst(cells, ESTIMATES[0])}.",
        ),
        _criterion(cells),
        by_share(
            "discrepancy",
            far,
            f"Recall@5̄ is {min(sampled[0][m] / true[m] for m in there):.1f} to "
            f"{max(sampled[0][m] / true[m] for m in there):.1f} times Recall@5; the orders are "
            f"{'different' if far[1] else 'the same'}.",
        ),
        by_share(
            "size",
            [above == len(there), below == len(there)],
            f"Recall@5̄ is above {many} for {above} of {len(there)} models with few judged items, below it for "
            f"{below} with many.",
        ),
        by_share("worse", [any(worse)], f"In {sum(worse)} of {len(worse)} backbones; lowest: {' and '.join(lowest)}."),
        by_share("hard", hard, f"Best: {' and '.join(best)}."),
        by_share("cutoff", [any(cutoff)], f"The order changes in {sum(cutoff)} of {len(cutoff)} backbones."),
        ClaimFinding("yahoo", ClaimVerdict.UNTESTED, "Yahoo!R3 is given out under a signed agreement and is not here."),
    )


def _criterion(cells: Cells) -> ClaimFinding:
    found = [cell for estimate in CRITERION for cell in cells.of(BIAS, column=estimate)]
    within = [_covers(cell) for cell in found]
    draws = min(cells.values(cells.of(BIAS, column="draws")))
    out = [cell for cell, inside in zip(found, within, strict=True) if not inside]
    worst = "" if not out else f" Outside: {'; '.join(f'{cell.column}, {cell.row}' for cell in out[:3])}."
    why = f"{sum(within)} of {len(within)} biases are within 3 standard errors over {draws:g} draws.{worst}"
    return by_share("pooled", within if draws >= LEAST_DRAWS else [], why)


def _covers(cell: Cell) -> bool:
    """Whether a bias is within its 3 standard errors."""
    return cell.low is not None and cell.high is not None and cell.low <= 0 <= cell.high


def _order(values: Mapping[str, float]) -> list[str]:
    return sorted(values, key=lambda model: -values[model])


def _worst(cells: Cells, estimate: str) -> str:
    found = max(cells.of(BIAS, column=estimate), key=lambda cell: abs(cell.obtained or 0.0))
    return f"{found.obtained or 0.0:+.0f} % ({found.row})"


def pictures(rows: Sequence[Row]) -> tuple[PaperGraph, ...]:
    """The bias of each estimate by K and N-bar, every model a point."""
    cells = Cells(tuple(bias_cells(rows)))
    sizes = sorted({row.judged for row in rows})
    points = tuple(
        GraphPoint(f"{estimate}, K = {row.k}", cell.obtained, group=f"N̄ = {row.judged}")
        for estimate in ESTIMATES
        for row in sorted(rows, key=lambda each: (each.k, each.judged))
        for cell in cells.of(BIAS, row.name, estimate)
    )
    reach = [
        max((abs(cell.obtained or 0.0) for cell in cells.of(BIAS, column=estimate)), default=0.0)
        for estimate in (ESTIMATES[0], "pooled")
    ]
    return (
        PaperGraph(
            "bias",
            f"Bias over draws in % of what is estimated, a point for each model; N̄ = {sizes[0]} and {sizes[-1]}",
            f"The published mean is off by up to {reach[0]:.0f} %, pooled recall by up to {reach[1]:.1f} %.",
            GraphKind.RANGES,
            x="",
            y="bias in %",
            points=points,
            level=0.0,
        ),
    )
