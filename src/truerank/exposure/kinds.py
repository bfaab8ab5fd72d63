"""What the labels show of the truth.

Every kind says which estimators are for it (`exposed`), the declared `rate` of uniform draws, and what must be learned
of exposure: a `learner` of propensities or None, and a `description` of what it found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from truerank.core.errors import InputError
from truerank.core.estimator import Exposed, Learned
from truerank.core.log import Log
from truerank.data.features import Features, read_features
from truerank.data.read import read
from truerank.exposure.propensities import Fitted, PropensityLearner, PropensityModel, parse_propensity
from truerank.exposure.propensities.given import GivenPropensity, GivenValues


class Unlisted(StrEnum):
    """What a pair that is not listed means."""

    UNKNOWN = "unknown"
    NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class FullExposure:
    """Every candidate was shown to every user: each pair is labelled, or `unlisted` pairs are negatives."""

    unlisted: Unlisted = Unlisted.UNKNOWN

    exposed: ClassVar[Exposed] = Exposed.FULL
    rate: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "unlisted", Unlisted(self.unlisted))

    def learner(self, seed: int) -> None:
        return None

    def description(self, learned: Learned) -> None:
        return None


@dataclass(frozen=True, slots=True)
class RandomExposure:
    """The judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels.

    By default their number is taken as fixed in advance. `rate` declares independent draws with that probability
    instead (Bernoulli); then a user without a judged item is a user with an empty sample, not an unknown one.
    """

    rate: float | None = None

    exposed: ClassVar[Exposed] = Exposed.RANDOM

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InputError(f"exposure rate {self.rate:g}; expected a probability in (0, 1].")

    def learner(self, seed: int) -> None:
        return None

    def description(self, learned: Learned) -> None:
        return None


SIDE = ("random", "user_features", "item_features")  # what propensities may be fitted with, beside the log


@dataclass(frozen=True, slots=True)
class BiasedExposure:
    """Some pairs were likelier to be shown than others; a pair that is not listed was not shown, its label is unknown.

    `propensity` says how likely: by default the log's own column; otherwise a model that is fitted (or its text form),
    which may need pairs that were shown at `random`, or features. These are read where they are files or frames.

    >>> BiasedExposure("power:0.5")
    BiasedExposure(propensity=PopularityPower(power=0.5, clip=0.01))
    """

    propensity: PropensityModel | str | None = None
    random: Any = field(default=None, repr=False)
    user_features: Any = field(default=None, repr=False)
    item_features: Any = field(default=None, repr=False)

    exposed: ClassVar[Exposed] = Exposed.BIASED
    rate: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "propensity", _model(self.propensity))
        uses = (_model(self.propensity) or GivenPropensity()).uses
        for name in SIDE:  # who gives something expects it to matter
            if getattr(self, name) is not None and name not in uses:
                what = "a column of propensities" if self.propensity is None else f"propensity {self.propensity}"
                raise InputError(f"{name}= is not used by {what}. Leave it out, or choose a model that uses it.")
        if not isinstance(self.random, Log | None):
            object.__setattr__(self, "random", read(self.random, name="random"))
        for kind in ("user", "item"):
            given = getattr(self, f"{kind}_features")
            if not isinstance(given, Features | None):
                object.__setattr__(self, f"{kind}_features", read_features(given, kind=kind))

    def learner(self, seed: int) -> PropensityLearner | None:
        """What has to be learned of exposure, None where the log's own column says it."""
        model = _model(self.propensity)
        if model is None or model == GivenPropensity():
            return None
        return PropensityLearner(model, self.random, self.user_features, self.item_features, seed)

    def description(self, learned: Learned) -> str:
        """One sentence on the propensities: what was assumed and fitted."""
        learner = learned.facts.get("propensity")
        fitted: Fitted = GivenValues() if learner is None else learned[learner]
        return fitted.description


def _model(given: PropensityModel | str | None) -> PropensityModel | None:
    if isinstance(given, str):
        return parse_propensity(given)
    if given is not None and (isinstance(given, type) or not isinstance(given, PropensityModel)):
        raise InputError(f"propensity {given!r}; expected a model such as PopularityPower(0.5), or its text power:0.5.")
    return given


Exposure = FullExposure | RandomExposure | BiasedExposure
