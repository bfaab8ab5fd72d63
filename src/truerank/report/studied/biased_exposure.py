"""The page of the study of estimators for biased logs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from truerank.report.study_charts import BAND, GREEN, HELD, dot, percent, ranges, span, with_clip
from truerank.report.study_pages import StudyPage
from truerank.studies.own.biased_exposure import RIGHT
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

COLUMNS = "| propensities | metric | estimator | model or difference | truth | mean estimate | bias | Monte-Carlo error | coverage | mean width |"


def page(result: StudyResult) -> StudyPage:
    rows, settings = result.rows("coverage"), result.settings
    right, wrong = ([row for row in rows if (row["propensities"] == RIGHT) == flag] for flag in (True, False))
    held = [row["coverage"] for row in right if row["clip"] is None]
    missed = [row["coverage"] for row in wrong]
    dots = [
        dot(
            f"{row['propensities']}: {with_clip(row)}",
            "value of a model" if " - " not in row["what"] else "difference",
            row["coverage"],
        )
        for row in rows
    ]
    return StudyPage(
        "Estimators for biased logs, on a world with known propensities",
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the truth, with right and with wrong propensities",
        (
            "Logs that show some pairs more often than others can be weighed back, if it is known how likely each pair was to be shown.",
            f"With the right propensities and without a clip 95 % intervals held the truth in {span(held)} of draws; {GREEN}.",
            f"With wrong propensities they held it in {span(missed, 0)}, half of them in at most {percent(median(missed), 0)}: an interval does not know that a propensity is wrong.",
        ),
        [
            f"A synthetic world of {settings['users']:,} users x {settings['items']} items in which a user "
            f"likes {settings['liked']:.0f} items on average. Every cell is shown by itself with probability (0.03 + 0.3 x "
            f"popularity of the item / largest) x (1.5 if the user likes it): {settings['least propensity']:.3f} to {settings['largest propensity']:.3f}, about "
            f"{settings['rows of a log']:,} rows in a log. {settings['runs']:,} logs, seed {result.seed}: users redrawn with replacement, each copy with its own "
            "exposures; the truth is over all users of the world. Recommenders: popularity and EASE, learnt from another log. "
            "95 % population intervals; with 2,000 logs a correct method falls within 93 to 97 % with more than 99.9 % "
            "probability.",
            "",
            "## With the right propensities",
            "",
            "The bound is claimed for snips. A clip of 10 cuts the weights of all cells shown with less than 0.1, which "
            "leaves a bias that its interval does not know of.",
            "",
            *_table(right),
            "",
            "## With wrong ones",
            "",
            "The same logs; what the log claims is wrong. *Of items, blind to the label*: each item's mean propensity, as a "
            "model of popularity alone would learn it. *Square root*: the order of propensities is right, their size is "
            "not. *Naive*: the log is taken for a uniform sample. Intervals are honest about chance only: with wrong "
            "propensities they are narrow around a wrong value, and more data make it worse.",
            "",
            *_table(wrong),
        ],
    )


def _table(rows: Sequence[Row]) -> list[str]:
    return [COLUMNS, "|" + "---|" * 10, *(_line(row) for row in rows)]


def _line(row: Row) -> str:
    return (
        f"| {row['propensities']} | {row['metric']} | {with_clip(row)} | {row['what']} | {row['truth']:.5f} | {row['mean']:.5f} | "
        f"{row['bias']:+.5f} ({row['relative']:+.1%}) | {row['noise']:.6f} | {row['coverage']:.1%} | {row['width']:.5f} |"
    )
