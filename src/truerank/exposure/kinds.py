"""What the labels show of the truth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from truerank.errors import InputError


class Unlisted(StrEnum):
    """What a pair that is not listed means."""

    UNKNOWN = "unknown"
    NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class FullExposure:
    """Every candidate was shown to every user: each pair is labelled, or `unlisted` pairs are negatives."""

    unlisted: Unlisted = Unlisted.UNKNOWN

    def __post_init__(self) -> None:
        object.__setattr__(self, "unlisted", Unlisted(self.unlisted))


@dataclass(frozen=True, slots=True)
class RandomExposure:
    """The judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels.

    By default their number is taken as fixed in advance. `rate` declares independent draws with that probability
    instead (Bernoulli); then a user without a judged item is a user with an empty sample, not an unknown one.
    """

    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InputError(f"exposure rate {self.rate:g}; expected a probability in (0, 1].")


Exposure = FullExposure | RandomExposure
