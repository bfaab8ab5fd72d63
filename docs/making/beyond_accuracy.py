"""The picture of docs/beyond-accuracy.md: what models recommend, beside how good it is, in the world of the demo."""

from __future__ import annotations

from typing import Any

import truerank as tr
from docs.making.files import finding
from truerank import models
from truerank.core.results import Results
from truerank.report.charts import TYPEFACE, altair
from truerank.simulation.dataset import simulate_dataset

WHO = "the picture beyond accuracy"
MODELS = ("popularity", "item-knn", "ease", "ials", "random")
ACCURACY, COVERAGE, NOVELTY = "Precision@10", "Coverage@10", "Novelty@10"
SEED = 1
WIDTH, HEIGHT, FONT = 320, 200, 13
COLOURS = ["#444444", "#0072B2", "#C44E00", "#00795A", "#9B3F86"]


def made() -> dict[str, Any]:
    return {"figures/beyond-accuracy.svg": chart(evaluated())}


def evaluated() -> Results:
    """Models that learned from the log of a world, on its randomly exposed rows."""
    world = simulate_dataset(seed=SEED)
    scores = {name: models.parse(name).fit(world.train, seed=SEED) for name in MODELS}
    metrics = [ACCURACY, COVERAGE, "Gini@10", NOVELTY, "PopularityLift@10"]
    return tr.evaluate(scores, world.random, exposure="random", exclude=world.train, metrics=metrics)


def rows_of(results: Results, across: str) -> list[dict[str, Any]]:
    """For each model the interval of both metrics."""
    found = {(each.model, each.metric): each for each in results.estimates}
    return [{"model": name, **_ends("x", found[name, across]), **_ends("y", found[name, ACCURACY])} for name in MODELS]


def _ends(axis: str, estimate: Any) -> dict[str, float]:
    return {axis: estimate.value, f"{axis}_low": estimate.low, f"{axis}_high": estimate.high}


def chart(results: Results) -> Any:
    alt = altair(WHO)
    panels = [
        _panel(alt, rows_of(results, COVERAGE), "share of the catalogue in the top 10 of 2,000 users", (0.0, 1.05)),
        _panel(alt, rows_of(results, NOVELTY), "novelty of the top 10 (bits)", (0.0, 4.5)),
    ]
    title = finding(alt, "Popularity is not much less precise,", "but recommends few and well-known items.")
    return alt.vconcat(*panels, spacing=24, title=title).configure(
        font=TYPEFACE,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelFontSize=FONT, titleFontSize=FONT, titleFontWeight="normal", titlePadding=8, tickColor="#bbbbbb",
            domainColor="#bbbbbb", gridColor="#eeeeee",
        ),
    )  # fmt: skip


def _panel(alt: Any, rows: list[dict[str, Any]], title: str, domain: tuple[float, float]) -> Any:
    data = alt.Data(values=rows)
    x = alt.X("x:Q", title=title, scale=alt.Scale(domain=list(domain), nice=False), axis=alt.Axis(tickCount=6))
    y = alt.Y("y:Q", title="Precision@10", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    base = alt.Chart(data, width=WIDTH, height=HEIGHT)
    sides = {
        "sort": list(MODELS),
        "legend": alt.Legend(title=None, orient="top", columns=3, labelFontSize=FONT, symbolSize=120),
    }
    colour = alt.Color("model:N", scale=alt.Scale(domain=list(MODELS), range=COLOURS), **sides)
    shape = alt.Shape("model:N", scale=alt.Scale(domain=list(MODELS)), **sides)
    layers = [
        base.mark_rule(strokeWidth=2).encode(x="x_low:Q", x2="x_high:Q", y=y, color=colour),
        base.mark_rule(strokeWidth=2).encode(x=x, y="y_low:Q", y2="y_high:Q", color=colour),
        base.mark_point(size=110, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
    ]
    return alt.layer(*layers)
