"""How targets look at a chunk of a ranked log: where each puts its items, and how likely these are viewed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator, Learned
from truerank.core.ids import Keys
from truerank.estimators.impressions import Exposures, Limited, Refits
from truerank.evaluation.question import Tallies
from truerank.exposure.policies.mixtures import LoggerShares, check_own_exposures, logger_of_units, mixed_policy
from truerank.exposure.policies.policies import Policy, logging_policy, tables_of
from truerank.exposure.policies.targets import Target, is_table, target_policy
from truerank.exposure.positions.learner import PositionLearner
from truerank.exposure.positions.position_models import Positions
from truerank.inference.weights import SupportTally, WeightTally
from truerank.io.impressions import RankedChunk


@dataclass(frozen=True, slots=True)
class Looking:
    """How a question looks at any chunk: its targets and loggers, and the position models that are given or asked for.

    A target that is a table stands for its part of the chunk.
    """

    targets: Mapping[str, Target]
    loggers: Mapping[str, Target]
    positions: Positions | None
    learner: PositionLearner | None
    shares: LoggerShares | None
    columns: Mapping[str, str] | None
    only: Mapping[str, str] = field(default_factory=dict)

    def models(self, learned: Learned) -> Positions | None:
        """The position models, fitted."""
        if self.learner is None:
            return self.positions
        found: Positions = learned[self.learner].positions
        return found

    def logging(self, chunk: RankedChunk, learned: Learned | None) -> Policy:
        """The policy that made the log; without what is learned only what kind of policy it is."""
        log, positions = chunk.log, self.positions if learned is None else self.models(learned)
        if not self.loggers:
            return logging_policy(log, positions)
        if learned is None or self.shares is None:
            return Policy("log", log, share=np.zeros((0, log.n_units)))
        return mixed_policy(log, self.loggers, counts=learned[self.shares], positions=positions)

    def policy(self, chunk: RankedChunk, name: str, logging: Policy) -> Policy:
        """A target where it puts the items of a chunk."""
        target = chunk.tables[name] if is_table(self.targets[name]) else self.targets[name]
        key = f"target {name}"
        if key in chunk.made and chunk.made[key][0] is self:
            placed: Policy = chunk.made[key][1]
            return placed
        placed = target_policy(
            target, logging, name=name, positions=self.positions, columns=self.columns, only=self.only
        )
        if placed.parts == () and placed.viewed is None:  # it does not depend on what was learned
            chunk.made[key] = self, placed
        return placed

    def shared(self, chunk: RankedChunk, learned: Learned) -> Shared:
        """What all targets share in a chunk."""
        if "shared" in chunk.made and chunk.made["shared"][0] is learned:
            made: Shared = chunk.made["shared"][1]
            return made
        logging = self.logging(chunk, learned)
        policies = {name: self.policy(chunk, name, logging) for name in self.targets}
        models = self.models(learned)
        policies = {name: policy if models is None else policy.under(models) for name, policy in policies.items()}
        clusters = chunk.clusters()
        if self.shares is not None and learned[self.shares].nested:
            clusters = replace(clusters, stratum=_of_clusters(clusters, logger_of_units(chunk.log, self.loggers)[0]))
        anyone = Exposures(chunk.log, next(iter(policies.values())), logging, clusters)
        reason = anyone.impossible()
        if reason is not None:
            raise RefusedError(reason)
        if self.loggers:
            check_own_exposures(logging, self.loggers)
        refits, unweighed = self._refits(anyone, policies, learned)
        made = Shared(clusters, logging, policies, refits, unweighed)
        chunk.made["shared"] = learned, made
        return made

    def _refits(
        self, view: Exposures, policies: Mapping[str, Policy], learned: Learned
    ) -> tuple[Refits | None, dict[str, Ints]]:
        """The models without each group that can be used on a chunk, and why others cannot."""
        if self.learner is None or not learned.refits or learned.groups is None:
            return None, {}
        group = learned.groups.at(view.clusters.key)[view.clusters.of_row]
        models: list[Positions | None] = []
        unweighed: dict[str, Ints] = {}
        for number, refit in enumerate(learned.refits):
            positions: Positions = refit[self.learner].positions
            reason = self._unusable(view, positions, group == number)
            models.append(positions if reason is None else None)
            if reason is not None:
                unweighed.setdefault(reason, np.zeros(len(learned.refits), dtype=np.int64))[number] = 1
        return Refits(tuple(models), group, pattern_of(policies.values())), unweighed

    def _unusable(self, view: Exposures, positions: Positions, without: Bools) -> str | None:
        """Why the log without some units cannot be under these models, or None."""
        logging = view.logging
        if logging.rank is not None and logging.positions is not None:
            last = int(logging.rank.max(initial=0))
            if (tables_of(positions, last)[:, 1:] > 0).all():
                return None
        seen = view.under(positions)
        reason = seen.impossible(without=without)
        if reason is None and self.loggers:
            try:
                check_own_exposures(seen.logging, self.loggers, without=without)
            except InputError as error:
                return error.marked
        return reason


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What all targets share in a chunk; `unweighed` says which refits cannot be used, and why."""

    clusters: Clusters
    logging: Policy
    policies: Mapping[str, Policy]
    refits: Refits | None
    unweighed: Mapping[str, Ints]


@dataclass(frozen=True, slots=True, eq=False)
class RankedSight:
    """How one target looks at a chunk."""

    model: str
    exposures: Exposures
    clips: Floats
    limits: tuple[Limited, ...]  # what clips limit
    most: int  # weights of the tail that are kept
    unweighed: Mapping[str, Ints]

    def view(self, estimator: Estimator, learned: Learned) -> Exposures:
        return self.exposures

    def tallies(self) -> Tallies:
        target, name = self.exposures.target, self.model
        counted: dict[tuple[Any, ...], Any] = {
            (name, "support"): SupportTally.count(self.exposures),
            (name, "known"): int(np.count_nonzero(target.defined())),
            (name, "unlogged"): target.unlogged,
            (name, "never"): 0 if target.whole is None else int(np.count_nonzero(target.exposure() == 0)),
        }
        counted |= {
            (name, "weights", of): WeightTally.count(self.exposures, self.clips, most=self.most, limits=of)
            for of in self.limits
        }
        return counted | {(name, "unweighed", reason): groups for reason, groups in self.unweighed.items()}


def pattern_of(policies: Any) -> Keys:
    """A number of each unit that tells which targets rank it."""
    code: Keys | None = None
    with np.errstate(over="ignore"):
        for policy in policies:
            bit = policy.defined().astype(np.uint64)
            code = bit if code is None else code * np.uint64(0x9E3779B97F4A7C15) + bit
    return np.zeros(0, dtype=np.uint64) if code is None else code


def _of_clusters(clusters: Clusters, of_unit: Ints) -> Ints:
    found = np.zeros(len(clusters), dtype=np.int64)
    found[clusters.of_row] = of_unit
    return found
