"""The one way to do long work in pieces that are kept: each is a table in a file of its own, made whole or not at all.

What a piece holds depends on itself alone, so that one process or several, at once or after a stop, leave the same
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from truerank.core.progress import Progress
from truerank.data.growing import Blocks
from truerank.engines.engine import Values, Workers, map_chunks
from truerank.engines.local import Local, Processes
from truerank.engines.named import as_engine

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
    pieces: Sequence[KeptTable],
    *,
    about: str,
    processes: int | None = None,
    engine: Any = None,
    progress: Progress | None = None,
) -> None:
    """Make the pieces whose files are not there, on an engine, or in so many processes of this machine (all cores by
    default; 1 is this process)."""
    missing = [piece for piece in pieces if not piece.path.exists()]
    done = len(pieces) - len(missing)
    if not missing:
        return
    with _workers(engine, processes) as workers:
        for at, (piece, table) in enumerate(map_chunks(workers, _made, Values(missing)), start=1):
            piece.blocks.write(table, piece.path)
            if progress is not None:
                progress(about, done + at, len(pieces))


def _made(piece: KeptTable) -> tuple[KeptTable, pl.DataFrame]:
    return piece, piece.table()


def _workers(engine: Any, processes: int | None) -> AbstractContextManager[Workers]:
    """Who makes them: on this machine processes, because a piece is many small evaluations, nearly all Python."""
    chosen = as_engine(engine, threads=processes)
    return nullcontext(Processes(chosen.n_workers)) if isinstance(chosen, Local) else chosen.open()
