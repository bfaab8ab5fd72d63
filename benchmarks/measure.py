"""Interleaved rounds and medians of ratios."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = Path(os.environ.get("TRUERANK_BENCH", ".bench"))


class Contender:
    """A process that runs its work once for each call."""

    def __init__(self, name: str, n_users: int) -> None:
        python = sys.executable if name.startswith("truerank") else str(ENVIRONMENTS / name / "bin" / "python")
        if not name.startswith("truerank") and not Path(python).exists():
            raise SystemExit(f"{python} is missing: run make bench-setup first")
        self.n_users = n_users
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), name, str(n_users)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if not self._line():
            raise SystemExit(f"{name} did not start")

    def run(self) -> dict[str, float]:
        """Seconds of wall and processor time per user."""
        if self.process.stdin is None:
            raise SystemExit("no way to reach the contender")
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        found: dict[str, float] = json.loads(self._line())
        return {kind: seconds / self.n_users for kind, seconds in found.items()}

    def close(self) -> None:
        self.process.communicate()

    def _line(self) -> str:
        return "" if self.process.stdout is None else self.process.stdout.readline()


def ratios(reference: Callable[[], dict[str, float]], other: Callable[[], dict[str, float]], rounds: int) -> Any:
    """Medians over rounds of other / reference, the two run in turn, and of their own times in microseconds."""
    pairs = [(reference(), other()) for _ in range(rounds)]
    return {
        **{
            f"ratio_{kind}": round(statistics.median(b[kind] / a[kind] for a, b in pairs), 3)
            for kind in ("wall", "cpu")
        },
        "reference_us": round(1e6 * statistics.median(a["wall"] for a, _ in pairs), 3),
        "us": round(1e6 * statistics.median(b["wall"] for _, b in pairs), 3),
        "rounds": rounds,
    }
