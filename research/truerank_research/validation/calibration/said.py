"""What one draw of a world said: a row for every value and every difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from truerank.core.results import BETTER, INSUFFICIENT, WORSE, Results

Said = tuple[Any, ...]

SCHEMA: dict[str, Any] = {
    "run": pl.Int64, "what": pl.String, "metric": pl.String, "estimator": pl.String, "value": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "verdict": pl.Int64, "warned": pl.Boolean,
}  # fmt: skip
VERDICTS = {BETTER: 1, WORSE: -1, INSUFFICIENT: -9}


def said_of(results: Results, run: int) -> Iterator[Said]:
    """A row for every value and every difference; `warned` where a caution or a warning is on what it rests on."""
    warned: dict[tuple[str, str, str], bool] = {}
    for each in results.estimates:
        serious = any(message.severity != "note" for message in each.warnings)
        warned[each.model, each.metric, each.estimator] = serious
        yield run, each.model, each.metric, each.estimator, each.value, each.low, each.high, 0, serious
    for pair in results.comparisons:
        rests_on = (warned[model, pair.metric, pair.estimator] for model in (pair.model, pair.baseline))
        what, verdict = f"{pair.model} - {pair.baseline}", VERDICTS.get(pair.verdict, 0)
        serious = bool(pair.reasons) or any(rests_on)
        yield run, what, pair.metric, pair.estimator, pair.difference, pair.low, pair.high, verdict, serious
