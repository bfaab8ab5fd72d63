"""How long it takes until there is an answer: every help page, and a small `evaluate`, beside a bare interpreter."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import polars as pl

from truerank.cli.commands import cli

USERS, ITEMS, JUDGED = 200, 100, 10
SMALL = {
    "evaluate, random": "evaluate labels.csv --scores a=a.csv --scores b=b.csv --exposure random",
    "evaluate, holdout": "evaluate labels.csv --scores a=a.csv --scores b=b.csv --exposure holdout",
}
BESIDE = {"bare interpreter": ["-c", "pass"], "import numpy, polars": ["-c", "import numpy, polars"]}
HELP_MS, SMALL_MS = 150, 600


def run(*, rounds: int = 7) -> dict[str, Any]:
    """Medians of interleaved rounds in milliseconds, of processor time and of the clock.

    The first round is not counted: it compiles modules to bytecode, as an installation does.
    """
    calls = dict(BESIDE) | {name: ["-m", "truerank", *words.split()] for name, words in SMALL.items()}
    calls |= {" ".join(("truerank", *path, "--help")): ["-m", "truerank", *path, "--help"] for path in commands()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    with TemporaryDirectory() as folder:
        write_small(Path(folder))
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for at in range(rounds + 1):
            for name, words in calls.items():
                measured = once([sys.executable, *words], folder, environment)
                found[name] += [measured] if at else []
    processor = {name: _median(each[0] for each in measured) for name, measured in found.items()}
    clock = {name: _median(each[1] for each in measured) for name, measured in found.items()}
    slowest = max((name for name in calls if name.endswith("--help")), key=processor.__getitem__)
    return {
        "workload": "start",
        "rounds": rounds,
        "processor_ms": processor,
        "clock_ms": clock,
        "slowest help": slowest,
        "goals": {
            f"every --help within {HELP_MS} ms of processor time": processor[slowest] <= HELP_MS,
            f"a small evaluate within {SMALL_MS} ms of processor time": max(processor[name] for name in SMALL)
            <= SMALL_MS,
        },
    }


def commands(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, that of the whole first."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, (*path, name))


def once(words: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    """Processor time and clock of one process, in milliseconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, cwd=folder, env=environment)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 * used, 1e3 * (end - start)


def write_small(folder: Path) -> None:
    """Some judged pairs, and all scores of two models, as CSV."""
    rng = np.random.default_rng(1)
    judged = np.concatenate([rng.choice(ITEMS, JUDGED, replace=False) for _ in range(USERS)])
    user, label = np.repeat(np.arange(USERS), JUDGED), (rng.random(len(judged)) < 0.3).astype(int)
    pl.DataFrame({"user": user, "item": judged, "label": label}).write_csv(folder / "labels.csv")
    every = {"user": np.repeat(np.arange(USERS), ITEMS), "item": np.tile(np.arange(ITEMS), USERS)}
    for name in "ab":
        pl.DataFrame({**every, "score": rng.random(USERS * ITEMS)}).write_csv(folder / f"{name}.csv")


def section(found: dict[str, Any]) -> list[str]:
    """Its part of docs/performance.md."""
    processor = found["processor_ms"]
    pages = [name for name in processor if name.endswith("--help")]
    others = [name for name in processor if name not in pages]
    row = "| {} | {:.0f} |".format
    return [
        "## Start",
        "",
        f"A small `evaluate` (two models, {USERS} users, {ITEMS} items, CSV files) and every help page, medians of {found['rounds']} rounds; modules are "
        f"compiled to bytecode, as an installation does. Of the {len(pages)} help pages `{found['slowest help']}` takes longest.",
        "",
        "| | processor, ms |",
        "|---|---|",
        *(row(name, processor[name]) for name in (*others, found["slowest help"])),
        "",
        f"<details><summary>All {len(pages)} help pages</summary>",
        "",
        "| | processor, ms |",
        "|---|---|",
        *(row(name, processor[name]) for name in pages),
        "",
        "</details>",
        "",
    ]


def _median(values: Iterator[float]) -> float:
    return round(statistics.median(values), 1)
