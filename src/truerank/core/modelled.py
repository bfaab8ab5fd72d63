"""Terms whose value rests on a model that is fitted to all units: what an evaluation has to know of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

import numpy as np

from truerank.core.clusters import Clusters
from truerank.core.messages import Message


class ModelledTerms(ABC):
    """Terms (`core.terms.Terms`) that keep other columns than sums, because a model is fitted to them at the end."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> dict[str, np.ndarray]:
        """What is kept of each unit, by name."""

    @abstractmethod
    def of_columns(self, columns: Mapping[str, np.ndarray], clusters: Clusters) -> Self:
        """The same question of other units."""

    @abstractmethod
    def correction(self) -> float:
        """How much of the value the model adds: the interval allows for bias in proportion to it."""

    @abstractmethod
    def reasons(self, model: str) -> tuple[Message, ...]:
        """What takes verdicts about a ranker away."""

    @abstractmethod
    def cautions(self) -> tuple[Message, ...]:
        """What to say beside the value."""
