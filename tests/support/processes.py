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

import numpy as np
import polars as pl

import truerank

SOURCE = Path(truerank.__file__).parent.parent
TRUERANK = (sys.executable, "-P", "-m", "truerank")
NEVER = re.compile(r"Traceback|internal error|Exception ignored|panicked|memory allocation")
SECONDS = 3600  # a loaded machine may take a hundred times as long


@dataclass(frozen=True, slots=True)
class Command:
    """A call that writes `made`, or without `out` shows the same on standard output; which input it reads first."""

    name: str
    words: tuple[str, ...]
    out: tuple[str, ...]
    made: str
    shows: bool = True  # its results, and not only where they are
    heavy: bool = False  # takes half a minute: tried in the container alone

    def call(self, *, shown: bool = False) -> tuple[str, ...]:
        return self.words if shown else (*self.words, *self.out)


def _command(name: str, words: str, made: str, *, shows: bool = True, heavy: bool = False) -> Command:
    return Command(name, tuple(words.split()), ("--out", made.split("/", maxsplit=1)[0]), made, shows, heavy)


COMMANDS = {
    command.name: command
    for command in (
        _command(
            "evaluate",
            "evaluate w/random.parquet --positive >3 --exposure random --scores pop=pop.npz --scores b=rnd.npz "
            "--metric Recall@5 --threads 2",
            "made.json",
        ),
        _command(
            "offpolicy",
            "offpolicy f/log.parquet --target new=f/new.parquet --position exp:0.9 --clip 8,inf",
            "made.json",
        ),
        _command("simulate", "simulate world --n-users 40 --n-items 120", "made", shows=False),
        _command("feed", "simulate feed --n-sessions 40 --n-items 40 --days 2", "made", shows=False),
        _command("split", "split w/train.parquet --by random --folds 2", "made", shows=False),
        _command("figures", "study figures s", "made", shows=False),
        _command("train", "train popularity w/train.parquet --positive >3", "made.npz", shows=False),
        _command(
            "study",
            "study reliability w/truth.parquet --positive >3 --scores pop=pop.npz --scores b=rnd.npz --loggers uniform "
            "--sparsities 0.5 --samplers Full,Random --sizes 5 --metric Recall@5 --threads 2",
            "made",
            shows=False,
        ),
        _command("describe", "advise w/random.parquet --positive >3", "made.json"),
        _command("advise", "advise w/random.parquet --positive >3 --study s --n-items 120", "made.json"),
        _command("plan", "plan exposure --difference 0.1 --metric Precision@10 --n-items 100 --value 0.2", "made.json"),
        _command("plan sessions", "plan sessions --difference 0.1 --mean-reward 0.2 --effective 0.4", "made.json"),
        _command(
            "allocate",
            "plan exposure --allocate --scores pop=pop.npz --scores b=rnd.npz --exclude w/train.parquet --per-user 5 "
            "--metric Precision@10",
            "made",
            shows=False,
        ),
        _command(
            "watch",
            "watch w/timed.parquet --positive >3 --scores pop=pop.npz --scores b=rnd.npz --metric Precision@10 "
            "--planned 40 --require pop>b",
            "made.json",
        ),
        _command("report", "report s", "made.html", shows=False, heavy=True),
        _command("intervene", "intervene w/train.parquet --strategy full", "made.csv", shows=False),
        _command("demo", "demo", "made", shows=False),
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
        assert found.made.keys() == expected.made.keys(), info
        differing = [name for name, content in found.made.items() if content != expected.made[name]]
        assert not [name for name in differing if not name.endswith(TIMED)], (info, differing)


TIMED = ("study.json",)  # holds when it was made


def prepare(folder: Path, *, study: bool) -> None:
    """The inputs of all commands: every rating of a small world, part of them, two models, a feed, a finished study."""
    chance = np.random.default_rng(0)
    users, items = np.repeat(np.arange(40), 120), np.tile(np.arange(120), 40)
    rating = chance.integers(1, 6, len(users))
    truth = pl.DataFrame({"user": users, "item": items, "rating": rating})
    (folder / "w").mkdir()
    for name in ("offline", "online"):
        (folder / "w" / f"{name}.csv").write_text("day,value\n1,0.1\n2,0.3\n3,0.2\n4,0.4\n")
    truth.write_parquet(folder / "w" / "truth.parquet")
    truth.with_columns(time=pl.col("user")).write_parquet(folder / "w" / "timed.parquet")
    for name, share in (("train", 0.3), ("random", 0.2)):
        truth.filter(chance.random(len(truth)) < share).write_parquet(folder / "w" / f"{name}.parquet")
    for name, skill in (("pop", 0.5), ("rnd", 0.0)):
        scores = (skill * rating.reshape(40, 120) + chance.random((40, 120))).astype(np.float32)
        np.savez(folder / f"{name}.npz", scores=scores, users=np.arange(40), items=np.arange(120))
    (folder / "f").mkdir()
    session, position = np.repeat(np.arange(200), 5), np.tile(np.arange(1, 6), 200)
    feed = {"session": session, "user": session // 4, "item": (session * 7 + position) % 50}
    reward = chance.integers(0, 2, len(session))
    pl.DataFrame({**feed, "position": position, "reward": reward}).write_parquet(folder / "f" / "log.parquet")
    pl.DataFrame({**feed, "rank": 6 - position}).drop("user").write_parquet(folder / "f" / "new.parquet")
    if study:
        ended = run(COMMANDS["study"], folder)
        assert ended.code == 0, ended.err
        (folder / "made").rename(folder / "s")


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
