"""What a page runs: its commands and its Python, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
OUTPUT = r"(?:\n+(?:^```text\n.*?^```$|^> [^\n]*$))?"  # below a block, if it prints something
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$" + OUTPUT, flags=re.M | re.S)


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or a block of Python.

    >>> [step.words for step in steps("```console\\n$ truerank demo\\n$ truerank advise \\\\\\n    log.csv\\n```\\n")]
    [('-m', 'truerank', 'demo'), ('-m', 'truerank', 'advise', 'log.csv')]
    """

    text: str
    words: tuple[str, ...]

    def run(self, place: Path) -> subprocess.CompletedProcess[str]:
        """In a folder, as a reader would who has truerank alone."""
        env = os.environ | {"TRUERANK_PLUGINS": "none"}
        return subprocess.run(self.command(), cwd=place, env=env, capture_output=True, text=True, check=False)

    def command(self) -> list[str]:
        return [sys.executable, *self.words]


def steps(page: str) -> list[Step]:
    """Everything that a page runs, from its top."""
    return [step for block in BLOCK.finditer(page) for step in steps_of(block[1], block[2])]


def steps_of(kind: str, body: str) -> list[Step]:
    """What one block runs."""
    if kind == "python":
        return [Step(body, ("-c", body))]
    commands = re.findall(r"^\$ (truerank .+)$", re.sub(r"\\\n\s*", "", body), flags=re.M)
    return [Step(command, ("-m", *shlex.split(command))) for command in commands]


def links(page: str) -> list[str]:
    """The files that a page links to or shows, as it names them."""
    return [each for each in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page) if not each.startswith("http")]
