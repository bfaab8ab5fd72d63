"""The page of the calibration study: worlds of the papers' estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truerank.report.reliability_charts import TYPEFACE, altair
from truerank.report.study_pages import WHO, StudyPage
from truerank.studies.calibration.found import ABOUT, BEYOND, FEW, LOW, MOST_WARNED, NOISE, TYPE_ONE
from truerank.studies.calibration.summary import EQUAL, VALUE
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

EDGE = 0.8  # of coverage in the picture


def page(result: StudyResult) -> StudyPage:
    cells, said = result.rows("cells"), result.settings
    drawn = " to ".join(f"{n:,}" for n in dict.fromkeys((said["fewest draws"], said["most draws"])))
    lowest = said["lowest coverage"]
    return StudyPage(
        ABOUT.replace("keep", "beyond the papers keep") if result.study == BEYOND else ABOUT,
        chart(cells),
        "Coverage of intervals and type I errors of verdicts in every world",
        (
            f"{said['worlds']} worlds whose truth is known were drawn {drawn} times each, and every draw was evaluated as a user would.",
            "A dot is an estimator with a metric; the green band is what is promised.",
            "Grey dots are situations that truerank itself warns of in most draws"
            f"{'' if lowest is None or lowest > EDGE else f'; a dot on the left edge lies at {EDGE:.0%} or below (the lowest is {lowest:.0%})'}.",
        ),
        [counts(said, len(cells)), "", *seen(result), *short(result.rows("short")), *every(cells)],
    )


def counts(said: Mapping[str, Any], n_cells: int) -> str:
    """How many cells are judged, and how many of these keep their promises."""
    return (
        f"Of {n_cells:,} cells (world, metric, estimator, kind of number) {said['judged']:,} have enough draws without a "
        f"warning to be judged; the other {n_cells - said['judged']:,} have too few, and nothing is said of them. Of those judged, "
        f"{said['held']:,} hold the truth in at least 93 % of these draws (92 % with at most {FEW} users), if "
        f"{NOISE} Monte-Carlo errors are allowed for; as counted, {said['below as counted']:,} lie below. "
        f"{said['wide']:,} hold it in more than 97 % by more than these errors: wider than needed. "
        "What no column shows: draws without a warning are a selection, and where warnings depend on what was drawn they "
        "are the ones in which what is rare was missing. "
        f"Equal models are called different in more than {TYPE_ONE:.1%} of the draws in {said['called different']:,} of "
        f"{said['equal']:,} cells; of the draws without a warning alone, as counted, in "
        f"{said['called different without a warning']:,} of {said['equal without a warning']:,} "
        f"(the highest {said['most called different without a warning'] or 0.0:.1%}). In worlds with ample evidence "
        f"{said['ample and warned of']:,} of {said['ample']:,} cells are warned of in more than {MOST_WARNED:.0%} of the draws."
    )


def seen(result: StudyResult) -> tuple[str, ...]:
    """What the draws of these worlds were used for, and which rules are newer than they."""
    if result.study == BEYOND:
        return (
            "Two cautions of `corrected` (`recall-rises`, `large-correction`) were chosen after draws of similar worlds "
            "([truth](truth.md)); in these draws the second came from a correction of 10 % on, now from 7 % on.",
            "",
        )
    return (
        "Some warnings were added after draws of these worlds had shown where they were missing, so what "
        "is counted here without a warning was not measured on worlds or seeds that the rules had never seen.",
        "",
    )


def short(rows: Sequence[Row]) -> list[str]:
    head = ["## What falls short", ""]
    if not rows:
        return [*head, "Nothing, beyond chance.", ""]
    lines = [
        _line(row, *(share(row[name]) for name in ("covered_calm", "decided", "warned"))) for row in rows
    ]  # fmt: skip
    return [
        *head,
        "| world | metric | estimator | of | covered without a warning | called different | warned |",
        "|" + "---|" * 7,
        *lines,
        "",
    ]


def every(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        width = "" if row["width"] is None else f"{row['width']:.3f}"
        before, after = (
            [share(row[name]) for name in names]
            for names in (("covered", "covered_calm"), ("warned", "no_interval", "insufficient", "decided", "right"))
        )
        lines.append(_line(row, *before, width, *after))
    return [
        "<details><summary>Every cell</summary>",
        "",
        "| world | metric | estimator | of | covered | without a warning | width | warned | no interval | insufficient | called different | called worse |",
        "|" + "---|" * 12,
        *lines,
        "",
        "</details>",
    ]


def _line(row: Row, *cells: str) -> str:
    return f"| {' | '.join((row['world'], row['metric'], row['estimator'], row['kind'], *cells))} |"


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def chart(cells: Sequence[Row]) -> Any:
    """Coverage of values and differences and the type I error, a line for each world, a mark for each estimator."""
    library = altair(WHO)
    rows = [
        {**row, "mark": "mostly warned of" if row["warned"] > 0.5 else "mostly without warning"} for row in cells
    ]  # fmt: skip
    order = list(dict.fromkeys(row["world"] for row in rows))
    marks = library.Color(
        "mark:N", title=None, scale=library.Scale(range=["#b8b8b8", "#1f6f8b"]), legend=library.Legend(orient="top")
    )

    def panel(kind: str, column: str, title: str, limits: tuple[float, float], band: tuple[float, float]) -> Any:
        own = [row for row in rows if row["kind"] == kind and row[column] is not None]
        shown = [{name: row[name] for name in ("world", column, "mark", "estimator")} for row in own]
        base = library.Chart(library.Data(values=shown))
        scale = library.Scale(domain=list(limits), clamp=True)
        axis = library.Axis(labelLimit=260) if kind == VALUE else None
        dots = base.mark_circle(size=36, opacity=0.8).encode(
            x=library.X(f"{column}:Q", title=title, scale=scale, axis=library.Axis(format="%")),
            y=library.Y("world:N", title=None, sort=order, axis=axis),
            color=marks,
        )
        promised = library.Chart(library.Data(values=[{"from": band[0], "to": band[1]}]))
        shade = promised.mark_rect(color="#d9ead3", opacity=0.7).encode(
            x=library.X("from:Q", scale=scale, title=title), x2="to:Q"
        )
        return (shade + dots).properties(width=230, height=14 * len(order))

    return library.hconcat(
        panel(VALUE, "covered", "intervals of values that hold the truth", (EDGE, 1.0), (LOW, 1.0)),
        panel(EQUAL, "covered", "of differences", (EDGE, 1.0), (LOW, 1.0)),
        panel(EQUAL, "decided", "equal models called different", (0.0, 0.2), (0.0, TYPE_ONE)),
    ).configure(font=TYPEFACE, view=library.ViewConfig(stroke="#dddddd"))
