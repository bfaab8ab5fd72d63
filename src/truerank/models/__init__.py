"""Layer 7: Log -> Scores. Each model is a frozen configuration whose `fit(log, seed=...)` gives Scores."""

from __future__ import annotations

from typing import ClassVar, Protocol

from truerank.core import Log, Scores


class Model(Protocol):
    """A recommender before it has seen data."""

    name: ClassVar[str]

    def fit(self, log: Log, *, seed: int) -> Scores: ...
