"""EASE: a linear item-item model in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from truerank.core import Log
from truerank.models.matrix import positives
from truerank.ranks.scores import Dense, dense


@dataclass(frozen=True, slots=True)
class EASE:
    """Scores X B with B = I - P / diag(P), P = (XᵀX + λI)⁻¹ (Steck 2019), X the users x items positives."""

    regularisation: float = 100.0
    name: ClassVar[str] = "ease"

    def fit(self, log: Log, *, seed: int) -> Dense:
        liked = positives(log)
        gram = (liked.T @ liked).toarray()
        gram[np.diag_indices_from(gram)] += self.regularisation
        inverse = cho_solve(cho_factor(gram), np.eye(len(gram)))
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return dense((liked @ weights).astype(np.float32), users=log.users, items=log.items)
