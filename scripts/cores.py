"""Runs of a study in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing import get_context

from truerank.core.arrays import Floats

_work: Callable[[int], Floats]


def on_all_cores(work: Callable[[int], Floats], runs: Sequence[int]) -> list[Floats]:
    """The result of every run, in order; each run has its own seed, so the number of processes does not matter."""
    # spawned, because the threads of polars do not survive a fork
    with get_context("spawn").Pool(initializer=_take, initargs=(work,)) as pool:
        return list(pool.imap(_one, runs, chunksize=10))


def _take(work: Callable[[int], Floats]) -> None:
    global _work  # noqa: PLW0603 - the truth is sent to a process once, not with every run
    _work = work


def _one(run: int) -> Floats:
    return _work(run)
