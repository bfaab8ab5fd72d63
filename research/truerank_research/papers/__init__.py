"""The papers whose experiments are reproduced; each has one page, with one picture of what an experiment measured."""

from __future__ import annotations

from dataclasses import dataclass

from truerank_research.pages import Picture


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with all its tables and figures.

    `says` completes "They say that"; `main` has experiment and key of the claims that the paper is known for.
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


PAPERS: tuple[Paper, ...] = ()
