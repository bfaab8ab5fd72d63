"""What draws say: how far estimates vary and are off, how often intervals hold, how often signs are right."""

from __future__ import annotations

import polars as pl

PUBLISHED = "published"
REFERENCES = {"Precision": ("horvitz-thompson", "hajek"), "Recall": ("pooled", PUBLISHED)}
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
        .group_by("what", "metric", "estimator", maintain_order=True)
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


def ratios(drawn: pl.DataFrame) -> pl.DataFrame:
    """Of each row of `summary` the variance over that of the references of its metric, with its Monte-Carlo error.

    The error knows that both were made from the same draws: it is that of the slope of one squared deviation on the
    other, by the deviations e_i² / s² - f_i² / t² of the draws.
    """
    found = []
    for metric, references in REFERENCES.items():
        own = drawn.filter(pl.col("metric").str.starts_with(metric), pl.col("value").is_not_nan())
        squares = own.with_columns(
            square=(pl.col("value") - pl.col("value").mean().over("what", "metric", "estimator")) ** 2
        ).with_columns(share=pl.col("square") / pl.col("square").mean().over("what", "metric", "estimator"))
        for reference in references:
            base = squares.filter(pl.col("estimator") == reference).select(
                "run", "what", "metric", base="square", base_share="share"
            )
            found.append(
                squares.join(base, on=["run", "what", "metric"])
                .group_by("what", "metric", "estimator", maintain_order=True)
                .agg(
                    reference=pl.lit(reference).first(),
                    ratio=pl.col("square").mean() / pl.col("base").mean(),
                    noise=pl.col("square").mean()
                    / pl.col("base").mean()
                    * (pl.col("share") - pl.col("base_share")).std()
                    / pl.len().sqrt(),
                )
            )
    return pl.concat(found)


def errors(drawn: pl.DataFrame) -> pl.DataFrame:
    """Of each estimator of mean recall the root mean squared error over that of the published mean in the same draws.

    With its Monte-Carlo error, by the deviations e_i² / mean e² - f_i² / mean f² of the draws, and the bias of the
    published mean as a share of the truth.
    """
    key = ["what", "metric", "estimator"]
    squares = drawn.filter(pl.col("value").is_not_nan()).with_columns(square=(pl.col("value") - pl.col("truth")) ** 2)
    squares = squares.with_columns(share=pl.col("square") / pl.col("square").mean().over(key))
    usual = squares.filter(pl.col("estimator") == PUBLISHED).select(
        "run", "what", "metric", usual="square", usual_share="share", usual_value="value"
    )
    error = (pl.col("square").mean() / pl.col("usual").mean()).sqrt()
    truth = pl.col("truth").first()
    return (
        squares.filter(pl.col("estimator") != PUBLISHED)
        .join(usual, on=["run", "what", "metric"])
        .group_by(key, maintain_order=True)
        .agg(
            error_published=error,
            noise_error=error / 2 * (pl.col("share") - pl.col("usual_share")).std() / pl.len().sqrt(),
            published_bias=(pl.col("usual_value").mean() - truth) / truth.abs(),
        )
    )
