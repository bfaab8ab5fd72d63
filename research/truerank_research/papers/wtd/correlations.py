"""E-W2: the rank correlations of tables 3 and 4, computed from the numbers of table 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from truerank.inference.agreement import rank_correlation
from truerank_research.claims import Cell, Cells, Claim, Finding, cell_rows, share, within
from truerank_research.papers.wtd import COAT, CORRELATIONS, SETS, WEBSCOPE, WEIGHTED
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

DATA = {"CoatShopping": COAT, "Webscope": WEBSCOPE}
ROUNDING, MISPRINT = 0.05, 0.015  # one digit after the point, and .68 for the 2/3 that it must be


def measure(run: Run) -> Measured:
    del run  # twenty numbers, nothing random
    cells = []
    for table, by_data in CORRELATIONS.items():
        for data, printed in by_data.items():
            values = correlations(DATA[data], without=() if table == "Table 3" else ("MF",))
            for (name, value), number in zip(values.items(), printed, strict=True):
                tolerance = ROUNDING if round(number, 1) == number else MISPRINT
                cells.append(Cell(table, data, name, value, number, tolerance=tolerance))
    text = "Table 4 prints 0.68 for Webscope. No order of four recommenders has that correlation; table 2 gives 2/3."
    return Measured({"cells": cell_rows(cells)}, differences=[text])


def correlations(table: Mapping[str, tuple[float, ...]], *, without: tuple[str, ...] = ()) -> dict[str, float]:
    """Kendall's correlation of each test set's recalls with the ground truth's, from a table like table 2.

    The recall on a test set is the truth times (100 + difference in percent); on the printed numbers no two are equal.

    >>> {name: round(value, 2) for name, value in correlations(COAT, without=("MF",)).items()}
    {'FULL': 0.33, 'REG': 0.33, 'SKEW': 0.67, 'WTD': 0.67, 'WTD_H': 0.67}
    """
    rows = [row for name, row in table.items() if name not in without]
    truth = [row[0] for row in rows]
    return {
        name: rank_correlation([row[0] * (100 + row[at]) for row in rows], truth).coefficient
        for at, name in enumerate(SETS, 1)
    }


def _order_rule(table: str, sign: int, *, same_on_webscope: bool) -> Callable[[Cells], Finding]:
    """On Coat all weighted sets are below (-1) or above (1) FULL and REG; on Webscope all five may have to be equal."""

    def rule(cells: Cells) -> Finding:
        tau = {name: cells.value(table, "CoatShopping", name) for name in SETS}
        parts = [sign * (tau[name] - tau[base]) > 0 for name in WEIGHTED for base in SETS[:2]]
        values = {round(cells.value(table, "Webscope", name), 6) for name in SETS}
        text = ", ".join(f"{name} {value:.2f}" for name, value in tau.items())
        return share([*parts, len(values) == 1] if same_on_webscope else parts, f"{text}.")

    return rule


CLAIMS = (
    Claim(
        "table 3", "Table 3 follows from table 2.", "Table 3",
        "Every correlation of mean recalls is within rounding of the printed one.", within("Table 3"),
    ),
    Claim(
        "table 4", "Table 4 follows from table 2.", "Table 4",
        f"Every correlation is within rounding of the printed one, {MISPRINT} where it has two digits.",
        within("Table 4"),
    ),
    Claim(
        "harm", "On CoatShopping SKEW, WTD and WTD_H worsen the order of all five recommenders.", "Section 6",
        "Each has a lower correlation than FULL and REG.", _order_rule("Table 3", -1, same_on_webscope=False),
    ),
    Claim(
        "without MF", "Without MF they improve it on CoatShopping, and nothing changes on Webscope.", "Section 6",
        "Each is above FULL and REG on CoatShopping, and all five are equal on Webscope.",
        _order_rule("Table 4", 1, same_on_webscope=True),
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-W2", "Do tables 3 and 4 follow from the numbers that table 2 prints?", measure, minutes=0.1, claims=CLAIMS,
        shows={"wtd": ("Table 3", "Table 4")},
    ),
)  # fmt: skip
