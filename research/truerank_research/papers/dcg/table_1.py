"""E-D1: an example in which nDCG reverses the order of two policies (Table 1), with both of its normalisers."""

from __future__ import annotations

import numpy as np
import polars as pl

from truerank.core.metric import Metric
from truerank.core.options import Gain
from truerank.evaluation.labels import evaluate
from truerank.io.read import read
from truerank.metrics.additive import DCG
from truerank.metrics.listwise import NDCG
from truerank_research.claims import Cell, Cells, Claim, Finding, cell_rows, printed_table, share, within
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

# the expected quality of items a1 and a2 in two contexts, and which item each policy ranks first
QUALITY = {"x1": (1.0, 0.0), "x2": (1.0, 2.5)}
POLICIES = {"R": 0, "R'": 1}
PRINTED = 0.005  # two digits after the point
COLUMNS = ("DCG(x1)", "DCG(x2)", "nDCG(x1)", "nDCG(x2)", "DCG(X)", "nDCG(X)")
PUBLISHED = printed_table("R | 1 1 1 .29 1 .64\nR' | 0 2.5 0 .71 1.25 .36")
TABLE, IDEAL = "Table 1", "Table 1, divided by the ideal list as in the text"


def measure(run: Run) -> Measured:
    del run  # four numbers, nothing random
    values = _values()
    total = {context: sum(quality) for context, quality in QUALITY.items()}
    cells = []
    for policy in POLICIES:
        dcg = values[policy, "DCG"]
        by_sum = {context: value / total[context] for context, value in dcg.items()}
        for table, normalised in ((TABLE, by_sum), (IDEAL, values[policy, "nDCG"])):
            for metric, numbers in (("DCG", dcg), ("nDCG", normalised)):
                for context, value in {**numbers, "X": float(np.mean(list(numbers.values())))}.items():
                    column = f"{metric}({context})"
                    printed = PUBLISHED[policy][COLUMNS.index(column)] if table == TABLE else None
                    cells.append(
                        Cell(table, policy, column, value, printed, tolerance=None if printed is None else PRINTED)
                    )
    return Measured(
        {"cells": cell_rows(cells)},
        differences=[
            "The text divides by the DCG of the ideal list (2.5 in x2), the printed table by the sum of all qualities "
            "(3.5). Both were computed.",
        ],
    )


def _values() -> dict[tuple[str, str], dict[str, float]]:
    """DCG@1 and nDCG@1 of both policies in each context, from `evaluate`."""
    rows = [(user, item, value) for user, quality in enumerate(QUALITY.values()) for item, value in enumerate(quality)]
    labels = read(pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row"), positive=">0")
    scores = {name: np.array([[first == item for item in range(2)]] * 2, float) for name, first in POLICIES.items()}
    metrics: list[Metric | str] = [DCG(1, Gain.LINEAR), NDCG(1, Gain.LINEAR)]
    units = evaluate(scores, labels, exposure="full", metrics=metrics, threads=1).units()
    contexts = list(QUALITY)
    values: dict[tuple[str, str], dict[str, float]] = {}
    for row in units.iter_rows(named=True):
        metric = "DCG" if str(row["metric"]).startswith("DCG") else "nDCG"
        values.setdefault((row["model"], metric), {})[contexts[row["unit"]]] = row["value"]
    return values


def _is_reversed(cells: Cells) -> Finding:
    def preferred(table: str, column: str) -> int:
        first, second = (cells.value(table, policy, column) for policy in POLICIES)
        return int(np.sign(first - second))

    single = [
        preferred(table, f"DCG({context})") == preferred(table, f"nDCG({context})")
        for table in (TABLE, IDEAL)
        for context in QUALITY
    ]
    both = [preferred(table, "DCG(X)") == -preferred(table, "nDCG(X)") for table in (TABLE, IDEAL)]
    first, second = (cells.value(IDEAL, policy, "nDCG(X)") for policy in POLICIES)
    return share(
        [*single, *both],
        f"The order over both contexts is reversed with {sum(both)} of 2 normalisers, and within one context in "
        f"{single.count(False)} of 4 cases. Divided by the ideal list, mean nDCG is {first:.2f} for R and "
        f"{second:.2f} for R'.",
    )


CLAIMS = (
    Claim(
        "table", "The numbers of Table 1.", "Table 1",
        "Every number is within rounding of the printed one; the paper divides by the sum of qualities.",
        within(TABLE),
    ),
    Claim(
        "inverted", "nDCG reverses the order that DCG gives two policies, though in no single context.", "Table 1",
        "Both metrics agree in each context and disagree over both, with both normalisers.", _is_reversed,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-D1", "Can DCG and the mean of nDCG put two policies in opposite orders?", measure, minutes=0.1,
        claims=CLAIMS, shows={"dcg": ("Table 1",)},
    ),
)  # fmt: skip
