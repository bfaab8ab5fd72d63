"""Which sampled candidates keep the true order of models best, for a log like one of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from truerank.core.errors import InputError, RefusedError, some
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.wording import either, option
from truerank.reliability.choices import Choice, PairFigures, ReversedPair
from truerank.reliability.studied import (
    Candidates,
    FinishedStudy,
    LoggerMatch,
    LogProfile,
    PositivesProfile,
    Profile,
    has_positives_alone,
    match_loggers,
    shipped_datasets,
    shipped_studies,
)

EQUAL = 0.01  # a difference of expected τ that does not justify a larger sample
GOOD = 0.5  # below this expected τ, an order is not kept: more than a quarter of the pairs come out wrong
FAR = 0.25  # a distance at which the exposure of a log is unlike that of a logging policy: a quarter of the mean
TWICE = 2.0  # a ratio of sizes from which logs are not alike


@record
class OtherMetric:
    """Another metric of the study: what it would choose, and the τ of the recommended choice there."""

    metric: str
    choice: Candidates
    tau: float
    recommended: float

    @property
    def loss(self) -> float:
        return self.tau - self.recommended


@record
class Advice:
    """What to do with a log, and the figures behind it; `choices` from the best expected τ on.

    `recommended` follows the rule of `recommend`; `not_worse` are all whose interval reaches that of the best, or
    whose expected τ is within 0.01 of it. Logging policies are compared at the log's sparsity, figures are of
    `sparsity`.
    """

    metric: str
    users: int
    sparsity: float
    log: Profile | None
    loggers: tuple[LoggerMatch, ...]
    logger: LoggerMatch
    choices: tuple[Choice, ...]
    recommended: Choice
    not_worse: tuple[Choice, ...]
    pairs: int
    undecided: tuple[tuple[str, str], ...]
    wrong: tuple[ReversedPair, ...]
    other_metrics: tuple[OtherMetric, ...]
    study_users: int
    study_repetitions: int
    study_range: tuple[float, float]  # sparsity of the densest and of the sparsest log of this logging policy
    source: str
    shipped: tuple[str, ...] = ()  # the datasets whose studies come with the package, of which the nearest was taken

    @property
    def best(self) -> Choice:
        return self.choices[0]

    @property
    def all_pairs(self) -> int:
        """Pairs of models, those without a known order included."""
        return self.pairs + len(self.undecided)

    @property
    def tau_of_all(self) -> tuple[float, float]:
        """What τ of the recommended choice can be over all pairs, those without a known order all wrong or right."""
        sure, unknown = self.pairs * self.recommended.tau, len(self.undecided)
        return (sure - unknown) / self.all_pairs, (sure + unknown) / self.all_pairs

    @property
    def outside(self) -> tuple[str, ...]:
        """In what the log lies outside of what the study measured; nothing where it is like one of its logs."""
        (densest, sparsest), match, profile, reasons = self.study_range, self.logger, self.log, []
        if self.sparsity > sparsest + 0.001:
            reasons.append(f"your log is sparser than any in the study ({self.sparsity:.1%} against {sparsest:.1%})")
        if self.sparsity < densest - 0.001:
            reasons.append(f"your log is denser than any in the study ({self.sparsity:.1%} against {densest:.1%})")
        if isinstance(profile, LogProfile) and match.distance > FAR:
            nearest = "the nearest logging policy" if match == self.loggers[0] else "the policy you named"
            reasons.append(f"its exposure is unlike that of {nearest}, {match.logger} (distance {match.distance:.2f})")
        if profile is not None and not is_alike(profile.positives_per_user, match.positives_per_user):
            reasons.append(
                f"your users have {profile.positives_per_user:.1f} positives each, those of the study "
                f"{match.positives_per_user:.1f}"
            )
        if profile is not None and not is_alike(profile.items, match.items):
            reasons.append(f"your catalogue has {profile.items:,} items, that of the study {match.items:,.0f}")
        return tuple(reasons)


def is_alike(size: float, studied: float) -> bool:
    """Whether two sizes are within a factor of two of each other.

    >>> is_alike(100, 199), is_alike(100, 201), is_alike(1, 0)
    (True, False, False)
    """
    return studied > 0 and 1 / TWICE <= size / studied <= TWICE


def advise(
    log: Log,
    study: str | Path | FinishedStudy | None = None,
    *,
    metric: str | None = None,
    n_items: int | None = None,
    logger: str | None = None,
    sparsity: float | None = None,
    users: int | None = None,
) -> Advice:
    """Which sampler and size keep the true order of models best on logs like this one, by a finished study.

    The log is described by its sparsity, 1 - rows / (users x `n_items`), and by two figures of its exposure
    (`LogProfile`); the study's logging policy whose log at that sparsity is nearest represents it, its figures linear
    between the two neighbouring levels. `logger`, `sparsity` (of the figures; logging policies are compared at the
    log's) and `users` (with a positive; by default those of the log) overrule what the log shows. A log of positives
    alone does not show what was exposed: it needs `logger` and `sparsity`, and samplers of exposed negatives are no
    choice for it.

    Without a `study` advice goes by the nearest of those that come with the package: the one that the log lies outside
    of in the fewest ways, and of these the one whose logging policy is nearest.
    """
    if study is not None:
        studies: Sequence[FinishedStudy] = [study if isinstance(study, FinishedStudy) else FinishedStudy.read(study)]
        studies[0].metric(metric)
    else:
        studies = [shipped for shipped in shipped_studies() if metric is None or metric in shipped.metrics]
    if not studies:
        names = list(dict.fromkeys(name for shipped in shipped_studies() for name in shipped.metrics))
        raise InputError(
            f"metric {metric!r} is in none of the studies that come with truerank; expected one of "
            f"{some(names, most=20)}, or a study of your own with it: {either('--study DIR', 'study=DIR')}."
        )
    profile = _profile(log, n_items=n_items, logger=logger, sparsity=sparsity)
    if users is None:
        users = profile.users if isinstance(profile, PositivesProfile) else len(np.unique(log.user[log.label == 1]))
    if sparsity is None:
        sparsity = profile.sparsity if isinstance(profile, LogProfile) else 0.0
    options = [
        advice_for(finished, profile, users=users, sparsity=sparsity, metric=metric, logger=logger)
        for finished in studies
    ]
    # for positives alone no logging policy is compared, and its distance is NaN
    nearest = min(options, key=lambda advice: (len(advice.outside), max(0, advice.logger.distance)))
    names = [] if study is not None else [dataset.name for dataset in shipped_datasets().values()]
    return replace(nearest, shipped=tuple(names))


def _profile(log: Log, *, n_items: int | None, logger: str | None, sparsity: float | None) -> Profile:
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected exposed pairs of users and items.")
    profile: Profile
    if has_positives_alone(log):
        if logger is None or sparsity is None:
            raise RefusedError(
                f"{log.source}: positives alone do not show what else was exposed. Give a log with negatives, or say "
                f"how it was exposed: {option('study_logger NAME', 'logger=...')} and {option('sparsity S')}."
            )
        profile = PositivesProfile.from_log(log, n_items=n_items)
    elif not (log.label == 1).any():
        raise InputError(
            f"{log.source}: no positive label; expected users who like something. Check {option('positive')}."
        )
    else:
        profile = LogProfile.from_log(log, n_items=n_items)
    if profile.items < 2:
        raise InputError(f"{log.source}: one item; expected several, among which models can rank.")
    return profile


def advice_for(
    study: FinishedStudy,
    profile: Profile | None,
    *,
    users: int,
    sparsity: float,
    metric: str | None = None,
    logger: str | None = None,
) -> Advice:
    """The same for a log that is described already; without a profile of its exposure, `logger` must be given."""
    metric = study.metric(metric)
    if users < 2:
        raise InputError(
            f"users with a positive: {users}; expected at least 2, because an order of means needs several."
        )
    if not 0 <= sparsity < 1:
        raise InputError(f"sparsity {sparsity:g}; expected a share from 0 to below 1, such as 0.95.")
    of_log = profile.sparsity if isinstance(profile, LogProfile) else sparsity
    matches = match_loggers(study, profile, sparsity=of_log)
    match = next((match for match in matches if logger in (None, match.logger)), None)
    if match is None:
        raise InputError(f"logger {logger!r} is not in {study.source}; expected one of {', '.join(study.loggers)}.")
    between = study.between(match.logger, sparsity)
    usable = study.without_exposed() if isinstance(profile, PositivesProfile) else study
    figures = {name: PairFigures.of(usable, match.logger, between, metric=name) for name in study.metrics}
    primary = figures.pop(metric)
    positives, exposed, pool = _sizes(profile, match, sparsity=sparsity)
    choices = primary.choices(users, exposed=exposed, pool=max(pool - positives, 0.0))
    best, recommended = choices[0], recommend(choices)
    chosen = (recommended.sampler, recommended.size)
    observed = study.levels(match.logger)["observed_sparsity"].to_list()
    others = []
    for name, other in figures.items():
        if other.decided.any():
            tau = other.taus(users)
            top, row = int(np.nanargmax(tau)), other.candidates.index(chosen)
            others.append(OtherMetric(name, other.candidates[top], float(tau[top]), float(tau[row])))
    return Advice(
        metric=metric,
        users=users,
        sparsity=sparsity,
        log=profile,
        loggers=matches,
        logger=match,
        choices=tuple(choices),
        recommended=recommended,
        not_worse=tuple(choice for choice in choices if choice.high >= best.low or choice.tau >= best.tau - EQUAL),
        pairs=int(primary.decided.sum()),
        undecided=tuple(pair for pair, decided in zip(primary.pairs, primary.decided, strict=True) if not decided),
        wrong=primary.reversed(chosen),
        other_metrics=tuple(others),
        study_users=int(primary.users),
        study_repetitions=int(study.logs["repetitions"][0]),
        study_range=(observed[0], observed[-1]),
        source=study.source,
    )


def recommend(choices: Sequence[Choice]) -> Choice:
    """The fewest negatives among those that are equal to the best: within 0.01 of its expected τ.

    Where many are equal because the study's models are far apart, yours may not be: of the equal ones only those stay
    that are within 0.01 of the best of them for models half as far apart.
    """
    best = max(choice.tau for choice in choices)
    equal = [choice for choice in choices if choice.tau >= best - EQUAL]
    closer = max(choice.closer for choice in equal)
    return min(
        (choice for choice in equal if choice.closer >= closer - EQUAL),
        key=lambda choice: (choice.negatives, -choice.tau),
    )


def _sizes(profile: Profile | None, match: LoggerMatch, *, sparsity: float) -> tuple[float, float, float]:
    """The positives and exposed negatives of a user, and the items to draw from: those that have a row, or the
    catalogue where positives alone do not say which these are. Of a log with rows at another sparsity as many are taken
    as that leaves, liked as often.
    """
    if profile is None:
        return match.positives_per_user, match.rows_per_user - match.positives_per_user, match.items_shown
    if isinstance(profile, PositivesProfile):
        return profile.positives_per_user, math.nan, float(profile.items)
    rows = profile.items * (1 - sparsity)
    positives = rows * profile.positives / profile.rows
    return positives, rows - positives, float(profile.items_shown)
