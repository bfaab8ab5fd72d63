"""What draws say: how far estimates vary and are off, how often intervals hold, how often signs are right."""

from __future__ import annotations

import polars as pl
from polars.dataframe.group_by import GroupBy

PUBLISHED = "published"
REFERENCES = {"Precision": ("horvitz-thompson", "hajek"), "Recall": ("pooled", PUBLISHED)}
KEY = ("what", "metric", "estimator")
HELD = (pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))


def summary(drawn: pl.DataFrame) -> pl.DataFrame:
    """A row for each model or difference, metric and contender: mean, variance, RMSE, coverage, share of right signs.

    `variance_noise` is the Monte-Carlo error of the variance over itself, from the fourth moment; 95 % of the draws lie
    between `low_draw` and `high_draw`.
    """
    value, truth = pl.col("value"), pl.col("truth")
    apart = value - value.mean()
    has = pl.col("low").is_not_null() & pl.col("low").is_not_nan()
    return (
        drawn.filter(value.is_not_nan())
        .group_by(KEY, maintain_order=True)
        .agg(
            draws=pl.len(),
            truth=truth.first(),
            mean=value.mean(),
            variance=value.var(),
            rmse=((value - truth) ** 2).mean().sqrt(),
            kurtosis=(apart**4).mean() / (apart**2).mean() ** 2,
            covered=HELD.filter(has).mean(),
            intervals=has.sum(),
            right_sign=(value.sign() == truth.sign()).mean(),
            low_draw=value.quantile(0.025, "linear"),
            high_draw=value.quantile(0.975, "linear"),
            warned=pl.col("warned").mean(),
        )
        .with_columns(
            variance_noise=((pl.col("kurtosis") - 1) / pl.col("draws")).sqrt(),
            difference=pl.col("what").str.contains(" - ", literal=True),
        )
        .drop("kurtosis")
    )


RATIO = pl.col("square").mean() / pl.col("base").mean()


def _noise(ratio: pl.Expr) -> pl.Expr:
    """The Monte-Carlo error of a ratio of two estimators in the same draws.

    It is that of the slope of one square on the other, by the deviations e_i² / s² - f_i² / t² of the draws.
    """
    return ratio * (pl.col("share") - pl.col("base_share")).std() / pl.len().sqrt()


def _beside(drawn: pl.DataFrame, centre: pl.Expr, reference: str) -> GroupBy:
    """Squares about a centre beside those of a reference in the same draws, by row of `summary`."""
    squares = drawn.filter(pl.col("value").is_not_nan()).with_columns(square=(pl.col("value") - centre) ** 2)
    squares = squares.with_columns(share=pl.col("square") / pl.col("square").mean().over(KEY))
    base = squares.filter(pl.col("estimator") == reference).select(
        "run", *KEY[:2], base="square", base_share="share", base_value="value"
    )
    return squares.join(base, on=["run", *KEY[:2]]).group_by(KEY, maintain_order=True)


def ratios(drawn: pl.DataFrame) -> pl.DataFrame:
    """Of each row of `summary` the variance over that of the references of its metric, with its Monte-Carlo error."""
    mean = pl.col("value").mean().over(KEY)
    return pl.concat(
        _beside(drawn.filter(pl.col("metric").str.starts_with(metric)), mean, reference).agg(
            reference=pl.lit(reference).first(), ratio=RATIO, noise=_noise(RATIO)
        )
        for metric, references in REFERENCES.items()
        for reference in references
    )


def errors(drawn: pl.DataFrame) -> pl.DataFrame:
    """Of each estimator of mean recall the root mean squared error over that of the published mean in the same draws.

    With its Monte-Carlo error, and the bias of the published mean as a share of the truth.
    """
    error, truth = RATIO.sqrt(), pl.col("truth").first()
    found = _beside(drawn, pl.col("truth"), PUBLISHED).agg(
        error_published=error,
        noise_error=_noise(error / 2),
        published_bias=(pl.col("base_value").mean() - truth) / truth.abs(),
    )
    return found.filter(pl.col("estimator") != PUBLISHED)
