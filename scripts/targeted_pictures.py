"""Pictures of targeted exposure, of its study, and of a stream for docs/watch.md.

python scripts/targeted_pictures.py [png]          write docs/figures/watch.svg (or PNG, to look at)
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank.report.reliability_charts import TYPEFACE, PictureFormat, altair, picture
from truerank.report.watched import watch_picture

WHO = "the pictures of targeted exposure"
OUT = Path("docs/figures/watch")
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


def stream() -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """3,000 users who come one after the other; `new` puts what they like first for a few more of them than `old`."""
    rng = np.random.default_rng(9)
    n_users, n_items = 3000, 5
    user, item = (each.ravel() for each in np.indices((n_users, n_items)))
    tells = rng.random(n_users) < 0.25
    wins = rng.random(n_users) < 0.59
    first = {"new": np.where(tells & ~wins, 1, 0), "old": np.where(tells & wins, 1, 0)}
    scores = {
        name: pl.DataFrame({"user": user, "item": item, "score": (item == at[user]) - item / 10})
        for name, at in first.items()
    }
    labels = pl.DataFrame({"user": user, "item": item, "label": (item == 0).astype(int), "time": user})
    return scores, labels


def main() -> None:
    form = PictureFormat(sys.argv[1] if len(sys.argv) > 1 else "svg")
    scores, labels = stream()
    found = tr.watch(scores, labels, require="new > old", metrics=["Precision@1"], planned=1000)
    last = found.pairs[0].last
    print(found.pairs[0].state, found.pairs[0].stopped, last.users, math.isnan(last.low))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.with_suffix(f".{form}").write_bytes(watch_picture(found, str(form)))


if __name__ == "__main__":
    main()
