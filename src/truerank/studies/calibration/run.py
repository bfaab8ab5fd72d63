"""Draw every world many times and write down what was said: block by block, so that a stopped study goes on."""

from __future__ import annotations

import glob
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

import polars as pl

from truerank.core.errors import some
from truerank.core.progress import Progress, Watching, watching
from truerank.core.sizes import check_size
from truerank.data.growing import BLOCK as ENDING
from truerank.data.growing import Blocks, keep_question, working
from truerank.engines.engine import Values, Workers, map_chunks
from truerank.engines.local import Local, Processes
from truerank.engines.named import as_engine
from truerank.ranks.kernel.rank import COMPILED
from truerank.studies.calibration.said import SCHEMA, Said
from truerank.version import __version__

BLOCK = 50  # draws that are written together
NOTE = "study.json"
FORMAT = 1  # of the blocks; another one is another study
KEPT = "What was done before is kept: make room and start the same study again to go on."


class DrawnWorld(Protocol):
    """A world of a study whose truth is known; its representation tells it from others."""

    study: ClassVar[str]

    @property
    def name(self) -> str: ...
    def n_draws(self, asked: int) -> int:
        """How many draws it has where so many are asked for."""
        ...

    def said(self, seed: int, run: int) -> Iterable[Said]:
        """What one draw said, in rows of `SCHEMA`."""
        ...

    def true_values(self, seed: int) -> Mapping[tuple[str, str, str], float]:
        """What each value and difference estimates, by what, metric and estimator; '' stands for every one."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """Some draws of one world, and the file that holds what was said of them."""

    world: DrawnWorld
    seed: int
    first: int
    last: int
    folder: Path

    @property
    def path(self) -> Path:
        name = self.world.name.replace(" ", "-").replace("%", "")
        return self.folder / f"{name}.{self.seed}.{self.first}-{self.last}{ENDING}"

    def drawn(self) -> pl.DataFrame:
        """What was said of each draw."""
        if find_spec("numba") is not None:  # thousands of small draws: the compiled kernel is loaded once for all
            import_module(COMPILED)
        rows = [row for run in range(self.first, self.last) for row in self.world.said(self.seed, run)]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def write(self, drawn: pl.DataFrame) -> None:
        """The block whole, or not at all."""
        kept(self.world, self.seed).write(drawn, self.path)


def kept(world: DrawnWorld, seed: int) -> Blocks:
    """The blocks of a world as it is now: those drawn with other settings, or by another version, are none of them."""
    return Blocks(f"{world.study} {FORMAT}, truerank {__version__}, seed {seed}: {world!r}".encode(), KEPT)


DRAW_SECONDS = 1e-3  # that a draw of one world takes at least


def study(
    worlds: Sequence[DrawnWorld],
    folder: Path,
    *,
    draws: int,
    seed: int,
    processes: int | None = None,
    engine: Any = None,
    progress: Watching = None,
) -> tuple[str, ...]:
    """Make the blocks that are missing; worlds take turns, so that a stopped study has some draws of each.

    What a block holds depends on world, seed and draw alone, not on the engine or the number of its processes. Blocks
    that were altered are made again, which is what is to be said; those of a world that has other settings now are
    refused.
    """
    check_size(
        f"a study of {draws:,} draws of {len(worlds):,} worlds",
        memory=200.0 * draws * len(worlds) / BLOCK,
        seconds=DRAW_SECONDS * draws * len(worlds),
        instead="Ask for fewer draws: 2,000 are enough.",
    )
    with watching(progress) as say, working(folder):
        keep_question(folder / NOTE, {"study": worlds[0].study, "format": FORMAT}, what="study", advice=KEPT)
        damaged = [name for world in worlds for name in kept(world, seed).drop_damaged(_drawn(world, folder, seed))]
        with _workers(engine, processes) as workers:
            _draw(worlds, folder, draws=draws, seed=seed, workers=workers, progress=say)
    return (f"{folder}: {some(damaged)} had been altered and was made again.",) if damaged else ()


def _drawn(world: DrawnWorld, folder: Path, seed: int) -> list[Path]:
    """The blocks of a world that are there."""
    name = Block(world, seed, 0, 0, folder).path.name.rsplit(".", 2)[0]
    return sorted(folder.glob(f"{glob.escape(name)}.*{ENDING}"))


def _draw(
    worlds: Sequence[DrawnWorld],
    folder: Path,
    *,
    draws: int,
    seed: int,
    workers: Workers,
    progress: Progress | None,
) -> None:
    blocks = [
        Block(world, seed, first, min(first + BLOCK, world.n_draws(draws)), folder)
        for first in range(0, draws, BLOCK)
        for world in worlds
        if first < world.n_draws(draws)
    ]
    missing = [block for block in blocks if not block.path.exists()]
    done = len(blocks) - len(missing)
    for at, (block, drawn) in enumerate(map_chunks(workers, _drawn_block, Values(missing)), start=1):
        block.write(drawn)
        if progress is not None:
            progress("drawing worlds", done + at, len(blocks))


def _drawn_block(block: Block) -> tuple[Block, pl.DataFrame]:
    return block, block.drawn()


def _workers(engine: Any, processes: int | None) -> AbstractContextManager[Workers]:
    """Who draws: on this machine processes, because a draw is many small evaluations, nearly all of them Python."""
    chosen = as_engine(engine, threads=processes)
    return nullcontext(Processes(chosen.n_workers)) if isinstance(chosen, Local) else chosen.open()


def read(world: DrawnWorld, folder: Path, *, seed: int) -> pl.DataFrame:
    """All draws of a world that are there, with the truth beside them."""
    parts = _drawn(world, folder, seed)
    if not parts:
        return pl.DataFrame(schema={**SCHEMA, "truth": pl.Float64})
    # a block that was cut short by fewer draws lies beside the longer one that came later
    key = ["run", "what", "metric", "estimator"]
    drawn = pl.concat([kept(world, seed).read(part) for part in parts]).unique(key, keep="first", maintain_order=True)
    known = world.true_values(seed)  # '' stands for every metric and every estimator
    keys = drawn.select("what", "metric", "estimator").rows()
    truth = [known.get(key, known.get((key[0], "", ""), math.nan)) for key in keys]
    return drawn.with_columns(pl.Series("truth", truth, dtype=pl.Float64))
