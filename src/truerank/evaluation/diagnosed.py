"""What was found in a log, as values: its kind, counts, findings, and which estimators are for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from truerank.core.estimator import Exposed
from truerank.core.messages import Message, message
from truerank.exposure.randomness.tests import Randomness

FEW_POSITIVES = 30


@dataclass(frozen=True, slots=True)
class Usable:
    """An estimator, and for which of the usual metrics it is valid here; or why it is not."""

    name: str
    metrics: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    why_not: str = ""
    caution: str = ""

    @property
    def valid(self) -> bool:
        return not self.why_not


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found in a log.

    `exposed` is what it shows of the truth, `why` the sentence that says so; `columns` are its names of what was
    recognised; `facts` are counts; `needs_positive` is a rule to start with where values are no labels.
    """

    source: str
    exposed: Exposed
    why: str
    columns: Mapping[str, str]
    facts: Mapping[str, float | int]
    findings: tuple[Message, ...]
    estimators: tuple[Usable, ...]
    randomness: Randomness | None = None
    propensities: bool = False
    rewards: tuple[str, ...] = ()
    needs_positive: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def enough(self) -> bool:
        """Whether nothing that was found forbids a decision."""
        return all(message.severity != "warning" for message in self.findings)


def check_positives(positives: int) -> Iterator[Message]:
    if positives == 0:
        yield message("no-positive.log")
    elif positives < FEW_POSITIVES:
        yield message("few-positives", positives=positives)
