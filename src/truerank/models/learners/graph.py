"""LightGCN's propagation: embeddings averaged over the graph of positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.autograd import Function

from truerank.core.arrays import Ints
from truerank.models.learners.pairs import compressed


@dataclass(frozen=True, slots=True)
class Graph:
    """Â = D^(-1/2) A D^(-1/2) of the bipartite graph of users and items, users first; isolated nodes: empty rows."""

    matrix: torch.Tensor
    layers: int

    @classmethod
    def of(
        cls, user: Ints, item: Ints, *, n_users: int, n_items: int, layers: int, dtype: torch.dtype = torch.float32
    ) -> Graph:
        """From distinct pairs. An edge (u, i) weighs 1 / sqrt(degree of u · degree of i).

        >>> graph = Graph.of(np.array([0, 0]), np.array([0, 1]), n_users=1, n_items=2, layers=3)
        >>> graph.matrix.to_dense().tolist()[0]
        [0.0, 0.7071067690849304, 0.7071067690849304]
        """
        node, other = np.concatenate([user, item + n_users]), np.concatenate([item + n_users, user])
        size = n_users + n_items
        degree = np.bincount(node, minlength=size)
        order = np.lexsort((other, node))
        weight = 1.0 / np.sqrt(degree[node] * degree[other].astype(np.float64))
        parts = (np.concatenate([[0], np.cumsum(degree)]), other[order], weight[order])
        start, column, values = (torch.from_numpy(part) for part in parts)
        return cls(compressed(start, column, values.to(dtype), (size, size)), layers)

    def propagate(self, embedding: torch.Tensor) -> torch.Tensor:
        """The mean of layers 0 ... L: (E + ÂE + ... + Â^L E) / (L + 1) (He et al. 2020, eq. 8 with equal weights)."""
        found: torch.Tensor = _Propagate.apply(embedding, self)
        return found


class _Propagate(Function):
    """A linear map with a symmetric matrix, so its gradient is the same map; sparse autograd is ten times slower."""

    @staticmethod
    def forward(ctx: Any, embedding: torch.Tensor, graph: Graph) -> torch.Tensor:
        ctx.graph = graph
        total, layer = embedding.clone(), embedding
        for _ in range(graph.layers):
            layer = graph.matrix @ layer
            total += layer
        return total / (graph.layers + 1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return _Propagate.apply(gradients[0].contiguous(), ctx.graph), None
