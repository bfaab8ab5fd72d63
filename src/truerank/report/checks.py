"""Checks as text and data: randomness, calibration of propensities, position models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from truerank.exposure.positions.contextual import ContextualFit
from truerank.exposure.positions.fits import PositionFit
from truerank.exposure.propensities.calibration import Bin, Calibration
from truerank.exposure.randomness.draws import OutlyingItem, Unevenness
from truerank.exposure.randomness.tests import Check, Randomness
from truerank.report.numbers import interval, number


def randomness_text(found: Randomness) -> str:
    """The verdict, the checks behind it, and what they leave open."""
    lines = [f"Is this log random? {found.verdict}"]
    if found.checks:
        width = max(len(each.name) for each in found.checks)
        lines += ["", f"{'check':{width}}  {'statistic':>18}  {'p':>8}  {'p adjusted':>10}"]
        lines += [
            f"{each.name:{width}}  {_statistic(each):>18}  {_p(each.p):>8}  {_p(each.p_adjusted):>10}"
            for each in found.checks
        ]
        lines.append("")
    never = (
        f"{found.never_exposed:.2%} of items were shown to nobody; chance alone: {found.never_exposed_expected:.2%}."
    )
    return "\n".join([*lines, *_uneven_lines(found), never, *found.notes]) + "\n"


def _uneven_lines(found: Randomness) -> list[str]:
    """The effect with its direction, the outlying items, and users without a positive where labels are known."""
    lines = []
    if found.unevenness is not None:
        flat = _uneven_flat(found.unevenness)
        effect, direction = flat.pop(EFFECT), flat.pop(DIRECTION)
        lines.append(f"Coefficient of variation of exposure beyond chance: {effect} ({direction}).")
        lines += [f"{name.capitalize()}: {value}." for name, value in flat.items()]
    if found.without_positive is not None:
        each = found.without_positive
        lines.append(
            f"{each.users:,} users lack a positive; random exposure gives at least about {each.expected:,.0f}."
        )
    return lines


EFFECT, DIRECTION = "coefficient of variation of exposure beyond chance", "direction"


def _uneven_flat(uneven: Unevenness) -> dict[str, str]:
    """The effect, its direction, and the items on each side with their counts and what chance gives."""
    return {
        EFFECT: f"{uneven.effect:.3f}",
        DIRECTION: "no more uneven than chance" if uneven.direction is None else uneven.direction.value,
        "items shown too often": _outlying(uneven.too_often, uneven.most_often),
        "items shown too rarely": _outlying(uneven.too_rarely, uneven.most_rarely),
    }


def _outlying(count: int, farthest: Sequence[OutlyingItem]) -> str:
    if not count:
        return "none beyond chance"
    named = ", ".join(f"{each.item} ({each.shown:,}, expected {each.expected:,.1f})" for each in farthest)
    return f"{count:,} beyond chance, {'farthest ' if count > len(farthest) else ''}{named}"


def randomness_plain(found: Randomness) -> dict[str, Any]:
    """Nested plain values; NaN is None."""
    content: dict[str, Any] = asdict(found)
    content["drawn"] = found.drawn.value
    content["checks"] = [
        {name: _none(value) for name, value in asdict(each).items()} | {"failed": each.failed} for each in found.checks
    ]
    return {name: _none(value) for name, value in content.items()}


def randomness_flat(found: Randomness) -> dict[str, Any]:
    """One value for each name, for a table of two columns."""
    flat: dict[str, Any] = {"verdict": found.verdict}
    for each in found.checks:
        flat |= {f"{each.name}, statistic": _statistic(each), f"{each.name}, p": _p(each.p)}
        flat |= {f"{each.name}, p adjusted": _p(each.p_adjusted)} if each.verdict else {}
    flat |= {} if found.unevenness is None else _uneven_flat(found.unevenness)
    if found.without_positive is not None:
        flat |= {
            "users without a positive": found.without_positive.users,
            "users without a positive, expected at least": found.without_positive.expected,
            "users without a positive, p of so few": _p(found.without_positive.p),
        }
    flat |= {"share of items never shown": found.never_exposed, "by chance": found.never_exposed_expected}
    return flat | {f"note {at}": note for at, note in enumerate(found.notes, start=1)}


def _statistic(each: Check) -> str:
    if math.isnan(each.df):
        return f"z = {each.statistic:.2f}"
    return f"{each.statistic:,.1f} on {each.df:,.0f} df"


def _p(value: float) -> str:
    return "" if math.isnan(value) else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


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
            f"{_view_bar(each.observed_view, each.expected_view)}"
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


def _view_bar(observed: float, expected: float) -> str:
    """Sixty per cent observed and half expected are `########...`, with | where the model is."""
    filled = 0 if not math.isfinite(observed) else round(BAR * min(max(observed, 0.0), 1.0))
    cells = ["#" if at < filled else " " for at in range(BAR + 1)]
    if math.isfinite(expected):
        cells[round(BAR * min(max(expected, 0.0), 1.0))] = "|"
    return "".join(cells).rstrip()
