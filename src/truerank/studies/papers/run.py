"""Run an experiment in a folder: pieces are kept, so that a stopped run goes on; in the end it holds the results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.progress import Progress, Watching, watching
from truerank.data.growing import BLOCK, Blocks, keep_question, working
from truerank.data.inputs import fingerprint
from truerank.studies.papers.experiment import Experiment, ReproducedSize, ReproducedSource, WorkPiece
from truerank.studies.papers.reproduced import Reproduced, reproduced
from truerank.studies.pieces import KEPT, make_missing
from truerank.version import __version__

NOTE = "experiment.json"
HASHED = 2**28  # bytes of a file up to which its hash is taken
FORMAT = 1  # of the pieces; another one is another run
LONGEST = 80  # letters of a name of a file that come from the name of a piece


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


def reproduce(
    experiment: Experiment,
    source: ReproducedSource,
    folder: Path,
    *,
    size: ReproducedSize,
    seed: int,
    processes: int | None = None,
    progress: Watching = None,
) -> tuple[Reproduced, tuple[str, ...]]:
    """Run an experiment, or go on with it, and say what was amiss in what was there.

    A folder belongs to one experiment, size, seed, source and version: for another it is refused.
    """
    if experiment.instead:
        raise InputError(f"{experiment.name} cannot be run here: {experiment.instead}")
    data = _fingerprints(experiment, source)
    asked: Mapping[str, Any] = {
        "experiment": experiment.name, "format": FORMAT, "size": str(size), "seed": seed,
        "synthetic": source.is_synthetic, "data": data, "truerank": __version__,
    }  # fmt: skip
    with watching(progress) as say, working(folder):
        blocks = Blocks(keep_question(folder / NOTE, asked, what="run of an experiment", advice=KEPT), KEPT)
        damaged = blocks.drop_damaged(sorted(folder.glob(f"*{BLOCK}")))
        keep = _Kept(folder, blocks, processes, say)
        found = experiment.run(source, size=size, seed=seed, keep=keep, progress=say)
    notes = (f"{folder}: {some(damaged)} had been altered and was made again.",) if damaged else ()
    result = reproduced(experiment, found, size=size, seed=seed, synthetic=source.is_synthetic, data=data)
    return result, notes


def _fingerprints(experiment: Experiment, source: ReproducedSource) -> dict[str, str]:
    """The hash of every file in the folders of the datasets that an experiment reads; of very large ones the size."""
    if source.folder is None:
        return {}
    if not experiment.data:
        raise InputError(f"{experiment.name} needs no data; leave {{option:data|the folder}} out.")
    found = {}
    for dataset in experiment.data:
        place = source.place(dataset)
        for path in sorted(each for each in place.iterdir() if each.is_file() and each.name[0] != "."):
            n_bytes = path.stat().st_size
            known = fingerprint(path) if n_bytes <= HASHED else None
            found[f"{dataset}/{path.name}"] = f"{n_bytes} bytes" if known is None else known.sha256
    return found
