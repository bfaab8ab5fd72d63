"""What the models of the library implicit share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from truerank.core.progress import Progress
from truerank.models.settings import LogUniform, WholeNumbers

FACTORS = WholeNumbers(10, 200)
ITERATIONS = WholeNumbers(10, 50)
REGULARISATION = LogUniform(1e-5, 10.0)


def as_input(matrix: Any) -> Any:
    """The matrix in the one form that implicit takes without a warning."""
    return csr_matrix(
        (matrix.data.astype(np.float32), matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)),
        shape=matrix.shape,
    )


def callback(progress: Progress | None, what: str, total: int) -> Callable[..., None] | None:
    """What implicit calls after each iteration."""
    if progress is None:
        return None

    def call(iteration: int, *rest: Any) -> None:
        progress(what, iteration + 1, total)

    return call
