"""Forms of DCG that are in use and are not unbiased, for comparison (paper 3, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.terms import Terms
from truerank.estimators.ranked.weights import Weighing

MEANING = "; for comparison, no estimate of reward"


@dataclass(frozen=True, slots=True)
class LogDiscountRaw:
    """Σ c / log2(r + 1), r the target's rank: the classical form ("log, C" in Table 2)."""

    name: ClassVar[str] = "dcg-log-raw"
    clips: ClassVar[bool] = False

    @property
    def metric(self) -> str:
        return "DCG"

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("labels of items seen far down count as much as others although they had less chance",)

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean over {unit}s of Σ {reward} / log2(rank + 1){MEANING}"

    def refusal(self, weighing: Weighing) -> str | None:
        return _needs_rank(weighing)

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        rows = weighing.rewarded(reward)
        return _mean(weighing, weighing.log.reward(reward)[rows] * _log_discount(weighing, rows), rows)


@dataclass(frozen=True, slots=True)
class LogDiscountDebiased:
    """Σ c min(m, 1/ε0) / log2(r + 1): labels corrected by the position model, the classical discount ("log, Q")."""

    name: ClassVar[str] = "dcg-log-debiased"
    clips: ClassVar[bool] = True

    @property
    def metric(self) -> str:
        return "DCG"

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("the discount 1/log2(rank + 1) is how likely a rank is viewed",)

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean over {unit}s of Σ {reward} / (logging exposure · log2(rank + 1)){MEANING}"

    def refusal(self, weighing: Weighing) -> str | None:
        return _needs_rank(weighing)

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        rows = weighing.rewarded(reward)
        _, inverse = weighing.parts(rows)
        gain = weighing.log.reward(reward)[rows] * np.minimum(inverse, clip)
        return _mean(weighing, gain * _log_discount(weighing, rows), rows)


@dataclass(frozen=True, slots=True)
class LearntDiscountRaw:
    """Σ c ε: the discount of the position model on raw labels, which is ips with clip 1 ("pbm, C" in Table 2)."""

    name: ClassVar[str] = "dcg-raw"
    clips: ClassVar[bool] = False

    @property
    def metric(self) -> str:
        return "DCG"

    @property
    def conditions(self) -> tuple[str, ...]:
        return ("labels of items seen far down count as much as others although they had less chance",)

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean over {unit}s of Σ {reward} · target exposure{MEANING}"

    def refusal(self, weighing: Weighing) -> str | None:
        return None

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        rows = weighing.rewarded(reward)
        return _mean(weighing, weighing.log.reward(reward)[rows] * weighing.target.exposure(rows), rows)


def _needs_rank(weighing: Weighing) -> str | None:
    if weighing.target.rank is None:
        return "it discounts by rank, and the target gives exposures; give ranks, or use ips."
    return None


def _log_discount(weighing: Weighing, rows: Ints) -> Floats:
    rank = weighing.target.rank
    if rank is None:
        raise TypeError("refused before")
    shown = rank[rows].astype(np.float64)
    return np.divide(1.0, np.log2(shown + 1.0), out=np.zeros(len(shown)), where=shown > 0)


def _mean(weighing: Weighing, earned: Floats, rows: Ints) -> Terms:
    num = weighing.by_unit(earned, rows)
    return weighing.terms(num, np.ones(len(num)))
