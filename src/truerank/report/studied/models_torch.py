"""The page of the study of models that learn with torch."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.report.studied.models import INSTEAD, UNOBSERVED, at_50, columns, memory, recalls, with_highest
from truerank.report.study_charts import ranges
from truerank.report.study_pages import StudyPage
from truerank.studies.own.fitting import settings_text
from truerank.studies.own.models_torch import BIASED, LONGEST, SAMPLED
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

TASKS = ("biased split, both classes", "big matrix, positives only")


def page(result: StudyResult) -> StudyPage:
    rows, said = result.rows("models"), result.settings
    split, big = ([row for row in rows if row["big"] == each] for each in (False, True))
    first, second = ([at_50(row, task) for row in own] for own, task in zip((split, big), TASKS, strict=True))
    best, most = with_highest(first), with_highest(second)
    popular = next(each for each in first if each["label"] == "popularity")
    beyond = sum(each["low"] > popular["high"] for each in first) or "no"
    batches = " and ".join(f"{own['batch']} for {name.removesuffix('-dns')}" for name, own in SAMPLED.items())
    return StudyPage(
        "Learned models on KuaiRec",
        ranges([*first, *second], "Recall@50, with 95 % intervals", offset=True),
        "Recall@50 of the learned models with intervals, in two tasks",
        (
            "The models that need torch, on KuaiRec, in two tasks: learning from a biased part of a table with both classes, and from positives alone.",
            f"In the first {best['label']} finds most ({best['value']:.3f}; popularity {popular['value']:.3f}), and {beyond} intervals lie above popularity's.",
            f"In the second {most['label']} finds most ({most['value']:.3f}); settings were not tuned.",
        ),
        [
            f"Seed {result.seed}, settings not tuned. Times are of `fit` on one thread, without "
            "loading torch: processor seconds, and in brackets what the clock showed on a machine with other work. Memory is the "
            "peak up to the end of `fit`. Recall@K is the mean over users with a positive candidate, with 95 % intervals for the "
            f"population of users. {INSTEAD if result.synthetic else UNOBSERVED}",
            "",
            "## Positives and negatives: a biased split of the small matrix",
            "",
            f"Trained on {said['share learnt from'] * 100:.0f} % of the cells, drawn per user without replacement with weights exp(-k / 1000), k the item's rank by "
            f"positives; the slice has {said['slice']:,} uniform cells of the rest, of which half estimates propensities or the meta loss and half "
            f"decides when to stop. Candidates are the cells that are left. Settings: {settings_text(BIASED)}.",
            "",
            *table(split),
            "",
            "LightGCN as published has no biases; with three layers it cannot express that most labels are 0 ([why](../debiased-learners.md#lightgcn)).",
            "",
            "## Positives only: the big matrix",
            "",
            f"Trained on the {said['pairs']:,} positive pairs of the big matrix; a tenth of them decides when to stop. All {said['items']:,} items of the small "
            f"matrix compete, none of whose cells is in the big one. Settings: {settings_text(LONGEST)}, batch={batches}.",
            "",
            *table(big),
        ],
    )


def table(rows: Sequence[Row]) -> list[str]:
    return [
        *columns("model", "fit", "epochs", "memory"),
        *(
            f"| {row['model']} | {row['processor']:.0f} s ({row['clock']:.0f} s) | {row['epochs'] or ''} | {memory(row)} | {recalls(row)} |"
            for row in rows
        ),
    ]
