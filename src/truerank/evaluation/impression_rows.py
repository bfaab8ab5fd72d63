"""How impressions become rows: the view probabilities of targets and log, what is counted, what values rest on."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import asdict, field, replace
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Bools, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Clipping, Exposed, Learned
from truerank.core.ranking import Pool
from truerank.core.record import record
from truerank.estimators.impressions import Exposures, Limited, Refits, limited_by
from truerank.evaluation.compare import limit
from truerank.evaluation.counts import MeasuredCounts, ModelCounts, by_place, diagnostics_of
from truerank.evaluation.impression_source import LogFacts
from truerank.evaluation.measure import Evaluation, MeasuredEstimate
from truerank.evaluation.question import Basis, Plan, RowMaker
from truerank.exposure.policies import (
    Policy,
    TrafficShares,
    check_own_exposures,
    logger_of_units,
    logging_policy,
    tables_of,
)
from truerank.exposure.policies.targets import Target, is_table, mixed_policy, target_policy
from truerank.exposure.positions.learner import PositionLearner
from truerank.exposure.positions.position_models import Positions
from truerank.inference.tails import Largest, tail_length
from truerank.inference.weights import SupportTally, WeightTally, unseen_of
from truerank.io.sessions import RankedChunk


@record(kw_only=True, eq=False)
class ImpressionRows(RowMaker):
    """Targets and logging policies, the position models that are given or fitted, and the clips of the weights.

    A target that is a table is represented by its part of each chunk.
    """

    fitted: ClassVar[str] = "position models"
    exposed: ClassVar[Exposed] = Exposed.RANKED  # type: ignore[misc]

    facts: LogFacts
    targets: Mapping[str, Target]
    loggers: Mapping[str, Target]
    positions: Positions | None
    learner: PositionLearner | None
    shares: TrafficShares | None
    columns: Mapping[str, str] | None
    clips: tuple[float, ...] = (math.inf,)
    absent: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)

    def models(self, learned: Learned) -> Positions | None:
        """The position models, fitted."""
        if self.learner is None:
            return self.positions
        positions: Positions = learned[self.learner].positions
        return positions

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
            target, logging, name=name, positions=self.positions, columns=self.columns, only=self.facts.only
        )
        if placed.parts == () and placed.viewed is None:  # it does not depend on what was learned
            chunk.made[key] = self, placed
        return placed

    def _refits(self, view: Exposures, learned: Learned) -> Refits | None:
        """The models without each group that can be used on a chunk, and why others cannot."""
        if self.learner is None or not learned.refits or learned.groups is None:
            return None
        group = learned.groups.at(view.clusters.key)[view.clusters.of_row]
        models: list[Positions | None] = []
        unusable: dict[str, Ints] = {}
        for number, refit in enumerate(learned.refits):
            positions: Positions = refit[self.learner].positions
            reason = self._unusable(view, positions, group == number)
            models.append(positions if reason is None else None)
            if reason is not None:
                unusable.setdefault(reason, np.zeros(len(learned.refits), dtype=np.int64))[number] = 1
        return Refits(tuple(models), group, unusable)

    def _unusable(self, view: Exposures, positions: Positions, without: Bools) -> str | None:
        """Why the log without some units cannot be under these models, or None."""
        logging = view.logging
        if logging.rank is not None and logging.positions is not None:
            last = int(logging.rank.max(initial=0))
            if (tables_of(positions, last)[:, 1:] > 0).all():
                return None
        refitted = view.under(positions)
        reason = refitted.impossible(without=without)
        if reason is None and self.loggers:
            try:
                check_own_exposures(refitted.logging, self.loggers, without=without)
            except InputError as error:
                return error.marked
        return reason

    # ---- for measure

    def views(self, plan: Plan[ImpressionRows], chunk: RankedChunk) -> dict[str, dict[Pool, Exposures]]:
        log, learned, clusters = chunk.log, plan.learned, chunk.clusters()
        logging, models = self.logging(chunk, learned), self.models(learned)
        policies = {name: self.policy(chunk, name, logging) for name in self.targets}
        if models is not None:
            policies = {name: policy.under(models) for name, policy in policies.items()}
        if self.shares is not None and learned[self.shares].nested:
            stratum = np.zeros(len(clusters), dtype=np.int64)
            stratum[clusters.of_row] = logger_of_units(log, self.loggers)[0]
            clusters = replace(clusters, stratum=stratum)
        view = Exposures(log, next(iter(policies.values())), logging, clusters)
        reason = view.impossible()
        if reason is not None:
            raise RefusedError(reason)
        if self.loggers:
            check_own_exposures(logging, self.loggers)
        refits = self._refits(view, learned)
        return {
            name: {Pool.CATALOGUE: Exposures(log, policy, logging, clusters, refits)}
            for name, policy in policies.items()
        }

    def count(self, plan: Plan[ImpressionRows], chunk: RankedChunk) -> MeasuredCounts:
        log, most = chunk.log, tail_length(self.facts.n_rows) + 1
        active = by_place(chunk.places(), np.bincount(log.unit, minlength=log.n_units)) if plan.keeps_units else None
        return MeasuredCounts(
            rewards={
                name: Largest.count(rewards, most=most)
                for name, rewards in log.rewards.items()
                if not self.facts.rewards[name].binary
            },
            active=active,
        )

    def count_model(
        self, plan: Plan[ImpressionRows], chunk: RankedChunk, model: str, views: Mapping[Pool, Exposures]
    ) -> ModelCounts:
        view, most = views[Pool.CATALOGUE], tail_length(self.facts.n_rows)
        target = view.target
        clips = np.unique([*self.clips, *(planned.request.clip for planned in plan.estimates)])
        return ModelCounts(
            support=SupportTally.count(view),
            ranked=int(np.count_nonzero(target.defined())),
            unlogged=target.unlogged,
            unexposed=0 if target.whole is None else int(np.count_nonzero(target.exposure() == 0)),
            weights={limits: WeightTally.count(view, clips, most=most, limits=limits) for limits in limits_of(plan)},
            unusable={} if view.refits is None else view.refits.unusable,
        )

    # ---- for conclude

    def basis(self, estimate: MeasuredEstimate) -> Basis:
        weights, info, request, counts = estimate.weights, estimate.info, estimate.request, estimate.counts
        clips = info.clipping is not Clipping.NONE
        return Basis(
            lost=weights.lost if clips and request.clip < math.inf else None,
            unsupported=None if weights.unsupported is None else weights.surely_unsupported,
            effective=weights.ess if clips else None,
            unseen=unseen_of(
                weights,
                n_units=counts.ranked or 0,
                weight=counts.weights[limited_by(estimate.estimator)].total,
                total=None if counts.support is None else counts.support.total,
                value=estimate.terms.value(),
                beyond=info.beyond,
                per=request.metric.per,
                rewards=self.facts.between(request.reward),
            ),
        )

    def details(self, evaluation: Evaluation) -> dict[str, Any]:
        plan = evaluation.plan
        fits = {} if self.learner is None else plan.learned[self.learner].fits
        return {
            "cluster": self.facts.cluster,
            "chosen": evaluation.choices,
            "diagnostics": [
                {"model": model, "clip": limit(clip), "of": limits, **asdict(diagnostics_of(counts, clip, limits))}
                for model, counts in evaluation.measured.counts.models.items()
                for limits in limits_of(plan)
                for clip in self.clips
            ],
            "fits": [
                {
                    "place": place,
                    "parameter": parameter.name,
                    "value": parameter.value,
                    "stderr": parameter.stderr,
                    "p_of_fit": fit.goodness.p,
                }
                for place, fit in fits.items()
                for parameter in fit.parameters
            ],
            "views": [
                {"place": place, **asdict(bucket)} for place, fit in fits.items() for bucket in fit.goodness.buckets
            ],
        }


def limits_of(plan: Plan[Any]) -> tuple[Limited, ...]:
    """What the clips of the estimators limit."""
    return tuple(dict.fromkeys(limited_by(planned.estimator) for planned in plan.estimates))


def with_tables(plan: Plan[ImpressionRows], places: Collection[str]) -> Plan[ImpressionRows]:
    """The same question with the table of observed views at these places; units are not kept."""
    learner, learned = plan.rows.learner, plan.learned

    def with_table(models: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        return {key: model.with_tables(places) if key == learner else model for key, model in models.items()}

    refits = tuple(with_table(refit) for refit in learned.refits)
    learned = replace(learned, models=with_table(learned.models), refits=refits)
    return replace(plan, learned=learned, chooses_clip=False, keeps_units=False, ids=None)
