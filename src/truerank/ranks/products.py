"""Scores that are products of what is known of a user with what is known of items: computed in blocks, not stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.arrays import Ints
from truerank.ids import Ids
from truerank.ranks.scores import Matrix


@dataclass(frozen=True, slots=True)
class Product:
    """Scores x_u · W: `left` has a sparse row x_u for each user, `right` is W [columns of left x items].

    A row is added up in the order of its stored entries, so it has the same bits in any block.

    >>> from scipy.sparse import csr_array
    >>> liked = csr_array(np.array([[1.0, 0.0, 1.0]]))
    >>> weights = np.array([[0.0, 0.5], [0.5, 0.0], [0.25, 2.0]])
    >>> Product(liked, weights, Ids.of(["u"]), Ids.of(["a", "b"])).block(np.array([0])).tolist()
    [[0.25, 2.5]]
    """

    left: Any  # scipy.sparse.csr_array [users x d]
    right: Any  # csr_array or numpy array [d x items]
    users: Ids
    items: Ids
    depth: None = None

    def block(self, rows: Ints) -> Matrix:
        found = self.left[rows] @ self.right
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray())
