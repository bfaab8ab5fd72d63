"""How impressions become rows: the view probabilities of targets and log, what is counted, what values rest on."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Ints
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Clipping, Learned
from truerank.core.ids import Keys
from truerank.core.messages import message
from truerank.core.ranking import Pool
from truerank.core.record import record
from truerank.core.results import Estimate, Evidence
from truerank.core.terms import Terms
from truerank.estimators.impressions import Exposures, Limited, Refits, limited_by
from truerank.evaluation.counts import ImpressionCounts, TargetCounts, by_place
from truerank.evaluation.impression_checks import (
    ESTIMATE_CHECKS,
    check_clips,
    check_target,
    diagnostics_of,
    unseen_exposure,
    weight_diagnostics,
)
from truerank.evaluation.impression_source import LogFacts
from truerank.evaluation.measure import Measured, MeasuredEstimate
from truerank.evaluation.question import Examined, Pair, Plan, Points, Remarks, RowMaker, run_checks
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
from truerank.inference.clipping import chosen_clip
from truerank.inference.intervals import common
from truerank.inference.linearization import Spread
from truerank.inference.tails import RewardTally, tail_length
from truerank.inference.weights import SupportTally, WeightTally
from truerank.io.sessions import RankedChunk


@record(kw_only=True, eq=False)
class ImpressionRows(RowMaker):
    """Targets and logging policies, the position models that are given or fitted, and the clips of the weights.

    A target that is a table is represented by its part of each chunk.
    """

    facts: LogFacts
    targets: Mapping[str, Target]
    loggers: Mapping[str, Target]
    positions: Positions | None
    learner: PositionLearner | None
    shares: TrafficShares | None
    columns: Mapping[str, str] | None
    clips: tuple[float, ...] = (math.inf,)

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

    def _refits(self, view: Exposures, policies: Mapping[str, Policy], learned: Learned) -> Refits | None:
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
        return Refits(tuple(models), group, pattern_of(policies.values()), unusable)

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
        refits = self._refits(view, policies, learned)
        return {
            name: {Pool.CATALOGUE: Exposures(log, policy, logging, clusters, refits)}
            for name, policy in policies.items()
        }

    def count(
        self, plan: Plan[ImpressionRows], chunk: RankedChunk, views: Mapping[str, Mapping[Pool, Exposures]]
    ) -> ImpressionCounts:
        log, most = chunk.log, tail_length(self.facts.n_rows) + 1
        active = by_place(chunk.places(), np.bincount(log.unit, minlength=log.n_units)) if plan.keeps_units else None
        return ImpressionCounts(
            rewards={
                name: RewardTally.count(rewards, most=most)
                for name, rewards in log.rewards.items()
                if not self.facts.rewards[name].binary
            },
            active=active,
            models={model: self._count_target(plan, view[Pool.CATALOGUE]) for model, view in views.items()},
        )

    def _count_target(self, plan: Plan[ImpressionRows], view: Exposures) -> TargetCounts:
        target, most = view.target, tail_length(self.facts.n_rows)
        clips = np.unique([*self.clips, *(planned.request.clip for planned in plan.estimates)])
        return TargetCounts(
            support=SupportTally.count(view),
            ranked=int(np.count_nonzero(target.defined())),
            unlogged=target.unlogged,
            never=0 if target.whole is None else int(np.count_nonzero(target.exposure() == 0)),
            weights={limits: WeightTally.count(view, clips, most=most, limits=limits) for limits in limits_of(plan)},
            unusable={} if view.refits is None else view.refits.unusable,
        )

    # ---- for conclude

    def check(self, plan: Plan[ImpressionRows], measured: Measured) -> None:
        """Refuse a target's table without a session of the log."""
        for name, target in self.targets.items():
            if is_table(target) and not measured.counts.models[name].ranked:
                where = os.fspath(target) if isinstance(target, str | os.PathLike) else name
                raise InputError(f"{where}: no session in common with {self.facts.source}. Check the session ids.")

    def visible(self, plan: Plan[ImpressionRows], spread: Spread, terms: Sequence[Terms]) -> Spread:
        """Where no reward was observed, nothing shows how far from 0 a value may be: no width would be a lie."""
        rewarded = any(bool(part.whole.sums[:, 0].any()) for part in terms)
        return spread if rewarded and not plan.learned.failures else spread.without_interval()

    def examine(self, estimate: MeasuredEstimate) -> Examined:
        diagnostics, clips = weight_diagnostics(estimate), estimate.info.clipping is not Clipping.NONE
        evidence = Evidence(
            lost=diagnostics.lost if clips and estimate.request.clip < math.inf else None,
            unsupported=None if diagnostics.unsupported is None else diagnostics.surely_unsupported,
        )
        return Examined(
            evidence=evidence,
            unseen=unseen_exposure(estimate),
            effective=diagnostics.ess if clips else None,
            warnings=run_checks(ESTIMATE_CHECKS, estimate),
        )

    def remarks(
        self, plan: Plan[ImpressionRows], measured: Measured, points: Points, estimates: Sequence[Estimate]
    ) -> Remarks:
        facts, choices = self.facts, list[dict[str, Any]]()
        untested: set[tuple[Pair, int]] = set()
        for numbers in _curves(plan) if plan.chooses_clip else ():
            chosen = list(_chosen(plan, numbers, measured, points))
            choices += [choice for choice, _ in chosen]
            used = {cell for _, cell in chosen}
            untested |= {cell for cell in points.differences if cell[1] in numbers and cell not in used}
        failures = _failures(plan, measured, points)
        messages = (
            *plan.messages,
            *chain.from_iterable(check_target(name, counts, facts) for name, counts in measured.counts.models.items()),
            *plan.last_messages,
            *(message("refit-failed", parts=parts, reason=reason) for reason, parts in failures.items()),
            *check_clips(choices),
        )
        fitted = None if self.learner is None else plan.learned[self.learner]
        fits = {} if fitted is None else fitted.fits
        details = {
            "cluster": facts.cluster,
            "chosen": choices,
            "diagnostics": [
                {"model": model, "clip": limit(clip), "of": limits, **asdict(diagnostics_of(counts, clip, limits))}
                for model, counts in measured.counts.models.items()
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
        counts = {"rows": facts.n_rows, "units": facts.n_units, "items": facts.n_items}
        return Remarks(messages, counts, details, frozenset(untested))


def limits_of(plan: Plan[Any]) -> tuple[Limited, ...]:
    """What the clips of the estimators limit."""
    return tuple(dict.fromkeys(limited_by(planned.estimator) for planned in plan.estimates))


def limit(clip: float) -> float | None:
    """A clip for the record: none is None."""
    return None if math.isinf(clip) else clip


def with_tables(plan: Plan[ImpressionRows], places: Collection[str]) -> Plan[ImpressionRows]:
    """The same question with the table of observed views at these places; units are not kept."""
    learner, learned = plan.rows.learner, plan.learned

    def with_table(models: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        return {key: model.with_tables(places) if key == learner else model for key, model in models.items()}

    refits = tuple(with_table(refit) for refit in learned.refits)
    learned = replace(learned, models=with_table(learned.models), refits=refits)
    return replace(plan, learned=learned, chooses_clip=False, keeps_units=False, ids=None)


# --------------------------------------------------------------------------------------------------------------- clips


def _curves(plan: Plan[Any]) -> list[list[int]]:
    """The estimates of each estimator and reward that weights enter, ascending by clip."""
    curves: dict[int, list[int]] = {}
    for number, planned in enumerate(plan.estimates):
        if planned.estimator.info.clipping is not Clipping.NONE:
            curves.setdefault(planned.block, []).append(number)
    return list(curves.values())


def _chosen(
    plan: Plan[Any], numbers: Sequence[int], measured: Measured, points: Points
) -> Iterator[tuple[dict[str, Any], tuple[Any, int]]]:
    """Which clip is taken for each value and difference; the largest for estimators that allow no choice."""
    planned = plan.estimates[numbers[0]]
    by_rule = planned.estimator.info.clipping is Clipping.CHOSEN
    models = [model for model in plan.models if (model, numbers[0]) in points.values]
    terms = {model: [measured.terms[model, number].whole for number in numbers] if by_rule else [] for model in models}
    subjects: list[tuple[Any, tuple[str, ...], Mapping[Any, Spread]]] = [
        *((model, (model,), points.values) for model in models),
        *((pair, pair, points.differences) for pair in plan.question.pairs(models)),
    ]
    for subject, names, spreads in subjects:
        best = same = len(numbers) - 1
        if by_rule:
            best, same = chosen_clip(*(terms[name] for name in names))
        value = spreads[subject, numbers[best]].value
        choice = {
            "of": " - ".join(names),
            "reward": planned.request.reward,
            "estimator": planned.estimator.info.name,
            "clip": limit(plan.estimates[numbers[best]].request.clip),
            "smallest_equal": limit(plan.estimates[numbers[same]].request.clip),
            "value": value,
            "against_largest_clip": value - spreads[subject, numbers[-1]].value,
            "by_rule": by_rule,
        }
        yield choice, (subject, numbers[best])


def _failures(plan: Plan[Any], measured: Measured, points: Points) -> dict[str, int]:
    """Why intervals that include the fit cannot be had, and without how many groups."""
    failures = {
        f"the position model cannot be fitted: {reason}": parts for reason, parts in plan.learned.failures.items()
    }
    for model, counts in measured.counts.models.items():
        for reason, groups in counts.unusable.items():
            failures[f"{model} cannot be weighed: {reason}"] = int(np.count_nonzero(groups))
    if failures or not plan.learned.refits:
        return failures
    lost: list[tuple[str, Sequence[Terms]]] = []
    for (model, number), spread in points.values.items():
        if math.isnan(spread.stderr):
            lost.append((f"{model} has no value.", [measured.terms[model, number]]))
    for ((first, second), number), spread in points.differences.items():
        if math.isnan(spread.stderr):
            reason = f"{first} - {second} has no value: no {plan.unit} is left that both rank."
            lost.append((reason, common(measured.terms[first, number], measured.terms[second, number])))
    for reason, terms in lost:
        parts = max(_undefined(part) for part in terms)
        if parts:
            failures[reason] = max(parts, failures.get(reason, 0))
    return failures


def _undefined(terms: Terms) -> int:
    """Without how many groups these have no value, although they have one with all of them."""
    if terms.n_independent() < 2 or math.isnan(terms.value()):
        return 0
    return int(np.count_nonzero(np.isnan(terms.values_without())))


# --------------------------------------------------------------------------------------------------------------- views


def pattern_of(policies: Any) -> Keys:
    """A number of each unit that tells which targets rank it."""
    code: Keys | None = None
    with np.errstate(over="ignore"):
        for policy in policies:
            bit = policy.defined().astype(np.uint64)
            code = bit if code is None else code * np.uint64(0x9E3779B97F4A7C15) + bit
    return np.zeros(0, dtype=np.uint64) if code is None else code
