"""Whether intervals and verdicts keep their promises: `make calibration` draws, and writes docs/results/calibration.md.

The folder of the study is kept: a stopped run goes on, and more draws later are the same study.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

from truerank.report.reliability_charts import TYPEFACE, PictureFormat, altair, picture
from truerank.studies.calibration.summary import EQUAL, RESULTS, VALUE, WORSE_ONE

FOLDER = Path("docs/results")
NEWER = "beyond the papers"
PAGES = {"": "calibration", NEWER: "calibration-beyond"}  # worlds of estimators that no paper has: a page of their own
BEYOND = "^(strata|designed|pairs|post-normalised|corrected),"
WHO = "the page of calibration"
LOW, HIGH, LOW_OF_FEW, FEW, TYPE_ONE, MOST_WARNED = 0.93, 0.97, 0.92, 20, 0.065, 0.05
NOISE = 3  # Monte-Carlo errors that a share may lie beyond a limit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--folder", type=Path, default=Path("build/calibration"))
    parser.add_argument("--page-only", action="store_true", help="from the draws that are there")
    arguments = parser.parse_args()
    if not arguments.page_only:
        words = ["study", "calibration", "--draws", str(arguments.draws), "--out", str(arguments.folder)]
        arguments.folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "truerank", *words], check=True)
    found = pl.read_parquet(arguments.folder / RESULTS)
    newer = pl.col("world").str.contains(BEYOND)
    for about, name in PAGES.items():
        own = found.filter(newer if about else ~newer)
        if len(own):  # a study of some worlds alone leaves the other page as it is
            (FOLDER / f"{name}.svg").write_bytes(picture(chart(own), PictureFormat.SVG, who=WHO))
            (FOLDER / f"{name}.md").write_text(page(own, words=about, picture_name=f"{name}.svg"))


# ------------------------------------------------------------------------------------------------------------- picture


def chart(found: pl.DataFrame) -> Any:
    """Coverage of values and differences and the type I error, a line for each world, a mark for each estimator."""
    library = altair(WHO)
    rows = found.with_columns(
        mark=pl.when(pl.col("warned") > 0.5)
        .then(pl.lit("mostly warned of"))
        .otherwise(pl.lit("mostly without warning"))
    )
    order = found["world"].unique(maintain_order=True).to_list()
    marks = library.Color(
        "mark:N", title=None, scale=library.Scale(range=["#b8b8b8", "#1f6f8b"]), legend=library.Legend(orient="top")
    )

    def panel(kind: str, column: str, title: str, limits: tuple[float, float], band: tuple[float, float]) -> Any:
        own = rows.filter((pl.col("kind") == kind) & pl.col(column).is_not_null())
        base = library.Chart(library.Data(values=own.select("world", column, "mark", "estimator").to_dicts()))
        share = library.Scale(domain=list(limits), clamp=True)
        dots = base.mark_circle(size=36, opacity=0.8).encode(
            x=library.X(f"{column}:Q", title=title, scale=share, axis=library.Axis(format="%")),
            y=library.Y(
                "world:N", title=None, sort=order, axis=library.Axis(labelLimit=260) if kind == VALUE else None
            ),
            color=marks,
        )
        promised = library.Chart(library.Data(values=[{"from": band[0], "to": band[1]}]))
        shade = promised.mark_rect(color="#d9ead3", opacity=0.7).encode(
            x=library.X("from:Q", scale=share, title=title), x2="to:Q"
        )
        return (shade + dots).properties(width=230, height=14 * len(order))

    return library.hconcat(
        panel(VALUE, "covered", "intervals of values that hold the truth", (0.8, 1.0), (LOW, 1.0)),
        panel(EQUAL, "covered", "of differences", (0.8, 1.0), (LOW, 1.0)),
        panel(EQUAL, "decided", "equal models called different", (0.0, 0.2), (0.0, TYPE_ONE)),
    ).configure(font=TYPEFACE, view=library.ViewConfig(stroke="#dddddd"))


# ---------------------------------------------------------------------------------------------------------------- page


def page(found: pl.DataFrame, *, words: str = "", picture_name: str = "calibration.svg") -> str:
    """The document, of all worlds or of those that these words name."""
    draws = sorted(found["draws"].unique().to_list())
    shown = " to ".join(f"{n:,}" for n in dict.fromkeys((draws[0], draws[-1])))
    calm = found.filter(pl.col("calm") >= 0.2 * pl.col("draws"))
    covered = calm.filter(pl.col("covered_calm").is_not_null())
    short = _short(covered)
    errors = _errors(found)
    plainly = covered.filter(pl.col("covered_calm") < _least())
    alike = calm.filter((pl.col("kind") == EQUAL) & pl.col("decided_calm").is_not_null())
    above = alike.filter(pl.col("decided_calm") > TYPE_ONE)
    warned = found.filter(pl.col("ample") & (pl.col("kind") == VALUE) & (pl.col("warned") > MOST_WARNED))
    worlds = found["world"].n_unique()
    lines = [
        f"# Do intervals and verdicts {words}{' ' if words else ''}keep their promises?",
        "",
        f"![Coverage of intervals and type I errors of verdicts in every world]({picture_name})",
        "",
        f"{worlds} worlds whose truth is known were drawn {shown} times each, and every draw was evaluated as a user "
        "would. A dot is an estimator with a metric; the green band is what is promised. Grey dots are situations that "
        "truerank itself warns of in most draws. A dot on the left edge lies at 80 % or below (the lowest is "
        f"{min(found.filter(pl.col('kind') != WORSE_ONE)['covered'].drop_nulls().to_list()):.0%}).",
        "",
        f"Of {len(found):,} cells (world, metric, estimator, kind of number) {len(covered):,} have enough draws without a "
        f"warning to be judged; the other {len(found) - len(covered):,} have too few, and nothing is said of them. Of those judged, "
        f"{len(covered) - len(short):,} hold the truth in at least 93 % of these draws (92 % with at most {FEW} users), if "
        f"{NOISE} Monte-Carlo errors are allowed for; as counted, {len(plainly):,} lie below. "
        f"{len(_wide(covered)):,} hold it in more than 97 % by more than these errors: wider than needed. "
        "What no column shows: draws without a warning are a selection, and where warnings depend on what was drawn they "
        "are the ones in which what is rare was missing. "
        f"Equal models are called different in more than {TYPE_ONE:.1%} of the draws in {len(errors):,} of "
        f"{len(found.filter(pl.col('kind') == EQUAL)):,} cells; of the draws without a warning alone, as counted, in "
        f"{len(above):,} of {len(alike):,} (the highest {max(alike['decided_calm'].to_list(), default=0.0):.1%}). In worlds with ample evidence "
        f"{len(warned):,} of {len(found.filter(pl.col('ample') & (pl.col('kind') == VALUE))):,} cells are warned of in "
        f"more than {MOST_WARNED:.0%} of the draws.",
        "",
        *(
            (
                "Two cautions of `corrected` (`recall-rises`, `large-correction`) were chosen after draws of similar worlds "
                "([truth](truth.md)); in these draws the second came from a correction of 10 % on, now from 7 % on.",
                "",
            )
            if words
            else (
                "Some warnings were added after draws of these worlds had shown where they were missing, so what "
                "is counted here without a warning was not measured on worlds or seeds that the rules had never seen.",
                "",
            )
        ),
        "Written by `make calibration` from `truerank study calibration`; seeds are fixed, and a stopped study goes on.",
        "",
        *_table("What falls short", short, errors),
        *_all(found),
    ]
    return "\n".join(lines) + "\n"


def _least() -> pl.Expr:
    return pl.when(pl.col("users") <= FEW).then(LOW_OF_FEW).otherwise(LOW)


def _short(covered: pl.DataFrame) -> pl.DataFrame:
    """Cells whose coverage without a warning is below what is promised by more than chance."""
    least = _least()
    noise = (least * (1 - least) / pl.col("calm")).sqrt()
    return covered.filter(pl.col("covered_calm") < least - NOISE * noise)


def _wide(covered: pl.DataFrame) -> pl.DataFrame:
    """Cells of more than a few users whose coverage without a warning is above 97 % by more than chance."""
    noise = (HIGH * (1 - HIGH) / pl.col("calm")).sqrt()
    return covered.filter((pl.col("covered_calm") > HIGH + NOISE * noise) & (pl.col("users") > FEW))


def _errors(found: pl.DataFrame) -> pl.DataFrame:
    noise = (TYPE_ONE * (1 - TYPE_ONE) / pl.col("draws")).sqrt()
    return found.filter((pl.col("kind") == EQUAL) & (pl.col("decided") > TYPE_ONE + NOISE * noise))


def _table(title: str, short: pl.DataFrame, errors: pl.DataFrame) -> list[str]:
    lines = [f"## {title}", ""]
    if not len(short) and not len(errors):
        return [*lines, "Nothing, beyond chance.", ""]
    lines += [
        "| world | metric | estimator | of | covered without a warning | called different | warned |",
        "|" + "---|" * 7,
    ]
    for row in pl.concat([short, errors]).unique(maintain_order=True).iter_rows(named=True):
        lines.append(_line(row))
    return [*lines, ""]


def _line(row: dict[str, Any]) -> str:
    cells = (row["world"], row["metric"], row["estimator"], row["kind"])
    shares = (row["covered_calm"], row["decided"] if row["kind"] == EQUAL else None, row["warned"])
    return f"| {' | '.join((*cells, *map(_share, shares)))} |"


def _all(found: pl.DataFrame) -> list[str]:
    lines = [
        "<details><summary>Every cell</summary>", "",
        "| world | metric | estimator | of | covered | without a warning | width | warned | no interval | insufficient "
        "| called different | called worse |",
        "|" + "---|" * 12,
    ]  # fmt: skip
    for row in found.iter_rows(named=True):
        of_pair = row["kind"] != VALUE
        cells = (
            row["world"], row["metric"], row["estimator"], row["kind"], _share(row["covered"]),
            _share(row["covered_calm"]), "" if row["width"] is None else f"{row['width']:.3f}", _share(row["warned"]),
            _share(row["no_interval"]), _share(row["insufficient"]) if of_pair else "",
            _share(row["decided"]) if row["kind"] == EQUAL else "",
            _share(row["right"]) if row["kind"] == WORSE_ONE else "",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", "</details>"]


def _share(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.1%}"  # noqa: PLR0124 - NaN


if __name__ == "__main__":
    main()
