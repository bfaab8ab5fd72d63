"""A run in a folder: its question is written down, its pieces are kept, so that a stopped one goes on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.progress import Progress, Watching, watching
from truerank.data.growing import BLOCK, Blocks, keep_question, working
from truerank.data.inputs import fingerprint
from truerank.studies.pieces import KEPT, make_missing
from truerank.studies.work import Keep, StudySource, WorkPiece

HASHED = 2**28  # bytes of a file up to which its hash is taken
LONGEST = 80  # letters of a name of a file that come from the name of a piece

BLOCK_NAME = re.compile(r"[A-Za-z0-9.-]*\.[0-9a-f]{8}" + re.escape(BLOCK))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _KeptPiece:
    """A piece with its file."""

    piece: WorkPiece
    folder: Path
    blocks: Blocks

    @property
    def path(self) -> Path:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", self.piece.name)[:LONGEST]
        digest = hashlib.sha256(self.piece.name.encode()).hexdigest()[:8]  # names that differ in signs alone
        return self.folder / f"{plain}.{digest}{BLOCK}"

    def table(self) -> pl.DataFrame:
        return self.piece.table()


@dataclass(frozen=True, slots=True)
class _Kept:
    """Keeps pieces in a folder (`Keep`)."""

    folder: Path
    blocks: Blocks
    processes: int | None
    progress: Progress | None

    def __call__(self, pieces: Sequence[WorkPiece], *, about: str, apart: bool = True) -> list[pl.DataFrame]:
        kept = [_KeptPiece(piece, self.folder, self.blocks) for piece in pieces]
        if len({each.path for each in kept}) < len(kept):
            raise ValueError(f"{about}: two pieces have one name")
        make_missing(kept, about=about, processes=self.processes if apart else 1, progress=self.progress)
        return [self.blocks.read(each.path) for each in kept]


def run_in(
    folder: Path,
    work: Callable[[Keep, Progress | None], T],
    *,
    asked: Mapping[str, Any],
    what: str,
    processes: int | None,
    progress: Watching,
) -> tuple[T, tuple[str, ...]]:
    """What `work` gives, and what was amiss in what was there; a folder belongs to what was `asked` there first.

    The first key of `asked` names the file that holds the question.
    """
    note = f"{next(iter(asked))}.json"
    with watching(progress) as say, working(folder):
        blocks = Blocks(keep_question(folder / note, asked, what=what, advice=KEPT), KEPT)
        damaged = blocks.drop_damaged(sorted(path for path in folder.iterdir() if BLOCK_NAME.fullmatch(path.name)))
        found = work(_Kept(folder, blocks, processes, say), say)
    return found, (f"{folder}: {some(damaged)} had been altered and was made again.",) if damaged else ()


def fingerprints(name: str, datasets: Sequence[str], source: StudySource) -> dict[str, str]:
    """The hash of every file in the folders of the datasets that are read; of very large ones the size."""
    if source.folder is None:
        return {}
    if not datasets:
        raise InputError(f"{name} needs no data; leave {{option:data|the folder}} out.")
    return {name: known for each in datasets for name, known in folder_fingerprints(each, source.place(each)).items()}


def folder_fingerprints(dataset: str, folder: Path) -> dict[str, str]:
    """The hash of every file in the folder of a dataset; of very large ones the size."""
    found = {}
    for path in sorted(each for each in folder.iterdir() if each.is_file() and each.name[0] != "."):
        n_bytes = path.stat().st_size
        known = fingerprint(path) if n_bytes <= HASHED else None
        found[f"{dataset}/{path.name}"] = f"{n_bytes} bytes" if known is None else known.sha256
    return found
