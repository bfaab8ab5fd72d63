"""How far the published mean is from mean recall, exactly: what it converges to with ever more users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.progress import Progress
from truerank.core.special import gammaln
from truerank.core.values import text_of
from truerank.estimators import terms_of
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.pooled import Pooled
from truerank.metrics.recall import Recall
from truerank.studies.coverage import ObservedWorld
from truerank.studies.own.kuairec import DATASET, observed
from truerank.studies.own.study import StudyTables
from truerank.studies.work import Keep, StudySize, StudySource

JUDGED = {StudySize.FULL: (16, 80, 320), StudySize.QUICK: (4, 16)}
CUTOFFS = {StudySize.FULL: (5, 50, 500), StudySize.QUICK: (5, 50)}


@dataclass(frozen=True, slots=True)
class PublishedBiasStudy:
    """Σ π Recall / Σ π, π the chance that a user has a judged positive, beside mean recall."""

    name: ClassVar[str] = "published-bias"
    about: ClassVar[str] = "What does the published mean over users converge to?"
    data: ClassVar[tuple[str, ...]] = (DATASET,)
    minutes: ClassVar[float] = 0.2

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        """No draws, and so no pieces to keep."""
        del keep, progress
        truth = observed(source, size=size, seed=seed)[0]
        positives = np.bincount(truth.labels.user, weights=truth.labels.label).astype(np.float64)
        rows = [
            _limit(truth, model, Recall(k), n, chance)
            for n in JUDGED[size]
            for chance in (kept_chance(positives, truth.n_items, n),)
            for k in CUTOFFS[size]
            for model in truth.ranks
        ]
        return StudyTables({"limits": rows}, {"users": len(truth.labels.users), "items": truth.n_items})


def kept_chance(positives: Floats, n_items: int, n: int) -> Floats:
    """π = 1 - C(N - N⁺, n) / C(N, n) of every user: the chance that at least one of n judged items is relevant.

    >>> kept_chance(np.array([0.0, 1.0, 3.0]), 4, 2).round(12).tolist()  # 0, 2 of 4, and 2 of 4 always have one of 3
    [0.0, 0.5, 1.0]
    """
    size = float(n_items)
    rest = size - positives
    with np.errstate(invalid="ignore"):
        none = np.where(
            rest >= n,
            np.exp(gammaln(rest + 1) - gammaln(rest - n + 1) - gammaln(size + 1) + gammaln(size - n + 1)),
            0.0,
        )
    return np.asarray(1 - none, dtype=np.float64)


def _limit(truth: ObservedWorld, model: str, metric: Recall, n: int, chance: Floats) -> dict[str, Any]:
    (terms,) = terms_of(Full(), truth.labels, truth.ranks[model], metrics=[metric])
    (pooled,) = terms_of(Pooled(), truth.labels, truth.ranks[model], metrics=[metric])
    numerator, denominator = (chance[:, None] * terms.sums).sum(axis=0).tolist()
    mean, limit = terms.value(), numerator / denominator
    return {
        "judged": n, "kept": float(chance.sum()), "metric": str(metric), "model": model,
        "mean": mean, "limit": limit, "bias": limit / mean - 1, "pooled": pooled.value(),
    }  # fmt: skip
