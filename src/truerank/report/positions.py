"""Fitted position models shown: parameters, observed against expected, and a chart."""

from __future__ import annotations

import math
from typing import Any

from truerank.exposure.positions.fits import PositionFit
from truerank.exposure.positions.fits_contextual import ContextualFit
from truerank.report.text import interval, number

BAR = 40


def fit_rows(fit: PositionFit | ContextualFit) -> list[dict[str, Any]]:
    """The goodness-of-fit table: one row per bucket of depths."""
    return [
        {
            "first": each.first,
            "last": each.last,
            "reached": each.at_risk,
            "observed": each.observed,
            "expected": each.expected,
            "observed_view": each.observed_view,
            "expected_view": each.expected_view,
        }
        for each in fit.goodness.buckets
    ]


def fit_text(fit: PositionFit | ContextualFit) -> str:
    """Parameters with their intervals, the table, and the share of sessions that reach each depth as bars."""
    head = [
        f"{each.name} = {number(each.value)} ({interval(each.low, each.high)})" for each in fit.parameters[:MOST_SHOWN]
    ]
    if len(fit.parameters) > MOST_SHOWN:
        head.append(f"and {len(fit.parameters) - MOST_SHOWN} more")
    lines = [
        f"{', '.join(head)}; log-likelihood {fit.log_likelihood:.2f}, n = {fit.n:,}, {fit.n_censored:,} at the end of "
        "their feed",
        f"{'depth':>11} {'reached':>9} {'stopped':>9} {'expected':>9}  share that reaches it (# observed, | expected)",
    ]
    for each in fit.goodness.buckets:
        depth = str(each.first) if each.first == each.last else f"{each.first}-{each.last}"
        lines.append(
            f"{depth:>11} {each.at_risk:>9,.0f} {each.observed:>9,.0f} {each.expected:>9,.1f}  "
            f"{_bar(each.observed_view, each.expected_view)}"
        )
    if fit.goodness.degrees:
        lines.append(
            f"chi-square {fit.goodness.statistic:.2f} with {fit.goodness.degrees} degrees of freedom, p = "
            f"{fit.goodness.p:.3g}"
        )
    lines += list(fit.notes) if isinstance(fit, PositionFit) else []
    return "\n".join(lines)


MOST_SHOWN = 5


def fit_chart(
    fit: PositionFit | ContextualFit, *, title: str = "Share of sessions that reach a rank"
) -> dict[str, Any]:
    """A Vega-Lite specification: points are observed, the line is the model."""
    rows = [
        {"rank": row["first"], "share": row[f"{kind}_view"], "kind": kind}
        for row in fit_rows(fit)
        for kind in ("observed", "expected")
        if math.isfinite(row[f"{kind}_view"])
    ]
    axes = {
        "x": {"field": "rank", "type": "quantitative", "scale": {"type": "log"}, "title": "rank"},
        "y": {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "P(viewed)"},
        "color": {"field": "kind", "type": "nominal", "title": None},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "data": {"values": rows},
        "layer": [
            {"transform": [{"filter": "datum.kind == 'expected'"}], "mark": {"type": "line"}, "encoding": axes},
            {"transform": [{"filter": "datum.kind == 'observed'"}], "mark": {"type": "point"}, "encoding": axes},
        ],
    }


def _bar(observed: float, expected: float) -> str:
    """Sixty per cent observed and half expected are `########...`, with | where the model is."""
    filled = 0 if not math.isfinite(observed) else round(BAR * min(max(observed, 0.0), 1.0))
    cells = ["#" if at < filled else " " for at in range(BAR + 1)]
    if math.isfinite(expected):
        cells[round(BAR * min(max(expected, 0.0), 1.0))] = "|"
    return "".join(cells).rstrip()
