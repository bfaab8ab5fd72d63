"""Calibration of propensities, as text and as a chart."""

from __future__ import annotations

from typing import Any

from truerank.exposure.propensities.calibration import Calibration

BAR = 40  # columns


def _bar(filled: float, marked: float) -> str:
    """A bar of shares of its length, with | at the other one.

    >>> _bar(0.1, 0.2)
    '====    |'
    """
    cells = ["=" if n < round(BAR * filled) else " " for n in range(BAR + 1)]
    cells[round(BAR * marked)] = "|"
    return "".join(cells).rstrip()


def calibration_text(calibration: Calibration) -> str:
    """A table with bars: `=` up to the observed exposure, `|` where it was predicted."""
    rows = [*calibration.bins, *calibration.labels]
    most = max(max(row.predicted, row.observed) for row in rows)
    width = max(len("propensity"), *(len(row.name) for row in rows))
    lines = [f"{'propensity':{width}}  {'pairs':>10}  predicted  observed  95 % interval"]
    lines += [
        f"{row.name:{width}}  {row.pairs:10,.0f}  {row.predicted:9.4f}  {row.observed:8.4f}  "
        f"{row.low:.4f} to {row.high:.4f}  {_bar(row.observed / most, row.predicted / most)}"
        for row in rows
    ]
    lines.append(f"Expected calibration error {calibration.error:.4f} ({'bins' if calibration.bins else 'labels'}).")
    return "\n".join([*lines, *calibration.notes]) + "\n"


def _axis(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **more}


def calibration_plot(calibration: Calibration) -> dict[str, Any]:
    """Observed over predicted exposure with intervals and the diagonal, as a Vega-Lite 5 specification."""
    names = ("pairs", "predicted", "observed", "low", "high")
    rows = [
        {"what": row.name, "kind": kind} | {name: getattr(row, name) for name in names}
        for kind, bins in (("prediction", calibration.bins), ("label", calibration.labels)) for row in bins
    ]  # fmt: skip
    most = max(max(row["predicted"], row["high"]) for row in rows)
    shared = {"x": _axis("predicted", title="predicted propensity"),
              "color": {"field": "kind", "type": "nominal", "title": "pairs by"}}  # fmt: skip
    low = {"y": _axis("low", title="share that is in the log"), "y2": {"field": "high"}}
    tooltip = [{"field": name} for name in ("what", *names)]
    layers: list[tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]] = [
        ([{"x": 0, "y": 0}, {"x": most, "y": most}], {"type": "line", "strokeDash": [4, 4], "color": "gray"},
         {"x": _axis("x"), "y": _axis("y")}),
        (rows, {"type": "rule"}, shared | low),
        (rows, {"type": "point", "filled": True, "size": 60}, shared | {"y": _axis("observed"), "tooltip": tooltip}),
    ]  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": " ".join(calibration.notes),
        "title": f"Calibration of propensities (expected error {calibration.error:.4f})",
        "width": 320,
        "height": 320,
        "layer": [
            {"data": {"values": values}, "mark": mark, "encoding": encoding} for values, mark, encoding in layers
        ],
    }
