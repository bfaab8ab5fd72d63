"""The world of a study, block by block of users, and the order in which each model puts its items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Ints
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Scores
from truerank.core.wording import option
from truerank.exposure.expose import sorted_world
from truerank.ranking.kernel.rank import Aligned, check_block

LEAST_OBSERVED = 0.9  # below this share of pairs a log is no fully observed world
TIES = "ties"  # the purpose that the order of equal scores is keyed by, as in an evaluation with random ties

Flags = npt.NDArray[np.uint8]
Orders = npt.NDArray[np.int32]


class Mark(IntEnum):
    """What an item is to a user: one that is liked, one that is excluded or held out (never shown, no candidate), or
    any other."""

    OTHER = 0
    LIKED = 1
    EXCLUDED = 2


@dataclass(frozen=True, slots=True)
class LabelledWorld:
    """Who likes what: `positive` pairs, and which pairs are `observed` (None: all of them).

    `excluded` pairs are neither shown nor candidates, such as those that models were trained on; `n_dropped` of them
    had a label. They are still in the `log`, which decides what loggers favour.
    """

    log: Log
    users: Ids
    items: Ids
    positive: Pairs
    observed: Pairs | None
    excluded: Pairs | None = None
    n_dropped: int = 0
    n_unknown: int = 0  # excluded pairs whose user or item is not in the world

    @classmethod
    def of(cls, labels: Log, *, items: Ids | None = None, exclude: Log | None = None) -> LabelledWorld:
        """A world of labels for every pair, or of positives where `labels.complete` says that the others are negative.

        `items` adds those of a complete world that nobody likes. A few pairs may be missing from a matrix; they are
        never shown.

        >>> import polars as pl
        >>> from truerank.io.read import read
        >>> log = replace(read(pl.DataFrame({"user": [1, 2], "item": [5, 7], "label": [1, 1]})), complete=True)
        >>> positive, observed = LabelledWorld.of(log, items=Ids.of([6])).block(np.array([0, 1]))
        >>> positive.tolist(), observed.tolist()
        ([[1, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 1]])
        """
        if items is not None and labels.complete:
            pool = Ids.union({"labels, items": labels.items, "scores, items": items})
            labels = replace(labels, items=pool, item=pool.locate(labels.items)[labels.item])
        log = sorted_world(labels)
        n_users, n_items = len(log.users), len(log.items)
        excluded = None if exclude is None else _pairs_in(log, exclude)
        n_left = n_users * n_items - (0 if excluded is None else len(excluded.item))
        left = np.ones(len(log), dtype=bool) if excluded is None else ~_listed(excluded, log.user, log.item)
        n_dropped = int(len(log) - left.sum())
        n_unknown = 0 if exclude is None or excluded is None else n_pairs(exclude) - len(excluded.item)
        if excluded is not None and len(excluded.item) == 0:
            raise InputError(
                f"none of the pairs to exclude has a user and an item of {log.source}. Check the id columns."
            )
        liked = left & (log.label == 1)
        if not liked.any():
            where = " that is not excluded" if n_dropped else ""
            raise InputError(f"{log.source}: no positive label{where}; expected users who like something.")
        positive = Pairs.of(log.user[liked], log.item[liked], n_units=n_users)
        if log.complete or int(left.sum()) == n_left:
            return cls(log, log.users, log.items, positive, None, excluded, n_dropped, n_unknown)
        share = left.sum() / n_left
        if share < LEAST_OBSERVED:
            raise InputError(
                f"{log.source}: {share:.1%} of {n_users:,} users x {n_items:,} items have a label; a study needs a "
                "fully observed world. If pairs that are not listed are negatives, say "
                f"{option('unlisted negative', 'replace(log, complete=True)')}."
            )
        observed = Pairs.of(log.user[left], log.item[left], n_units=n_users)
        return cls(log, log.users, log.items, positive, observed, excluded, n_dropped, n_unknown)

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def n_missing(self) -> int:
        """Pairs that are neither observed nor excluded."""
        excluded = 0 if self.excluded is None else len(self.excluded.item)
        return 0 if self.observed is None else self.n_users * self.n_items - excluded - len(self.observed.item)

    def block(self, units: Ints) -> tuple[Flags, Flags]:
        """(liked, observed) of the given users, [users x items]."""
        liked = _flags(self.positive, units, self.n_items)
        if self.observed is None:
            return liked, 1 - self.excluded_block(units)
        return liked, _flags(self.observed, units, self.n_items)

    def excluded_block(self, units: Ints) -> Flags:
        """The pairs of the given users that are excluded, [users x items]."""
        if self.excluded is None:
            return np.zeros((len(units), self.n_items), dtype=np.uint8)
        return _flags(self.excluded, units, self.n_items)

    def digest(self) -> str:
        """Different for different worlds."""
        found = hashlib.blake2b(digest_size=16)
        parts = [each for each in (self.positive, self.observed, self.excluded) if each is not None]
        for array in (self.users.keys(), self.items.keys(), *(x for each in parts for x in (each.start, each.item))):
            found.update(np.ascontiguousarray(array).data)
        if self.excluded is not None:  # loggers look at excluded pairs too
            found.update(np.ascontiguousarray(self.log.label).data)
        return found.hexdigest()


@dataclass(frozen=True, slots=True)
class Models:
    """The scores of several models, aligned with a world's users and items."""

    world: LabelledWorld
    scores: Mapping[str, Scores]
    aligned: tuple[Aligned, ...]
    seed: int

    @classmethod
    def of(cls, scores: Mapping[str, Scores], world: LabelledWorld, *, seed: int) -> Models:
        if len(scores) < 2:
            raise InputError(f"{len(scores)} models; a study of how models are ordered needs at least two.")
        aligned = tuple(
            Aligned.of(each, users=world.users, items=world.items, name=name) for name, each in scores.items()
        )
        for name, each in zip(scores, aligned, strict=True):
            if each.scores.depth is not None:
                raise InputError(
                    f"{name}: top lists of at most {each.scores.depth:,} items; a study needs the score of every item, "
                    "because any of them can be a candidate."
                )
            _check_numbers(each.scores, name=name)
            if (each.row < 0).all():
                raise InputError(f"{name} and {world.log.source} have no user in common. Check the id columns.")
            if each.column is not None and (each.column < 0).all():
                raise InputError(f"{name} and {world.log.source} have no item in common. Check the id columns.")
        return cls(world, scores, aligned, seed)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def scored(self) -> Bools:
        """Users whom every model has scores for."""
        return np.asarray(np.stack([each.row for each in self.aligned]).min(axis=0) >= 0)

    @property
    def unknown_items(self) -> dict[str, int]:
        """How many items of the world each model has no scores for."""
        return {
            name: 0 if each.column is None else int((each.column < 0).sum())
            for name, each in zip(self.scores, self.aligned, strict=True)
        }

    def orders(self, units: Ints) -> tuple[Orders, Ints]:
        """Items best first [users x models x items], and how many of them each model recommends at all.

        Equal scores are put in a random order by (seed, user, item), the same for all models and scenarios.
        """
        world = self.world
        order = np.empty((len(units), len(self), world.n_items), dtype=np.int32)
        finite = np.empty((len(units), len(self)), dtype=np.int64)
        user_key, item_key = world.users.keys()[units], world.items.keys()
        for at, (name, aligned) in enumerate(zip(self.scores, self.aligned, strict=True)):
            matrix = aligned.block(units)
            check_block(matrix, units, users=world.users, items=world.items, name=name)
            finite[:, at] = np.count_nonzero(matrix > -np.inf, axis=1)
            order[:, at] = np.argsort(-matrix, axis=1)
            ordered = np.take_along_axis(matrix, order[:, at].astype(np.int64), axis=1)
            for u in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)):
                key = cell_keys(self.seed, TIES, user_key[u], item_key)
                order[u, at] = np.lexsort((key, -matrix[u]))
        return order, finite

    def digest(self) -> dict[str, str]:
        """Of each model, different for different scores."""
        return {name: digest_of(each) for name, each in self.scores.items()}


def _check_numbers(scores: Scores, *, name: str) -> None:
    """What scores are made of is looked at before any work; -inf is an item that is never recommended."""
    parts: list[Any] = [getattr(scores, each.name) for each in fields(scores)] if is_dataclass(scores) else []
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind == "f" and not bool((part < np.inf).all()):
            raise InputError(f"{name}: scores that are NaN or infinite; expected numbers, or -inf for never.")


def digest_of(scores: Scores) -> str:
    """A digest of everything that scores are made of; of a function, of what it says about three users."""
    found = hashlib.blake2b(digest_size=16)
    parts: list[Any] = [getattr(scores, each.name) for each in fields(scores)] if is_dataclass(scores) else []
    if not parts or any(callable(each) for each in parts):
        parts += [scores.users, scores.items, scores.block(np.arange(min(3, len(scores.users))))]
    for part in parts:
        if isinstance(part, Ids):
            found.update(part.keys().data)
        elif isinstance(part, np.ndarray):
            found.update(f"{part.dtype}{part.shape}".encode())
            for row in np.array_split(part, max(1, part.nbytes // 2**26)):
                found.update(np.ascontiguousarray(row).data)
    return found.hexdigest()


def _pairs_in(world: Log, given: Log) -> Pairs:
    """The given pairs whose user and item the world knows."""
    row = world.users.locate(given.users, where=f"{given.source}, column 'user'")[given.user]
    column = world.items.locate(given.items, where=f"{given.source}, column 'item'")[given.item]
    kept = (row >= 0) & (column >= 0)
    return Pairs.of(row[kept], column[kept], n_units=len(world.users))


def n_pairs(log: Log) -> int:
    """How many different pairs a log has."""
    return len(Pairs.of(log.user, log.item, n_units=len(log.users)).item)


def _listed(pairs: Pairs, user: Ints, item: Ints) -> Bools:
    """Which rows are among the pairs; rows are sorted."""
    width = 1 + max(int(pairs.item.max(initial=0)), int(item.max(initial=0)))
    cell = np.repeat(np.arange(len(pairs.count)), pairs.count) * width + pairs.item
    return np.isin(user * width + item, cell, assume_unique=True)


def _flags(pairs: Pairs, units: Ints, n_items: int) -> Flags:
    found = np.zeros((len(units), n_items), dtype=np.uint8)
    for at, unit in enumerate(units):
        found[at, pairs.of_unit(int(unit))] = 1
    return found
