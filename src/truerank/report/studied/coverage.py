"""The page of the study of intervals from randomly exposed labels."""

from __future__ import annotations

from truerank.report.study_charts import BAND, GREEN, HELD, dot, ranges, span
from truerank.report.study_pages import StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

KUAIREC = "The fully observed block of KuaiRec ({users:,} users x {items:,} items, label = watch ratio > 2; the 17,827 unobserved cells count as negatives)."
MADE = "A synthetic world of the shape of KuaiRec's block ({users:,} users x {items:,} items)."


def page(result: StudyResult) -> StudyPage:
    rows, published, settings = result.rows("coverage"), result.rows("published"), result.settings
    dots = [
        dot(f"{row['metric']}, {row['estimator']}", f"{row['interval']} intervals", row["coverage"]) for row in rows
    ]
    users, items = settings["users"], settings["items"]
    return StudyPage(
        "Coverage of 95 % intervals on KuaiRec",
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the truth, by metric and estimator",
        (
            "KuaiRec is labelled nearly in full, so the truth is known; all but a few random items per user were hidden again and again, and the truth was estimated from the rest.",
            f"A dot is how often a 95 % interval held it, for one model or difference: {span(row['coverage'] for row in rows)} of draws, and {GREEN}.",
            f"The mean over users as it was published is another question, and its intervals hold mean recall in {span(row['coverage'] for row in published)} of draws.",
        ),
        [
            f"{(MADE if result.synthetic else KUAIREC).format(users=users, items=items)} {settings['judged']} random exposures per user, "
            f"{settings['runs']:,} draws, seed {result.seed}, K = {settings['K']}. Scorers: popularity and a truncated SVD (32 dimensions), learnt from the positives of the big matrix.",
            "",
            f"*Population*: {users:,} users drawn with replacement, each copy with its own exposures; truth over the {users:,}. *Design*: "
            "exposures redrawn, users fixed. With 2,000 draws a correct method falls within 93 to 97 % with more than 99.9 % "
            "probability. Bias is held to 3 Monte-Carlo standard errors or 0.5 % of the truth. The bound is claimed for pooled and post-stratified "
            "recall and Horvitz-Thompson; Hájek, a ratio, is shown beside them.",
            "",
            "| interval | metric | estimator | model or difference | truth | mean estimate | bias | Monte-Carlo error | coverage | mean width |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *(_line(row) for row in rows),
            "",
            "## The published mean",
            "",
            "The URE paper's mean of m/n over users with a judged positive, held against the mean recall over users. Its bias "
            "does not shrink with more users: users with few positives are left out more often.",
            "",
            "| model or difference | mean recall over users | mean of the published estimate | bias | relative bias | Monte-Carlo error | share of its intervals that hold mean recall |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {row['what']} | {row['truth']:.5f} | {row['mean']:.5f} | {row['bias']:+.5f} | {row['relative']:+.1%} | {row['noise']:.6f} | {row['coverage']:.1%} |"
                for row in published
            ),
        ],
    )


def _line(row: Row) -> str:
    return (
        f"| {row['interval']} | {row['metric']} | {row['estimator']} | {row['what']} | {row['truth']:.5f} | {row['mean']:.5f} | "
        f"{row['bias']:+.6f} ({row['relative']:+.2%}) | {row['noise']:.6f} | {row['coverage']:.1%} | {row['width']:.5f} |"
    )
