"""Commands in which the n-th write, rename, open or fsync below a folder fails, or kills the process.

A server loads the library of `failing_calls.c` before the C library, imports truerank once, and forks for every case:
a case costs a fraction of a second. Run as a script this module is that server.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

KINDS = ("write", "rename", "open", "fsync")
FAILURES = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR, "kill": -1}
SOURCE = Path(__file__).with_name("failing_calls.c")


@dataclass(frozen=True, slots=True)
class Case:
    """A call of truerank in a folder, and what goes wrong there: nothing where `nth` is 0."""

    words: tuple[str, ...]
    folder: str
    kind: str = "write"
    nth: int = 0
    failure: str = "EIO"
    record: str = ""
    after: float | None = None  # seconds after which the process is killed, wherever it is


@dataclass(frozen=True, slots=True)
class Ended:
    """How a case ended: the exit code (negative for a signal), what was said, how many calls of each kind came."""

    code: int
    out: str
    err: str
    counts: dict[str, int]
    seconds: float


class Server:
    """A process that runs cases one after the other."""

    def __init__(self, library: Path) -> None:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__)), str(library)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, case: Case) -> Ended:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(asdict(case)), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, "the server has ended"
        return Ended(**json.loads(answer))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()


def library(folder: Path) -> Path:
    """The compiled library, or a skip that says why there is none."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        pytest.skip("failing calls need Linux and a C compiler")
    made = folder / "failing_calls.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE), "-ldl"], check=True)
    return made


# --------------------------------------------------------------------------------------------------------- the server


def serve(shim: Any) -> None:
    for module in ("truerank.cli.study", "truerank.cli.train", "truerank.cli.evaluate", "truerank.cli.data",
                   "truerank.reliability.run",
                   "truerank.simulation.feed_truth", "truerank.simulation.dataset", "truerank.evaluation.labels",
                   "truerank.evaluation.impressions", "truerank.report.study",
                   "truerank.estimators.fast", "truerank.reliability.kernels",
                   "truerank.report.document", "truerank.models"):  # fmt: skip
        __import__(module)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(_forked(shim, Case(**json.loads(line))))) + "\n")
        sys.stdout.flush()


def _forked(shim: Any, case: Case) -> Ended:
    with tempfile.TemporaryDirectory() as place:
        out, err, counts = (Path(place) / name for name in ("out", "err", "counts"))
        child = os.fork()
        if child == 0:
            _run(shim, case, out, err, counts)
        start = time.monotonic()
        if case.after is not None:
            ended = os.WEXITED | os.WNOHANG | os.WNOWAIT  # looked at, not waited for: the number is still its own
            while time.monotonic() - start < case.after and os.waitid(os.P_PID, child, ended) is None:
                time.sleep(0.002)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        took = time.monotonic() - start
        code = os.waitstatus_to_exitcode(status)
        seen = json.loads(counts.read_text()) if counts.exists() else {}
        printed, said = (path.read_text() if path.exists() else "" for path in (out, err))
        return Ended(code, printed, said, seen, took)


def _run(shim: Any, case: Case, out: Path, err: Path, counts: Path) -> None:
    """In the child: the call as the command line makes it, with its own standard streams."""
    from truerank.cli import main

    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(case.folder)
    sys.argv = ["truerank", *case.words]
    signal.alarm(900)  # a loaded machine may take ten times as long
    kind = KINDS.index(case.kind)
    lasting = int(case.failure == "ENOSPC")  # a full disk stays full
    shim.arm(case.folder.encode(), kind, case.nth, FAILURES[case.failure], lasting, case.record.encode())
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException as error:  # whatever came out of the command is what is judged
        sys.stderr.write(f"Traceback: {error!r}\n")
        code = 1
    seen = {name: shim.counted(at) for at, name in enumerate(KINDS)}
    shim.arm(b"", -1, 0, 0, 0, b"")
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    counts.write_text(json.dumps(seen))
    os._exit(code)


if __name__ == "__main__":
    serve(ctypes.CDLL(sys.argv[1]))
