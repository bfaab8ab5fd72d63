"""Peak memory, seconds and processor seconds of one command: `python -m benchmarks.spent WORD ...` prints them as JSON.

A process counts as its own peak what the one that started it had held, so this one, which holds little, stands between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

GIBIBYTE = 2**30


def spent(words: list[str]) -> dict[str, Any]:
    """What a command took, from a process of its own; its standard output is left out."""
    asked = [sys.executable, "-m", "benchmarks.spent", *words]
    found = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{' '.join(words)} failed")
    return dict(json.loads(found.stdout))


def _main(words: list[str]) -> int:
    begun = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(words[0], words, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    found = {
        "peak_gb": round(usage.ru_maxrss * 1024 / GIBIBYTE, 3),
        "seconds": round(time.monotonic() - begun, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
    }
    print(json.dumps(found))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
