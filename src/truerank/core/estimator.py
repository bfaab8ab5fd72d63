"""Estimators: how the rows that were observed stand for those that were not, and what they learn from all of them.

An estimator says what it is in one value, `info`; names what it must learn from all units before any can be measured,
`prepare`; and gives the terms of each question about a chunk of whole units, `term`. Nothing else asks for its class or
looks for attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Keys
from truerank.core.log import Log
from truerank.core.ranking import Pool, Ranks, Ties
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.terms import Terms, Totals
from truerank.core.values import text_of

Made = TypeVar("Made")


class Exposed(StrEnum):
    """What a log shows of the truth: which estimators are for it."""

    FULL = "full"
    HOLDOUT = "holdout"
    RANDOM = "random"
    DESIGNED = "designed"
    BIASED = "biased"
    RANKED = "ranked"


class Clipping(StrEnum):
    """What a clip does to an estimator.

    NONE     it has no weights that a clip could limit
    GIVEN    a clip limits its weights; as a ratio of clipped sums it can move either way, so none is chosen by the data
    CHOSEN   a clip limits its weights and only moves the value one way, so that it may be chosen by the data
    """

    NONE = "none"
    GIVEN = "given"
    CHOSEN = "chosen"


class Beyond(StrEnum):
    """What an estimator has in place of rewards that a log cannot show.

    MISSING    nothing: they are missing from its value
    AVERAGE    what is earned on average where it can be seen
    PREDICTED  what its model of rewards predicts, with nothing to correct it
    """

    MISSING = "missing"
    AVERAGE = "average"
    PREDICTED = "predicted"

    @property
    def words(self) -> str:
        return {
            Beyond.MISSING: "rewards there are missing from the value",
            Beyond.AVERAGE: "rewards there are taken to be like those of the rest",
            Beyond.PREDICTED: "rewards there are what the reward model predicts: extrapolation, which nothing corrects",
        }[self]


@record
class EstimatorInfo:
    """What can be said of an estimator before it has seen anything.

    `exposures` are the kinds of log it is for; `pool` says among which items rows are ranked; `complete` that every
    candidate must carry a label; `ties` and `design` which tie policies and whether intervals for exactly these units
    go with it; `needs_size` that the number of candidates must be known; `weighs` that rows carry weights of unequal
    exposure; `needs_scale` that these must be probabilities, not only proportional to them; `stands` that its rows
    must stand for the places of a list, which is checked; `uses` which optional columns of a log it looks at;
    `predicts` that it has a model of gains; `beyond` what it has in place of rewards that a log cannot show;
    `fits` that its terms are fitted to all units at once, when a value is asked for;
    `of_lists` that it looks at what is recommended, not at labels; `left_out` whom it leaves out although they have
    scores; `caution` what to say beside every number of it; `differs` how its estimand from a random sample
    differs from the metric, so that `advise` names it only to compare with.
    """

    name: str
    exposures: frozenset[Exposed]
    assumptions: tuple[str, ...] = ()
    pool: Pool = Pool.CATALOGUE
    complete: bool = False
    ties: frozenset[Ties] = frozenset(Ties)
    design: bool = False
    needs_size: bool = False
    weighs: bool = False
    needs_scale: bool = False
    stands: bool = False
    clipping: Clipping = Clipping.NONE
    uses: frozenset[str] = frozenset()
    predicts: bool = False
    beyond: Beyond = Beyond.MISSING
    fits: bool = False
    of_lists: bool = False
    left_out: str = ""
    caution: str = ""
    differs: str = ""


@record
class Request:
    """One question to an estimator: a metric of judged rows, or a reward of a ranked log; and where weights are cut.

    Of a `segment`, a group of items, only those items earn; ranks stay among all candidates.
    """

    metric: Any = None
    reward: str = "label"
    clip: float = math.inf
    segment: str | None = None


class Estimator:
    """How observed rows represent unobserved ones: gives Terms, and says what they estimate.

    A new estimator is a frozen dataclass with `info` and, as a rule, `term`; it overrides whatever else differs.
    """

    __slots__ = ()

    info: ClassVar[EstimatorInfo]

    __str__ = text_of

    def refusal(self, context: Any) -> str | None:
        """Why it cannot be had in this context (a metric, or a log and a target) and what to use, or None."""
        return None

    def estimand(self, request: Request, unit: str = "user") -> str:
        """What its value estimates, in words."""
        return f"mean {request.metric} over {request.metric.on_full_labels}"

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        """What it must learn from all units: the propensities, where these are fitted and it uses them."""
        return (context.propensity,) if self.info.weighs and context.propensity is not None else ()

    def terms(
        self, chunk: Any, view: Any, *, requests: Sequence[Request], learned: Learned, keep_rows: bool = False
    ) -> list[Terms]:
        """The terms of each question about the whole units of a chunk; `view` is how a model sees its rows."""
        units = ObservedUnits(chunk, view, requests, learned, keep_rows)
        return [self.term(units, request) for request in requests]

    def totals_without(self, view: Any, requests: Sequence[Request], pattern: Keys) -> list[dict[int, Totals]] | None:
        """For each question the totals by pattern of rows under models learned without each group of clusters; None
        where these follow from the terms under each of the models alone."""
        return None

    def term(self, units: ObservedUnits, request: Request) -> Terms:
        """The terms of one question; what questions share is made once with `units.once`."""
        raise NotImplementedError


@record(eq=False)
class ObservedUnits:
    """Whole units of a chunk as one model sees them (`view`), and all that an estimator is asked about them."""

    chunk: Any
    view: Any
    requests: Sequence[Request]
    learned: Learned
    keep_rows: bool = False
    made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def log(self) -> Log:
        """The labels."""
        log: Log = self.chunk.labels
        return log

    @property
    def ranks(self) -> Ranks:
        ranks: Ranks = self.view.ranks
        return ranks

    def once(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """What is made once for all questions."""
        if name not in self.made:
            self.made[name] = make()
        made: Made = self.made[name]
        return made


def clips_of(estimator: Estimator, clips: Iterable[float]) -> tuple[float, ...]:
    """Where the weights of an estimator are cut: nowhere, at a clip of its own, or at each of the question's."""
    if estimator.info.clipping is Clipping.NONE:
        return (math.inf,)
    limit: float | None = getattr(estimator, "clip", None)
    return tuple(clips) if limit is None else (limit,)


# ------------------------------------------------------------------------------------------------------------- learners


class Tally(Protocol):
    """Counts that add up over chunks, kept by group of clusters."""

    def __add__(self, more: Self) -> Self: ...
    def without(self, group: int | None) -> Self:
        """Of all groups but this one, or of all (None), as one group."""
        ...


@runtime_checkable
class Learner(Protocol):
    """What must be fitted before units can be measured: propensities, position models, reward models.

    A value, under which what was learned is kept. `needs` are learners that must be fitted first; `refitted` says
    whether its error is part of the error of what is estimated, so that it is fitted again without each group of
    clusters.
    """

    def __hash__(self) -> int: ...
    @property
    def needs(self) -> tuple[Learner, ...]: ...
    @property
    def refitted(self) -> bool: ...
    def tally(self, chunk: Any, *, groups: Groups, learned: Learned) -> Tally: ...
    def fit(self, tally: Any) -> Any: ...


@record
class Groups:
    """Clusters dealt into groups of equal size by a number that follows from the seed and the id of each alone.

    `cuts` are the numbers at which one group ends and the next begins, so that a group can be told from an id without
    a look at the others.
    """

    seed: int
    purpose: str
    cuts: tuple[float, ...] = ()

    @classmethod
    def of(cls, key: Keys, *, n: int, seed: int, purpose: str) -> Groups:
        """At most n groups of these clusters.

        >>> groups = Groups.of(np.arange(6, dtype=np.uint64), n=3, seed=1, purpose="folds")
        >>> np.bincount(groups.at(np.arange(6, dtype=np.uint64))).tolist()
        [2, 2, 2]
        """
        uniform = np.sort(cell_uniforms(seed, purpose, key, np.zeros_like(key)))
        n = max(1, min(n, len(uniform)))
        first = (np.arange(1, n) * len(uniform)) // n
        return cls(seed, purpose, tuple(uniform[first].tolist()))

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def at(self, key: Keys) -> Ints:
        """The group of each cluster."""
        uniform = cell_uniforms(self.seed, self.purpose, key, np.zeros_like(key))
        return np.searchsorted(np.array(self.cuts), uniform, side="right").astype(np.int64)


@record
class Counts:
    """A tally of numbers in arrays of one shape, [groups x ...] each.

    >>> both = Counts({"n": np.array([1.0, 2.0])}) + Counts({"n": np.array([0.0, 5.0])})
    >>> both.without(0).arrays["n"].tolist(), both.without(None).arrays["n"].tolist()
    ([7.0], [8.0])
    """

    arrays: Mapping[str, Floats]

    def __add__(self, more: Self) -> Self:
        return replace(self, arrays={name: values + more.arrays[name] for name, values in self.arrays.items()})

    def without(self, group: int | None) -> Self:
        whole = {name: values.sum(axis=0, keepdims=True) for name, values in self.arrays.items()}
        if group is not None:
            whole = {name: total - self.arrays[name][group][None] for name, total in whole.items()}
        return replace(self, arrays=whole)


@record
class Learned:
    """What was learned from all units: a model for each learner, and the same without each group of clusters.

    `facts` are what else is known of the whole, such as a declared rate of exposure.
    """

    models: Mapping[Hashable, Any] = field(default_factory=dict)
    refits: tuple[Mapping[Hashable, Any], ...] = ()
    groups: Groups | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    failures: Mapping[str, int] = field(
        default_factory=dict
    )  # why refits could not be made, and without how many groups

    def __getitem__(self, learner: Hashable) -> Any:
        return self.models[learner]

    def without(self, group: int) -> Learned:
        """The same, with all that is refitted learned without one group of clusters."""
        return Learned({**self.models, **self.refits[group]}, (), self.groups, self.facts)


def learn(
    learners: Sequence[Learner],
    mapped: Callable[[Callable[[Any], list[Any]]], Iterable[list[Any]]],
    *,
    groups: Groups,
    facts: Mapping[str, Any],
) -> Learned:
    """Fit all learners, one pass over the chunks for each link of the longest chain of needs.

    `mapped(work)` gives what `work` makes of each chunk, in the order of chunks, anew for every pass. Where a learner
    is refitted, groups of clusters are left out in turn; a fit that cannot be made without a group is a failure, and
    leaves intervals undefined.
    """
    todo = _with_needs(learners)
    again = any(learner.refitted for learner in todo) and len(groups) > 1
    fold_groups = groups if again else Groups(groups.seed, groups.purpose)
    models: dict[Any, Any] = {}
    failures: dict[str, set[int]] = {}
    refits: list[dict[Any, Any]] = [{} for _ in range(len(groups) if again else 0)]
    while todo:
        ready = [learner for learner in todo if all(need in models for need in learner.needs)]
        learned = Learned(models, (), fold_groups, facts)
        tallies: dict[Learner, Any] = {}
        for of_chunk in mapped(partial(_tally, ready, fold_groups, learned)):
            for learner, tally in zip(ready, of_chunk, strict=True):
                tallies[learner] = tally if learner not in tallies else tallies[learner] + tally
        for learner in ready:
            models[learner] = learner.fit(tallies[learner].without(None))
            for group, refit in enumerate(refits):
                if learner.refitted:
                    try:
                        refit[learner] = learner.fit(tallies[learner].without(group))
                    except InputError as error:
                        failures.setdefault(error.marked, set()).add(group)
        todo = [learner for learner in todo if learner not in ready]
    counted = {reason: len(parts) for reason, parts in failures.items()}
    return Learned(models, () if failures else tuple(refits), groups if again else None, facts, counted)


def _tally(learners: Sequence[Learner], groups: Groups, learned: Learned, chunk: Any) -> list[Any]:
    """What learners count in a chunk."""
    single = Groups(groups.seed, groups.purpose)
    return [
        learner.tally(chunk, groups=groups if learner.refitted else single, learned=learned) for learner in learners
    ]


def _with_needs(learners: Sequence[Learner]) -> list[Learner]:
    """The learners and all that they need, each once."""
    needed: dict[Learner, None] = {}
    for learner in learners:
        for need in (*_with_needs(learner.needs), learner):
            needed.setdefault(need)
    return list(needed)
