"""Labels by a rule, of rows that were read without one."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from truerank.core.arrays import frozen
from truerank.evaluation.label_source import Rows
from truerank.io.columns import PositiveRule
from truerank.io.read import LogSchema


def label_by(rows: Rows, rule: PositiveRule) -> Rows:
    """Rows with labels by a rule, where they have values that are not 0/1 and were read without a rule."""
    if isinstance(rows, LogSchema):
        has_labels = rows.values is None or rows.values.binary or rows.rule is not None
        return rows if has_labels else replace(rows, rule=rule)
    if not rows.rewards or "label" in rows.rewards:
        return rows
    label = rule.apply(pl.Series(next(iter(rows.rewards.values())))).cast(pl.Float64).to_numpy()
    return replace(rows, rewards={"label": frozen(label), **rows.rewards})
