"""Results as tables: polars and pandas frames, CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from truerank.core.errors import InputError, extra
from truerank.core.escaping import csv_table
from truerank.core.results import Comparison, Estimate, Evidence, Results

TEXT, NUMBER, COUNT = pl.String, pl.Float64, pl.Int64

EVIDENCE: dict[str, Any] = {
    "informative": COUNT, "df": NUMBER, "largest": NUMBER, "balance": NUMBER, "balance_z": NUMBER, "lost": NUMBER,
    "unsupported": NUMBER,
}  # fmt: skip
ESTIMATES: dict[str, Any] = {
    "model": TEXT, "metric": TEXT, "k": COUNT, "estimator": TEXT, "settings": TEXT, "estimand": TEXT, "value": NUMBER,
    "stderr": NUMBER, "low": NUMBER, "high": NUMBER, "level": NUMBER, "interval": TEXT, "units": COUNT,
    "undefined": COUNT, "clusters": COUNT, **EVIDENCE, "ess": NUMBER, "reward": TEXT, "clip": NUMBER, "segment": TEXT,
    "directed": pl.Boolean, "assumptions": TEXT, "warnings": TEXT, "warning_codes": TEXT,
}  # fmt: skip
COMPARISONS: dict[str, Any] = {
    "model": TEXT, "baseline": TEXT, "metric": TEXT, "estimator": TEXT, "difference": NUMBER, "stderr": NUMBER,
    "low": NUMBER, "high": NUMBER, "level": NUMBER, "interval_level": NUMBER, "p": NUMBER, "p_adjusted": NUMBER,
    "family": COUNT, "units": COUNT, "clusters": COUNT, **EVIDENCE, "reward": TEXT, "clip": NUMBER, "segment": TEXT,
    "verdict": TEXT, "reasons": TEXT, "reason_codes": TEXT,
}  # fmt: skip
BOTH: dict[str, Any] = {
    "kind": TEXT, "model": TEXT, "baseline": TEXT, **ESTIMATES, "interval_level": NUMBER, "p": NUMBER,
    "p_adjusted": NUMBER, "family": COUNT, "verdict": TEXT, "reasons": TEXT, "reason_codes": TEXT,
}  # fmt: skip


def estimates(results: Results) -> pl.DataFrame:
    """One row per estimate; lists are joined by semicolons."""
    return pl.DataFrame(_estimate_columns(results.estimates), schema=ESTIMATES)


def comparisons(results: Results) -> pl.DataFrame:
    """One row per comparison."""
    return pl.DataFrame(_comparison_columns(results.comparisons), schema=COMPARISONS)


def clips(results: Results) -> pl.DataFrame:
    """One row per estimate that a clip can limit: its shift against the largest clip, its error, and both together;
    `chosen` where the clip was chosen by the data.

    √(shift² + stderr²) is what the clip costs and what it saves, if the largest clip is taken as the truth.
    """
    key = ["model", "metric", "estimator", "reward", "segment"]
    choices = results.provenance.details.get("chosen", ())
    chosen = {tuple(choice[name] for name in ("of", "estimator", "reward", "clip")) for choice in choices}
    rows = [
        {**{name: getattr(estimate, name) for name in key}, "clip": _limit(estimate), "value": estimate.value,
         "stderr": estimate.stderr,
         "chosen": (estimate.model, estimate.estimator, estimate.reward, estimate.clip) in chosen}
        for estimate in results.estimates
    ]  # fmt: skip
    schema = {**dict.fromkeys(key, TEXT), "clip": NUMBER, "value": NUMBER, "stderr": NUMBER, "chosen": pl.Boolean}
    frame = pl.DataFrame(rows, schema=schema).sort([*key, "clip"], maintain_order=True)
    shift = pl.col("value") - pl.col("value").last().over(key)
    frame = frame.filter(pl.len().over(key) > 1).with_columns(shift=shift)
    return frame.with_columns(together=(pl.col("shift") ** 2 + pl.col("stderr") ** 2).sqrt())


def csv(results: Results, *, groups: Mapping[str, Results] | None = None) -> bytes:
    """Estimates and comparisons in one table, told apart by `kind`; a comparison's value is its difference.

    With `groups` there are rows of each after those of the whole, whose `group` is empty.
    """
    frame = _both(results)
    if groups:
        parts = [_both(within).with_columns(pl.lit(name).alias("group")) for name, within in groups.items()]
        frame = pl.concat([frame.with_columns(pl.lit(None, dtype=TEXT).alias("group")), *parts])
    return csv_table(frame.with_columns(pl.col(NUMBER).fill_nan(None)))


def _both(results: Results) -> pl.DataFrame:
    parts = [
        estimates(results).with_columns(kind=pl.lit("estimate")),
        comparisons(results).rename({"difference": "value"}).with_columns(kind=pl.lit("comparison")),
    ]
    return pl.concat([pl.DataFrame(schema=BOTH), *parts], how="diagonal")


def as_pandas(frame: pl.DataFrame) -> Any:
    """The same rows as a pandas frame."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError(
            f"pandas is not installed; install it with: pip install pandas, or pip install {extra('pandas')}."
        ) from None
    return pd.DataFrame(frame.to_dict(as_series=False), columns=frame.columns)


def _limit(estimate: Estimate) -> float:
    return math.inf if estimate.clip is None else estimate.clip


def _estimate_columns(values: Sequence[Estimate]) -> dict[str, list[Any]]:
    return _columns(values, Estimate) | {
        "settings": [_options(value.settings) for value in values],
        "assumptions": ["; ".join(value.assumptions) for value in values],
        "warnings": ["; ".join(value.warning_texts) for value in values],
        "warning_codes": ["; ".join(message.code for message in value.warnings) for value in values],
    }


def _comparison_columns(values: Sequence[Comparison]) -> dict[str, list[Any]]:
    return _columns(values, Comparison) | {
        "reasons": ["; ".join(value.reason_texts) for value in values],
        "reason_codes": ["; ".join(message.code for message in value.reasons) for value in values],
    }


def _columns(values: Sequence[Any], kind: type[Estimate] | type[Comparison]) -> dict[str, list[Any]]:
    """The fields of values as columns, those of their evidence among them; of half a million rows each is one list."""
    own = {field.name: [getattr(value, field.name) for value in values] for field in fields(kind)}
    evidence = own.pop("evidence")
    return own | {field.name: [getattr(each, field.name) for each in evidence] for field in fields(Evidence)}


def _options(settings: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in settings.items())
