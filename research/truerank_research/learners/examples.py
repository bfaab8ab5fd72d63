"""What is learned from: a log and a random slice as arrays, checked, weighted and divided."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch.autograd import Function

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs
from truerank.core.rng import generator
from truerank.core.wording import option
from truerank.datasets.split import restrict
from truerank.models import Labels, Side
from truerank.models.matrix import check_rows, positive_rows
from truerank.sampling.pools import Members, PoolOrder
from truerank_research.learners.recipes import Beside, Method

HELD_OUT = 0.1  # part of the log that decides when to stop where there is no random slice


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows sorted by user and item. `weight` is 1, or mean propensity / propensity of the row once it is known."""

    user: Ints
    item: Ints
    label: Floats
    weight: Floats
    n_users: int
    n_items: int

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_pairs(self) -> int:
        return self.n_users * self.n_items

    @property
    def positives(self) -> Pairs:
        """The distinct positive pairs."""
        liked = self.label == 1
        return Pairs.of(self.user[liked], self.item[liked], n_units=self.n_users)

    def select(self, rows: Ints | Bools) -> Examples:
        parts = (self.user[rows], self.item[rows], self.label[rows], self.weight[rows])
        return Examples(*parts, self.n_users, self.n_items)


@dataclass(frozen=True, slots=True)
class Others:
    """The items that are no positives of a user, by their place among them.

    `before` has, for each positive, the user and how many others come before it, as one ascending number.
    """

    start: Ints
    before: Ints
    n_items: int

    @classmethod
    def of(cls, positives: Pairs, *, n_items: int) -> Others:
        owner = np.repeat(np.arange(len(positives.count)), positives.count)
        rank = np.arange(len(owner)) - positives.start[owner]
        return cls(positives.start, owner * (n_items + 1) + positives.item - rank, n_items)

    def count(self, user: Ints) -> Ints:
        return np.asarray(self.n_items - (self.start[user + 1] - self.start[user]))

    def at(self, user: Ints, place: Ints) -> Ints:
        """The item at each place, from 0.

        >>> others = Others.of(Pairs.of(np.array([0, 0]), np.array([1, 2]), n_units=1), n_items=5)
        >>> others.at(np.zeros(3, int), np.arange(3))
        array([0, 3, 4])
        """
        found = np.searchsorted(self.before, user * (self.n_items + 1) + place, side="right")
        return np.asarray(place + found - self.start[user])


@dataclass(frozen=True, slots=True)
class Material:
    """What trains the model, what of the random slice corrects it, and what decides when to stop.

    `liked` are all positives of the log, those that are held out from training too.
    """

    train: Examples
    uniform: Examples | None
    validation: Examples
    liked: Pairs


def material(
    name: str, method: Method, log: Log, *, side: Side, seed: int, biased_validation: bool = False
) -> Material:
    """Check and divide what is given.

    With a random slice, half of each of its classes decides when to stop and the other half is for propensities and
    the meta loss; without one, or with `biased_validation`, a tenth of each class of the log decides and is not trained
    on, and the whole slice is for propensities and the meta loss. Rows of the slice whose user or item the log does not
    have are dropped. Where the log has positives only, as many random other pairs of the same users represent
    negatives when AUC is computed.
    """
    train = _train(log, method)
    unaided = method.beside is Beside.SLICE or (method.beside is Beside.PROPENSITY and log.propensity is None)
    if side.random is None and unaided:
        raise InputError(
            f"{name}: {log.source} comes without a random slice; it needs {method.beside}. Give rows that were "
            f"shown at random: {option('random FILE', 'side=Side(random=...)')}."
        )
    uniform = None if side.random is None else _slice(name, side.random, log)
    if uniform is None or biased_validation:
        kept, held = _divided(train, log, share=HELD_OUT, seed=seed, purpose="held out for early stopping")
        _check_kept(name, train.label, kept.label)
        if not (train.label == 0).any():
            held = _with_negatives(held, train.positives, seed=seed)
        parts = Material(kept, uniform, held, train.positives)
    else:
        parts = Material(train, *_divided(uniform, log, share=0.5, seed=seed, purpose="random slice"), train.positives)
    _check_classes(parts.validation.label, f"{name}: the rows that decide when to stop")
    weight = np.ones(len(parts.train))
    if method.beside is Beside.SLICE and parts.uniform is not None:
        _check_classes(parts.uniform.label, f"{name}: the rows of the random slice that are for the meta loss")
    if method.beside is Beside.PROPENSITY:
        weight = _inverse(name, parts) if log.propensity is None else _known(name, log, parts.train)
    return replace(parts, train=replace(parts.train, weight=weight))


def naive_bayes(label: Floats, slice_label: Floats, *, n_pairs: int) -> Floats:
    """P(O=1 | y) = P(y | O=1) P(O=1) / P(y) for y = 0 and 1 (Schnabel et al. 2016, section 5.2).

    P(y | O=1) from the log, P(y) from the random slice, P(O=1) = rows / pairs. Assumes that exposure depends on the
    label alone.

    Half of 4 rows of 40 pairs are positive, a quarter of the slice is: 0.5 · 0.1 / 0.75 and 0.5 · 0.1 / 0.25.

    >>> naive_bayes(np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0]), n_pairs=40).round(4).tolist()
    [0.0667, 0.2]
    """
    seen = np.array([np.mean(label == y) for y in (0, 1)])
    true = np.array([np.mean(slice_label == y) for y in (0, 1)])
    return np.asarray(seen * (len(label) / n_pairs) / true)


# ------------------------------------------------------------------------------------------------------------- helpers


def _train(log: Log, method: Method) -> Examples:
    if method.labels is Labels.BOTH:
        check_both_classes(log)
        return _examples(log)
    liked = _examples(log.select(positive_rows(log))).positives
    user = np.repeat(np.arange(len(log.users)), liked.count)
    ones = np.ones(len(user))
    return Examples(user, liked.item, ones, ones, len(log.users), len(log.items))


def _examples(log: Log) -> Examples:
    label = log.label if log.rewards else np.ones(len(log))
    weight = np.ones(len(log)) if log.propensity is None else log.propensity
    order = np.lexsort((weight, label, log.item, log.user))  # the order of rows in a file decides nothing
    return Examples(log.user, log.item, label, weight, len(log.users), len(log.items)).select(order)


def _divided(rows: Examples, log: Log, *, share: float, seed: int, purpose: str) -> tuple[Examples, Examples]:
    """Two parts; the second has `share` of each class, rounded up, chosen by the keys of the cells."""
    keys = log.users.keys()[rows.user], log.items.keys()[rows.item]
    classes = Members(*keys, pool=rows.label.astype(np.int64), n_pools=2)
    order = PoolOrder.drawn(classes, seed=seed, purpose=purpose)
    chosen = order.first(np.ceil(share * order.count).astype(np.int64))
    return rows.select(~chosen), rows.select(chosen)


def _slice(name: str, shown: Log, log: Log) -> Examples:
    known = restrict(shown, users=log.users, items=log.items)
    if len(known) == 0:
        raise InputError(
            f"{name}: the random slice {shown.source} has {len(shown):,} rows and none of a user and an item of "
            f"{log.source}; expected randomly shown rows of the same users and items."
        )
    return _examples(known)


def _with_negatives(held: Examples, positives: Pairs, *, seed: int) -> Examples:
    others = Others.of(positives, n_items=held.n_items)
    own = held.select(others.count(held.user) > 0)
    draw = generator(seed, "negatives for early stopping").random(len(own))
    item = others.at(own.user, (draw * others.count(own.user)).astype(np.int64))
    negative = replace(own, item=item, label=np.zeros(len(own)))
    user, item = (np.concatenate([getattr(part, name) for part in (held, negative)]) for name in ("user", "item"))
    label = np.concatenate([held.label, negative.label])
    both = Examples(user, item, label, np.ones(len(user)), held.n_users, held.n_items)
    return both.select(np.lexsort((both.item, both.user)))


def _inverse(name: str, parts: Material) -> Floats:
    """Mean propensity / propensity of the rows' classes, P(y) / P(y | O=1)."""
    assert parts.uniform is not None  # a method that needs propensities has been refused without
    _check_classes(parts.uniform.label, f"{name}: P(y) of the random slice")
    chance = naive_bayes(parts.train.label, parts.uniform.label, n_pairs=parts.train.n_pairs)
    return len(parts.train) / parts.train.n_pairs / chance[parts.train.label.astype(np.int64)]


def _known(name: str, log: Log, train: Examples) -> Floats:
    wrong = ~((train.weight > 0) & (train.weight <= 1))
    if wrong.any():
        raise InputError(
            f"{name}: {log.source} has the propensity {train.weight[wrong][0]:g} in {int(wrong.sum()):,} rows or more; "
            "expected above 0 and up to 1."
        )
    return len(train) / train.n_pairs / train.weight


def _check_classes(label: Floats, what: str) -> None:
    for y in (0, 1):
        if not (label == y).any():
            raise InputError(
                f"{what}: none of {len(label):,} rows has the label {y}; expected both classes. Give more rows that "
                "were shown at random: 2 of each class or more, as half of each decides when to stop."
            )


def _check_kept(name: str, label: Floats, kept: Floats) -> None:
    for y in np.unique(label):
        if not (kept == y).any():
            raise InputError(
                f"{name}: {int((label == y).sum()):,} of {len(label):,} rows to learn from has the label {y:g}, and it "
                "is held out to decide when to stop; expected 2 rows or more of each class. Give more rows, or rows "
                f"that were shown at random to decide on: {option('random FILE', 'side=Side(random=...)')}."
            )


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


def check_both_classes(log: Log) -> None:
    """Refuse a log in which all rows are positive or none is."""
    check_rows(log)
    n_positive = int(np.count_nonzero(log.label == 1))
    if n_positive in (0, len(log)):
        what = "none" if n_positive == 0 else "each"
        raise InputError(
            f"{log.source}: {what} of {len(log):,} rows is positive; expected positive and negative rows. "
            "Give the negatives too, or use a model that learns from positives alone (truerank train --list)."
        )
