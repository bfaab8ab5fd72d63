"""The calibration study: counts by hand, refusals, and the error rates of the committed result."""

from __future__ import annotations

from typing import Any

import polars as pl

from truerank_research.runner import committed
from truerank_research.validation.calibration import (
    COMPARISONS,
    ESTIMATES,
    count,
)

NAN = float("nan")


def estimates(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Rows (draw, estimator, truth, low, high, is warned) of one metric."""
    return pl.DataFrame([(row[0], "DCG@5", *row[1:]) for row in rows], schema=ESTIMATES, orient="row")


def comparisons(truth: float, verdicts: str, low: Any = None, high: Any = None) -> pl.DataFrame:
    """One draw for each letter: better, worse, inconclusive (n), insufficient evidence (i)."""
    ends = zip(low or [NAN] * len(verdicts), high or [NAN] * len(verdicts), strict=True)
    rows = [
        (draw, "DCG@5", "hajek", truth, *pair, {"b": 1, "w": -1}.get(letter, 0), letter == "i")
        for draw, (letter, pair) in enumerate(zip(verdicts, ends, strict=True))
    ]
    return pl.DataFrame(rows, schema=COMPARISONS, orient="row")


def test_coverage_counts_intervals_and_warnings() -> None:
    counts = count(
        estimates(
            (0, "hajek", 0.5, 0.4, 0.6, False),
            (1, "hajek", 0.5, 0.6, 0.7, True),
            (2, "hajek", 0.5, NAN, NAN, True),
            (0, "judge-alone", 0.5, 0.0, 0.1, False),
            (0, "hajek", None, 0.0, 0.1, False),
        ),
        comparisons(0.0, ""),
    )
    assert (counts["covered"], counts["intervals"]) == (1, 2)
    assert (counts["sure_covered"], counts["sure_intervals"]) == (1, 1)
    assert (counts["warned"], counts["estimates"]) == (2, 3)


def test_type_one_error_is_of_families_and_power_of_different_models() -> None:
    pairs = pl.concat([comparisons(0.0, "bnwn"), comparisons(0.0, "wnnn"), comparisons(-0.2, "wwbi")])
    counts = count(estimates(), pairs)
    assert (counts["false"], counts["families"]) == (2, 4)
    assert (counts["right"], counts["opposite"], counts["different"]) == (2, 1, 4)
    assert (counts["insufficient"], counts["comparisons"]) == (1, 12)


def test_the_committed_rates_keep_what_is_stated() -> None:
    result = committed("calibration")
    everything = result.rows("groups")[0]
    assert len(result.rows("environments")) == 300
    assert everything["error"] <= 0.06
    assert everything["worst error"] <= 0.11
    assert everything["largest error"] <= 0.12
    assert everything["coverage"] >= 0.93
    assert everything["sure coverage"] >= 0.93
    assert everything["warned"] <= 0.25
    assert everything["contradictions"] == 0


def test_wrong_propensities_are_noticed_in_the_committed_result() -> None:
    groups = {row["data"]: row for row in committed("calibration").rows("groups")}
    for stated in ("means of items", "square roots"):
        assert groups[f"wrong propensities: {stated}"]["coverage"] < 0.5
        assert groups[f"wrong propensities: {stated}"]["insufficient"] > 0.95
