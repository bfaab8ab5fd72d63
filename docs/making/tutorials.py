"""The pictures of the tutorials: each is run as its readers would, and drawn from what its commands left."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

import truerank as tr
from docs.making.files import finding
from docs.making.steps import TUTORIALS, steps
from truerank.core.results import BETTER, INSUFFICIENT, NOT_SHOWN, WORSE
from truerank.reliability.advice_words import tau_text
from truerank.report.charts import TYPEFACE, altair
from truerank.report.questions import ShownQuestion, questions_of
from truerank.report.summary import summarize

WHO = "the pictures of the tutorials"
WIDTH, ROW, FONT = 210, 28, 13  # a picture with its names and texts is about as wide as a phone
COLOURS = {BETTER: "#0072B2", WORSE: "#C44E00", NOT_SHOWN: "#6E6E6E", INSUFFICIENT: "#9B3F86"}
WORDS = {NOT_SHOWN: "inconclusive", INSUFFICIENT: "insufficient"}
PLAIN, CHOSEN, OTHER = "#333333", "#0072B2", "#6E6E6E"
LINE = 52  # characters of a line of the title
Rows = list[dict[str, Any]]


def of_results(places: list[Path]) -> Any:
    """The finding, then the values of every model with their intervals, and on an axis of their own the differences.

    Of several results one after the other, each by the name of its folder; values of one metric have the same axis, and
    so have their differences, so that the widths of intervals can be compared.
    """
    read = {place.name: tr.Results.read(place) for place in places}
    same = len({estimate.metric for results in read.values() for estimate in results.estimates}) == 1
    named = [(f"{name}: " if len(read) > 1 else "", results) for name, results in read.items()]
    drawn = [
        (f"{name}{question.title}", *rows_of(question)) for name, results in named for question in questions_of(results)
    ]
    every = [[row for _, *parts in drawn for row in parts[kind]] for kind in (0, 1)] if same else [[], []]
    ends = [ends_of(every[0]), ends_of(every[1], zero=bool(every[1]))]
    panels = []
    for title, levels, differences in drawn:
        panels.append(_panel(title, levels, ends[0]))
        panels += (
            [_panel("difference, 95% CI", differences, ends[1] or ends_of(differences, zero=True))]
            if differences
            else []
        )
    findings = [f"{name}{summarize(results).verdict}" for name, results in named]
    return _together(panels, findings)


def rows_of(question: ShownQuestion) -> tuple[Rows, Rows]:
    """Values, highest first, and differences as winner minus loser, with their verdicts."""
    levels = [
        {"name": estimate.model, "value": estimate.value, "low": estimate.low, "high": estimate.high, "colour": PLAIN,
         "text": f"{estimate.value:.4f}"}
        for estimate in question.estimates
    ]  # fmt: skip
    differences = [
        {"name": f"{pair.model} − {pair.baseline}", "value": pair.difference, "low": pair.low, "high": pair.high,
         "colour": COLOURS[pair.verdict],
         "text": f"{pair.difference:+.4f} {WORDS.get(pair.verdict, 'significant')}"}
        for pair in question.top_differences()
    ]  # fmt: skip
    return levels, differences


def ends_of(rows: Rows, *, zero: bool = False) -> tuple[float, float] | None:
    """Of all intervals; differences have 0 on their axis."""
    values = [row[end] for row in rows for end in ("low", "high")] + [0.0] * zero
    return (min(values), max(values)) if values else None


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
    best = found["recommended"]
    name = best["sampler"] + ("" if best["size"] is None else f" of {best['size']}")
    finding = f"{name} is expected to keep the true order of models best."
    return _together([_panel("Kendall's tau with the true order, expected", rows)], [finding])


def chart_of(page: str, place: Path) -> Any:
    """The picture of a tutorial: of the folder that it saves, or of the advice that it writes."""
    saved = re.findall(r"--save (\S+)", page)
    return of_results([place / each for each in saved]) if saved else of_advice(place / "advice.json")


def _panel(title: str, rows: Rows, ends: tuple[float, float] | None = None) -> Any:
    alt = altair(WHO)
    data = alt.Data(values=rows)
    least, most = ends or ends_of(rows) or (0.0, 1.0)
    scale = alt.Scale(domain=[least, most], nice=True, zero=False)
    y = alt.Y("name:N", sort=[row["name"] for row in rows],
              axis=alt.Axis(title=None, ticks=False, domain=False, labelPadding=8))  # fmt: skip
    x = [alt.X(f"{field}:Q", scale=scale, axis=alt.Axis(title=None, tickCount=4)) for field in ("low", "value", "zero")]
    colour = alt.Color("colour:N", scale=None)
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4], color="#777777").encode(x=x[2])
    layers = [
        *([zero] if least <= 0 <= most else []),
        alt.Chart(data).mark_rule(strokeWidth=4).encode(x=x[0], x2="high:Q", y=y, color=colour),
        alt.Chart(data).mark_point(size=80, filled=True, opacity=1).encode(x=x[1], y=y, color=colour),
        alt.Chart(data).mark_text(align="left", dx=12, fontSize=FONT).encode(
            x=alt.value(WIDTH), y=y, text="text:N", color=colour),
    ]  # fmt: skip
    return alt.layer(*layers, width=WIDTH, height=ROW * len(rows), title=title)


def _together(panels: list[Any], findings: list[str]) -> Any:
    """Panels below each other; the findings are the title."""
    alt = altair(WHO)
    config = alt.Config(
        font=TYPEFACE, padding=12, view=alt.ViewConfig(stroke=None), background="white",
        axis=alt.AxisConfig(labelFontSize=FONT, gridColor="#e8e8e8", labelLimit=130),
        title=alt.TitleConfig(fontSize=FONT, fontWeight="normal", anchor="start", frame="group"),
    )  # fmt: skip
    lines = [line for finding in findings for line in wrap(finding, LINE)]
    return alt.vconcat(*panels, spacing=10, config=config, title=finding(alt, *lines))


def made() -> dict[str, Any]:
    found = {}
    with TemporaryDirectory() as folder:
        steps("```console\n$ truerank demo --quiet\n```")[0].run(Path(folder)).check_returncode()
        for path in sorted(TUTORIALS.glob("*.md")):
            page = path.read_text()
            for step in steps(page):
                done = step.run(Path(folder))
                if done.returncode:
                    raise SystemExit(f"{path.name}: {step.text}\n{done.stderr}")
            if steps(page):
                found[f"figures/tutorials/{path.stem}.svg"] = chart_of(page, Path(folder))
    return found
