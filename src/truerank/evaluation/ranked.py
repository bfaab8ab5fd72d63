"""Would the new ranker win? From a log of the old one, without showing the new one to anyone."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError, RefusedError
from truerank.core.messages import Message, caution, note
from truerank.core.multiple import holm
from truerank.core.results import Comparison, Estimate, Results
from truerank.data.impressions import Impressions, Logged
from truerank.estimators.ranked import RankedEstimator
from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.normalised import unfit
from truerank.estimators.ranked.normalisers import Normaliser
from truerank.estimators.ranked.snips import RankedSNIPS
from truerank.evaluation.ranked_notes import about_choices, about_exposures, provenance_of
from truerank.evaluation.ranked_setting import Prepared, prepare, read_log
from truerank.uncertainty.clipping import AutoClip, check_clips, chosen_clips, settles
from truerank.uncertainty.intervals import Interval, Population
from truerank.uncertainty.ranked import Curve, Pair, curve_of
from truerank.uncertainty.refits import refitted
from truerank.uncertainty.strata import Stratified
from truerank.uncertainty.weight_sums import support, weight_sums
from truerank.uncertainty.weights import WeightDiagnostics

FEW_UNITS = 30
FEW_PAYING = 20

Report = Callable[[str, int, int], None]


def off_policy(
    log: Any,
    targets: Mapping[str, Any],
    *,
    position: Any = None,
    clips: Sequence[float] | AutoClip = (math.inf,),
    estimators: Sequence[RankedEstimator] | None = None,
    normaliser: Normaliser = Normaliser.SESSION,
    rewards: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    sessions: Any = None,
    logged: Logged = Logged.VIEWED,
    loggers: Mapping[str, Any] | None = None,
    baseline: str | None = None,
    interval: Interval | None = None,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: Report | None = None,
) -> Results:
    """Estimate the reward that other ranking policies would earn, from the impressions of the deployed one.

    `log` has the impressions (see `read_impressions`); `targets` gives each policy's name and a table session, item,
    rank (or exposure) of all the items it would rank, or a RankColumn or ExposureColumn of the log;
    RankColumn("position") is the logging policy. `position` is a position model; without it the log needs a column
    propensity and targets need exposures. The default estimators are ips and snips, with rewards counted per
    `normaliser`; what of them cannot be had is left out with a note. Each clip limits 1/ε0; AutoClip() chooses one and
    reports the whole curve.

    Two sessions, views halve with every rank; the target turns the list round:

    >>> import polars as pl
    >>> from truerank.exposure.policies.policies import RankColumn
    >>> from truerank.exposure.positions.exponential import Exponential
    >>> log = pl.DataFrame({"session": [1, 1, 2, 2], "item": [1, 2, 1, 2], "position": [1, 2, 1, 2],
    ...                     "reward": [1, 0, 0, 1], "new": [2, 1, 2, 1]})
    >>> found = off_policy(log, {"new": RankColumn("new")}, position=Exponential(0.5), estimators=[RankedIPS()])
    >>> found.estimates[0].value  # (1 · 0.5 + 1 · 2) / 2
    1.25
    """
    default = (RankedIPS(Normaliser(normaliser)), RankedSNIPS(Normaliser(normaliser)))
    chosen = default if estimators is None else tuple(dict.fromkeys(estimators))
    _check(targets, chosen, baseline=baseline, level=level)
    grid = np.array(check_clips(clips.grid if isinstance(clips, AutoClip) else clips))
    if progress is not None:
        progress("reading", 0, 1)
    impressions = read_log(
        log, targets, loggers, chosen, rewards=rewards, columns=columns, sessions=sessions, logged=logged
    )
    prepared = prepare(impressions, targets, position=position, loggers=loggers, columns=columns, level=level)
    interval, about_interval = _interval(interval, prepared)
    run = _Run(prepared, grid, isinstance(clips, AutoClip), interval, level, seed, threads or os.cpu_count() or 1)
    asked, left_out = _asked(chosen, prepared, explicit=estimators is not None)
    diagnostics = run.diagnostics(progress)
    estimates: list[Estimate] = []
    comparisons: list[Comparison] = []
    choices: list[dict[str, Any]] = []
    untested: set[int] = set()
    todo, unfit_rewards = _todo(asked, impressions)
    for at, (estimator, reward) in enumerate(todo):
        if progress is not None:
            progress("estimating", at, len(todo))
        pairs = _pairs(asked[estimator], baseline)
        curve = run.curve(estimator, asked[estimator], reward, pairs)
        estimates += run.estimates(estimator, reward, curve, diagnostics)
        found = run.comparisons(estimator, reward, curve)
        if run.auto and estimator.clips:
            made = run.choices(estimator, asked[estimator], reward, curve)
            choices += made
            taken = {(each["of"], each["clip"]) for each in made}
            of = [(f"{each.model} - {each.baseline}", each.clip) for each in found]
            untested |= {len(comparisons) + at for at, each in enumerate(of) if each not in taken}
        comparisons += found
    # of a curve to choose from only the chosen difference is a test
    adjusted = holm(np.array([math.nan if at in untested else each.p for at, each in enumerate(comparisons)]))
    return Results(
        estimates=tuple(estimates),
        comparisons=tuple(c.adjusted(float(p)) for c, p in zip(comparisons, adjusted, strict=True)),
        messages=tuple(
            note("general", text)
            for text in (
                *impressions.notes,
                *about_exposures(prepared, loggers),
                *prepared.notes,
                *about_interval,
                *left_out,
                *unfit_rewards,
                *about_choices(choices),
            )
        ),
        provenance=provenance_of(
            prepared,
            loggers,
            interval=interval,
            level=level,
            seed=seed,
            clips=grid.tolist(),
            chosen=choices,
            diagnostics=diagnostics,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """One call: what is the same for every estimator and reward."""

    prepared: Prepared
    clips: Floats
    auto: bool
    interval: Interval
    level: float
    seed: int
    threads: int

    def diagnostics(self, progress: Report | None) -> dict[str, list[WeightDiagnostics]]:
        found = {}
        next(iter(self.prepared.weighings.values())).check_views()
        for at, (name, weighing) in enumerate(self.prepared.weighings.items()):
            if progress is not None:
                progress("weighing", at, len(self.prepared.weighings))
            sums = weight_sums(weighing, self.clips)
            unsupported, error = support(weighing)
            found[name] = [sums.at(clip, unsupported=unsupported, error=error) for clip in self.clips.tolist()]
        return found

    def curve(self, estimator: Any, names: Sequence[str], reward: str, pairs: Sequence[Pair]) -> Curve:
        clips = self.clips if estimator.clips else np.array([math.inf])
        weighings = {name: self.prepared.weighings[name] for name in names}
        curve = curve_of(
            estimator, weighings, reward=reward, clips=clips, pairs=pairs,
            interval=self.interval, level=self.level, threads=self.threads,
        )  # fmt: skip
        if self.prepared.refit is None:
            return curve
        return refitted(curve, estimator, self.prepared.refit, reward=reward, level=self.level, seed=self.seed)

    def estimates(
        self,
        estimator: Any,
        reward: str,
        curve: Curve,
        diagnostics: Mapping[str, Sequence[WeightDiagnostics]],
    ) -> list[Estimate]:
        log = self.prepared.log
        found = []
        for name, points in curve.values.items():
            for clip, spread in zip(curve.clips.tolist(), points, strict=True):
                at = int(np.searchsorted(self.clips, clip))
                weights = diagnostics[name][at] if estimator.clips and at < len(self.clips) else None
                found.append(
                    Estimate(
                        model=name,
                        metric=estimator.metric.replace("session", log.unit_name),
                        k=None,
                        estimator=estimator.name,
                        estimand=estimator.estimand(reward, log.unit_name),
                        value=spread.value,
                        stderr=spread.stderr,
                        low=spread.low,
                        high=spread.high,
                        level=self.level,
                        interval=self.interval.name,
                        units=curve.units[name],
                        undefined=log.n_units - curve.units[name],
                        clusters=min(curve.units[name], self._clusters(name)),
                        ess=None if weights is None else weights.ess,
                        reward=reward,
                        clip=None if math.isinf(clip) else clip,
                        assumptions=(*self.prepared.assumptions, *estimator.conditions),
                        warnings=self._warnings(estimator, name, curve, weights=weights, clip=clip),
                    )
                )
        return found

    def comparisons(self, estimator: Any, reward: str, curve: Curve) -> list[Comparison]:
        found = []
        for (model, baseline), points in curve.differences.items():
            found += [
                Comparison(
                    model=model,
                    baseline=baseline,
                    metric=estimator.metric.replace("session", self.prepared.log.unit_name),
                    estimator=estimator.name,
                    difference=spread.value,
                    stderr=spread.stderr,
                    low=spread.low,
                    high=spread.high,
                    level=self.level,
                    p=spread.p,
                    units=curve.paired_units[model, baseline],
                    clusters=min(curve.paired_units[model, baseline], self._clusters(model, baseline)),
                    reward=reward,
                    clip=None if math.isinf(clip) else clip,
                )
                for clip, spread in zip(curve.clips.tolist(), points, strict=True)
            ]
        return found

    def choices(self, estimator: Any, names: Sequence[str], reward: str, curve: Curve) -> list[dict[str, Any]]:
        """Which clip is taken for each value and difference; the largest for estimators that allow no choice."""
        weighings = {name: self.prepared.weighings[name] for name in names}
        places = chosen_clips(estimator, weighings, reward=reward, clips=curve.clips, pairs=list(curve.differences))
        found = []
        for what, at in places.items():
            points = curve.values[what] if isinstance(what, str) else curve.differences[what]
            clip = float(curve.clips[at])
            found.append(
                {
                    "of": what if isinstance(what, str) else " - ".join(what),
                    "reward": reward,
                    "estimator": estimator.name,
                    "clip": None if math.isinf(clip) else clip,
                    "value": points[at].value,
                    "against_largest_clip": points[at].value - points[-1].value,
                    "by_rule": settles(estimator),
                }
            )
        return found

    def _warnings(
        self, estimator: Any, name: str, curve: Curve, *, weights: WeightDiagnostics | None, clip: float
    ) -> tuple[Message, ...]:
        log = self.prepared.log
        unit, n = log.unit_name, curve.units[name]
        found = []
        if n < log.n_units:
            reason = {
                "nDCG": "have no ranking or no reward",
                Normaliser.MEAN_OF_MEANS.metric: "have no ranking of this target or no viewed item, so no mean,",
            }.get(estimator.metric, "have no ranking of this target")
            found.append(f"{log.n_units - n:,} of {log.n_units:,} {unit}s {reason} and are left out")
        if not curve.paying[name]:
            found.append("nothing that this target would show has a reward: nothing tells how far the value is from 0")
        elif curve.paying[name] < FEW_PAYING:
            found.append(f"rests on {curve.paying[name]} {unit}s with a reward: the interval is rough")
        single = self._single(name)
        if single is not None:
            found.append(f"no interval: {single}")
        elif 0 < n < FEW_UNITS:
            found.append(f"only {n} {unit}s: the interval is rough")
        if weights is not None:
            found += weights.warnings(clip, rows="viewed rows" if log.logged is Logged.VIEWED else "displayed rows")
        if estimator.metric == "nDCG":
            found.append("nDCG can order policies otherwise than the reward does: do not choose by it")
        return tuple(caution("general", text) for text in found)

    def _clusters(self, *names: str) -> int:
        """The clusters of the units that all of these targets rank; clusters ascend over the units."""
        kept: Bools = np.ones(self.prepared.log.n_units, dtype=bool)
        for name in names:
            kept &= self.prepared.weighings[name].target.defined()
        return int(np.count_nonzero(np.diff(self.prepared.log.cluster[kept], prepend=-1)))

    def _single(self, name: str) -> str | None:
        """Why nothing tells how far the value may be off: a single cluster, in all or of a logger."""
        log = self.prepared.log
        who = "user" if log.users is not None else log.unit_name
        kept = self.prepared.weighings[name].target.defined()
        first = np.unique(log.cluster[kept], return_index=True)[1]
        if len(first) == 1:
            return f"all is from one {who}, and a spread needs at least two"
        if isinstance(self.interval, Stratified):
            alone = np.bincount(self.interval.stratum[kept][first])
            if (alone == 1).any():
                return (
                    f"a logger has a single {who}, and the spread within it needs at least two; leave that logger out, "
                    "or use --bootstrap"
                )
        return None


# --------------------------------------------------------------------------------------------------------------- checks


def _check(targets: Any, estimators: Sequence[Any], *, baseline: str | None, level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    if not isinstance(targets, Mapping) or not targets:
        raise InputError(
            "no targets given; expected at least one, as NAME=FILE or NAME=@COLUMN (Python: {name: table})."
        )
    if baseline is not None and baseline not in targets:
        raise InputError(f"baseline {baseline!r} is not among the targets; expected one of {', '.join(targets)}.")
    for each in estimators:
        if isinstance(each, type | str) or not isinstance(each, RankedEstimator):
            raise InputError(f"estimators: {each!r} is none for ranked logs; expected values such as RankedIPS().")
    if not estimators:
        raise InputError("no estimators given; expected at least one, or none at all for the defaults.")


def _interval(asked: Interval | None, prepared: Prepared) -> tuple[Interval, list[str]]:
    if asked is not None and asked.needs_rows:
        raise RefusedError("an interval for exactly these sessions is not known for ranked logs; use population.")
    if asked is not None and not isinstance(asked, Population):
        if prepared.refit is not None:
            raise RefusedError(
                "a bootstrap does not go with a fitted position model: it would take the fit as given. Leave "
                "--bootstrap out (the interval then refits the model without each part of the log), or give the fitted "
                "model itself, as yule:1.5."
            )
        return asked, []
    if prepared.stratum is None:
        return Population(), []
    return Stratified(prepared.stratum), ["intervals take the number of sessions of each logger as given."]


def _asked(estimators: Sequence[Any], prepared: Prepared, *, explicit: bool) -> tuple[dict[Any, list[str]], list[str]]:
    """The targets of each estimator; a note on what is left out, an error where nothing is left of what was asked."""
    asked: dict[Any, list[str]] = {}
    notes, reasons = [], []
    for estimator in estimators:
        for name, weighing in prepared.weighings.items():
            reason = estimator.refusal(weighing)
            if reason is None:
                asked.setdefault(estimator, []).append(name)
            else:
                reasons.append(f"{estimator.name}: {reason}")
                notes.append(f"left out: {name} with {estimator.name}: {reason}")
        if explicit and estimator not in asked:
            raise RefusedError(reasons[-1])
    if not asked:
        raise RefusedError(" ".join(reasons))
    return asked, notes


def _todo(estimators: Iterable[Any], log: Impressions) -> tuple[list[tuple[Any, str]], list[str]]:
    """Estimators with the rewards that each can take, and a note on every pair that is left out."""
    todo, notes = [], []
    for estimator in estimators:
        reasons = {reward: unfit(estimator, log, reward=reward) for reward in log.rewards}
        todo += [(estimator, reward) for reward, reason in reasons.items() if reason is None]
        notes += [f"left out: {estimator.name} of {reward}: {reason}" for reward, reason in reasons.items() if reason]
        if all(reasons.values()):
            raise RefusedError(f"{log.source}: {estimator.name}: {next(iter(reasons.values()))}")
    return todo, notes


def _pairs(names: Sequence[str], baseline: str | None) -> list[Pair]:
    if baseline is None:
        return [(second, first) for first, second in combinations(names, 2)]
    return [(name, baseline) for name in names if name != baseline] if baseline in names else []
