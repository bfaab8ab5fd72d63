"""Whether work can fit and finish, known before it begins.

Estimates are what the work needs at least: what is refused cannot be done here, and what can be is not refused.
"""

from __future__ import annotations

import math
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from truerank.core.errors import InputError

DAY = 86_400.0
LONGEST = 30 * DAY  # of work that somebody waits for
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
NAMES = "memory.max", "memory.current", "inactive_file"  # of what groups say
OLD_NAMES = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"  # in their first version
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def check_size(what: str, *, instead: str, memory: float = 0.0, seconds: float = 0.0) -> None:
    """Refuse work that needs more memory than there is, or more time than anybody waits.

    >>> check_size("a matrix of 10**18 items", memory=8e18, instead="Take fewer.")
    Traceback (most recent call last):
    truerank.core.errors.InputError: a matrix of 10**18 items needs at least 8 EB of memory, and ... Take fewer.
    """
    available = available_memory() if memory else math.inf
    if memory > available:
        raise InputError(
            f"{what} needs at least {bytes_text(memory)} of memory, and {bytes_text(available)} are available. "
            f"{instead}"
        )
    if seconds > LONGEST:
        raise InputError(
            f"{what} takes {duration_text(seconds)} or more; expected no more than {duration_text(LONGEST)}. {instead}"
        )


def bytes_text(n: float) -> str:
    """
    >>> bytes_text(999), bytes_text(3.21e9), bytes_text(7e25)
    ('999 bytes', '3.2 GB', '70,000,000 EB')
    """
    index = min(int(math.log10(max(n, 1.0)) / 3), len(UNITS) - 1)
    scaled = n / 1000**index
    return f"{scaled:,.0f} {UNITS[index]}" if index == 0 or scaled >= 10 else f"{scaled:.2g} {UNITS[index]}"


def duration_text(seconds: float) -> str:
    """
    >>> duration_text(90), duration_text(7200), duration_text(30 * DAY), duration_text(1e12)
    ('2 minutes', '2 hours', '30 days', '31,688 years')
    """
    for name, length, most in (("minutes", 60.0, 3600.0), ("hours", 3600.0, 2 * DAY), ("days", DAY, 730 * DAY)):
        if seconds < most:
            return f"{max(seconds / length, 1):,.0f} {name}"
    return f"{seconds / (365.25 * DAY):,.0f} years"


def out_of_memory(error: MemoryError) -> str:
    """What to say where memory ended although nothing was refused.

    >>> out_of_memory(MemoryError("Unable to allocate 7 GB"))
    'there is not enough memory (Unable to allocate 7 GB). Take less data at once, or a machine with more memory.'
    """
    what = str(error).strip().rstrip(".").split("\n")[0]
    where = f" ({what})" if what else ""
    return f"there is not enough memory{where}. Take less data at once, or a machine with more memory."


def available_memory() -> float:
    """Bytes that this process can still take: of the machine, of its container, of its own limit; the least of them.

    Looked up at most once a second: a call with a thousand models asks for each of them.
    """
    return _available(PROC, CGROUPS, int(time.monotonic()))


@lru_cache(maxsize=1)
def _available(proc: Path, groups: Path, second: int) -> float:
    return min((*_of_machine(), *_of_container(), *_of_process()), default=math.inf)


def _of_machine() -> list[float]:
    """What the machine says is available, swap included; where it does not say, all that it has."""
    with suppress(OSError, ValueError):
        known = _numbers(PROC / "meminfo")
        if "MemAvailable" in known:
            return [1024.0 * (known["MemAvailable"] + known.get("SwapFree", 0.0))]
    with suppress(OSError, ValueError, AttributeError):
        return [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    return []


def _of_container() -> list[float]:
    """What the groups of this process, one within another, leave of their limits."""
    left: list[float] = []
    with suppress(OSError, ValueError):
        for line in (PROC / "self" / "cgroup").read_text().splitlines():
            _, kinds, place = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            own = (CGROUPS / "memory" if kinds else CGROUPS) / place.lstrip("/")
            names = OLD_NAMES if kinds else NAMES
            left += [result for folder in (own, *own.parents) if (result := _left_of(folder, *names)) is not None]
    return left


def _left_of(folder: Path, limit: str, usage: str, reclaimed: str) -> float | None:
    """What one group leaves; its cache of files that nobody uses can be taken back."""
    with suppress(OSError, ValueError):
        most = float((folder / limit).read_text())  # "max" is no number: no limit
        used = float((folder / usage).read_text())
        return max(most - used + _numbers(folder / "memory.stat").get(reclaimed, 0.0), 0.0)
    return None


def _numbers(path: Path) -> dict[str, float]:
    """The numbers in lines that begin with their names."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {name.rstrip(":"): float(number) for name, number, *_ in lines}


def _of_process() -> list[float]:
    """What `ulimit -v` leaves."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            used = int((PROC / "self" / "statm").read_text().split()[0]) * resource.getpagesize()
            return [max(float(most - used), 0.0)]
    return []
