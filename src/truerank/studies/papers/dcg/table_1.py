"""E-D1: a proof by example that nDCG can invert the order of two policies (Table 1), with both of its normalisers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.metric import Metric
from truerank.core.options import Gain
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.data.read import read
from truerank.evaluation.judged import evaluate
from truerank.metrics.dcg import DCG
from truerank.metrics.ndcg import NDCG
from truerank.studies.papers.dcg import PAPER
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
from truerank.studies.work import Keep, StudySize, StudySource

# the expected quality of items a1 and a2 in two contexts, and what each policy puts first
QUALITY = {"x1": (1.0, 0.0), "x2": (1.0, 2.5)}
POLICIES = {"R": 0, "R'": 1}
PRINTED = 0.005  # two digits after the point
PUBLISHED = {
    "R": {"DCG(x1)": 1.0, "DCG(x2)": 1.0, "nDCG(x1)": 1.0, "nDCG(x2)": 0.29, "DCG(X)": 1.0, "nDCG(X)": 0.64},
    "R'": {"DCG(x1)": 0.0, "DCG(x2)": 2.5, "nDCG(x1)": 0.0, "nDCG(x2)": 0.71, "DCG(X)": 1.25, "nDCG(X)": 0.36},
}
TABLE, IDEAL = "Table 1", "Table 1, divided by the ideal list as in the text"


@dataclass(frozen=True, slots=True)
class InvertedOrder:
    """Two policies in two contexts: DCG prefers one, the mean of nDCG the other."""

    name: ClassVar[str] = "E-D1"
    about: ClassVar[str] = "Two policies that DCG and the mean of nDCG put in opposite orders."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 1",)}
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 0.1
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "table", "The numbers of Table 1.", "Table 1",
            "Holds if every number is within rounding of the printed one; the paper divides by the sum of qualities.",
        ),
        PaperClaim(
            "inverted", "nDCG inverts the order that DCG gives two policies, though in no single context.", "Table 1",
            "Holds if both metrics agree in each context and disagree over both, with both ways to normalise.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del source, size, seed, keep, progress  # all of it is four numbers
        ideal = _values()
        total = {context: sum(quality) for context, quality in QUALITY.items()}
        cells = []
        for policy in POLICIES:
            dcg = ideal[policy, "DCG"]
            by_sum = {context: value / total[context] for context, value in dcg.items()}
            for table, normalised in ((TABLE, by_sum), (IDEAL, ideal[policy, "nDCG"])):
                row = {
                    **{f"DCG({context})": value for context, value in dcg.items()},
                    **{f"nDCG({context})": value for context, value in normalised.items()},
                    "DCG(X)": float(np.mean(list(dcg.values()))),
                    "nDCG(X)": float(np.mean(list(normalised.values()))),
                }
                for column, value in row.items():
                    printed = PUBLISHED[policy][column] if table == TABLE else None
                    cells.append(
                        Cell(table, policy, column, value, printed, tolerance=None if printed is None else PRINTED)
                    )
        return Measurements(
            cells=tuple(cells),
            graphs=(_graph(cells),),
            differs=(
                "The text divides by the DCG of the ideal list (2.5 in x2), the printed table by the sum of all "
                "qualities (3.5); both stand here.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        printed = [cell for cell in cells.of(TABLE) if cell.is_within is not None]
        within = sum(cell.is_within is True for cell in printed)
        kept = []
        for table in (TABLE, IDEAL):
            for context in ("x1", "x2"):
                gain, same = (_better(obtained, table, f"{metric}({context})") for metric in ("DCG", "nDCG"))
                kept.append(gain == same)
            kept.append(_better(obtained, table, "DCG(X)") == -_better(obtained, table, "nDCG(X)"))
        first, second = (cells.value(IDEAL, policy, "nDCG(X)") for policy in POLICIES)
        return (
            by_share("table", [cell.is_within is True for cell in printed],
                     f"{within} of {len(printed)} numbers are within {PRINTED} of the printed ones."),
            by_share("inverted", kept,
                     f"The order over both contexts is inverted with {kept[2::3].count(True)} of 2 normalisers, that "
                     f"in a single one in {(kept[:2] + kept[3:5]).count(False)} of 4 cases; divided by the ideal list, "
                     f"mean nDCG is {first:.2f} of R and {second:.2f} of R'."),
        )  # fmt: skip


def _better(obtained: Obtained, table: str, column: str) -> int:
    """Which policy a column prefers: 1 the first, -1 the second, 0 neither."""
    first, second = (obtained.cells.value(table, policy, column) for policy in POLICIES)
    return int(np.sign(first - second))


def _values() -> dict[tuple[str, str], dict[str, float]]:
    """DCG@1 and nDCG@1 of both policies in each context, as `evaluate` gives them."""
    rows = [(at, item, value) for at, quality in enumerate(QUALITY.values()) for item, value in enumerate(quality)]
    labels = read(pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row"), positive=">0")
    # whatever the context, a policy puts the same item first
    scores = {name: np.array([[at == place for place in range(2)]] * 2, float) for name, at in POLICIES.items()}
    metrics: list[Metric | str] = [DCG(1, Gain.LINEAR), NDCG(1, Gain.LINEAR)]
    units = evaluate(scores, labels, exposure="full", metrics=metrics, threads=1).units()
    contexts = list(QUALITY)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in units.iter_rows(named=True):
        metric = "DCG" if str(row["metric"]).startswith("DCG") else "nDCG"
        found.setdefault((row["model"], metric), {})[contexts[row["unit"]]] = row["value"]
    return found


def _graph(cells: list[Cell]) -> PaperGraph:
    points = tuple(
        GraphPoint(cell.column, cell.obtained, group=cell.row)
        for cell in cells
        if cell.table == TABLE and cell.column.endswith("(X)")
    )
    return PaperGraph(
        "order", "Mean over both contexts of Table 1", "DCG prefers R', the mean of nDCG prefers R.",
        GraphKind.RANGES, x="", y="mean over contexts", points=points,
    )  # fmt: skip
