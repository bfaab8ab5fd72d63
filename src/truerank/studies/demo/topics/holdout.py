"""An ordinary hold-out: what it says where the truth is known, and what one name means in several tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from truerank.core.metric import Metric
from truerank.core.options import Denominator, Gain, Ideal
from truerank.core.results import Results
from truerank.core.values import text_of
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import HoldoutExposure
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.studies.demo.chapter import Chapter, Say, Sheet, command
from truerank.studies.demo.made import K, Made

ASKED = (Recall(K), NDCG(10))
VARIANTS: Mapping[Metric, str] = {
    Recall(K): "divides by all relevant items of the user",
    Recall(K, Denominator.SMALLER): "divides by the smaller of K and those, as LensKit",
    AveragePrecision(10): "divides by the smaller of K and the relevant items",
    AveragePrecision(10, Denominator.POSITIVES): "divides by all relevant items, as trec_eval",
    NDCG(10): "the ideal list has the user's own items",
    NDCG(10, ideal=Ideal.CUTOFF): "the ideal list is always K long, as RecTools",
    NDCG(10, Gain.EXPONENTIAL): "every rating adds 2^rating - 1",
}


@dataclass(frozen=True, slots=True)
class HoldoutTopic:
    """What a log shows and users like is relevant, everything else counts as irrelevant; beside it the truth."""

    name: ClassVar[str] = "holdout"
    about: ClassVar[str] = "An ordinary hold-out beside the truth, and one name for several numbers."

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        if say is not None:
            say("evaluating the hold-out", 0, 2)
        world = made.world
        known = evaluate(made.fitted, world.truth, exclude=world.train, metrics=list(ASKED))
        held = evaluate(made.fitted, made.biased, exclude=world.train, exposure=HoldoutExposure(), metrics=list(ASKED))
        several = evaluate({"ease": made.fitted["ease"]}, world.truth, exclude=world.train, metrics=list(VARIANTS))
        rows = [
            (f"{metric}, {who}", *(f"{value:.4f}" for value in _values(results, metric)))
            for metric in ASKED
            for who, results in (("the truth", known), ("the hold-out", held))
        ]
        meanings = [(each.metric, f"{each.value:.4f}", why) for each, why in
                    zip(several.estimates, VARIANTS.values(), strict=True)]  # fmt: skip
        return Chapter(
            "An ordinary hold-out",
            (
                "What the log shows and users like is held out as relevant; every other item counts as irrelevant, "
                "liked or not, shown or not. That is a convention, and every tool follows it:",
                Sheet.of("", ("", *made.fitted), rows),
                "Both rows of a metric share its name. The hold-out asks who finds what was shown and liked: "
                "recommenders that follow the exposure of the log gain by it.",
                Sheet.of("One name, several numbers: ease on full labels, as tools differ", ("", "", ""), meanings),
                command(
                    f"truerank evaluate {made.option('biased')} --exposure holdout "
                    f"--exclude {made.folder / 'train.parquet'} {made.scores('ease', 'popularity')}"
                ),
            ),
        )


def _values(results: Results, metric: Metric) -> list[float]:
    return [each.value for each in results.estimates if each.metric == str(metric)]
