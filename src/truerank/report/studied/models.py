"""The page of the study of recommenders that learn from positives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from truerank.report.study_charts import dot, ranges
from truerank.report.study_pages import StudyPage
from truerank.studies.own.fitting import CUTOFFS
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

UNOBSERVED = "17,827 unobserved cells of the small matrix count as negatives, as the files have them."
INSTEAD = "A synthetic world of KuaiRec's shape stood for it."


def page(result: StudyResult) -> StudyPage:
    rows = sorted(result.rows("models"), key=lambda row: -float(row["recall@50"]))
    said = result.settings
    dots = [at_50(row, "all") for row in rows]
    best, popular = dots[0], next(each for each in dots if each["label"] == "popularity")
    above = [each["label"] for each in dots if each["low"] > popular["high"]]
    named = f" ({', '.join(above)})" * bool(above)
    total = sum(row["fit"] for row in rows)
    return StudyPage(
        "Recommenders on KuaiRec",
        ranges(dots, "Recall@50, with 95 % intervals", at=popular["value"]),
        "Recall@50 of each recommender with its interval, popularity as a dashed line",
        (
            "Recommenders were trained on one part of KuaiRec and tested on another in which nearly every label is known.",
            f"{best['label']} finds most, {best['value']:.3f} of what users like in the first 50; popularity (dashed) finds {popular['value']:.3f}.",
            f"Settings were not tuned; the intervals of {len(above)} models lie above that of popularity{named}.",
        ),
        [
            f"Trained on the positive pairs of the big matrix ({said['pairs']:,}; watch ratio above 2), evaluated on every cell of the small matrix "
            f"({said['users']:,} users x {said['items']:,} items, of which the big matrix has none): mean Recall@K over users with a positive, all items compete, with 95 % "
            f"intervals for the population of users. Settings are the defaults, not tuned; seed {result.seed}. {INSTEAD if result.synthetic else UNOBSERVED}",
            "",
            "The order is that of this task: no pair of the block is in the training data, so all that is known of a user lies outside the "
            "items to rank. EASE, ALS and iALS fit 0 to every unlisted pair, those of the block among them; that the block is "
            "empty says how the data was cut and nothing about taste. PosPop equals popularity here, and averages of values that are all 1 rank nothing.",
            "",
            f"Fitting all of them took {total / 60:.1f} minutes of processor time, each in a process of its own (als on {said['cores']} cores, the others "
            "on one); memory is the peak of that process, evaluation included.",
            "",
            *columns("model", "fit", "evaluate", "memory"),
            *(
                f"| {row['model']} | {row['fit']:.1f} s | {row['evaluate']:.1f} s | {memory(row)} | {recalls(row)} |"
                for row in rows
            ),
            "",
            "Models that learn with torch have a page of their own: [learned models](models-torch.md).",
        ],
    )


def columns(*names: str) -> list[str]:
    """The head of a table that ends in recall at each cut-off."""
    return [
        f"| {' | '.join((*names, *(f'Recall@{k}' for k in CUTOFFS)))} |",
        "|" + "---|" * (len(names) + len(CUTOFFS)),
    ]


def memory(row: Row) -> str:
    return "" if row["megabytes"] is None else f"{row['megabytes']:,.0f} MB"


def recalls(row: Row) -> str:
    """Recall at each cut-off with its interval."""
    return " | ".join(f"{row[f'recall@{k}']:.4f} ({row[f'low@{k}']:.4f} to {row[f'high@{k}']:.4f})" for k in CUTOFFS)


def at_50(row: Row, group: str) -> dict[str, Any]:
    return dot(row["model"], group, row["recall@50"], low=row["low@50"], high=row["high@50"])


def with_highest(dots: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return max(dots, key=lambda each: float(each["value"]))
