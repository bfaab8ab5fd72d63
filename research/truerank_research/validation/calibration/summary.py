"""What the draws of a study say: coverage, errors of verdicts, power, and how often nothing was decided."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from truerank_research.runner import Run
from truerank_research.validation.calibration.drawing import draw_worlds
from truerank_research.validation.calibration.worlds import World

VALUE, EQUAL, WORSE_ONE = "value", "equal models", "a worse model"

HELD = (pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))


def summary(drawn: pl.DataFrame) -> pl.DataFrame:
    """A row for each metric and estimator: of values, of the difference of equal models, and of a worse one.

    Coverage counts draws with an interval. `type_one` is the share of draws of equal models that end in better or
    worse, `power` that of a worse model that is called worse; both with and without a warning.
    """
    kind = (
        pl.when(pl.col("what") == "b - a").then(pl.lit(EQUAL))
        .when(pl.col("what") == "c - a").then(pl.lit(WORSE_ONE)).otherwise(pl.lit(VALUE))
    )  # fmt: skip
    has = pl.col("low").is_not_nan() & pl.col("low").is_not_null()
    calm = ~pl.col("warned")
    decided = pl.col("verdict").is_in([1, -1])
    return (
        drawn.with_columns(kind=kind)
        .group_by("metric", "estimator", "kind", maintain_order=True)
        .agg(
            draws=pl.col("run").n_unique(),
            covered=HELD.filter(has).mean(),
            covered_calm=HELD.filter(has & calm).mean(),
            warned=pl.col("warned").mean(),
            no_interval=(~has).mean(),
            width=(pl.col("high") - pl.col("low")).filter(has).mean(),
            decided=decided.mean(),
            decided_calm=decided.filter(calm).mean(),
            calm=calm.sum(),
            insufficient=(pl.col("verdict") == -9).mean(),
            right=(pl.col("verdict") == -1).mean(),
        )
    )


def summaries(run: Run, worlds: Sequence[World], *, draws: int) -> pl.DataFrame:
    """The summary of every dataset, with its name and whether its evidence is ample."""
    return pl.concat(
        summary(drawn).select(
            pl.lit(world.name).alias("world"), pl.lit(world.n_users).alias("users"),
            pl.lit(world.ample).alias("ample"), pl.all(),
        )
        for world, drawn in draw_worlds(run, worlds, draws=draws)
    )  # fmt: skip
