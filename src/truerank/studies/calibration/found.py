"""What a calibration study leaves for its pages: cells, those that fall short, and how many keep their promises."""

from __future__ import annotations

from typing import Any

import polars as pl

from truerank.studies.calibration.summary import EQUAL, VALUE, WORSE_ONE
from truerank.studies.own.result import StudyResult, study_result
from truerank.studies.own.study import StudyTables
from truerank.studies.work import StudySize

ABOUT, MINUTES = "Do intervals and verdicts keep their promises?", 150.0  # of the usual number of draws
SEED = 20261116
PAPERS, BEYOND = "calibration", "calibration-beyond"  # estimators that no paper has: a page of their own
NEWER = "^(strata|designed|pairs|post-normalised|corrected),"
LOW, HIGH, LOW_OF_FEW, FEW, TYPE_ONE, MOST_WARNED = 0.93, 0.97, 0.92, 20, 0.065, 0.05
NOISE = 3  # Monte-Carlo errors that a share may lie beyond a limit
CALM = 0.2  # share of draws without a warning from which on a cell is judged


def calibration_results(found: pl.DataFrame, *, seed: int) -> list[StudyResult]:
    """What the summaries of some worlds say: of those of the papers, and of those beyond, where there are any.

    The number of draws is that of the command, so the size is always the full one.
    """
    newer = pl.col("world").str.contains(NEWER)
    command = f"truerank study calibration --draws {max(found['draws'].to_list())}{f' --seed {seed}' * (seed != SEED)}"
    return [
        study_result(name, calibration_tables(own), command=command, size=StudySize.FULL, seed=seed)
        for name, own in ((PAPERS, found.filter(~newer)), (BEYOND, found.filter(newer)))
        if len(own)
    ]


def calibration_tables(found: pl.DataFrame) -> StudyTables:
    """Every cell (world, metric, estimator, kind of number), those that fall short by more than chance, and counts.

    A cell is judged by its draws without a warning, where they are a fifth of all.
    """
    equal, value = pl.col("kind") == EQUAL, pl.col("kind") == VALUE
    calm = found.filter(pl.col("calm") >= CALM * pl.col("draws"))
    judged = calm.filter(pl.col("covered_calm").is_not_null())
    alike = calm.filter(equal & pl.col("decided_calm").is_not_null())
    short, errors = judged.filter(_is_short()), found.filter(_is_error())
    ample = found.filter(pl.col("ample") & value)
    return StudyTables(
        {
            "short": _cells(pl.concat([short, errors]).unique(maintain_order=True)),
            "cells": _cells(found),
        },
        {
            "worlds": found["world"].n_unique(),
            "fewest draws": found["draws"].min(),
            "most draws": found["draws"].max(),
            "lowest coverage": found.filter(pl.col("kind") != WORSE_ONE)["covered"].min(),
            "judged": len(judged),
            "held": len(judged) - len(short),
            "below as counted": len(judged.filter(pl.col("covered_calm") < _least())),
            "wide": len(judged.filter(_is_wide())),
            "equal": len(found.filter(equal)),
            "called different": len(errors),
            "equal without a warning": len(alike),
            "called different without a warning": len(alike.filter(pl.col("decided_calm") > TYPE_ONE)),
            "most called different without a warning": alike["decided_calm"].max(),
            "ample": len(ample),
            "ample and warned of": len(ample.filter(pl.col("warned") > MOST_WARNED)),
        },
    )


def _cells(found: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table; a value has no verdict, and each kind of difference one that is asked for."""
    kind = pl.col("kind")
    return found.select(
        "world", "metric", "estimator", "kind", "covered", "covered_calm", "width", "warned", "no_interval",
        pl.when(kind != VALUE).then("insufficient").alias("insufficient"),
        pl.when(kind == EQUAL).then("decided").alias("decided"),
        pl.when(kind == WORSE_ONE).then("right").alias("right"),
    ).to_dicts()  # fmt: skip


def _least() -> pl.Expr:
    return pl.when(pl.col("users") <= FEW).then(LOW_OF_FEW).otherwise(LOW)


def _is_short() -> pl.Expr:
    """Coverage without a warning is below what is promised by more than chance."""
    least = _least()
    return pl.col("covered_calm") < least - NOISE * (least * (1 - least) / pl.col("calm")).sqrt()


def _is_wide() -> pl.Expr:
    """Coverage without a warning is above 97 % by more than chance, and there are more than a few users."""
    noise = (HIGH * (1 - HIGH) / pl.col("calm")).sqrt()
    return (pl.col("covered_calm") > HIGH + NOISE * noise) & (pl.col("users") > FEW)


def _is_error() -> pl.Expr:
    """Equal models are called different more often than promised, by more than chance."""
    noise = (TYPE_ONE * (1 - TYPE_ONE) / pl.col("draws")).sqrt()
    return (pl.col("kind") == EQUAL) & (pl.col("decided") > TYPE_ONE + NOISE * noise)
