"""Scores of pairs and their gradients as sparse products, differentiable any number of times.

Gathering the rows of both factor matrices and multiplying them costs fifty times as much as what is done here: the
scores of a set of pairs are the entries of P Qᵀ at that pattern, and their gradients are products of a sparse matrix of
that pattern with Q and P.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch.autograd import Function

from truerank.core.arrays import Ints


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pairs as compressed rows: row r has the columns column[start[r]:start[r + 1]]; pairs may be repeated.

    `order` says where each pair stands among the pairs of the transposed pattern.
    """

    start: torch.Tensor
    column: torch.Tensor
    order: torch.Tensor
    shape: tuple[int, int]
    across: tuple[torch.Tensor, torch.Tensor, torch.Tensor]

    @classmethod
    def of(cls, row: Ints, column: Ints, *, shape: tuple[int, int]) -> Pattern:
        """From pairs whose rows ascend.

        >>> Pattern.of(np.array([0, 1, 1]), np.array([1, 0, 1]), shape=(2, 2)).transposed.order.tolist()
        [1, 0, 2]
        """
        start = starts(row, n=shape[0])
        # a matrix whose values are the places of the pairs, turned to compressed columns: a counting sort
        turned = csr_array((np.arange(len(row)), column, start), shape=shape).tocsc()
        order, back = turned.data, np.empty(len(row), dtype=np.int64)
        back[order] = np.arange(len(row))
        parts = (turned.indptr, turned.indices, back)
        tensors = [torch.from_numpy(np.asarray(part, dtype=np.int64)) for part in (start, column, order, *parts)]
        return cls(tensors[0], tensors[1], tensors[2], shape, (tensors[3], tensors[4], tensors[5]))

    @property
    def transposed(self) -> Pattern:
        start, column, order = self.across
        return Pattern(start, column, order, self.shape[::-1], (self.start, self.column, self.order))

    def matrix(self, values: torch.Tensor) -> torch.Tensor:
        return compressed(self.start, self.column, values, self.shape)


def starts(row: Ints, *, n: int) -> Ints:
    """Where each of n rows starts among pairs whose rows ascend."""
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])


def compressed(start: torch.Tensor, column: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    """A sparse matrix of compressed rows."""
    return torch.sparse_csr_tensor(start, column, values, shape, check_invariants=False)


with warnings.catch_warnings():  # torch says once in a process that such matrices are new to it
    warnings.simplefilter("ignore")
    compressed(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))


def scores(p: torch.Tensor, q: torch.Tensor, pattern: Pattern) -> torch.Tensor:
    """p_u · q_i of each pair (u, i).

    >>> p, q = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    >>> scores(p, q, Pattern.of(np.array([0, 0]), np.array([1, 0]), shape=(1, 2))).tolist()
    [2.0, 11.0]
    """
    found: torch.Tensor = _Products.apply(p, q, pattern)
    return found


def plain_scores(p: torch.Tensor, q: torch.Tensor, start: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
    """The same, where no gradient is wanted."""
    shape = (len(p), len(q))
    if len(column) > shape[0] * shape[1]:  # repeated so often that torch refuses the pattern
        row = torch.repeat_interleave(torch.arange(shape[0]), start.diff())
        return (p @ q.T)[row, column]
    empty = compressed(start, column, torch.zeros(len(column), dtype=p.dtype), shape)
    return torch.sparse.sampled_addmm(empty, p, q.T, beta=0.0).values()


class _Products(Function):
    """s_k = p[row_k] · q[column_k]."""

    @staticmethod
    def forward(ctx: Any, p: torch.Tensor, q: torch.Tensor, pattern: Pattern) -> torch.Tensor:
        ctx.save_for_backward(p, q)
        ctx.pattern = pattern
        return plain_scores(p, q, pattern.start, pattern.column)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (p, q), pattern, (gradient,) = ctx.saved_tensors, ctx.pattern, gradients
        return _Sums.apply(gradient, q, pattern), _Sums.apply(gradient[pattern.order], p, pattern.transposed), None


class _Sums(Function):
    """y[r] = Σ of value_k x[column_k] over the pairs k of row r: the gradient of _Products, and its own."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, x: torch.Tensor, pattern: Pattern) -> torch.Tensor:
        ctx.save_for_backward(values, x)
        ctx.pattern = pattern
        return pattern.matrix(values) @ x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (values, x), pattern, (gradient,) = ctx.saved_tensors, ctx.pattern, gradients
        return (
            _Products.apply(gradient, x, pattern),
            _Sums.apply(values[pattern.order], gradient, pattern.transposed),
            None,
        )
