"""Only a biased log: what happens if it is taken for a random one, and what propensities mend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.values import text_of
from truerank.estimators.biased.ips import IPS
from truerank.estimators.biased.naive import Naive
from truerank.estimators.biased.snips import SNIPS
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.pooled import Pooled
from truerank.exposure.kinds import BiasedExposure
from truerank.metrics.dcg import DCG
from truerank.metrics.recall import Recall
from truerank.studies.demo.chapter import Chapter, Say, command
from truerank.studies.demo.made import K, Made, biased_log
from truerank.studies.demo.schemes import Scheme, find, sheets, why

DRAWS = 5
SCHEMES = (
    Scheme(Recall(K), Naive(), Pooled(), "takes the log for a random sample: what was shown anyway looks relevant"),
    Scheme(Recall(K), SNIPS(), Pooled(), "each shown item stands for 1 / propensity items like it"),
    Scheme(DCG(K), Naive(), Full(), "takes the log for a random sample"),
    Scheme(DCG(K), IPS(), Full(), "each shown item stands for 1 / propensity; unbiased, and noisy where that is large"),
    Scheme(DCG(K), SNIPS(), Full(), "the same as a ratio: chance in how much of the top 5 was shown cancels"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BiasedTopic:
    """A log that shows popular and liked items more often, with the probability that each was shown."""

    name: ClassVar[str] = "biased"
    about: ClassVar[str] = "Only a biased log: what it says as it is, and with propensities."

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        draws = [made.biased, *(biased_log(made.world, seed=seed + draw) for draw in range(1, DRAWS))]
        findings = find(SCHEMES, made.world, made.fitted, draws, exposure=BiasedExposure(), say=say)
        naive = findings[0].error
        return Chapter(
            "Only a biased log",
            (
                "A deployed system showed unseen items, popular ones up to 13 times as often, liked ones 1.5 times as "
                "often, and recorded how likely it showed each (the propensity).",
                *sheets(findings),
                why(findings),
                f"Taken as it is, the log flatters popularity by {naive['popularity']:+.0%} and ease by "
                f"{naive['ease']:+.0%}: whoever recommends what is shown anyway gains more, and so the order turns.",
                command(
                    f"truerank evaluate {made.option('biased')} --exposure biased "
                    f"--exclude {made.folder / 'train.parquet'} {made.scores('ease', 'popularity')} "
                    f"--metric Recall@{K} --estimator snips --estimator naive"
                ),
            ),
        )
