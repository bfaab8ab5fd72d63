"""What the labels show of the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from truerank.core.errors import InputError
from truerank.core.language import Kind, as_value
from truerank.core.log import Log
from truerank.core.ranking import Candidates
from truerank.core.threads import one_blas_thread
from truerank.core.values import Probability, check, text_of
from truerank.data.features import Features, read_features
from truerank.data.read import read
from truerank.exposure.propensities import PROPENSITIES, Fitted, PropensityModel
from truerank.exposure.propensities.given import GivenPropensity


class Unlisted(StrEnum):
    """What a pair that is not listed means."""

    UNKNOWN = "unknown"
    NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class FullExposure:
    """Every candidate was shown to every user: each pair is labelled, or `unlisted` pairs are negatives."""

    unlisted: Unlisted = Unlisted.UNKNOWN
    name: ClassVar[str] = "full"

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self, where="exposure full")


@dataclass(frozen=True, slots=True)
class RandomExposure:
    """The judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels.

    By default their number is taken as fixed in advance. `rate` declares independent draws with that probability
    instead (Bernoulli); then a user without a judged item is a user with an empty sample, not an unknown one.
    """

    rate: Probability | None = None
    name: ClassVar[str] = "random"

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self, where="exposure random")


COLUMN = GivenPropensity()
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
    name: ClassVar[str] = "biased"

    __str__ = text_of

    def __post_init__(self) -> None:
        own = hasattr(self.propensity, "fit") and not isinstance(self.propensity, type)
        if self.propensity is not None and not own:
            object.__setattr__(self, "propensity", as_value(self.propensity, PROPENSITIES))
        uses = getattr(self.model, "uses", frozenset(SIDE))  # a model of one's own need not say
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

    @property
    def model(self) -> PropensityModel:
        """The model of propensities; a column where none was chosen."""
        return PROPENSITIES.parse(self.propensity) if isinstance(self.propensity, str) else self.propensity or COLUMN

    def fit(self, log: Log, candidates: Candidates, *, seed: int) -> Fitted:
        """The propensities of a log's rows."""
        with one_blas_thread():
            return self.model.fit(
                log,
                random=self.random,
                user_features=self.user_features,
                item_features=self.item_features,
                candidates=candidates,
                seed=seed,
            )


Exposure = FullExposure | RandomExposure | BiasedExposure
EXPOSURES: Kind[Exposure] = Kind("exposure", also=(FullExposure, RandomExposure, BiasedExposure))
