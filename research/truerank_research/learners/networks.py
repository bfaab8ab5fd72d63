"""Backbones in torch: parameters -> two matrices whose product is the score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch.autograd import Function
from torch.nn.functional import softplus

from truerank.core.arrays import Floats, Ints
from truerank_research.learners.examples import Examples, compressed
from truerank_research.learners.recipes import Backbone, GraphConvolution, PointwiseLoss


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


class Fit(Protocol):
    """How far a score is from a label; `predicted` puts a score on the scale of labels."""

    def loss(self, score: torch.Tensor, label: torch.Tensor) -> torch.Tensor: ...
    def predicted(self, score: torch.Tensor) -> torch.Tensor: ...
    def imputed(self, score: torch.Tensor, error: torch.Tensor) -> torch.Tensor: ...


class LogLoss:
    """ℓ(s, y) = ln(1 + eˢ) - y s: binary cross-entropy of σ(s); y may lie between 0 and 1."""

    def loss(self, score: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return softplus(score) - label * score

    def predicted(self, score: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(score)

    def imputed(self, score: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
        """The label that a predicted error stands for; the loss has a minimum only for labels between 0 and 1."""
        return (self.predicted(score.detach()) + error).clamp(0.0, 1.0)


class SquaredLoss:
    """ℓ(s, y) = (s - (2y - 1))²: labels are -1 and 1, as in AutoDebias's code."""

    def loss(self, score: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return torch.square(score - (2.0 * label - 1.0))

    def predicted(self, score: torch.Tensor) -> torch.Tensor:
        return (score + 1.0) / 2.0

    def imputed(self, score: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
        return self.predicted(score.detach()) + error


FITS: dict[PointwiseLoss, Fit] = {PointwiseLoss.BCE: LogLoss(), PointwiseLoss.MSE: SquaredLoss()}


Tensors = list[torch.Tensor]
Sides = tuple[torch.Tensor, torch.Tensor]


class Network(Protocol):
    """Pure functions of the parameters, so that a step can be assumed and differentiated through.

    `sides` are P [users x d] and Q [items x d] with score P_u · Q_i. `squares` are ‖p_u‖² and ‖q_i‖² of what weight
    decay shrinks. `apart` takes factors and biases of the sides apart; `sized` is the same network with so many
    dimensions (0: its own).
    """

    def start(self, rng: np.random.Generator) -> Tensors: ...
    def sides(self, parameters: Tensors) -> Sides: ...
    def squares(self, parameters: Tensors) -> Sides: ...
    def apart(self, user: Floats, item: Floats) -> tuple[Floats, Floats, Floats | None, Floats | None]: ...
    def sized(self, dimensions: int) -> Network: ...


@dataclass(frozen=True, slots=True)
class Factorisation:
    """p_u · q_i + b_u + b_i; the biases are two more columns of the sides.

    Starts from normal numbers of variance 2 / rows (Kaiming, fan_out), as AutoDebias's code does.
    """

    n_users: int
    n_items: int
    dimensions: int

    def start(self, rng: np.random.Generator) -> Tensors:
        sizes = (self.n_users, self.n_items)
        shapes = [(n, width) for width in (self.dimensions, 1) for n in sizes]
        return [normal(rng, shape, scale=np.sqrt(2.0 / shape[0])) for shape in shapes]

    def sides(self, parameters: Tensors) -> Sides:
        p, q, b_user, b_item = parameters
        return with_biases(p, q, b_user, b_item)

    def squares(self, parameters: Tensors) -> Sides:
        return parameters[0].square().sum(1), parameters[1].square().sum(1)

    def apart(self, user: Floats, item: Floats) -> tuple[Floats, Floats, Floats | None, Floats | None]:
        return user[:, :-2], item[:, :-2], user[:, -2], item[:, -1]

    def sized(self, dimensions: int) -> Factorisation:
        return replace(self, dimensions=dimensions or self.dimensions)


@dataclass(frozen=True, slots=True)
class Convolution:
    """e_u · e_i of embeddings propagated over the graph of positives, plus biases where wanted.

    Starts from normal numbers of deviation 0.1, biases from 0.
    """

    n_users: int
    n_items: int
    dimensions: int
    graph: Graph
    biases: bool = False

    @classmethod
    def of(cls, examples: Examples, dimensions: int, layers: int, *, biases: bool) -> Convolution:
        liked, shape = examples.positives, (examples.n_users, examples.n_items)
        user = np.repeat(np.arange(shape[0]), liked.count)
        graph = Graph.of(user, liked.item, n_users=shape[0], n_items=shape[1], layers=layers)
        return cls(*shape, dimensions, graph, biases)

    def start(self, rng: np.random.Generator) -> Tensors:
        embedding = normal(rng, (self.n_users + self.n_items, self.dimensions), scale=0.1)
        zeros = [torch.zeros(n, 1, requires_grad=True) for n in (self.n_users, self.n_items)]
        return [embedding, *zeros] if self.biases else [embedding]

    def sides(self, parameters: Tensors) -> Sides:
        embedding, *biases = parameters
        found = self.graph.propagate(embedding)
        user, item = found[: self.n_users], found[self.n_users :]
        return with_biases(user, item, *biases) if biases else (user, item)

    def squares(self, parameters: Tensors) -> Sides:
        found = parameters[0].square().sum(1)
        return found[: self.n_users], found[self.n_users :]

    def apart(self, user: Floats, item: Floats) -> tuple[Floats, Floats, Floats | None, Floats | None]:
        return (user[:, :-2], item[:, :-2], user[:, -2], item[:, -1]) if self.biases else (user, item, None, None)

    def sized(self, dimensions: int) -> Convolution:
        return replace(self, dimensions=dimensions or self.dimensions)


def network_of(backbone: Backbone, examples: Examples) -> Network:
    """The torch side of a backbone for the examples at hand."""
    if isinstance(backbone, GraphConvolution):
        return Convolution.of(examples, backbone.dimensions, backbone.layers, biases=backbone.biases)
    return Factorisation(examples.n_users, examples.n_items, backbone.dimensions)


def with_biases(p: torch.Tensor, q: torch.Tensor, b_user: torch.Tensor, b_item: torch.Tensor) -> Sides:
    """(p, b_u, 1) and (q, 1, b_i), whose product is p · q + b_u + b_i."""
    return torch.cat([p, b_user, torch.ones_like(b_user)], 1), torch.cat([q, torch.ones_like(b_item), b_item], 1)


def normal(rng: np.random.Generator, shape: tuple[int, int], *, scale: float) -> torch.Tensor:
    """Normal numbers to be learned from."""
    return torch.from_numpy(rng.normal(0.0, scale, shape).astype(np.float32)).requires_grad_()
