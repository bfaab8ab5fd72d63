"""Picture of the study of targeted exposure."""

from __future__ import annotations

from typing import Any

import polars as pl

from truerank.report.reliability_charts import TYPEFACE, PictureFormat, altair, picture

WHO = "the pictures of targeted exposure"
COLOURS = {"known": "#0072B2", "difference": "#56B4E9", "not known": "#C44E00", "random list": "#6E6E6E"}
BAR = "#777777"


def _config() -> Any:
    alt = altair(WHO)
    axis = alt.AxisConfig(labelFontSize=12, titleFontSize=12, gridColor="#e8e8e8", labelLimit=300)
    return alt.Config(font=TYPEFACE, padding=10, background="white", axis=axis, view=alt.ViewConfig(stroke=None))


def study_picture(found: pl.DataFrame, form: PictureFormat = PictureFormat.SVG) -> bytes:
    """A point for each model or difference: its variance over that of uniform exposure, Hájek, Precision and DCG."""
    alt = altair(WHO)
    rows = [
        {"what": f"{row['what']}", "kind": row["kind"], "share": row["share"], "metric": row["metric"]}
        for row in found.filter(pl.col("estimator") == "hajek").to_dicts()
    ]
    order = [what for kind in COLOURS for what in dict.fromkeys(row["what"] for row in rows if row["kind"] == kind)]
    metrics = sorted({row["metric"] for row in rows}, key=lambda name: (int(name.split("@")[1]), name))
    data = alt.Data(values=rows)
    x = alt.X("share:Q", title="variance over that of 20 uniform items (Horvitz-Thompson)",
              scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", values=[0.001, 0.01, 0.1, 1, 2]))  # fmt: skip
    points = alt.Chart(data).mark_point(size=70, filled=True, opacity=0.85).encode(
        x=x,
        y=alt.Y("what:N", sort=order, title=None),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
        shape=alt.Shape("metric:N", title=None, sort=metrics),
    )  # fmt: skip
    one = alt.Chart(alt.Data(values=[{"at": 1}])).mark_rule(strokeDash=[4, 4], color=BAR).encode(x="at:Q")
    return picture(alt.layer(one, points, width=430, height=260, config=_config()), form, who=WHO)
