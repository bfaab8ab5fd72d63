"""Runs of the WTD paper: means over runs by hand, settings chosen, forms of IB_KNN, verdicts on hand-made tables."""

from __future__ import annotations

import polars as pl
import pytest

from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.wtd import COAT, RECOMMENDERS, SETS, TRUTH
from truerank_research.papers.wtd.runs import (
    EVERY,
    RANDOM,
    RunMeans,
    score_run,
)
from truerank_research.papers.wtd.setting import STRATEGIES
from truerank_research.papers.wtd.table_2 import CLAIMS, MAIN
from truerank_research.runner import Setting


def table(values: dict[str, list[float]], *, recommender: str = "MF") -> pl.DataFrame:
    return pl.concat(
        [
            pl.DataFrame({"user": range(len(of)), "value": of}).with_columns(
                recommender=pl.lit(recommender), test=pl.lit(test), metric=pl.lit("Recall")
            )
            for test, of in values.items()
        ]
    )


def test_a_difference_is_a_ratio_of_means_over_runs() -> None:
    nan = float("nan")
    runs = [
        table({TRUTH: [0.2, 0.4, nan], "FULL": [0.6, nan, nan]}),  # means 0.3 and 0.6
        table({TRUTH: [0.1, 0.1, 0.1], "FULL": [0.2, 0.2, 0.8]}),  # means 0.1 and 0.4
    ]
    means = RunMeans.from_tables(runs, seed=0)
    assert means.mean("MF", TRUTH)[0] == pytest.approx(0.2)
    assert means.percent("MF", "FULL")[0] == pytest.approx(150)  # 0.5 / 0.2, not the mean of +100 % and +300 %
    # every resample draws users once for all runs
    weights = means.weights[7]
    if weights[0] > 0:
        first = (0.2 * weights[0] + 0.4 * weights[1]) / (weights[0] + weights[1])
        assert means.mean("MF", TRUTH)[7] == pytest.approx((first + 0.1) / 2)


def test_the_sets_of_a_run_in_a_world_whose_truth_is_known() -> None:
    found = score_run(Setting(), 0, "coat", RANDOM, (("PosPop", 0),))
    assert set(found["test"].unique()) == {TRUTH, EVERY, "truth, training rows kept", *STRATEGIES}
    assert found["value"].drop_nans().is_between(0, 1).all()
    again = score_run(Setting(), 0, "coat", RANDOM, (("PosPop", 0),))
    assert found.equals(again)


def obtained(off: dict[tuple[str, str], float], *, truth: dict[str, float] | None = None, width: float = 5.0) -> Cells:
    """A table 2 as printed, but for some cells."""
    cells = []
    for who, row in COAT.items():
        value = (truth or {}).get(who, row[0])
        cells.append(Cell(MAIN, who, TRUTH, value, row[0], tolerance=0.01))
        for at, test in enumerate(SETS):
            number = off.get((who, test), row[1 + at])
            cells.append(Cell(MAIN, who, f"{test}, %", number, row[1 + at], number - width, number + width))
            cells += [
                Cell(f"{metric}@10, difference in percent", who, f"{test}, %", number)
                for metric in ("Precision", "MAP", "nDCG")
            ]
    return Cells(tuple(cells))


def words(cells: Cells) -> dict[str, Verdict]:
    return {claim.key: claim.rule(cells).verdict for claim in CLAIMS}


def test_verdicts_on_the_printed_table_itself() -> None:
    of = words(obtained({}))
    assert {key for key, word in of.items() if word is Verdict.REPLICATES} == {
        "truths", "half", "signs", "best", "impersonal", "personal", "balance", "no random data", "metrics",
    }  # fmt: skip
    assert of["far"] is Verdict.IN_PART  # MF: SKEW +179, REG +176
    assert of["webscope"] is Verdict.UNTESTABLE
    assert of["MF"] is Verdict.IN_PART  # fourth on FULL and REG of the printed table


def test_verdicts_change_with_the_numbers() -> None:
    assert words(obtained({}, truth={"MF": 0.08}))["truths"] is Verdict.IN_PART
    assert words(obtained({("MF", "WTD_H"): 250.0}))["personal"] is Verdict.IN_PART
    everywhere = {(who, "SKEW"): 0.5 for who in RECOMMENDERS}
    assert words(obtained(everywhere))["best"] is Verdict.FAILS
    assert words(obtained({("PosPop", "REG"): 10.0}))["half"] is Verdict.IN_PART
    assert words(obtained({("PosPop", "WTD_H"): 3.0}))["signs"] is Verdict.IN_PART
    assert words(obtained({}, width=500.0))["no random data"] is Verdict.FAILS
    assert words(obtained({("PosPop", "FULL"): float("nan")}))["best"] is Verdict.UNTESTABLE
