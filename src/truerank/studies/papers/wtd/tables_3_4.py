"""E-W2: the rank correlations of tables 3 and 4, from the numbers of table 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

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
)
from truerank.studies.papers.wtd import PAPER
from truerank.studies.papers.wtd.published import COAT, FACTORISED, SETS, TABLE_3, TABLE_4, WEBSCOPE
from truerank.studies.work import Keep, StudySize, StudySource
from truerank.uncertainty.agreement import rank_correlation

DATA = {"CoatShopping": COAT, "Webscope": WEBSCOPE}
PRINTED = {"Table 3": TABLE_3, "Table 4": TABLE_4}
ROUNDING, MISPRINT = 0.05, 0.015  # one digit after the point, and .68 for the 2/3 that it must be
AWARE = ("SKEW", "WTD", "WTD_H")


@dataclass(frozen=True, slots=True)
class PrintedCorrelations:
    """Kendall's correlations of the order of recommenders on each test set with that on the ground truth."""

    name: ClassVar[str] = "E-W2"
    about: ClassVar[str] = "Tables 3 and 4, computed from the numbers that table 2 prints."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 3", "Table 4")}
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 0.1
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "table 3", "Table 3 follows from table 2.", "Table 3",
            "Holds if every correlation of mean recalls is within rounding of the printed one.",
        ),
        PaperClaim(
            "table 4", "Table 4 follows from table 2.", "Table 4",
            f"Holds if every correlation is within rounding of the printed one, {MISPRINT} where it has two digits.",
        ),
        PaperClaim(
            "harm", "On CoatShopping SKEW, WTD and WTD_H harm the order of all five recommenders.", "Section 6",
            "Holds if each has a lower correlation than FULL and REG.",
        ),
        PaperClaim(
            "without MF", "Without MF they improve it on CoatShopping, and nothing changes on Webscope.", "Section 6",
            "Holds if each is above FULL and REG on CoatShopping, and all five are equal on Webscope.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del source, size, seed, keep, progress  # all of it is twenty numbers
        cells = []
        for table, printed in PRINTED.items():
            for data, numbers in DATA.items():
                found = correlations(numbers, without=() if table == "Table 3" else (FACTORISED,))
                for (name, value), text in zip(found.items(), printed[data], strict=True):
                    cells.append(
                        Cell(table, data, name, value, text, tolerance=MISPRINT if two_digits(text) else ROUNDING)
                    )
        return Measurements(
            tuple(cells),
            (_graph(cells),),
            differs=(
                "Table 4 prints 0.68 for Webscope; no order of four recommenders has that correlation, 2/3 is what "
                "table 2 gives.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        found = []
        for table, key in (("Table 3", "table 3"), ("Table 4", "table 4")):
            within = [cell.is_within is True for cell in cells.of(table)]
            found.append(by_share(key, within, f"{sum(within)} of {len(within)} are within rounding."))
        lower = [_value(cells, "Table 3", each) < min(_baselines(cells, "Table 3")) for each in AWARE]
        higher = [_value(cells, "Table 4", each) > max(_baselines(cells, "Table 4")) for each in AWARE]
        same = len({round(cell.obtained or 0.0, 6) for cell in cells.of("Table 4", "Webscope")}) == 1
        five = ", ".join(f"{_value(cells, 'Table 3', each):.2f}" for each in SETS)
        four = ", ".join(f"{_value(cells, 'Table 4', each):.2f}" for each in SETS)
        return (
            *found,
            by_share("harm", lower, f"{', '.join(SETS)}: {five}."),
            by_share("without MF", [*higher, same], f"{', '.join(SETS)} without MF: {four}."),
        )


def correlations(table: Mapping[str, tuple[float, ...]], *, without: tuple[str, ...] = ()) -> dict[str, float]:
    """Kendall's correlation of each test set's recalls with the ground truth's, from a table like table 2.

    The recall on a test set is the truth times (100 + difference in percent); on the printed numbers no two are equal.

    >>> {name: round(value, 2) for name, value in correlations(COAT, without=("MF",)).items()}
    {'FULL': 0.33, 'REG': 0.33, 'SKEW': 0.67, 'WTD': 0.67, 'WTD_H': 0.67}
    """
    rows = [row for name, row in table.items() if name not in without]
    truth = [row[0] for row in rows]
    return {
        name: rank_correlation([row[0] * (100 + row[1 + at]) for row in rows], truth).tau
        for at, name in enumerate(SETS)
    }


def two_digits(printed: float) -> bool:
    """Whether a number is printed with two digits after the point."""
    return abs(round(printed, 1) - printed) > 1e-9


def _value(cells: Cells, table: str, name: str) -> float:
    return cells.value(table, "CoatShopping", name)


def _baselines(cells: Cells, table: str) -> list[float]:
    return [_value(cells, table, each) for each in ("FULL", "REG")]


def _graph(cells: list[Cell]) -> PaperGraph:
    titles = {"Table 3": "all five", "Table 4": "without MF"}
    points = tuple(GraphPoint(cell.column, cell.obtained, titles[cell.table], cell.row) for cell in cells)
    return PaperGraph(
        "order", "Kendall's correlation of the order of recommenders with that of the ground truth, from table 2",
        "One recommender more or less turns the answer round: orders of five are fragile.",
        GraphKind.POINTS, x="test set", y="Kendall's τ", points=points,
    )  # fmt: skip
