"""The page of the study of fits of position models."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.report.study_charts import BAND, GREEN, HELD, dot, percent, ranges, span
from truerank.report.study_pages import StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

COLUMNS = "| planted | parameter | value | mean estimate | bias | Monte-Carlo error | coverage of 95 % intervals |"
DEPTHS, CLICKS = "from scroll depths", "from clicks"
FAMILIES = {"log": "the generalised logarithm", "exp": "the exponential model", "yule": "the Yule model"}


def page(result: StudyResult) -> StudyPage:
    settings = result.settings
    depths, features, clicks = (result.rows(name) for name in ("depths", "features", "clicks"))
    groups = result.rows("groups")
    worst = min(groups, key=lambda row: row["coverage"])
    sources = {DEPTHS: [*depths, *features], CLICKS: clicks}
    dots = [dot(f"{row['planted']}: {row['parameter']}", source, row["coverage"]) for source, rows in sources.items() for row in rows]  # fmt: skip
    held = {source: span(row["coverage"] for row in rows) for source, rows in sources.items()}
    return StudyPage(
        "Do fits of position models find what was planted?",
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the planted position model, by fit",
        (
            "Sessions were drawn from position models that are known, and the models fitted to them.",
            f"From scroll depths 95 % intervals held what was planted in {held[DEPTHS]} of fits ({GREEN}), from clicks in {held[CLICKS]}, for which nothing is promised.",
            f"Fits per group of sessions are weakest for {FAMILIES.get(worst['family'], worst['family'])}: 95 % intervals held in {percent(worst['coverage'])}.",
        ),
        [
            "## From scroll depths",
            "",
            f"Maximum likelihood with intervals from the observed information, on the logit scale for γ and on the log scale for ρ "
            f"and α. {settings['runs']:,} fits each; a right method falls within 93 to 97 % with more than 99.9 % probability. Sessions "
            f"whose feed ended contribute ln P(D >= L). Depths of the generalised logarithm have no mean, so even feeds of "
            f"{settings['longest feed']:,} items end before some users do. Estimates of α are skewed: their mean lies above the planted value although their "
            "median does not; the interval, symmetric in ln α, takes care of it.",
            "",
            *_table(depths),
            "",
            "## With features (contextual position bias)",
            "",
            f"logit γ, ln ρ or ln α as a linear function of two features. {settings['runs']:,} fits each.",
            "",
            *_table(features),
            "",
            "## Per group, with shrinkage",
            "",
            f"{settings['groups']} groups of 5 to 59 sessions; their parameters differ with a standard deviation of {settings['between']} on the scale. "
            f"{settings['group runs']:,} draws. Root mean squared error on the scale over groups. Coverage is the share of "
            "(group, draw) whose interval holds the group's own parameter; it can be nominal on average over groups, not for each of them. Sessions this few say little about ln α (its standard error is larger than the spread between groups), so the spread is often estimated as 0 and the intervals of the generalised logarithm are too short: give it larger groups, or one value for everyone.",
            "",
            "| family | error of the shrunk values | error of one value for everyone | coverage of 95 % intervals |",
            "|---|---|---|---|",
            *(
                f"| {row['family']} | {row['shrunk']:.3f} | {row['pooled']:.3f} | {row['coverage']:.1%} |"
                for row in groups
            ),
            "",
            "## From clicks, all displayed items logged",
            "",
            f"{settings['sessions']:,} sessions, {settings['items']} items, {settings['ranks']} ranks, planted yule:1; percentile intervals from {settings['replicates']} bootstrap "
            f"samples of sessions; {settings['click runs']:,} runs. No coverage is claimed for these fits: they are shown as they are.",
            "",
            *_table(clicks),
        ],
    )


def _table(rows: Sequence[Row]) -> list[str]:
    return [COLUMNS, "|" + "---|" * 7, *(_line(row) for row in rows)]


def _line(row: Row) -> str:
    parameter = row["parameter"].replace("|", "\\|")
    return (
        f"| {row['planted']} | {parameter} | {row['value']:.4g} | {row['mean']:.4f} | {row['bias']:+.4f} ({row['relative']:+.1%}) | "
        f"{row['noise']:.4f} | {row['coverage']:.1%} |"
    )
