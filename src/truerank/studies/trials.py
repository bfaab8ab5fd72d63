"""The trials of a search in a file: a line for each, on disk before the next begins; no change goes unnoticed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from truerank.core.errors import InputError
from truerank.data.whole import sync, whole_file, writing

KEPT = "What was tried before is kept: make room and start the same search again to go on."


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings that were tried, with their value; None and the reason where they could not be fitted."""

    settings: Mapping[str, Any]
    value: float | None
    reason: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class TrialFile:
    """Each line is a checksum and a trial; the checksum is of the question, of all lines before, and of the trial."""

    path: Path
    question: bytes

    def read(self) -> tuple[list[Trial], tuple[str, ...]]:
        """All trials, and what had to be mended: a last line that was not written to its end is dropped.

        A line that was changed, moved or taken out is refused, as are the trials of another question.
        """
        try:
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror}). Choose another folder.") from None
        found: list[Trial] = []
        before = self._start()
        for at, line in enumerate(lines):
            checksum, _, content = line.rstrip(b"\n").partition(b" ")
            before = _checksum(before, content)
            if checksum.decode(errors="replace") == before and line.endswith(b"\n"):
                found.append(msgspec.json.decode(content, type=Trial))
            elif at == len(lines) - 1:
                with whole_file(self.path, advice=KEPT) as temporary:
                    temporary.write_bytes(b"".join(lines[:-1]))
                return found, (
                    f"{self.path}: the last line was damaged and has been dropped; its trial is done again.",
                )
            else:
                which = f"line {at + 1} of {len(lines)}"
                raise InputError(f"{self.path}: {which} is damaged. Restore the file, or choose another folder.")
        return found, ()

    def add(self, trial: Trial) -> None:
        """Write a trial behind the others, and have it on disk; where that fails, the file is as it was."""
        content = msgspec.json.encode(trial)
        known = self.path.read_bytes() if self.path.exists() else b""
        last = known.splitlines()[-1].partition(b" ")[0].decode() if known else self._start()
        with writing(self.path, advice=KEPT):
            try:
                with self.path.open("ab") as stream:
                    stream.write(_checksum(last, content).encode() + b" " + content + b"\n")
                sync(self.path)
                if not known:
                    sync(self.path.parent)
            except OSError:
                if self.path.exists():
                    os.truncate(self.path, len(known))
                raise

    def _start(self) -> str:
        return hashlib.sha256(self.question).hexdigest()


def _checksum(before: str, content: bytes) -> str:
    return hashlib.sha256(before.encode() + content).hexdigest()
