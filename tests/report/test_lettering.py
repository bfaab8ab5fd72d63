"""Texts of drawings: every line keeps its width in every font, and none runs over the edge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from truerank.report.lettering import advance, fitted

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = sorted(DOCS.rglob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
MOVED = re.compile(r"translate\(([-\d.]+),\s*([-\d.]+)\)")
Line = tuple[ElementTree.Element, float, bool]  # a text, where it stands, and whether it is turned


def lines(at: ElementTree.Element, x: float = 0.0, turned: bool = False) -> Iterator[Line]:
    """Every text that says something."""
    transform = at.get("transform", "")
    moved = MOVED.search(transform)
    x, turned = x + (float(moved[1]) if moved else 0.0), turned or "rotate" in transform
    if at.tag == f"{SVG}text" and "".join(at.itertext()).strip():
        yield at, x, turned
    for child in at:
        yield from lines(child, x, turned)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_every_line_of_a_committed_picture_keeps_its_width_inside_the_picture(path: Path) -> None:
    root = ElementTree.fromstring(path.read_text())
    width = float(root.attrib["viewBox"].split()[2])
    for text, x, turned in lines(root):
        said = "".join(text.itertext())
        assert not list(text), said  # a line of a text of several would have no width of its own in some browsers
        assert "textLength" in text.attrib, said
        long = float(text.attrib["textLength"])
        start = x - long * {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "start")]
        assert turned or (start >= -0.5 and start + long <= width + 0.5), (said, start, long, width)


def test_a_text_of_several_lines_becomes_one_for_each() -> None:
    head = '<text transform="translate(0,10)" font-size="10px" font-weight="bold"'
    made = fitted(f'{head}><tspan>ii</tspan><tspan x="0" dy="15">i</tspan><tspan x="0" dy="15">&lt;</tspan></text>')
    fit = 'lengthAdjust="spacingAndGlyphs"'
    assert made == (
        f'{head} textLength="5.6" {fit}>ii</text>'
        f'{head} y="15" textLength="2.8" {fit}>i</text>'
        f'{head} y="30" textLength="5.8" {fit}>&lt;</text>'
    )
    assert fitted(made) == made


@pytest.mark.parametrize("text", ["N̄ and K̄", "Q̂", "1/ε0", "Ґanok, 狐", "\u200bé"])
def test_every_letter_has_a_width(text: str) -> None:
    assert 0 < advance(text, size=10.0) <= 10.0 * len(text)
    assert "textLength" in fitted(f'<text font-size="10px">{text}</text>')
