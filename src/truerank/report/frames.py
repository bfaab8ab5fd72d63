"""Results as data: frames, JSON, CSV, and a table for notebooks."""

from __future__ import annotations

import html
import math
from typing import Any

import msgspec
import polars as pl

from truerank.core.results import Comparison, Estimate, Results

COMPARISON_FIELDS = (
    "model", "baseline", "metric", "estimator", "difference", "stderr", "low", "high", "p", "p_adjusted", "units",
)  # fmt: skip
RANKED_FIELDS = (*COMPARISON_FIELDS, "reward", "clip")


def estimates(results: Results) -> pl.DataFrame:
    """One row per estimate."""
    return pl.DataFrame([_plain(each) for each in results.estimates], infer_schema_length=None)


def clips(results: Results) -> pl.DataFrame:
    """One row per estimate that a clip can limit: its shift against the largest clip, its error, and both together;
    `chosen` where the clip was chosen by the data.

    √(shift² + stderr²) is what the clip costs and what it saves, if the largest clip is taken as the truth.
    """
    key = ["model", "metric", "estimator", "reward"]
    made = results.provenance.get("chosen", ())
    chosen = {tuple(each[name] for name in ("of", "estimator", "reward", "clip")) for each in made}
    rows = [
        {**{name: getattr(each, name) for name in key}, "clip": math.inf if each.clip is None else each.clip,
         "value": each.value, "stderr": each.stderr,
         "chosen": (each.model, each.estimator, each.reward, each.clip) in chosen}
        for each in results.estimates
    ]  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None).sort([*key, "clip"], maintain_order=True)
    shift = pl.col("value") - pl.col("value").last().over(key)
    frame = frame.filter(pl.len().over(key) > 1).with_columns(shift=shift)
    return frame.with_columns(together=(pl.col("shift") ** 2 + pl.col("stderr") ** 2).sqrt())


def json(results: Results) -> bytes:
    """One JSON object; NaN is null."""
    content = {
        "estimates": [msgspec.to_builtins(each) for each in results.estimates],
        "comparisons": [_fields(each) for each in results.comparisons],
        "provenance": {**results.provenance, "notes": list(results.notes)},
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def csv(results: Results) -> bytes:
    """Estimates and comparisons in one table, told apart by `kind`; a comparison's value is its difference."""
    rows = [{"kind": "estimate", "baseline": None, **_plain(each)} for each in results.estimates]
    for each in results.comparisons:
        fields = _fields(each)
        rows.append({"kind": "comparison", "value": fields.pop("difference"), **fields})
    frame = pl.DataFrame(rows, schema=_csv_schema(), strict=False)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None)).write_csv().encode()


def notebook(results: Results) -> str:
    """A small escaped HTML table for notebooks."""
    head = ("metric", "estimator", "model", "value", "low", "high", "estimand")
    lines = ["<table><thead><tr>", *(f"<th>{name}</th>" for name in head), "</tr></thead><tbody>"]
    for each in results.estimates:
        cells = (each.metric, each.estimator, each.model, each.value, each.low, each.high, each.estimand)
        lines += ["<tr>", *(f"<td>{html.escape(_shown(cell))}</td>" for cell in cells), "</tr>"]
    return "".join([*lines, "</tbody></table>"])


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return "undefined" if math.isnan(cell) else f"{cell:.5f}"
    return str(cell)


def _plain(each: Estimate) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(each)
    return content | {
        "assumptions": "; ".join(each.assumptions),
        "warnings": "; ".join(each.warnings),
    }


def _fields(each: Comparison) -> dict[str, Any]:
    """Where several rewards and clips are compared, a comparison says which is its."""
    return {name: getattr(each, name) for name in (COMPARISON_FIELDS if each.reward is None else RANKED_FIELDS)}


def _csv_schema() -> dict[str, Any]:
    text, number, count = pl.String, pl.Float64, pl.Int64
    return {
        "kind": text, "model": text, "baseline": text, "metric": text, "estimator": text, "estimand": text,
        "value": number, "stderr": number, "low": number, "high": number, "level": number, "interval": text,
        "units": count, "undefined": count, "ess": number, "reward": text, "clip": number,
        "p": number, "p_adjusted": number, "assumptions": text, "warnings": text,
    }  # fmt: skip
