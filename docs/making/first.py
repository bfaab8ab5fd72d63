"""The picture of README.md, from the results of the study `coverage` of research."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from truerank.report.reliability_charts import TYPEFACE, altair

RESULTS = Path(__file__).parents[2] / "research" / "results" / "validation" / "coverage.json"
PICTURE = "figures/first.svg"
WHO = "the picture of the README"
WIDTH, ROW, FONT = 430, 27, 13
GOOD, BAD = "#0072B2", "#C44E00"
FAR = 0.5  # a share of intervals that hold the truth below which a number misleads
MODELS = ("popularity", "svd")
PANELS = (
    ("Recall@50 per user: the mean over users of the share of their liked videos that is found", (("published", ""),)),
    ("Recall@50 pooled: of all liked pairs of user and video, the share that is found", (("pooled", "Recall@50"), ("post-stratified", "Recall@50"))),
    ("Precision@50: the share of the first 50 that is liked",
     (("horvitz-thompson", "Precision@50"), ("hajek", "Precision@50"))),
)  # fmt: skip


def made() -> dict[str, Any]:
    return {PICTURE: chart(json.loads(RESULTS.read_text()))}


@dataclass(frozen=True, slots=True)
class Found:
    """An estimator over many test sets: its truth, its mean, where 95 % of its values lie, and how often it is right."""

    estimator: str
    model: str
    truth: float
    mean: float
    spread: float
    held: float

    @property
    def row(self) -> dict[str, Any]:
        far = 1.96 * self.spread
        return {
            "name": f"{self.estimator}, {self.model}", "truth": self.truth, "low": self.mean - far, "high": self.mean + far,
            "colour": GOOD if self.held > FAR else BAD, "text": f"{self.held:.1%} of its intervals hold the truth",
        }  # fmt: skip


def read(result: dict[str, Any]) -> dict[tuple[str, str, str], Found]:
    """Figures by estimator, metric and model; those of the published mean are in a table of their own."""
    usual: dict[str, Any] = {"metric": "", "estimator": "published", "interval": "population"}
    found = {}
    for name in ("coverage", "published"):
        table = result["tables"][name]
        for values in table["values"]:
            row = usual | dict(zip(table["columns"], values, strict=True))
            if row["interval"] == "population" and row["what"] in MODELS:
                spread = row["noise"] * sqrt(result["settings"]["runs"])
                figures = Found(row["estimator"], row["what"], row["truth"], row["mean"], spread, row["coverage"])
                found[row["estimator"], row["metric"], row["what"]] = figures
    return found


def chart(result: dict[str, Any]) -> Any:
    """A panel for each question, an interval for each estimator and model, the truth as a diamond."""
    alt, found = altair(WHO), read(result)
    panels = [
        _panel(alt, title, [found[estimator, metric, model].row for estimator, metric in asked for model in MODELS])
        for title, asked in PANELS
    ]
    config = alt.Config(
        font=TYPEFACE, padding=12, view=alt.ViewConfig(stroke=None), background="white",
        axis=alt.AxisConfig(labelFontSize=FONT, titleFontSize=FONT, titleFontWeight="normal", gridColor="#e8e8e8",
                            labelLimit=400),
        title=alt.TitleConfig(fontSize=FONT, anchor="start", frame="group", fontWeight="bold"),
    )  # fmt: skip
    key = (
        "Diamond: the truth, every label known. Bar: where 95 % of 2,000 test sets of 80 random videos per user put it."
    )
    title = alt.TitleParams(key, fontSize=FONT, fontWeight="normal", anchor="start", offset=14)
    return alt.vconcat(*panels, spacing=14, config=config, title=title)


def _panel(alt: Any, title: str, rows: list[dict[str, Any]]) -> Any:
    data = alt.Data(values=rows)
    x = [
        alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, 0.4], nice=False), axis=alt.Axis(title=None, tickCount=5))
        for field in ("low", "truth")
    ]
    y = alt.Y(
        "name:N",
        sort=[row["name"] for row in rows],
        axis=alt.Axis(title=None, ticks=False, domain=False, labelPadding=8),
    )
    colour = alt.Color("colour:N", scale=None)
    layers = [
        alt.Chart(data).mark_rule(strokeWidth=5).encode(x=x[0], x2="high:Q", y=y, color=colour),
        alt.Chart(data).mark_point(shape="diamond", size=95, filled=True, opacity=1, color="black").encode(x=x[1], y=y),
        alt.Chart(data).mark_text(align="left", dx=10, fontSize=FONT).encode(
            x=alt.value(WIDTH), y=y, text="text:N", color=colour),
    ]  # fmt: skip
    return alt.layer(*layers, width=WIDTH, height=ROW * len(rows), title=title)
