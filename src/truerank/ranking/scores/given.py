"""Scores of whatever a caller has: matrices, frames long or wide, dicts of lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InputError
from truerank.core.ranking import Scores
from truerank.io.columns import SCORED, with_usual
from truerank.io.frames import is_pandas, is_sparse
from truerank.ranking.scores.matrices import sparse
from truerank.ranking.scores.scores import dense
from truerank.ranking.scores.tables import lists


def as_scores(source: Any, *, name: str) -> Scores:
    """Scores of a matrix or a frame; what is Scores already stays."""
    if isinstance(source, Scores):
        return source
    if isinstance(source, np.ndarray):
        return dense(source, name=name)
    if is_sparse(source):
        return sparse(source, name=name)
    if is_wide(source):
        return dense(source.to_numpy(), users=source.index.tolist(), items=source.columns.tolist(), name=name)
    if callable(source):
        raise InputError(
            f"{name}: a function needs users and items: truerank.scores.function(call, users=..., items=...)."
        )
    return lists(source, name=name)


def is_wide(source: Any) -> bool:
    """Whether a table of pandas is a matrix of scores: a row for each user, a column of numbers for each item."""
    if not is_pandas(source) or len(source.columns) == 0:
        return False
    long = with_usual([str(name) for name in (*source.columns, *source.index.names)], {}, SCORED)
    own = {"user", "item"} & {*source.columns, *source.index.names}
    return not long and not own and all(kind.kind in "fiub" for kind in map(np.dtype, source.dtypes))
