"""The one way to do long work in pieces that are kept: each is a table in a file of its own, made whole or not at all.

What a piece holds depends on itself alone, so that one process or several, at once or after a stop, leave the same
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Protocol

import polars as pl

from truerank.core.progress import Progress
from truerank.data.growing import Blocks

KEPT = "What was done before is kept: make room and start the same study again to go on."


class KeptTable(Protocol):
    """A piece of work: where its table is kept, whose it is, and how it is made."""

    @property
    def path(self) -> Path: ...
    @property
    def blocks(self) -> Blocks:
        """The question that the piece belongs to: what tells it from pieces of others."""
        ...

    def table(self) -> pl.DataFrame: ...


def make_missing(
    pieces: Sequence[KeptTable], *, about: str, processes: int | None = None, progress: Progress | None = None
) -> None:
    """Make the pieces whose files are not there, in so many processes (all cores by default); 1 is this process."""
    missing = [piece for piece in pieces if not piece.path.exists()]
    done = len(pieces) - len(missing)
    with _pool((processes or os.cpu_count() or 1) if missing else 1) as pool:
        made = map(_make, missing) if pool is None else pool.imap_unordered(_make, missing)
        for at, _ in enumerate(made, start=1):
            if progress is not None:
                progress(about, done + at, len(pieces))


def _make(piece: KeptTable) -> None:
    piece.blocks.write(piece.table(), piece.path)


def _pool(workers: int) -> AbstractContextManager[Pool | None]:
    """Processes to share the work; None where there is one, or the system has no place for what they share.

    A hardened container has no /dev/shm that can be written to. Pieces are the same bytes either way.
    """
    if workers > 1:
        with suppress(OSError):
            # spawned, because the threads of polars do not survive a fork
            return get_context("spawn").Pool(workers)
    return nullcontext()
