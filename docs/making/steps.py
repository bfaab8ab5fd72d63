"""What a page tells to run: its commands and its Python, in order, with the output that it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
SHOWN = r"(?:\n+(?:^```text\n(?P<text>.*?)^```$|^> (?P<quote>[^\n]*)$))?"  # a sentence is quoted
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$" + SHOWN, flags=re.M | re.S)


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or a block of Python; `shows` is the output that the page has below it, if it has one.

    >>> [step.words for step in steps("```console\\n$ truerank demo\\n$ truerank advise \\\\\\n    log.csv\\n```\\n")]
    [('-m', 'truerank', 'demo'), ('-m', 'truerank', 'advise', 'log.csv')]
    """

    text: str
    words: tuple[str, ...]
    shows: str | None = None

    def run(self, place: Path) -> subprocess.CompletedProcess[str]:
        """In a folder, as a reader would; Python that reads on needs the files of what stands before."""
        return subprocess.run(self.command(), cwd=place, capture_output=True, text=True, check=False)

    def command(self) -> list[str]:
        return [sys.executable, *self.words]


def steps(page: str) -> list[Step]:
    """Everything that a page runs, from its top."""
    return [step for block in BLOCK.finditer(page) for step in _steps(block[1], block[2], shown_by(block))]


def shown_by(block: re.Match[str]) -> str | None:
    """The output that a page has below a block, if it has one."""
    return block["text"] if block["quote"] is None else f"{block['quote']}\n"


def _steps(kind: str, body: str, shown: str | None) -> Iterator[Step]:
    if kind == "python":
        yield Step(body, ("-c", body), shown)
        return
    whole = re.sub(r"\\\n\s*", "", body)
    lines = re.findall(r"^\$ (truerank .+)$", whole, flags=re.M)
    for line in lines:
        yield Step(line, ("-m", *shlex.split(line)), shown if line == lines[-1] else None)


def links(page: str) -> list[str]:
    """The files that a page links to or shows, as it names them."""
    return [each for each in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page) if not each.startswith("http")]
