"""The pictures of the tutorials: each is run as its readers would, and drawn from what its commands left."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import truerank as tr
from docs.making.steps import TUTORIALS, steps
from truerank.core.results import BETTER, INSUFFICIENT, NOT_SHOWN, WORSE
from truerank.reliability.advice_words import tau_text
from truerank.report.charts import TYPEFACE, altair

WHO = "the pictures of the tutorials"
WIDTH, ROW, FONT = 380, 30, 13
COLOURS = {BETTER: "#0072B2", WORSE: "#C44E00", NOT_SHOWN: "#6E6E6E", INSUFFICIENT: "#9B3F86"}
PLAIN, CHOSEN, OTHER = "#333333", "#0072B2", "#6E6E6E"


def of_results(places: list[Path]) -> Any:
    """Values of every model and metric with their intervals, and below them the differences with their verdicts.

    Of several results one after the other, each by the name of its folder; what is of one metric stands on one axis, so
    that the widths of intervals can be compared.
    """
    metrics = {each.metric for place in places for each in tr.Results.read(place).estimates}
    panels = [panel for place in places for panel in panels_of(place, named=len(places) > 1)]
    return _together(panels, same=len(metrics) == 1)


def panels_of(place: Path, *, named: bool) -> list[Any]:
    results = tr.Results.read(place)
    panels = []
    asked = dict.fromkeys((each.metric, each.estimator) for each in results.estimates)
    for metric, estimator in asked:
        rows = [
            {"name": each.model, "value": each.value, "low": each.low, "high": each.high, "colour": PLAIN,
             "text": f"{each.value:.4f}"}
            for each in results.estimates if (each.metric, each.estimator) == (metric, estimator)
        ]  # fmt: skip
        rows += [
            {"name": f"{each.model} − {each.baseline}", "value": each.difference, "low": each.low, "high": each.high,
             "colour": COLOURS[each.verdict], "text": f"{each.difference:+.4f}  {each.verdict}"}
            for each in results.comparisons if (each.metric, each.estimator) == (metric, estimator)
        ]  # fmt: skip
        panels.append(_panel(f"{f'{place.name}: ' if named else ''}{metric}, {estimator}", rows))
    return panels


def of_advice(place: Path) -> Any:
    """Expected agreement of the order of models with the true one, for every way to choose candidates."""
    found = json.loads(place.read_text())["candidates"]
    chosen = (found["recommended"]["sampler"], found["recommended"]["size"])
    rows = [
        {"name": each["sampler"] + ("" if each["size"] is None else f", {each['size']}"), "value": each["tau"],
         "low": each["low"], "high": each["high"], "colour": CHOSEN if (each["sampler"], each["size"]) == chosen else OTHER,
         "text": tau_text(each["tau"]) + ("  recommended" if (each["sampler"], each["size"]) == chosen else "")}
        for each in found["choices"]
    ]  # fmt: skip
    return _together([_panel("Kendall's tau with the true order, expected", rows)])


def chart_of(page: str, place: Path) -> Any:
    """The picture of a tutorial: of the folder that it saves, or of the advice that it writes."""
    saved = re.findall(r"--save (\S+)", page)
    return of_results([place / each for each in saved]) if saved else of_advice(place / "advice.json")


def _panel(title: str, rows: list[dict[str, Any]]) -> Any:
    alt = altair(WHO)
    data = alt.Data(values=rows)
    least, most = min(0.0, *(row["low"] for row in rows)), max(row["high"] for row in rows)
    scale = alt.Scale(domain=[least, most], nice=True)
    y = alt.Y("name:N", sort=[row["name"] for row in rows],
              axis=alt.Axis(title=None, ticks=False, domain=False, labelPadding=8))  # fmt: skip
    x = [alt.X(f"{field}:Q", scale=scale, axis=alt.Axis(title=None, tickCount=5)) for field in ("low", "value", "zero")]
    colour = alt.Color("colour:N", scale=None)
    layers = [
        alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4], color="#777777").encode(x=x[2]),
        alt.Chart(data).mark_rule(strokeWidth=4).encode(x=x[0], x2="high:Q", y=y, color=colour),
        alt.Chart(data).mark_point(size=80, filled=True, opacity=1).encode(x=x[1], y=y, color=colour),
        alt.Chart(data).mark_text(align="left", dx=12, fontSize=FONT).encode(
            x=alt.value(WIDTH), y=y, text="text:N", color=colour),
    ]  # fmt: skip
    return alt.layer(*layers, width=WIDTH, height=ROW * len(rows), title=title)


def _together(panels: list[Any], *, same: bool = False) -> Any:
    alt = altair(WHO)
    config = alt.Config(
        font=TYPEFACE, padding=12, view=alt.ViewConfig(stroke=None), background="white",
        axis=alt.AxisConfig(labelFontSize=FONT, gridColor="#e8e8e8", labelLimit=300),
        title=alt.TitleConfig(fontSize=FONT, anchor="start", frame="group"),
    )  # fmt: skip
    drawn = alt.vconcat(*panels, spacing=14, config=config)
    return drawn.resolve_scale(x="shared") if same else drawn


def made() -> dict[str, Any]:
    found = {}
    with TemporaryDirectory() as folder:
        for path in sorted(TUTORIALS.glob("*.md")):
            page = path.read_text()
            for step in steps(page):
                done = step.run(Path(folder))
                if done.returncode:
                    raise SystemExit(f"{path.name}: {step.text}\n{done.stderr}")
            if steps(page):
                found[f"figures/tutorials/{path.stem}.svg"] = chart_of(page, Path(folder))
    return found
