"""What the labels show of the truth.

Every kind says which estimators are for it (`exposed`), whether pairs that are not listed have a label (`complete`),
which rows are relevant (`labelled`), the declared `rate` of uniform draws, and what must be learned of exposure: a
`learner` of propensities or None, and a `description` of what it found.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import frozen
from truerank.core.errors import InputError
from truerank.core.estimator import Exposed, Learned
from truerank.core.language import Kind, as_value
from truerank.core.log import Log
from truerank.core.ranking import Returned
from truerank.core.record import record
from truerank.core.values import Probability, Value
from truerank.exposure.design import ExposureDesign
from truerank.exposure.propensities import (
    PROPENSITIES,
    Fitted,
    GivenPropensity,
    PropensityLearner,
    PropensityModel,
    column_of,
)
from truerank.io.features import Features, read_features
from truerank.io.read import read


class Unlisted(StrEnum):
    """What a pair that is not listed means."""

    UNKNOWN = "unknown"
    NEGATIVE = "negative"


class Exposure(Value):
    """How labels were collected. By default only listed pairs have a label, and nothing is learned of exposure.

    `scaled` says whether propensities are probabilities, or known only up to a factor.
    """

    __slots__ = ()
    _word: ClassVar[str] = "exposure"

    exposed: ClassVar[Exposed]
    rate: float | None = None
    scaled: ClassVar[bool] = True
    complete: ClassVar[bool] = False

    def labelled(self, log: Log) -> Log:
        """The rows with their labels."""
        return log

    def joined(self, log: Log) -> tuple[Log, Returned | None]:
        """The rows that a design drew, with their inclusion probabilities, and how much of the design they are."""
        return log, None

    def learner(self, seed: int) -> PropensityLearner | None:
        """What has to be learned of exposure, None where nothing has."""
        return None

    def description(self, learned: Learned) -> str | None:
        """One sentence on the propensities: what was assumed and fitted."""
        return None


@record
class FullExposure(Exposure):
    """Every candidate was shown to every user: each pair is labelled, or `unlisted` pairs are negatives."""

    unlisted: Unlisted = Unlisted.UNKNOWN
    name: ClassVar[str] = "full"

    exposed: ClassVar[Exposed] = Exposed.FULL

    @property
    def complete(self) -> bool:  # type: ignore[override]
        """Whether a pair that is not listed has a label all the same."""
        return self.unlisted is Unlisted.NEGATIVE


@record
class HoldoutExposure(Exposure):
    """The rows are what was held out of a log, as most evaluations have it: other pairs count as irrelevant.

    That is a convention, not a fact: nobody asked about the others. Rows with label 1 are relevant, those that a rule
    makes positive, or all of them where there is no value; other values need a rule. Users are those with a relevant
    row, for every metric.

    >>> str(HoldoutExposure())
    'holdout'
    """

    name: ClassVar[str] = "holdout"

    exposed: ClassVar[Exposed] = Exposed.HOLDOUT
    complete: ClassVar[bool] = True

    def labelled(self, log: Log) -> Log:
        """Labels are 1 where there is no value."""
        return log if log.rewards else replace(log, rewards={"label": frozen(np.ones(len(log)))})


@record
class RandomExposure(Exposure):
    """The judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels.

    By default their number is taken as fixed in advance. `rate` declares independent draws with that probability
    instead (Bernoulli); then a user without a judged item is a user with an empty sample, not an unknown one.
    """

    rate: Probability | None = None
    name: ClassVar[str] = "random"

    exposed: ClassVar[Exposed] = Exposed.RANDOM


@record
class DesignedExposure(Exposure):
    """Rows were drawn with chances that are known: what `truerank plan exposure --allocate` said to show.

    `design` is its folder (or what `tr.design_exposure` gave), with which the labels that came back are joined; without
    it each row carries its chance in the column propensity, and all that were drawn came back.

    >>> str(DesignedExposure())
    'designed'
    """

    design: Any = field(default=None, repr=False)
    name: ClassVar[str] = "designed"

    exposed: ClassVar[Exposed] = Exposed.DESIGNED

    def __post_init__(self) -> None:
        if not isinstance(self.design, ExposureDesign | None):
            object.__setattr__(self, "design", ExposureDesign.read(self.design))

    def joined(self, log: Log) -> tuple[Log, Returned | None]:
        """The rows that were asked for, each with the chance under which it stands for others; and what came back."""
        if isinstance(self.design, ExposureDesign):
            return self.design.joined(log)
        column_of(log, "propensity")
        return log, None

    def description(self, learned: Learned) -> str:
        where = "the rows' own column propensity" if self.design is None else self.design.source
        return f"the chances under which rows were drawn are those of {where}, and exact"


COLUMN = GivenPropensity()
SIDE = ("random", "user_features", "item_features")  # what propensities may be fitted with, beside the log


@record
class BiasedExposure(Exposure):
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

    exposed: ClassVar[Exposed] = Exposed.BIASED

    def __post_init__(self) -> None:
        if self.propensity is not None:
            object.__setattr__(self, "propensity", as_value(self.propensity, PROPENSITIES))
        uses = self.model.uses
        for name in SIDE:  # who gives something expects it to matter
            if getattr(self, name) is not None and name not in uses:
                what = "a column of propensities" if self.propensity is None else f"propensity {self.propensity}"
                raise InputError(f"{name}= is not used by {what}. Leave it out, or choose a model that uses it.")
        if not isinstance(self.random, Log | None):
            object.__setattr__(self, "random", read(self.random, name="random"))
        for kind in ("user", "item"):
            features = getattr(self, f"{kind}_features")
            if not isinstance(features, Features | None):
                object.__setattr__(self, f"{kind}_features", read_features(features, kind=kind))

    def learner(self, seed: int) -> PropensityLearner | None:
        if self.model == COLUMN:
            return None
        return PropensityLearner(self.model, self.random, self.user_features, self.item_features, seed)

    def description(self, learned: Learned) -> str:
        learner = learned.facts.get("propensity")
        fitted: Fitted = COLUMN if learner is None else learned[learner]
        return fitted.description

    @property
    def scaled(self) -> bool:  # type: ignore[override]
        return self.model.scaled

    @property
    def model(self) -> PropensityModel:
        """The model of propensities; a column where none was chosen."""
        return COLUMN if self.propensity is None else as_value(self.propensity, PROPENSITIES)


EXPOSURES: Kind[Exposure] = Kind(
    "exposure", also=(FullExposure, HoldoutExposure, RandomExposure, DesignedExposure, BiasedExposure)
)
