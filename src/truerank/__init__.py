"""truerank: which recommender is truly better, from data that contains only part of the truth.

    Results = tr.evaluate({"ease": scores, "popularity": other}, labels, exposure="random", exclude=train)

Compare      evaluate, off_policy, watch
Plan         plan_exposure, plan_sessions, design_exposure
Data         read, write, split, Log, randomness, sample_candidates, intervene
Results      Results, agreement, Population, Bootstrap, Design, TruerankError
Parts        metrics, estimators, exposure, positions, models, datasets, scores, simulation

Names load when they are first used. "Recall@10" and tr.metrics.Recall(10) are the same metric.
"""

from __future__ import annotations

from truerank.core.lazy_imports import export_stub
from truerank.version import __version__ as __version__

__getattr__, _ = export_stub(__name__, __file__)
__all__ = [
    "Bootstrap", "Design", "Log", "Population", "Results", "TruerankError", "agreement", "datasets", "design_exposure",
    "estimators", "evaluate", "exposure", "intervene", "metrics", "models", "off_policy", "plan_exposure",
    "plan_sessions", "positions", "randomness", "read", "sample_candidates", "scores", "simulation", "split", "watch",
    "write",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
