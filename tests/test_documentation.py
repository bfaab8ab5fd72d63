"""Files of the docs that are made from the package, or from what was measured, are what is made again."""

from __future__ import annotations

import re

import pytest

from docs.making.files import DOCS, files, names

ELSEWHERE = {"report", "tutorials"}  # of a browser; of commands that test_readme.py runs
LEARNED = {"beyond_accuracy"}  # models whose last digits differ from machine to machine
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.mark.parametrize("name", sorted(set(names()) - ELSEWHERE - LEARNED))
def test_what_is_made_is_current(name: str) -> None:
    made = dict(files(name))
    assert made
    for place, content in made.items():
        assert (DOCS / place).read_bytes() == content, f"{place}: run python -m docs.making {name}"


@pytest.mark.parametrize("name", sorted(LEARNED))
def test_what_is_learned_is_current(name: str) -> None:
    """The same picture, with every number within a unit: of a place, that is a pixel."""
    for place, content in files(name):
        kept, again = (DOCS / place).read_text(), content.decode()
        assert NUMBER.sub("", kept) == NUMBER.sub("", again), f"{place}: run python -m docs.making {name}"
        numbers = [[float(each) for each in NUMBER.findall(text)] for text in (kept, again)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1.0), f"{place}: run python -m docs.making {name}"
