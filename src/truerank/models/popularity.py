"""Popularity: everyone is shown what most people liked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core import Log
from truerank.ranks.scores import Factors, factors


@dataclass(frozen=True, slots=True)
class Popularity:
    """An item's score is its number of positives in the log, the same for all users."""

    name: ClassVar[str] = "popularity"

    def fit(self, log: Log, *, seed: int) -> Factors:
        count = np.bincount(log.item, weights=log.label, minlength=len(log.items))
        return factors(np.ones((len(log.users), 1)), count[:, None], users=log.users, items=log.items)
