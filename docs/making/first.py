"""The picture of README.md: the demo's models by its biased log, by its random sample, and by every label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import truerank as tr
from truerank.report.charts import TYPEFACE, altair
from truerank.simulation.demo import make_demo

PICTURE = "figures/first.svg"
WHO = "the picture of the README"
WIDTH, ROW, FONT = 430, 27, 13
COLOUR = "#0072B2"
METRIC = "Precision@10"
MODELS = ("ease", "item-knn", "newcomers", "popularity")
SEED = 0  # of `truerank demo`
PANELS = {
    "holdout": "Hold-out from the biased log: item-knn seems best, and every value is far too low",
    "random": "20 random items per user: ease is highest, and every interval covers the truth",
}


def made() -> dict[str, Any]:
    return {PICTURE: chart(figures())}


def figures() -> dict[str, list[dict[str, Any]]]:
    """Estimate, interval and truth of each model, by panel."""
    demo = make_demo(Path("truerank-demo"), seed=SEED)
    models = {name: demo.models[name] for name in MODELS}
    labels = {"holdout": demo.biased, "random": demo.dataset.random, "full": demo.dataset.truth}
    found = {
        exposure: tr.evaluate(models, rows, exposure=exposure, exclude=demo.dataset.train, metrics=[METRIC])
        for exposure, rows in labels.items()
    }
    truth = {estimate.model: estimate.value for estimate in found["full"].estimates}
    return {
        panel: [
            {
                "name": estimate.model, "value": estimate.value, "low": estimate.low, "high": estimate.high,
                "truth": truth[estimate.model],
            }
            for estimate in found[panel].estimates
        ]
        for panel in PANELS
    }  # fmt: skip


def chart(rows_by_panel: dict[str, list[dict[str, Any]]]) -> Any:
    """A panel for each kind of data, an interval for each model, the truth as a diamond."""
    alt = altair(WHO)
    panels = [_panel(alt, PANELS[panel], rows) for panel, rows in rows_by_panel.items()]
    config = alt.Config(
        font=TYPEFACE, padding=12, view=alt.ViewConfig(stroke=None), background="white",
        axis=alt.AxisConfig(labelFontSize=FONT, titleFontSize=FONT, titleFontWeight="normal", gridColor="#e8e8e8",
                            labelLimit=400),
        title=alt.TitleConfig(fontSize=FONT, anchor="start", frame="group", fontWeight="bold"),
    )  # fmt: skip
    key = f"{METRIC}. Diamond: the truth, every label known. Bar: estimate with 95% confidence interval."
    title = alt.TitleParams(key, fontSize=FONT, fontWeight="normal", anchor="start", offset=14)
    return alt.vconcat(*panels, spacing=14, config=config, title=title)


def _panel(alt: Any, title: str, rows: list[dict[str, Any]]) -> Any:
    data = alt.Data(values=rows)
    scale, axis = alt.Scale(domain=[0, 0.6], nice=False), alt.Axis(title=None, tickCount=6)
    low, value, truth = (alt.X(f"{field}:Q", scale=scale, axis=axis) for field in ("low", "value", "truth"))
    y = alt.Y("name:N", sort=list(MODELS), axis=alt.Axis(title=None, ticks=False, domain=False, labelPadding=8))
    layers = [
        alt.Chart(data).mark_rule(strokeWidth=5, color=COLOUR).encode(x=low, x2="high:Q", y=y),
        alt.Chart(data).mark_tick(thickness=2, size=14, color=COLOUR).encode(x=value, y=y),
        alt.Chart(data)
        .mark_point(shape="diamond", size=95, filled=True, opacity=1, color="black")
        .encode(x=truth, y=y),
    ]
    return alt.layer(*layers, width=WIDTH, height=ROW * len(rows), title=title)
