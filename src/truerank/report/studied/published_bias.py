"""The page of the study of what the published mean converges to."""

from __future__ import annotations

from truerank.report.study_charts import curves, span
from truerank.report.study_pages import StudyPage
from truerank.studies.own.result import StudyResult


def page(result: StudyResult) -> StudyPage:
    rows, settings = result.rows("limits"), result.settings
    points = [
        {"at": str(row["judged"]), "value": row["bias"], "group": row["metric"], "panel": row["model"]} for row in rows
    ]
    fewest, most = rows[0]["judged"], rows[-1]["judged"]
    low, high = ([-row["bias"] for row in rows if row["judged"] == n] for n in (fewest, most))
    return StudyPage(
        "What the published mean converges to on KuaiRec",
        curves(points, across="judged items per user", title="bias of the published mean", form="%", zero=True),
        "Bias of the published mean over the number of judged items per user",
        (
            "The usual mean over users leaves out everyone without a judged positive, and these are not like the others: they like little.",
            f"With {fewest} judged items per user it comes out {span(low, 0)} too low, with {most} still {span(high, 1)}.",
            "More users do not help: this is where it converges to, exactly, without any noise.",
        ),
        [
            "Exact, no draws. The published estimate (mean of m/n over users with a judged positive) converges to "
            "Σ π Recall / Σ π, π = 1 − C(N − N⁺, N̄) / C(N, N̄) the chance that a user has a judged positive. "
            f"{settings['users']:,} users, {settings['items']:,} items; scorers as in [coverage](coverage.md).",
            "",
            "| judged per user N̄ | users kept on average | metric | model | mean recall over users | published limit | bias | pooled recall |",
            "|" + "---|" * 8,
            *(
                f"| {row['judged']} | {row['kept']:,.0f} | {row['metric']} | {row['model']} | {row['mean']:.4f} | {row['limit']:.4f} | {row['bias']:+.1%} | {row['pooled']:.4f} |"
                for row in rows
            ),
        ],
    )
