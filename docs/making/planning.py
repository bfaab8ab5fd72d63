"""Pictures of docs/planning.md and docs/advise.md."""

from __future__ import annotations

from typing import Any

import polars as pl

import truerank as tr
from docs.making.files import finding
from truerank.core.estimator import Exposed
from truerank.estimators import ESTIMATORS, RANKED
from truerank.report.charts import COLOURS, SHAPES, TYPEFACE, altair

WHO = "pictures of the docs"
DIFFERENCES = (0.01, 0.02, 0.05)


def made() -> dict[str, Any]:
    return {"figures/plan.svg": needed(), "figures/advise.svg": valid()}


def needed() -> Any:
    """Users needed by labelled items per user, for three differences of Precision@10 among 1,000 items."""
    library = altair(WHO)
    tables = [
        tr.plan_exposure(difference=difference, metrics=["Precision@10"], n_items=1000, value=0.1, shared=0.5)
        .table()
        .with_columns(difference=pl.lit(f"{difference:g}"))
        for difference in DIFFERENCES
    ]
    names = [f"{difference:g}" for difference in DIFFERENCES]
    rows = pl.concat(tables).filter((pl.col("estimator") == "hajek") & (pl.col("per_user") >= 5))
    base = library.Chart(library.Data(values=rows.to_dicts())).encode(
        x=library.X("per_user:Q", title="labelled items per user", scale=library.Scale(type="log", nice=False),
                    axis=library.Axis(format="~g", gridColor="#eeeeee")),
        y=library.Y("users:Q", title="users needed", scale=library.Scale(type="log", nice=False), axis=library.Axis(format=",", gridColor="#eeeeee")),
        color=library.Color("difference:N", title="difference", scale=library.Scale(domain=names, range=list(COLOURS[:3])),
                            legend=library.Legend(orient="top")),
    )  # fmt: skip
    shape = library.Shape("difference:N", title="difference", scale=library.Scale(domain=names, range=list(SHAPES[:3])))
    points = base.mark_point(size=55, opacity=1, filled=True).encode(shape=shape)
    return (base.mark_line(strokeWidth=2) + points).properties(
        width=330,
        height=260,
        title=finding(library, "Half the difference needs", "about four times as many users."),
        config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb")),
    )


def valid() -> Any:
    """Which estimators are for which kind of log, as they say themselves."""
    library = altair(WHO)
    rows = [
        {"estimator": name, "log": str(kind), "place": at}
        for at, kind in enumerate(Exposed)
        for family in (ESTIMATORS, RANKED)
        for name, cls in family.catalogue().items()
        if kind in cls.info.exposures
    ]
    order = list(dict.fromkeys(row["estimator"] for row in rows))
    return (
        library.Chart(library.Data(values=rows))
        .mark_circle(size=130, color="#1f6f8b", opacity=1)
        .encode(
            x=library.X(
                "log:N", title="how labels were collected", sort=[str(kind) for kind in Exposed],
                axis=library.Axis(orient="top", labelAngle=0, labelFontSize=12),
            ),
            y=library.Y("estimator:N", title=None, sort=order, axis=library.Axis(grid=True, labelFontSize=12)),
        )
        .properties(
            width=280, height=20 * len(order), title=finding(library, "Estimators by the kind of data"),
            config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb")),
        )
    )  # fmt: skip
