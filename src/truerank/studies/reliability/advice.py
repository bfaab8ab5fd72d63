"""Which candidates keep the true order of models best, for a log like a given one: from a study to a decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truerank.core.errors import InputError, RefusedError
from truerank.core.log import Log
from truerank.core.wording import option
from truerank.studies.reliability.advice_figures import Choice, Figures, Wrong, named
from truerank.studies.reliability.logs import Liked, Look, Seen, exposes_nothing, users_who_like
from truerank.studies.reliability.studied import Candidates, Likeness, Studied, likenesses

EQUAL = 0.01  # a difference of expected τ that is not worth a larger sample
GOOD = 0.5  # below this expected τ, an order is not kept: more than a quarter of the pairs come out wrong
WORSE = 0.05  # a loss of expected τ that another metric is mentioned for


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another metric of the study: what it would choose, and what the recommended choice loses there."""

    metric: str
    choice: Candidates
    tau: float
    recommended: float

    @property
    def name(self) -> str:
        return named(*self.choice)

    @property
    def loss(self) -> float:
        return self.tau - self.recommended


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a log, and the figures behind it; `choices` from the best expected τ on.

    `recommended` follows the rule of `recommend`; `not_worse` are all whose interval reaches that of the best, or
    whose expected τ is within 0.01 of it. Loggers are compared at the log's own sparsity, figures are of `sparsity`.
    """

    metric: str
    users: int
    sparsity: float
    log: Seen | None
    loggers: tuple[Likeness, ...]
    logger: Likeness
    choices: tuple[Choice, ...]
    recommended: Choice
    not_worse: tuple[Choice, ...]
    pairs: int
    undecided: tuple[tuple[str, str], ...]
    wrong: tuple[Wrong, ...]
    elsewhere: tuple[Elsewhere, ...]
    study_users: int
    study_repetitions: int
    study_range: tuple[float, float]  # sparsity of the densest and of the sparsest log of this logger
    source: str
    shipped: tuple[str, ...] = ()  # the worlds whose studies come with the package, of which the nearest was taken

    @property
    def best(self) -> Choice:
        return self.choices[0]

    @property
    def good(self) -> bool:
        return self.best.tau >= GOOD

    @property
    def all_pairs(self) -> int:
        """Pairs of models, those without a known order included."""
        return self.pairs + len(self.undecided)

    @property
    def tau_of_all(self) -> tuple[float, float]:
        """What τ of the recommended choice can be over all pairs, those without a known order all wrong or right."""
        known, unknown = self.pairs * self.recommended.tau, len(self.undecided)
        return (known - unknown) / self.all_pairs, (known + unknown) / self.all_pairs


def advise_by(
    study: str | Path | Studied,
    log: Log,
    *,
    metric: str | None = None,
    n_items: int | None = None,
    logger: str | None = None,
    sparsity: float | None = None,
    users: int | None = None,
) -> Advice:
    """Which sampler and size keep the true order of models best on logs like this one, by a finished study.

    The log is described by its sparsity, 1 - rows / (users x `n_items`), and by two figures of its exposure (`Look`);
    the study's logger whose log at that sparsity is nearest stands for it, its figures linear between the two
    neighbouring levels. `logger`, `sparsity` (of the figures; loggers are compared at the log's own) and `users` (with
    a positive; the log's own by default) overrule what the log shows. A log of positives alone does not show what was
    exposed: it needs `logger` and `sparsity`, and samplers of exposed negatives are no choice for it.
    """
    studied = study if isinstance(study, Studied) else Studied.read(study)
    studied.metric(metric)
    look = _look(log, n_items=n_items, logger=logger, sparsity=sparsity)
    n = _users(log, look) if users is None else users
    level = look.sparsity if sparsity is None and isinstance(look, Look) else sparsity
    return advice_for(studied, look, users=n, sparsity=level or 0.0, metric=metric, logger=logger)


def advice_for(
    studied: Studied,
    look: Seen | None,
    *,
    users: int,
    sparsity: float,
    metric: str | None = None,
    logger: str | None = None,
) -> Advice:
    """The same for a log that is described already; where nothing is said of its exposure, `logger` must be given."""
    asked = studied.metric(metric)
    if users < 2:
        raise InputError(
            f"users with a positive: {users}; expected at least 2, because an order of means needs several."
        )
    if not 0 <= sparsity < 1:
        raise InputError(f"sparsity {sparsity:g}; expected a share from 0 to below 1, such as 0.95.")
    nearest = likenesses(studied, look, sparsity=look.sparsity if isinstance(look, Look) else sparsity)
    taken = _taken(nearest, logger, studied)
    between = studied.between(taken.logger, sparsity)
    able = studied.without_exposed() if isinstance(look, Liked) else studied
    figures = {each: Figures.of(able, taken.logger, between, metric=each) for each in studied.metrics}
    found = figures[asked].choices(users, _costs(look, taken, sparsity=sparsity))
    best, recommended = found[0], recommend(found)
    chosen = (recommended.sampler, recommended.size)
    observed = studied.levels(taken.logger)["observed_sparsity"].to_list()
    return Advice(
        metric=asked,
        users=users,
        sparsity=sparsity,
        log=look,
        loggers=nearest,
        logger=taken,
        choices=tuple(found),
        recommended=recommended,
        not_worse=tuple(each for each in found if each.high >= best.low or each.tau >= best.tau - EQUAL),
        pairs=int(figures[asked].decided.sum()),
        undecided=figures[asked].undecided,
        wrong=figures[asked].wrong(chosen),
        elsewhere=tuple(
            _elsewhere(each, chosen, users) for name, each in figures.items() if name != asked and each.able
        ),
        study_users=int(figures[asked].users),
        study_repetitions=int(studied.logs["repetitions"][0]),
        study_range=(observed[0], observed[-1]),
        source=studied.source,
    )


def recommend(choices: Sequence[Choice]) -> Choice:
    """The fewest negatives among those that are equal to the best: within 0.01 of its expected τ.

    Where many are equal because the study's models are far apart, yours may not be: of the equal ones only those stay
    that are within 0.01 of the best of them for models half as far apart.
    """
    best = max(each.tau for each in choices)
    equal = [each for each in choices if each.tau >= best - EQUAL]
    closer = max(each.closer for each in equal)
    return min((each for each in equal if each.closer >= closer - EQUAL), key=lambda each: (each.negatives, -each.tau))


def _look(log: Log, *, n_items: int | None, logger: str | None, sparsity: float | None) -> Seen:
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected pairs of users and items that were shown.")
    if exposes_nothing(log):
        if logger is None or sparsity is None:
            raise RefusedError(
                f"{log.source}: positives alone do not show what else was exposed. Give a log with negatives, or say "
                f"how it was exposed: {option('study_logger NAME', 'logger=...')} and {option('sparsity S')}."
            )
        return _several(Liked.of_log(log, n_items=n_items), log)
    if not (log.label == 1).any():
        raise InputError(
            f"{log.source}: no positive label; expected users who like something. Check {option('positive')}."
        )
    return _several(Look.of_log(log, n_items=n_items), log)


def _several(look: Seen, log: Log) -> Seen:
    if look.items < 2:
        raise InputError(f"{log.source}: one item; expected several, among which models can rank.")
    return look


def _users(log: Log, look: Seen) -> int:
    return look.users if isinstance(look, Liked) else users_who_like(log)


def _taken(nearest: tuple[Likeness, ...], asked: str | None, studied: Studied) -> Likeness:
    if asked is None:
        return nearest[0]
    for each in nearest:
        if each.logger == asked:
            return each
    raise InputError(f"logger {asked!r} is not in {studied.source}; expected one of {', '.join(studied.loggers)}.")


def _costs(look: Seen | None, like: Likeness, *, sparsity: float) -> Mapping[str, float]:
    """How many negatives a user has in the log, and how many there are to draw from: the items that have a row, or the
    catalogue where positives alone do not say which these are, less the user's positives. Of a log with rows at another
    sparsity as many are taken as that leaves, liked as often.
    """
    if look is None:
        own, exposed, pool = like.positives_per_user, like.rows_per_user - like.positives_per_user, like.items_shown
    elif isinstance(look, Liked):
        own, exposed, pool = look.positives_per_user, math.nan, float(look.items)
    else:
        rows, pool = look.items * (1 - sparsity), float(look.items_shown)
        own = rows * look.positives / look.rows
        exposed = rows - own
    return {"exposed": exposed, "pool": max(pool - own, 0.0)}


def _elsewhere(figures: Figures, chosen: Candidates, users: int) -> Elsewhere:
    tau = figures.taus(users)
    best = int(np.nanargmax(tau))
    return Elsewhere(
        figures.metric, figures.table.candidates[best], float(tau[best]), float(tau[figures.table.at(chosen)])
    )
