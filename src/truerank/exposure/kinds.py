"""What the labels show of the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from truerank.core import Candidates, Log
from truerank.data.features import Features
from truerank.errors import InputError
from truerank.exposure.propensities import Fitted, PropensityModel
from truerank.exposure.propensities.given import GivenPropensity
from truerank.threads import one_blas_thread


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


@dataclass(frozen=True, slots=True)
class BiasedExposure:
    """Some pairs were likelier to be shown than others; a pair that is not listed was not shown, its label is unknown.

    `propensity` says how likely: by default the log's own column; otherwise a model that is fitted, which may need
    pairs that were shown at `random`, or features.
    """

    propensity: PropensityModel | None = None
    random: Log | None = field(default=None, repr=False)
    user_features: Features | None = field(default=None, repr=False)
    item_features: Features | None = field(default=None, repr=False)

    def fit(self, log: Log, candidates: Candidates, *, seed: int) -> Fitted:
        """The propensities of a log's rows."""
        model = GivenPropensity() if self.propensity is None else self.propensity
        with one_blas_thread():
            return model.fit(
                log,
                random=self.random,
                user_features=self.user_features,
                item_features=self.item_features,
                candidates=candidates,
                seed=seed,
            )


Exposure = FullExposure | RandomExposure | BiasedExposure
