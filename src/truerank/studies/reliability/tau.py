"""Kendall's τ-b, and what the questions of a study compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats

TAUS = ("fidelity", "robustness", "predictive_power")


def tau_b(agreement: Any, ties: Any, other_ties: Any, *, n_pairs: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Kendall's τ-b from counts of pairs, and where it is defined: both have pairs that differ (NaN elsewhere).

    τ_b = (concordant - discordant) / √((pairs - ties) (pairs - ties of the other)) (Kendall 1945).

    >>> tau_b(np.array([1, 0]), np.array([1, 3]), np.array([0, 0]), n_pairs=3)[0].round(4).tolist()
    [0.4082, nan]
    """
    size = (n_pairs - ties.astype(np.float64)) * (n_pairs - other_ties.astype(np.float64))
    defined = size > 0
    return np.where(defined, agreement / np.sqrt(np.where(defined, size, 1.0)), np.nan), defined


def reference(question: str, figure: Any) -> Any:
    """The part of [users or resamples, sparsities, candidates, ...] that a question compares with.

    Full on the same log, the same candidates at sparsity 0, or Full at sparsity 0: both come first.
    """
    if question == "fidelity":
        return figure[:, :, :1]
    return figure[:, :1] if question == "robustness" else figure[:, :1, :1]
