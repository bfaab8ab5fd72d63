"""What a calibration study leaves for its pages: cells, those that fall short, and how many keep their promises."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import polars as pl

from truerank_research.pages import Page, Picture
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.calibration.summary import EQUAL, VALUE, WORSE_ONE, summaries
from truerank_research.validation.calibration.worlds import worlds

NEWER = re.compile("(strata|designed|pairs|post-normalised|corrected),")  # estimators that no paper has
LOW, HIGH, LOW_OF_FEW, FEW, TYPE_ONE, MOST_WARNED = 0.93, 0.97, 0.92, 20, 0.065, 0.05
NOISE = 3  # Monte-Carlo errors that a share may lie beyond a limit
CALM = 0.2  # share of draws without a warning from which on a cell is counted


def measure_worlds(*, newer: bool) -> Callable[[Run], Measured]:
    """Draw the datasets for the estimators of the papers, or for newer ones."""

    def measure(run: Run) -> Measured:
        chosen = [world for world in worlds() if bool(NEWER.match(world.name)) == newer]
        return calibration_tables(summaries(run, chosen if run.full else chosen[:2], draws=2000 if run.full else 3))

    return measure


def calibration_tables(found: pl.DataFrame) -> Measured:
    """Every cell (world, metric, estimator, kind of number), those that fall short by more than chance, and counts.

    A cell is judged by its draws without a warning, where they are a fifth of all.
    """
    equal, value = pl.col("kind") == EQUAL, pl.col("kind") == VALUE
    calm = found.filter(pl.col("calm") >= CALM * pl.col("draws"))
    judged = calm.filter(pl.col("covered_calm").is_not_null())
    alike = calm.filter(equal & pl.col("decided_calm").is_not_null())
    short, errors = judged.filter(_is_short()), found.filter(_is_error())
    ample = found.filter(pl.col("ample") & value)
    return Measured(
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


def _page(title: str, about: str) -> Page:
    return Page(
        title,
        f"{about} were drawn {{{{ settings['most draws'] | number }}}} times each from {{{{ settings.worlds }}}} simulated "
        "datasets and evaluated as a user would. Of {{ settings.judged }} estimates without a warning, "
        "{{ settings.held }} have the coverage that truerank states (93 to 97%, 92% below 20 users). Two equal models are "
        "called different in at most {{ settings['most called different without a warning'] | percent }} of the draws "
        "without a warning.",
        Picture(
            "Share of 95% intervals that cover the true Recall@20 or nDCG@20", "ranges", x="world", y="covered",
            group="estimator", y_title="coverage", table="cells",
            where={"kind": [VALUE], "metric": ["Recall@20", "nDCG@20", "reward"]}, level=0.95, band=(0.93, 0.97),
        ),
        "cells",
        {
            "world": "dataset", "metric": "metric", "estimator": "estimator", "covered": "coverage",
            "covered_calm": "coverage without a warning", "warned": "warned", "decided": "called different",
        },
        {"kind": [EQUAL]},
    )  # fmt: skip


STUDIES = (
    Study(
        "calibration", "Do intervals and verdicts have the error rates that truerank states?",
        measure_worlds(newer=False), minutes=110, page=_page("Calibration of intervals and verdicts", "Labels and logs"),
    ),
    Study(
        "calibration-beyond", "Do intervals and verdicts of further estimators have the stated error rates?",
        measure_worlds(newer=True), minutes=40,
        page=_page("Calibration of further estimators", "Labels for estimators that none of the papers has"),
    ),
)  # fmt: skip
