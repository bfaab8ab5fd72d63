"""Values on their way between the processes of one run.

A parcel is the pickle of a value, made by this run and read by this run, never by another one and never from a file of
the user's. Where workers see this machine's files it lies in a folder that only this user can open, and an engine's own
channels carry no more than its name; else it travels as bytes. What all chunks share is unpacked once in each process.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import uuid
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Any, Protocol

from truerank.core.errors import TruerankError
from truerank.core.threads import one_blas_thread

PROTOCOL = 5  # arrays are written without a copy


class Pickling(Protocol):
    """How values are written; functions that no module names need the pickler of an engine."""

    def __call__(self, value: Any, file: IO[bytes], /, protocol: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Parcel:
    """A packed value: its bytes, or the file that holds them; `digest` tells shared values apart."""

    content: bytes | Path
    digest: str = ""  # of what a process keeps unpacked

    def open(self) -> Any:
        if isinstance(self.content, bytes):
            return pickle.loads(self.content)
        with self.content.open("rb") as file:
            return pickle.load(file)

    def remove(self) -> None:
        if isinstance(self.content, Path):
            self.content.unlink(missing_ok=True)


def pack(value: Any, folder: Path | None, *, dump: Pickling = pickle.dump) -> Parcel:
    """A value as a file of a folder that both sides see, or as bytes.

    >>> pack([1, 2], None).open()
    [1, 2]
    """
    if folder is None:
        stream = io.BytesIO()
        dump(value, stream, protocol=PROTOCOL)
        return Parcel(stream.getvalue())
    path = folder / uuid.uuid4().hex
    with path.open("wb") as file:
        dump(value, file, protocol=PROTOCOL)
    return Parcel(path)


def pack_shared(value: Any, folder: Path | None, *, dump: Pickling = pickle.dump) -> Parcel:
    """What all chunks share: unpacked once in every process, which knows it by a digest of its bytes."""
    parcel = pack(value, folder, dump=dump)
    content = parcel.content if isinstance(parcel.content, bytes) else parcel.content.name.encode()
    return Parcel(parcel.content, hashlib.blake2b(content, digest_size=16).hexdigest())


# ----------------------------------------------------------------------------------------------------------- on workers


SHARED: dict[str, Any] = {}  # what this process has unpacked of this pass and of the one before, by digest
LOCK = Lock()


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that is the user's to know: what a worker found wrong with the data, in its own words."""

    kind: type[TruerankError]
    text: str


def carry_out(shared: Parcel, part: Parcel, folder: Path | None) -> Parcel:
    """On a worker: read a chunk, work on it with BLAS on one thread, and pack the result."""
    try:
        with LOCK:
            if shared.digest not in SHARED:
                while len(SHARED) > 1:
                    SHARED.pop(next(iter(SHARED)))
                SHARED[shared.digest] = shared.open()
            work, read = SHARED[shared.digest]
        try:
            with one_blas_thread():
                result = work(read(part.open()))
        except TruerankError as error:
            result = Failure(type(error), error.marked)
        return pack(result, folder)
    except MemoryError:
        pass
    # told anew, when all that the work held is let go: an engine needs memory, too, to say that there is none
    raise MemoryError("no memory left")


def opened(parcel: Parcel) -> Any:
    """The result in a parcel, which is removed; what was wrong with the data is raised here."""
    result = parcel.open()
    parcel.remove()
    if isinstance(result, Failure):
        raise result.kind(result.text)
    return result
