"""How long `truerank --help` takes, against a bare interpreter in the same rounds."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

COMMANDS = {
    "bare": ["-c", "pass"],
    "help": ["-m", "truerank", "--help"],
    "import": ["-c", "import truerank"],
    "import numpy": ["-c", "import numpy"],
    "evaluate help": ["-m", "truerank", "evaluate", "--help"],
}


def run(*, rounds: int = 11) -> dict[str, Any]:
    """Medians of interleaved rounds, in milliseconds."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, words in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - start)
    found: dict[str, Any] = {f"{name} ms": round(1e3 * statistics.median(each), 1) for name, each in seconds.items()}
    return {"workload": "start", **found, "goals": {"truerank --help <= 150 ms": found["help ms"] <= 150}}
