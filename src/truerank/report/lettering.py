"""Texts of a drawing keep the width they were laid out with, in whatever font they are shown.

A drawing names Liberation Sans first, which has the widths of Arial and Helvetica. Where none of them is installed,
another font is taken, whose wider letters would be cut at the edge or run into each other. `textLength` makes them fit:
on `<text>`, where every browser heeds it; so a text of several lines becomes one text for each.
"""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import accumulate

TEXT = re.compile(r"<text(?P<attributes>[^>]*?)>(?P<text>[^<]+)</text>")
LINES = re.compile(r"<text(?P<attributes>[^>]*?)>(?P<lines>(?:<tspan[^>]*>[^<]*</tspan>)+)</text>")
LINE = re.compile(r'<tspan(?: x="0" dy="(?P<below>[\d.]+)")?>(?P<text>[^<]*)</tspan>')
SIZE = re.compile(r'font-size="([\d.]+)px"')
FIRST = 32  # the code of the space, with which the tables begin; widths in thousandths of the size of the font
REGULAR = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
BOLD = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
    556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
    280, 389, 584,
)  # fmt: skip
OTHERS = {
    "−": 584, "–": 556, "—": 1000, "…": 1000, "±": 549, "×": 584, "·": 333, "²": 333, "√": 549, "°": 400, "≤": 549,
    "≥": 549, "→": 1000, "α": 578, "ε": 446, "κ": 500, "λ": 500, "ρ": 569, "σ": 618, "τ": 395,
}  # fmt: skip
USUAL, WIDE = "n", 1000  # a letter as wide as most, for those that are not listed; ideographs fill a square


def advance(text: str, *, size: float, bold: bool = False) -> float:
    """How wide a text is in pixels, in Liberation Sans; a letter that is not known here is as wide as most.

    A letter with a mark is as wide as without it.

    >>> advance("il", size=10.0), advance("W", size=10.0, bold=True), advance("狐", size=10.0)
    (4.44, 9.44, 10.0)
    >>> advance("N\u0304é", size=10.0) == advance("Ne", size=10.0)
    True
    """
    return sum(_width(each, BOLD if bold else REGULAR) for each in unicodedata.normalize("NFD", text)) * size / 1000


def _width(letter: str, table: tuple[int, ...]) -> int:
    at = ord(letter) - FIRST
    if 0 <= at < len(table):
        return table[at]
    if letter in OTHERS:
        return OTHERS[letter]
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):  # set above or around another
        return 0
    return WIDE if unicodedata.east_asian_width(letter) in "WF" else table[ord(USUAL) - FIRST]


def fitted(svg: str) -> str:
    """A drawing whose texts are as wide as they were laid out, in every font.

    >>> fitted('<text font-size="10px">il</text>')
    '<text font-size="10px" textLength="4.4" lengthAdjust="spacingAndGlyphs">il</text>'
    """

    def fitting(found: re.Match[str]) -> str:
        attributes, size = found["attributes"], SIZE.search(found["attributes"])
        if size is None or "textLength" in attributes:
            return found[0]
        width = advance(html.unescape(found["text"]), size=float(size[1]), bold='font-weight="bold"' in attributes)
        return f'<text{attributes} textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs">{found["text"]}</text>'

    return TEXT.sub(fitting, LINES.sub(_apart, svg))


def _apart(found: re.Match[str]) -> str:
    """The lines of a text as texts of their own, each below the one before.

    >>> _apart(LINES.search('<text fill="red"><tspan>a</tspan><tspan x="0" dy="15">b</tspan></text>'))
    '<text fill="red">a</text><text fill="red" y="15">b</text>'
    """
    lines = list(LINE.finditer(found["lines"]))
    if "".join(line[0] for line in lines) != found["lines"] or ' y="' in found["attributes"]:
        return found[0]
    attributes, below = found["attributes"], accumulate(float(line["below"] or 0) for line in lines)
    places = [f' y="{down:g}"' if down else "" for down in below]
    return "".join(f"<text{attributes}{place}>{line['text']}</text>" for line, place in zip(lines, places, strict=True))
