"""Calibration of propensities as text with bars, and as a plot: a Vega-Lite specification, which needs no package."""

from __future__ import annotations

from typing import Any

from truerank.exposure.propensities.calibration import Bin, Calibration

WIDTH = 40  # of the bars


def calibration_text(found: Calibration) -> str:
    """A table with bars: `=` up to the observed exposure, `|` where it was predicted."""
    rows = [*found.bins, *found.labels]
    most = max([each.predicted for each in rows] + [each.observed for each in rows])
    width = max(len("propensity"), *(len(each.name) for each in rows))
    lines = [f"{'propensity':{width}}  {'pairs':>10}  predicted  observed  95 % interval"]
    lines += [
        f"{each.name:{width}}  {each.pairs:10,.0f}  {each.predicted:9.4f}  {each.observed:8.4f}  "
        f"{each.low:.4f} to {each.high:.4f}  {_bar(each, most)}"
        for each in rows
    ]
    lines.append(f"Expected calibration error {found.error:.4f} ({'bins' if found.bins else 'labels'}).")
    return "\n".join([*lines, *found.notes]) + "\n"


def _bar(each: Bin, most: float) -> str:
    end, mark = (round(WIDTH * value / most) for value in (each.observed, each.predicted))
    bar = list("=" * end + " " * (WIDTH + 1 - end))
    bar[mark] = "|"
    return "".join(bar).rstrip()


def calibration_plot(found: Calibration) -> dict[str, Any]:
    """Observed over predicted exposure with intervals and the diagonal, as a Vega-Lite 5 specification."""
    values: list[dict[str, Any]] = [
        {
            "what": each.name,
            "kind": kind,
            "pairs": each.pairs,
            "predicted": each.predicted,
            "observed": each.observed,
            "low": each.low,
            "high": each.high,
        }
        for kind, bins in (("prediction", found.bins), ("label", found.labels))
        for each in bins
    ]
    most = max(max(each.predicted, each.high) for each in (*found.bins, *found.labels))
    x = {"field": "predicted", "type": "quantitative", "title": "predicted propensity"}
    colour = {"field": "kind", "type": "nominal", "title": "pairs by"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": " ".join(found.notes),
        "title": f"Calibration of propensities (expected error {found.error:.4f})",
        "width": 320,
        "height": 320,
        "layer": [
            {
                "data": {"values": [{"x": 0, "y": 0}, {"x": most, "y": most}]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": "gray"},
                "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
            },
            {
                "data": {"values": values},
                "mark": "rule",
                "encoding": {
                    "x": x,
                    "y": {"field": "low", "type": "quantitative", "title": "share that is in the log"},
                    "y2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "data": {"values": values},
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {
                    "x": x,
                    "y": {"field": "observed", "type": "quantitative"},
                    "color": colour,
                    "tooltip": [{"field": name} for name in ("what", "pairs", "predicted", "observed", "low", "high")],
                },
            },
        ],
    }
