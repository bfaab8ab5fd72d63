"""The page of the study of intervals of coverage and Gini."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.report.study_charts import BAND, GREEN, HELD, dot, ranges, span
from truerank.report.study_pages import StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row


def page(result: StudyResult) -> StudyPage:
    rows, draws = result.rows("intervals"), result.settings["draws"]
    known = [row for row in rows if row["held"] is not None]
    held = [row["held"] for row in known]
    low, high = (pick(known, key=lambda row: row["held"]) for pick in (min, max))
    dots = [dot(f"{row['world']}, {row['users']:,} users", row["metric"], row["held"]) for row in known]
    right = sum(each > BAND[1] for each in held)
    return StudyPage(
        "Intervals of coverage and Gini, measured",
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals of coverage and Gini held the truth, by world",
        (
            "How many items a recommender shows at all, and how unequally, are numbers of all users together, so their intervals were measured on worlds whose truth is known.",
            f"A dot is how often a 95 % interval held it: {span(held)} of draws; {GREEN}.",
            f"{right} of {len(held)} are to its right: wider than needed, which is safe and costs data.",
        ),
        [
            "Users are drawn again and again from four populations whose lists are known; what an interval should hold is",
            f"the mean over all {draws:,} draws: the value that as many users have on average.",
            "",
            f"- Intervals of 95 % held in {low['held']:.1%} ({low['world']}, {low['metric']}, {low['what']}, {low['users']:,} users) to {high['held']:.1%} of draws.",
            "- Where they hold more often, they are too wide: the sum of squares of what each user adds is on average no less than the variance (Efron and Stein 1981)."
            + _widest(known),
            "- Where every listed item is in the lists of two users or more, no user alone adds anything: coverage then has an interval by the rule of three, from users of a kind that was not drawn",
            "  (the more likely, the fewer users or the smaller the catalogue). Gini has none there (the last column).",
            "",
            "<details><summary>All worlds</summary>",
            "",
            f"| world | metric | of | users | mean over {draws:,} draws | sd | standard error | 95 % held | no interval |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|",
            *(_line(row) for row in rows),
            "",
            "</details>",
        ],
    )


def _widest(known: Sequence[Row]) -> str:
    """Where the standard error is most above the true one, of values that are not close to an end."""
    inner = [row for row in known if 0.05 < row["mean"] < 0.95 and row["sd"]]
    if not inner:
        return ""
    wide = max(inner, key=lambda row: row["stderr"] / row["sd"])
    return (
        f" Of values from 0.05 to 0.95 the\n  standard error is up to {wide['stderr'] / wide['sd']:.1f} times the true one ({wide['world']}, {wide['metric']}, "
        f"{wide['users']:,} users); where a catalogue is nearly full, or nobody unusual was drawn, more."
    )


def _line(row: Row) -> str:
    stderr = "" if row["stderr"] is None else f"{row['stderr']:.4f}"
    share = "" if row["held"] is None else f"{row['held']:.1%}"
    return (
        f"| {row['world']} | {row['metric']} | {row['what']} | {row['users']:,} | {row['mean']:.4f} | {row['sd']:.4f} | {stderr} "
        f"| {share} | {row['without']:.1%} |"
    )
