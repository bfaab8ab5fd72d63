"""What a reliability study varies: loggers x sparsities x samplers x sizes, metrics, repetitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from truerank.core.errors import InputError
from truerank.core.metric import Metric
from truerank.core.record import record
from truerank.core.rng import generator
from truerank.exposure import logging_policies
from truerank.exposure.expose import WorldHoldOut
from truerank.exposure.logging_policies import LoggingPolicy
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.listwise import NDCG
from truerank.ranking import samplers as sampler_catalogue
from truerank.ranking.samplers.draw import Among, Sampler
from truerank.ranking.samplers.weighted import AS_EXPOSED, ExposedSampler, FullSampler, RandomSampler

SPARSITIES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.9, 0.95)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
CUTOFFS = (5, 10, 50, 100)
LOGGERS = ("uniform", "popularity", "positivity")
SAMPLERS = ("Full", "Exposed", "Random@e", "Random", "Popularity", "Positivity", "WTD", "WTDH", "Skew")
METRICS: tuple[Metric, ...] = tuple(make(k) for make in (Precision, Recall, NDCG, DCG) for k in CUTOFFS)
MOST_SPARSITIES = 250  # how often a cell is exposed is counted in one byte


class Preset(StrEnum):
    """Components as the text of the sampler paper has them, or as its code does.

    The popularity logger of the text is degenerate in a fully observed dataset: both presets have that of the code.
    """

    PUBLISHED = "published"
    RELEASED = "released"


@record
class Family:
    """A sampler with all its sizes, of which it has the largest: one draw serves them all. None where it has no size.

    >>> Family(RandomSampler(5), (1, 5)).labels
    (('Random', 1), ('Random', 5))
    """

    sampler: Sampler
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        own: set[Any] = {getattr(self.sampler, "n", AS_EXPOSED)} - {AS_EXPOSED}
        sizes = tuple(sorted(set(self.sizes) or own))
        if sizes and sizes[0] < 1:
            raise InputError(f"size {sizes[0]}; expected whole numbers from 1.")
        object.__setattr__(self, "sizes", sizes)
        if sizes:
            object.__setattr__(self, "sampler", replace(self.sampler, n=sizes[-1]))  # type: ignore[type-var]

    @property
    def as_exposed(self) -> bool:
        """Whether each user gets as many negatives as the user has exposed ones."""
        return getattr(self.sampler, "n", None) == AS_EXPOSED or self.sampler.among is Among.EXPOSED

    @property
    def name(self) -> str:
        """The sampler's text without its size."""
        return re.sub(r"@\d+", "", str(self.sampler)) if self.sizes else str(self.sampler)

    @property
    def labels(self) -> tuple[tuple[str, int | None], ...]:
        """(name, size) of each of its scenarios."""
        return tuple((self.name, n) for n in self.sizes) or ((self.name, None),)


@record
class Grid:
    """The scenarios of a study, every axis open.

    Sparsity 0 and the sampler Full are always part, first: they are what the others are compared with. Repetition r
    draws everything anew from a seed derived from (seed, r).

    >>> grid = Grid.from_names()
    >>> len(grid.loggers) * len(grid.sparsities) * grid.n_candidates
    1512
    """

    loggers: tuple[LoggingPolicy, ...]
    sparsities: tuple[float, ...]
    families: tuple[Family, ...]
    metrics: tuple[Metric, ...] = METRICS
    repetitions: int = 1
    holdout: WorldHoldOut | None = field(default_factory=WorldHoldOut)
    by_rounded: bool = False  # orders of models are those of values rounded to 4 decimals, as in the paper's code

    def __post_init__(self) -> None:
        for value in self.sparsities:
            if not 0 <= value < 1:
                raise InputError(f"sparsity {value:g}; expected numbers from 0 (everything is exposed) to below 1.")
        if self.repetitions < 1:
            raise InputError(f"{self.repetitions} repetitions; expected a whole number from 1.")
        for kind, axis in (("loggers", self.loggers), ("metrics", self.metrics)):
            if not axis:
                raise InputError(f"no {kind}; expected at least one.")
        ordered = tuple(sorted({0.0, *map(float, self.sparsities)}))
        if len(ordered) > MOST_SPARSITIES:
            raise InputError(f"{len(ordered)} sparsities; expected at most {MOST_SPARSITIES}.")
        full = Family(FullSampler())
        object.__setattr__(self, "sparsities", ordered)
        object.__setattr__(self, "families", (full, *(family for family in self.families if family != full)))
        for kind, values in (("logger", self.loggers), ("sampler", self.families), ("metric", self.metrics)):
            names = [value.name if isinstance(value, Family) else str(value) for value in values]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise InputError(f"the {kind} {twice[0]} is given twice; expected each once.")

    @classmethod
    def from_names(
        cls,
        *,
        preset: Preset = Preset.PUBLISHED,
        loggers: Sequence[str] = LOGGERS,
        sparsities: Sequence[float] = SPARSITIES,
        samplers: Sequence[str] = SAMPLERS,
        sizes: Sequence[int] = SIZES,
        metrics: Sequence[Metric] = METRICS,
        repetitions: int = 1,
    ) -> Grid:
        """The grid of a preset: loggers and samplers by name, in the preset's variants."""
        preset = Preset(preset)
        return cls(
            loggers_of(loggers, preset=preset),
            tuple(sparsities),
            families(samplers, sizes=sizes, preset=preset),
            tuple(metrics),
            repetitions,
            WorldHoldOut.published() if preset is Preset.PUBLISHED else WorldHoldOut.released(),
            by_rounded=preset is Preset.RELEASED,
        )

    @property
    def candidates(self) -> tuple[tuple[str, int | None], ...]:
        """(sampler, size) of every way to choose candidates, in order."""
        return tuple(label for family in self.families for label in family.labels)

    @property
    def n_candidates(self) -> int:
        return len(self.candidates)

    def seed_of(self, repetition: int, *, seed: int) -> int:
        """The seed of everything that one repetition draws."""
        return int(generator(seed, f"repetition {repetition}").integers(2**62))

    def described(self) -> dict[str, Any]:
        """All settings as text and numbers: what must be the same for a study to be continued."""
        holdout = "none" if self.holdout is None else f"{self.holdout.fraction:g} of {self.holdout.unit}"
        if self.holdout is not None and not self.holdout.from_uniform:
            holdout += ", not from the uniform logger"
        return {
            "loggers": [str(logger) for logger in self.loggers],
            "sparsities": list(self.sparsities),
            "samplers": [name if n is None else f"{name}, {n}" for name, n in self.candidates],
            "metrics": [str(metric) for metric in self.metrics],
            "repetitions": self.repetitions,
            "hold-out": holdout,
        } | ({"values": "rounded to 4 decimals"} if self.by_rounded else {})


def default_loggers(*, preset: Preset = Preset.PUBLISHED, train: bool) -> tuple[str, ...]:
    """The loggers of the sampler paper; without training data those that do not need any.

    >>> default_loggers(train=False), default_loggers(preset=Preset.RELEASED, train=False)
    (('uniform', 'positivity'), ('uniform',))
    """
    policies = zip(LOGGERS, loggers_of(LOGGERS, preset=preset), strict=True)
    return tuple(name for name, policy in policies if train or not policy.needs_train)


def loggers_of(names: Sequence[str], *, preset: Preset = Preset.PUBLISHED) -> tuple[LoggingPolicy, ...]:
    """Loggers by name in a preset's variants.

    >>> [str(logger) for logger in loggers_of(["uniform", "popularity"], preset=Preset.RELEASED)]
    ['uniform(item_seed=42)', 'popularity']
    """
    policies = {name: logging_policies.LOGGERS.named(name) for name in names}
    released = {name for name in names if preset is Preset.RELEASED or name == "popularity"}
    return tuple(policies[name].released() if name in released else policies[name].published() for name in names)


def families(names: Sequence[str], *, sizes: Sequence[int], preset: Preset = Preset.PUBLISHED) -> tuple[Family, ...]:
    """Samplers by name in a preset's variants; options in brackets are taken as they are: Skew(favours=popular).

    >>> [family.name for family in families(["Exposed", "Skew", "Skew(favours=popular)"], sizes=[1, 5])]
    ['Exposed', 'Skew', 'Skew(favours=popular)']
    """
    return tuple(_family(name.strip(), tuple(sizes), preset) for name in names)


def _family(name: str, sizes: tuple[int, ...], preset: Preset) -> Family:
    for sampler in (FullSampler(), ExposedSampler(), RandomSampler(AS_EXPOSED)):
        if name == str(sampler):
            return Family(sampler)
    if not sizes:
        raise InputError(f"sampler {name!r} needs sizes; give some, such as 10, 100.")
    bare, bracket, options = name.partition("(")
    parsed = sampler_catalogue.parse(f"{bare.strip()}@1{bracket}{options}")
    return Family(type(parsed).released(1) if preset is Preset.RELEASED and not bracket else parsed, sizes)
