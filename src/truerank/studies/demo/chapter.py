"""What a part of the demo tells: sentences, tables and pictures of intervals, as values that the report draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from truerank.core.language import Kind
from truerank.core.results import Estimate
from truerank.studies.demo.made import Made

Say = Callable[[str, int, int], None]


COMMAND = "  truerank"  # how a line begins that is to be copied, and so never broken


def command(words: str) -> str:
    """A command as a paragraph of its own."""
    return f"{COMMAND}{words.removeprefix('truerank')}"


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval beside the truth.

    >>> Bar("ease", truth=0.3, low=0.1, high=0.2).holds_truth
    False
    """

    name: str
    truth: float
    low: float
    high: float

    @classmethod
    def of(cls, name: str, estimate: Estimate, *, truth: float) -> Bar:
        return cls(name, truth=truth, low=float(estimate.low or 0.0), high=float(estimate.high or 0.0))

    @property
    def holds_truth(self) -> bool:
        return self.low <= self.truth <= self.high


@dataclass(frozen=True, slots=True)
class Picture:
    """Intervals under each other, on one axis that begins at 0."""

    title: str
    bars: tuple[Bar, ...]

    @property
    def held(self) -> int:
        """How many of the intervals hold their truth."""
        return sum(each.holds_truth for each in self.bars)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of texts with its title."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
        return cls(title, tuple(header), tuple(tuple(row) for row in rows))


@dataclass(frozen=True, slots=True)
class Chapter:
    """What is told, in order: a text is a paragraph of its own."""

    title: str
    parts: tuple[str | Picture | Sheet, ...]


class DemoTopic(Protocol):
    """One part of the demo, a value with a name."""

    name: ClassVar[str]
    about: ClassVar[str]

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        """Evaluate what was made, and tell what was found."""
        ...


TOPICS: Kind[DemoTopic] = Kind("topic", "truerank.studies.demo.topics", DemoTopic)
