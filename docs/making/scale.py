"""The picture of docs/scale.md, from what `python -m benchmarks scale --keep` measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docs.making.files import finding
from truerank.report.charts import COLOURS, TYPEFACE, altair

MEASURED = Path(__file__).parents[2] / "benchmarks" / "scale.json"
WHO = "the picture of docs/scale.md"


def made() -> dict[str, Any]:
    return {"figures/scale.svg": chart(json.loads(MEASURED.read_text()))}


def chart(measured: dict[str, Any]) -> Any:
    """Seconds by rows, both on scales of powers: a straight line of slope one is linear."""
    library = altair(WHO)
    rows = [{"rows": each["rows"], "seconds": each["seconds"], "command": each["command"]} for each in plain(measured)]
    base = library.Chart(library.Data(values=rows)).encode(
        x=library.X("rows:Q", title="rows", scale=library.Scale(type="log", nice=False, padding=12), axis=library.Axis(format="~s", gridColor="#eeeeee", values=[10**power for power in range(5, 10)])),
        y=library.Y("seconds:Q", title="seconds", scale=library.Scale(type="log", nice=False, padding=12), axis=library.Axis(format="~g", gridColor="#eeeeee", values=[1, 2, 5, 10, 20, 50, 100, 200, 500])),
        color=library.Color("command:N", title=None, scale=library.Scale(domain=["evaluate", "offpolicy"], range=list(COLOURS[:2])),
                            legend=library.Legend(orient="top")),
    )  # fmt: skip
    return (base.mark_line(strokeWidth=2) + base.mark_point(size=55, opacity=1, filled=True)).properties(
        width=330,
        height=260,
        title=finding(library, "Time grows in proportion to the rows."),
        config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb")),
    )


def plain(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Growth with rows alone: without the run that has more items and dimensions."""
    runs: list[dict[str, Any]] = measured["growth"]
    narrow = min(each["items"] * each["dim"] for each in runs if each["command"] == "evaluate")
    return [each for each in runs if each["items"] * each["dim"] in (0, narrow)]
