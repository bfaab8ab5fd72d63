"""Scores that are products of what is known of a user with what is known of items: computed in blocks, not stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.ranks.scores.scores import Matrix, population


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


def product(left: Any, right: Any, *, users: Any = None, items: Any = None, name: str = "scores") -> Product:
    """Scores left · right; ids name the rows of `left` and the columns of `right`, else they are numbered from 0."""
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise InputError(f"{name}: {left.shape} times {right.shape}; expected [users x d] and [d x items].")
    user_ids, row = population(users, left.shape[0], where=f"{name}, users")
    item_ids, column = population(items, right.shape[1], where=f"{name}, items")
    dense = isinstance(right, np.ndarray)
    return Product(csr_array(left)[row], right[:, column] if dense else csr_array(right)[:, column], user_ids, item_ids)
