"""Commands as processes in surroundings that are not kind, and what must hold wherever they run."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commands import EVALUATE, words

import truerank

SOURCE = Path(truerank.__file__).parent.parent
TRUERANK = (sys.executable, "-P", "-m", "truerank")
NEVER = re.compile(r"Traceback|internal error|Exception ignored|panicked|memory allocation")
SECONDS = 3600  # a loaded machine may take a hundred times as long


@dataclass(frozen=True, slots=True)
class Command:
    """A call that writes `made`, or without `out` shows the same on standard output."""

    words: tuple[str, ...]
    made: str

    def call(self, *, shown: bool = False) -> tuple[str, ...]:
        return self.words if shown else (*self.words, "--out", self.made)


COMMANDS = {
    name: Command(words(text), made)
    for name, text, made in (
        ("evaluate", EVALUATE.removesuffix(" --quiet"), "made.json"),
        ("describe", "advise labels.parquet", "made.json"),
        ("intervene", "intervene labels.parquet --strategy full", "made.csv"),
        ("train", "train popularity train.parquet", "made.npz"),
        ("plan", "plan exposure --difference 0.1 --metric Precision@10 --n-items 100 --value 0.2", "made.json"),
    )
}
QUICK = ("evaluate", "describe", "intervene", "train")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a process runs: what starts it, which variables it has (None: not set), limits, redirections of bash."""

    name: str
    before: tuple[str, ...] = ()
    variables: Mapping[str, str | None] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    redirections: str = ""
    shown: bool = False  # results go to standard output
    codes: frozenset[int] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it left."""

    code: int
    out: bytes
    err: str
    made: Mapping[str, bytes]


PLAIN = Surroundings("plain")


def run(command: Command, folder: Path, *, within: Surroundings = PLAIN) -> Ended:
    """A command in a folder, started by bash as users start it."""
    script = f'"$@" {within.redirections}' if "|" in within.redirections else f'exec "$@" {within.redirections}'
    words = [*within.before, *TRUERANK, *command.call(shown=within.shown)]
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script, "bash", *words],
        cwd=folder, env=environment(within.variables), capture_output=True, check=False, timeout=SECONDS,
        stdin=subprocess.DEVNULL, preexec_fn=lambda: _limit(within.limits),
    )  # fmt: skip
    return Ended(ended.returncode, ended.stdout, ended.stderr.decode(errors="replace"), made(folder / command.made))


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The variables of this process with changes, for a child that runs the same code."""
    kept = {name: value for name, value in os.environ.items() if name != "TRUERANK_DEBUG"}
    given: dict[str, str | None] = {**kept, "PYTHONPATH": str(SOURCE), **changes}
    return {name: value for name, value in given.items() if value is not None}


def made(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path.parent)): each.read_bytes() for each in files}


def judge(found: Ended, expected: Ended, *, within: Surroundings) -> None:
    """A promised exit code; one sentence where it refuses; where it is done, the bytes that a plain run gives."""
    info = f"{within.name}: exit code {found.code}, said {found.err[-1500:]!r}"
    assert found.code in within.codes, info
    assert not NEVER.search(found.err), info
    if found.code == 2 and "2>" not in within.redirections:
        assert [line.startswith("truerank: ") for line in found.err.splitlines()].count(True) == 1, info
    if found.code == 0 and not within.shown:
        assert found.made == expected.made, info


def copy(inputs: Path, folder: Path) -> Path:
    """The inputs in a folder that everybody may write to."""
    shutil.copytree(inputs, folder)
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o777 if each.is_dir() else 0o666)
    for each in folder.parents:
        if os.access(each, os.W_OK) and each.stat().st_uid == os.getuid() and each.stat().st_mode & 0o077 == 0:
            each.chmod(each.stat().st_mode | 0o011)  # pytest closes its folders to others
    return folder


def as_user(number: int) -> tuple[str, ...]:
    """What starts a process as another user, who owns nothing; () where this one is no root and is that already.

    It may read what it could not, as the interpreter may lie in a folder of root's; it may write nothing more.
    """
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return ()
    only = "-all,+dac_read_search"
    user = (f"--reuid={number}", f"--regid={number}", "--clear-groups")
    return ("setpriv", *user, f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}")


def _limit(limits: Mapping[int, int]) -> None:
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))
