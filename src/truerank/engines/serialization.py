"""Values on their way between the processes of one run.

A parcel is the pickle of a value, made by this run and read by this run, never by another one and never from a file of
the user's. Where workers see this machine's files it lies in a folder that only this user can open, and an engine's own
channels carry no more than its name; else it travels as bytes. What all chunks share is unpacked once in each process.
"""

from __future__ import annotations

import io
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from truerank.core.errors import TruerankError
from truerank.core.record import record
from truerank.core.threads import one_blas_thread
from truerank.engines.engine import Chunked

PROTOCOL = 5  # arrays are written without a copy


@record
class Parcel:
    """A packed value, known by a name that no other has: its bytes, or the file that holds them."""

    name: str
    content: bytes | Path

    def open(self) -> Any:
        if isinstance(self.content, bytes):
            return pickle.loads(self.content)
        with self.content.open("rb") as file:
            return pickle.load(file)

    def remove(self) -> None:
        if isinstance(self.content, Path):
            self.content.unlink(missing_ok=True)


@record
class Packing:
    """How values are packed: into files of a folder that both sides see, or as bytes.

    `dump` writes a value; functions that no module names need that of an engine.

    >>> Packing().pack([1, 2]).open()
    [1, 2]
    """

    folder: Path | None = None
    dump: Callable[..., None] = pickle.dump

    def pack(self, value: Any) -> Parcel:
        name = uuid.uuid4().hex
        if self.folder is None:
            stream = io.BytesIO()
            self.dump(value, stream, protocol=PROTOCOL)
            return Parcel(name, stream.getvalue())
        path = self.folder / name
        with path.open("wb") as file:
            self.dump(value, file, protocol=PROTOCOL)
        return Parcel(name, path)

    def send(self, chunks: Chunked[Any], number: int, carry: Callable[[Parcel, str], Parcel]) -> Any:
        """The result of a chunk: `carry` brings its parcel to a worker, and back what `carry_out` makes of it there.

        What was wrong with the data is raised here as it was there.
        """
        part = self.pack(chunks.part(number, same_disk=self.folder is not None))
        parcel = carry(part, f"chunk {number + 1:,} of {chunks.n_chunks:,}")
        result = parcel.open()
        for done in (part, parcel):
            done.remove()
        if isinstance(result, TruerankError):
            raise result
        return result


# ----------------------------------------------------------------------------------------------------------- on workers


SHARED: dict[str, Any] = {}  # what this process has unpacked of this pass and of the one before, by name
LOCK = Lock()


def carry_out(shared: Parcel, part: Parcel, folder: Path | None) -> Parcel:
    """On a worker: read a chunk, work on it with BLAS on one thread, and pack the result."""
    try:
        with LOCK:
            if shared.name not in SHARED:
                while len(SHARED) > 1:
                    SHARED.pop(next(iter(SHARED)))
                SHARED[shared.name] = shared.open()
            work, read = SHARED[shared.name]
        try:
            with one_blas_thread():
                result = work(read(part.open()))
        except TruerankError as error:
            result = error
        return Packing(folder).pack(result)
    except MemoryError:
        pass
    # told anew, when all that the work held is let go: an engine needs memory, too, to say that there is none
    raise MemoryError("no memory left")
