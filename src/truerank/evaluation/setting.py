"""What comes into an evaluation, checked before any work is done: the call, the logs, the candidates, the rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Pool, Scores
from truerank.exposure.kinds import Exposure, FullExposure, RandomExposure, Unlisted
from truerank.ranks.candidates import Catalogue, Overlap, Setting, lay_out

Option = TypeVar("Option", bound=StrEnum)


def check_call(scores: Mapping[str, Any], *, baseline: str | None, level: float) -> None:
    """What a caller can get wrong, said before any work is done."""
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    if not isinstance(scores, Mapping):
        raise InputError(f"scores are a {type(scores).__name__}; expected a name for each model: {{name: scores}}.")
    if not scores:
        raise InputError("no scores given; expected at least one model, as NAME=FILE.")
    if baseline is not None and baseline not in scores:
        raise InputError(f"baseline {baseline!r} is not among the models; expected one of {', '.join(scores)}.")


def check_sizes(**sizes: int | None) -> None:
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; expected a whole number from 1.")


def check_users(models: Mapping[str, Scores], users: Ids, source: str) -> None:
    """Every model must have a user in common with the labels."""
    for name, scores in models.items():
        where = f"{source}, column 'user', against the users of {name}"
        if (scores.users.locate(users, where=where) < 0).all():
            raise InputError(
                f"{name} and {source} have no user in common: {name} has users such as "
                f"{', '.join(scores.users.texts(np.arange(min(3, len(scores.users)))))}, the labels "
                f"{', '.join(users.texts(np.arange(min(3, len(users)))))}. Check the id columns."
            )


@dataclass(frozen=True, slots=True)
class CatalogueLayout:
    """How rows are laid over the catalogue: the same for all rows at once and for those of some users."""

    catalogue: Catalogue
    exposure: Exposure
    overlap: Overlap

    def lay(self, labels: Log, *, exclude: Log | None, candidates: Log | None) -> Setting:
        full = isinstance(self.exposure, FullExposure)
        complete = isinstance(self.exposure, FullExposure) and self.exposure.unlisted is Unlisted.NEGATIVE
        setting = lay_out(
            replace(labels, complete=complete),
            self.catalogue,
            exclude=exclude,
            overlap=self.overlap,
            candidates=candidates,
        )
        if full and not complete:
            _check_complete(setting)
        return setting

    def check_rate(self, setting: Setting) -> None:
        """A declared rate must agree with the data; looked at where all users are there."""
        if isinstance(self.exposure, RandomExposure) and self.exposure.rate is not None:
            _check_rate(setting, self.exposure.rate)


def _check_rate(setting: Setting, rate: float) -> None:
    """A declared rate must agree with the data, and users whose sample came out empty must be there."""
    n = setting.pools[Pool.CATALOGUE].count
    if np.isnan(n).any():
        return
    source, judged = setting.labels.source, setting.pools[Pool.JUDGED].count
    expected, noise = rate * float(n.sum()), math.sqrt(rate * (1 - rate) * float(n.sum()))
    if abs(float(judged.sum()) - expected) > 6 * noise + 1:
        raise InputError(
            f"{source}: {int(judged.sum()):,} pairs are judged where a rate of {rate:g} gives about {expected:,.0f}; "
            "check the rate, or declare all users with --population."
        )
    empty = float(((1 - rate) ** n).sum())
    if empty >= 3 and (judged > 0).all():
        raise InputError(
            f"{source}: with a rate of {rate:g} about {empty:,.0f} users would have no judged item, but all have one. "
            "Users without one count too: name all users with --population FILE (Python: read(..., users=...))."
        )


def _check_complete(setting: Setting) -> None:
    """With full exposure every candidate carries a label."""
    n = setting.pools[Pool.CATALOGUE].count
    judged = setting.pools[Pool.JUDGED].count
    missing = np.flatnonzero(~(judged == n))
    if len(missing) == 0:
        return
    unit = int(missing[0])
    user = setting.labels.users.texts(missing[:1])[0]
    if np.isnan(n[unit]):
        raise InputError(
            f"{setting.labels.source}: full exposure needs a label for every candidate, and top lists do not tell how "
            "many there are. If pairs that are not listed are negatives, say --unlisted negative; else give the "
            "catalogue with --items FILE or --n-items N."
        )
    raise InputError(
        f"{setting.labels.source}: full exposure needs a label for every candidate, but user {user} has "
        f"{int(judged[unit]):,} labels for {int(n[unit]):,} candidates ({len(missing):,} users so). If pairs that are "
        "not listed are negatives, say --unlisted negative; if the judged items are a random sample, say "
        "--exposure random."
    )
