"""Workers whose results are kept in a folder as they come, so that a run that was stopped goes on where it was.

A result depends on its chunk and on what is asked, not on who made it: a run that began on a cluster may go on here.
Every pass over the chunks is kept, also those that only count or learn, so that what was learned stays the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic

from truerank.core.arrays import Ints
from truerank.core.errors import InputError, TruerankError, some
from truerank.data.growing import BLOCK, Blocks, DamagedBlockError, keep_question, working
from truerank.data.plain_tables import NotPlainError, of_table, to_table
from truerank.engines.engine import Chunk, Engine, Result, Sendable, Workers

PIECES = 32  # into so many chunks data in memory are cut, at least
NOTE = "question.json"
KEPT = "What was done before is kept: make room and start the same again to go on."


@dataclass(slots=True)
class Keeping:
    """Workers that work on what is not done yet, and give what was kept of the rest.

    Data in memory are cut into as many chunks as for `threads` workers elsewhere, whoever works: so chunks are the same
    when another engine goes on.
    """

    workers: Workers
    folder: Path
    blocks: Blocks
    n_passes: int = 0
    altered: list[str] = field(default_factory=list)
    not_kept: list[str] = field(default_factory=list)

    here: ClassVar[bool] = False
    threads: ClassVar[int] = PIECES // 2

    def map(self, work: Callable[[Chunk], Result], chunks: Sendable[Chunk]) -> Iterator[tuple[int, Result]]:
        """Results in the order of chunks, read back where they had to wait for earlier ones.

        So not even sums of floats differ between a run that was stopped and one that was not.
        """
        self.n_passes += 1
        of = _Pass(self, self.n_passes, chunks.n_rows.tolist())
        missing = [at for at in range(chunks.n_chunks) if of.read(at) is None]
        order = _InOrder(of, chunks.n_chunks, set(missing))
        yield from order.ready()
        if not missing:
            return
        left: Sendable[Chunk] = chunks if len(missing) == chunks.n_chunks else SomeChunks(chunks, missing)
        with closing(self.workers.map(work, left)) as results, self._told():  # type: ignore[type-var]
            for place, result in results:
                order.came(missing[place], result)
                yield from order.ready()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """An engine that gives up leaves what was done."""
        try:
            yield
        except InputError:
            raise  # the data are wrong: going on would end there again
        except TruerankError as error:
            raise TruerankError(
                f"{error.text} What is done is kept in {self.folder}: the same {{cli:command|call}} goes on from there."
            ) from None

    def notes(self) -> Iterator[str]:
        """What is to be said of what was kept."""
        if self.altered:
            yield f"{self.folder}: {some(self.altered)} had been altered and was made again."
        for reason in dict.fromkeys(self.not_kept):
            yield f"{self.folder}: a part cannot be kept and is made again when the run goes on: {reason}"


@dataclass(slots=True)
class _Pass:
    """One pass over the chunks: a block for each, with the number of rows that it is the result of."""

    keeping: Keeping
    number: int
    n_rows: Sequence[int]
    plain: bool = True

    def path(self, at: int) -> Path:
        return self.keeping.folder / f"{self.number}-{at}{BLOCK}"

    def read(self, at: int) -> tuple[Any] | None:
        """What was kept of a chunk, None where that is nothing, or not as it was written."""
        path = self.path(at)
        if not path.exists():
            return None
        try:
            found = of_table(self.keeping.blocks.read(path))
        except (DamagedBlockError, NotPlainError):
            self.keeping.altered.append(path.name)
            return None
        made_of, result = found
        return (result,) if made_of == self._made_of(at) else None

    def write(self, at: int, result: Any) -> bool:
        """Whether it can be kept."""
        if not self.plain:
            return False
        try:
            table = to_table((self._made_of(at), result))
        except NotPlainError as error:
            self.plain = False
            self.keeping.not_kept.append(error.text)
            return False
        self.keeping.blocks.write(table, self.path(at))
        return True

    def _made_of(self, at: int) -> tuple[int, int]:
        """How many chunks there are, and how many rows this one has: those of another cut are not taken for it."""
        return len(self.n_rows), self.n_rows[at]


@dataclass(slots=True)
class _InOrder:
    """Results in the order of chunks: those that came early wait in their files, or where they cannot be kept, here."""

    of: _Pass
    n: int
    missing: set[int]
    here: dict[int, Any] = field(default_factory=dict)
    following: int = 0

    def came(self, at: int, result: Any) -> None:
        if at not in self.missing:
            raise TruerankError(f"chunk {at + 1:,} of {self.n:,} came back twice; nothing was added up.")
        if not self.of.write(at, result) or at == self.following:
            self.here[at] = result
        self.missing.discard(at)

    def ready(self) -> Iterator[tuple[int, Any]]:
        """The next ones, as far as none is missing."""
        while self.following < self.n and self.following not in self.missing:
            at = self.following
            known = (self.here.pop(at),) if at in self.here else self.of.read(at)
            if known is None:
                raise TruerankError(f"{self.of.path(at)}: is not as it was written a moment ago; look at the disk.")
            self.following += 1
            yield at, known[0]


@dataclass(frozen=True, slots=True)
class SomeChunks(Generic[Chunk]):
    """Those chunks that are left to be worked on."""

    chunks: Sendable[Chunk]
    numbers: Sequence[int]

    @property
    def held(self) -> bool:
        return self.chunks.held

    @property
    def n_chunks(self) -> int:
        return len(self.numbers)

    @property
    def n_rows(self) -> Ints:
        return self.chunks.n_rows[list(self.numbers)]

    def chunk(self, at: int) -> Chunk:
        return self.chunks.chunk(self.numbers[at])

    def reader(self) -> Callable[[Any], Chunk]:
        return self.chunks.reader()

    def part(self, at: int, *, same_disk: bool) -> Any:
        return self.chunks.part(self.numbers[at], same_disk=same_disk)


@contextmanager
def keeping(engine: Engine, folder: Path, asked: Mapping[str, Any], *, what: str) -> Iterator[Keeping]:
    """The workers of an engine, which keep their results in a folder that belongs to one question and its inputs."""
    with working(folder) as place:
        blocks = Blocks(keep_question(place / NOTE, asked, what=what, advice=KEPT), KEPT)
        with engine.open() as workers:
            yield Keeping(workers, place, blocks)
