"""What to take from the reliability study, in words, with its own figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reliability_page import Run


def lessons(runs: Sequence[Run]) -> Iterator[str]:
    yield "## What to take from it"
    yield ""
