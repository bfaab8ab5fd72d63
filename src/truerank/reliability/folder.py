"""The folder of a study: one process at a time, blocks that are whole or absent, and a note of what is studied."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import polars as pl

from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.io.atomic_write import check_folder, read_marker, seal, unseal
from truerank.io.checkpoint import BLOCK, Blocks
from truerank.io.files import write_table
from truerank.reliability.studied import EXPECTED, FILES, KIND

BLOCK_NAME = re.compile(r"r\d{5,}-l\d{3,}-b\d{7,}(-sums)?" + re.escape(BLOCK))
RESUME = "What was done before is kept: make room and start the same study again to go on."


class Block(NamedTuple):
    """A part of the work: a run of users with all scenarios of one logging policy in one repetition."""

    repetition: int
    logger: int
    number: int


@record
class Folder:
    """Where a study keeps what it has done; use it inside `working`."""

    path: Path
    files: Blocks

    @property
    def blocks(self) -> Path:
        return self.path / "blocks"

    def place(self, block: Block, part: str = "") -> Path:
        return self.blocks / f"r{block.repetition:05}-l{block.logger:03}-b{block.number:07}{part}{BLOCK}"

    def is_finished(self) -> bool:
        """Whether all is done; a finished study of which a file is gone is made again, one that was altered refused."""
        marker = read_marker(self.path)
        if marker is None:
            return False
        if not all((self.path / name).is_file() for name in marker.files):
            unseal(self.path)
            return False
        check_folder(self.path, kind=KIND, expected=EXPECTED)
        return True

    def finish(self, tables: dict[str, pl.DataFrame]) -> None:
        """Write the tables of the study, and the marker with which it is finished."""
        for name, table in tables.items():
            write_table(table, self.path / name, advice=RESUME)
        seal(self.path, kind=KIND, names=FILES, advice=RESUME)

    def written(self) -> list[Path]:
        """The blocks that are there, by the names that truerank gives them."""
        if self.blocks.is_symlink():
            raise InputError(f"{self.blocks}: is a link; expected a folder of the study. Choose another folder.")
        return sorted(path for path in self.blocks.glob(f"*{BLOCK}") if BLOCK_NAME.fullmatch(path.name))

    def clear(self) -> None:
        """Remove the blocks: their tables are written."""
        for path in (*self.written(), *self.blocks.glob(".truerank-" + "[0-9a-f]" * 16 + ".part")):
            path.unlink()
        with suppress(OSError):  # no blocks, or a file that is not ours
            self.blocks.rmdir()
