"""EASE for many penalties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.models.ease import mirror
from truerank.models.matrix import one_thread


@dataclass(frozen=True, slots=True, eq=False)
class EASEPath:
    """EASE for many λ at the price of one eigendecomposition: XᵀX = Q diag(e) Qᵀ, so P = Q diag(1 / (e + λ)) Qᵀ."""

    liked: Any
    value: Floats
    vector: Floats

    @classmethod
    def of(cls, liked: Any) -> EASEPath:
        from scipy.linalg import eigh

        with one_thread():
            value, vector = eigh((liked.T @ liked).toarray(order="F"), overwrite_a=True)
        return cls(liked.astype(np.float32), value, vector)

    def scores(self, regularisation: float) -> npt.NDArray[np.float32]:
        """X B of one λ, for every user and item."""
        from scipy.linalg import blas

        with one_thread():
            half = np.asfortranarray(self.vector / np.sqrt(np.maximum(self.value, 0.0) + regularisation)[None, :])
            inverse = blas.dsyrk(1.0, half, lower=True)
        mirror(inverse)
        weights = inverse / -np.diag(inverse).copy()[None, :]
        np.fill_diagonal(weights, 0.0)
        found: npt.NDArray[np.float32] = self.liked @ weights.astype(np.float32, order="C")
        return found
