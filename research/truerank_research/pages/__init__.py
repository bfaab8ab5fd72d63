"""Pages of results are templates: `studies/NAME.toml` and `papers/NAME.toml` have what a page says and draws.

`site` renders them, `pictures` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Picture:
    """What to draw of a table: columns for position, colour, panel and interval.

    `kind` is `ranges` (a line of text for each value of `x`, values from left to right), `lines` or `points`. `where`
    keeps rows with the given values of columns ("" where there is none). `numeric` takes the last number in the text of
    `x`. `level` draws a dashed line and `band` a green band at these values. `labels` renames texts.
    """

    caption: str
    kind: str
    x: str
    y: str
    group: str = ""
    panel: str = ""
    low: str = ""
    high: str = ""
    x_title: str = ""
    y_title: str = ""
    table: str = "cells"
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    numeric: bool = False
    log: bool = False
    level: float | None = None
    band: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a validation study: title, jinja2 text of three sentences, a picture, and the table to fold.

    The text sees `settings`, `tables` (rows by name) and the filters `percent` and `number`; so does the caption of the
    picture. `columns` renames the columns of the table and chooses them; all by default. `where` keeps rows of the
    table with the given values.
    """

    title: str
    text: str
    picture: Picture
    table: str
    columns: Mapping[str, str] | None = None
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """What to tell the authors of a paper: `kind` is a key of KINDS; the claims have the measured numbers."""

    kind: str
    text: str
    claims: tuple[tuple[str, str], ...]


KINDS = {
    "replicates": "Replicates",
    "reading": "Depends on how the paper is read",
    "defect": "A defect in the released code",
    "estimator": "Does not hold: the estimator is biased",
    "unknown": "Does not replicate, and we do not know why",
    "data": "Needs data that are not here",
}


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with all its tables and figures.

    `says` completes "They say that", `note` has what we found in a few sentences; `main` has experiment and key of the
    claims that the paper is known for.
    """

    key: str  # the name of its page
    short: str
    title: str
    authors: str
    year: int
    says: str
    parts: tuple[str, ...]
    picture: Picture
    picture_study: str  # the experiment whose cells it draws
    main: tuple[tuple[str, str], ...] = ()
    note: str = ""
    authors_notes: tuple[Note, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()  # experiments and their tables of printed beside obtained numbers


@cache
def read_page(study: str) -> Page | None:
    """The page of a validation study; None where it has none."""
    path = FOLDER / "studies" / f"{study}.toml"
    return msgspec.toml.decode(path.read_bytes(), type=Page) if path.exists() else None


PAPERS = tuple(
    msgspec.toml.decode((FOLDER / "papers" / f"{key}.toml").read_bytes(), type=Paper)
    for key in ("ure", "ure-short", "dcg", "wtd", "reliability")
)
