"""What is measured: generated inputs with fixed seeds. Needs numpy alone, so that peers' environments can use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CUTOFFS = (5, 10, 50, 100)


@dataclass(frozen=True)
class ListsWork:
    """Workload A: top-100 lists, and relevant items, of many users."""

    items: Array  # users x 100, best first
    relevant_user: Array
    relevant_item: Array
    n_items: int

    @property
    def n_users(self) -> int:
        return len(self.items)

    def shuffled(self) -> tuple[Array, Array, Array]:
        """The lists as a long table user, item, score in random order."""
        rng = np.random.default_rng(7)
        n, k = self.items.shape
        order = rng.permutation(n * k)
        score = 200.0 - np.tile(np.arange(k), n) + 0.5 * rng.random(n * k)
        return np.repeat(np.arange(n), k)[order], self.items.ravel()[order].astype(np.int64), score[order]


def lists_work(n_users: int = 100_000, *, n_items: int = 50_000, length: int = 100) -> ListsWork:
    """Distinct items per list; about 19 relevant items per user with a long tail, 30 % of them from the list."""
    rng = np.random.default_rng(20240501)
    step = rng.integers(1, n_items // length, size=(n_users, length))
    items = (np.cumsum(step, axis=1) + rng.integers(0, n_items, size=(n_users, 1))) % n_items
    items = rng.permuted(items, axis=1).astype(np.int32)
    count = np.clip(np.round(rng.lognormal(2.6, 0.9, n_users)), 1, 100).astype(np.int64)
    user = np.repeat(np.arange(n_users), count)
    place = np.minimum(rng.exponential(25.0, len(user)).astype(np.int64), length - 1)
    other = np.minimum((n_items * rng.random(len(user)) ** 2.5).astype(np.int64), n_items - 1)
    item = np.where(rng.random(len(user)) < 0.3, items[user, place], other)
    cell = np.unique(user * n_items + item)
    return ListsWork(items, cell // n_items, cell % n_items, n_items)


@dataclass(frozen=True)
class RanksWork:
    """Workload B: factors, 20 relevant and 50 excluded items per user."""

    user_factors: Array
    item_factors: Array
    relevant: Array  # users x 20
    excluded: Array  # users x 50


def ranks_work(n_users: int = 20_000, n_items: int = 50_000, dimensions: int = 64) -> RanksWork:
    """Random factors with a popularity column; relevant and excluded items are drawn by noisy score."""
    rng = np.random.default_rng(20240502)
    p = rng.standard_normal((n_users, dimensions), dtype=np.float32) / np.float32(np.sqrt(dimensions))
    q = rng.standard_normal((n_items, dimensions), dtype=np.float32)
    p[:, 0], q[:, 0] = 1.0, 0.5 * rng.standard_normal(n_items)
    chosen = np.empty((n_users, 70), dtype=np.int64)
    for start in range(0, n_users, 500):
        rows = slice(start, min(start + 500, n_users))
        n = rows.stop - rows.start
        step = rng.integers(1, max(2, n_items // 400), size=(n, 400))
        pool = (np.cumsum(step, axis=1) + rng.integers(0, n_items, size=(n, 1))) % n_items
        score = np.einsum("ud,ucd->uc", p[rows], q[pool]) * 1.5 + rng.gumbel(size=pool.shape)
        best = np.take_along_axis(pool, np.argsort(-score, axis=1)[:, :70], axis=1)
        chosen[rows] = rng.permuted(best, axis=1)
    return RanksWork(p, q, np.sort(chosen[:, :20], axis=1), np.sort(chosen[:, 20:], axis=1))


OFFPOLICY_CLIPS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 200.0, float("inf"))


def offpolicy_work(n_rows: int = 10_000_000) -> dict[str, Array]:
    """Workload C: sessions of about 10 viewed items with propensities, a target's ranks, clicks (4 %) and dwell times."""
    rng = np.random.default_rng(20240503)
    length = 1 + rng.poisson(9.0, size=int(n_rows / 10 * 1.02) + 1000)
    end = np.cumsum(length)
    n = int(np.searchsorted(end, n_rows)) + 1
    length = length[:n].copy()
    length[-1] -= int(end[n - 1] - n_rows)
    session = np.repeat(np.arange(n), length)
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    rank = np.arange(n_rows) - np.repeat(start, length) + 1
    liking = rng.beta(1.0, 6.0, n_rows)
    click = (rng.random(n_rows) < liking / rank).astype(np.int8)
    order = np.lexsort((-(liking + 0.1 * rng.standard_normal(n_rows)), session))
    new = np.empty(n_rows, np.int16)
    new[order] = rank
    return {
        "session": session,
        "item": rank.astype(np.int32),  # what is shown does not matter here; each item once in a session
        "new": new,
        "click": click,
        "dwell": liking * 60.0,
        "propensity": np.clip(rng.uniform(0.5, 1.5, n_rows) / rank, 0.002, 1.0),
    }
