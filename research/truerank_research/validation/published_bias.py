"""How far the published mean is from mean recall, exactly: what it converges to with ever more users."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.estimators import terms_of
from truerank.estimators.full import Full
from truerank.estimators.weighted import Pooled
from truerank.metrics.recall import Recall
from truerank_research.coverage import ObservedWorld
from truerank_research.pages import Page, Picture
from truerank_research.papers.ure.recall import inclusion_chance
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.kuairec import DATASET, observed

JUDGED = {True: (16, 80, 320), False: (4, 16)}
CUTOFFS = {True: (5, 50, 500), False: (5, 50)}


def measure(run: Run) -> Measured:
    """Σ π Recall / Σ π, π the chance that a user has a judged positive, beside mean recall."""
    source, full, seed = run.source, run.full, run.seed
    truth = observed(source, full=full, seed=seed)[0]
    positives = np.bincount(truth.labels.user, weights=truth.labels.label).astype(np.float64)
    sizes = np.full(len(positives), truth.n_items)
    rows = [
        _limit(truth, model, Recall(k), n, chance)
        for n in JUDGED[full]
        for chance in (inclusion_chance(positives, sizes, judged=n),)
        for k in CUTOFFS[full]
        for model in truth.ranks
    ]
    return Measured({"limits": rows}, {"users": len(truth.labels.users), "items": truth.n_items})


def _limit(truth: ObservedWorld, model: str, metric: Recall, n: int, chance: Floats) -> dict[str, Any]:
    (terms,) = terms_of(Full(), truth.labels, truth.ranks[model], metrics=[metric])
    (pooled,) = terms_of(Pooled(), truth.labels, truth.ranks[model], metrics=[metric])
    numerator, denominator = (chance[:, None] * terms.sums).sum(axis=0).tolist()
    mean, limit = terms.value(), numerator / denominator
    return {
        "judged": n, "kept": float(chance.sum()), "metric": str(metric), "model": model,
        "mean": mean, "limit": limit, "bias": limit / mean - 1, "pooled": pooled.value(),
    }  # fmt: skip


PAGE = Page(
    "Limit of the mean over users with a labelled positive",
    "The URE estimator averages recall over users with a labelled positive. With ever more users it converges to "
    "Σ π Recall / Σ π, where π is a user's probability of having a labelled positive, not to the mean recall. On "
    "KuaiRec's block ({{ settings.users | number }} users, {{ settings['items'] | number }} items) the limit differs from "
    "the mean recall by {{ tables.limits | map(attribute='bias') | min | percent }} to "
    "{{ tables.limits | map(attribute='bias') | max | percent }}.",
    Picture(
        "Limit minus mean recall, relative to mean recall, by labelled items per user", "lines", x="judged", y="bias",
        group="model", panel="metric", x_title="labelled items per user", y_title="relative difference",
        table="limits", numeric=True, log=True, level=0.0,
    ),
    "limits",
    {
        "judged": "labelled per user", "kept": "expected users with a positive", "metric": "metric", "model": "model",
        "mean": "mean recall", "limit": "limit", "bias": "relative difference", "pooled": "pooled recall",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "published-bias", "What does the mean over users with a labelled positive converge to?",
        measure, data=(DATASET,), minutes=0.2, page=PAGE,
    ),
)  # fmt: skip
