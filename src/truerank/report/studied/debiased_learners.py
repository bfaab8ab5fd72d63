"""The page of the study of debiased learners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from truerank.report.study_charts import dot, ranges
from truerank.report.study_pages import StudyPage
from truerank.studies.own.debiased_learners import MEASURES, RECALL, SQUARED
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row


def page(result: StudyResult) -> StudyPage:
    rows, settings = result.rows("errors"), result.settings
    saved, recall = (
        [row for row in rows if row["measure"] == measure and row["closer"] is not None]
        for measure in (SQUARED, RECALL)
    )
    dots = [dot(row["method"], row["backbone"], row["closer"], low=row["low"], high=row["high"]) for row in saved]
    return StudyPage(
        "Debiased learners on worlds with a planted selection bias",
        ranges(dots, "squared error saved, against learning from the log as it is", at=0.0, offset=True),
        "Squared error that debiased learners save, with intervals",
        (
            "Worlds were made in which liked pairs are seen more often, and learners trained on what was seen: as it is, or corrected for that.",
            f"The picture shows by how much correcting lowers the squared error of predicted chances, with 95 % intervals: above 0 in {_above(saved)} of {len(saved)} cases.",
            f"Ranking is not predicting: Recall@20 was shown to be higher in {_above(recall)} of these {len(recall)} cases, and lower in {sum(row['high'] < 0 for row in recall)}.",
        ),
        [
            f"{settings['worlds']} worlds of {settings['users']} users and {settings['items']} items, seeds "
            f"{result.seed} to {result.seed + settings['worlds'] - 1}, fixed beforehand. A pair is seen with probability min(0.9, 0.05 e^(1.8 y) e^(0.5 z)), y its label, z "
            f"the standardised number of positives of its item; {settings['slice']} pairs per user on average, drawn uniformly from all, are the "
            f"random slice. All methods have the default settings and batches of {settings['batch']:,}.",
            "",
            "Truth: the labels of all pairs. *Squared error* and *log loss* are of the predicted chance of a positive, σ(score), means over "
            "all pairs: what debiasing promises to lower. *Recall@20* (candidates: the pairs that neither log nor slice shows) is what ranking is "
            "worth; a constant shift of all scores does not move it. Differences are paired by world; intervals are 95 % t intervals over "
            "worlds, for worlds of this kind.",
            *(line for name in dict.fromkeys(row["backbone"] for row in rows) for line in _table(name, rows)),
        ],
    )


def _above(rows: Sequence[Row]) -> int:
    return sum(row["low"] > 0 for row in rows)


def _table(backbone: str, rows: Sequence[Row]) -> Iterator[str]:
    own = [row for row in rows if row["backbone"] == backbone]
    yield from ("", f"## {backbone}", "")
    yield f"| method | {' | '.join(MEASURES)} | {' | '.join(f'closer than Bias: {each}' for each in MEASURES)} |"
    yield "|---|" + "---|" * (2 * len(MEASURES))
    for method in dict.fromkeys(row["method"] for row in own):
        found = [row for row in own if row["method"] == method]
        means, gains = (" | ".join(map(show, found)) for show in (_mean, _gain))
        yield f"| {method} | {means} | {gains} |"


def _mean(row: Row) -> str:
    return f"{row['mean']:.4f}"


def _gain(row: Row) -> str:
    return "" if row["closer"] is None else f"{row['closer']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
