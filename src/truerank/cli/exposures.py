"""What the options of `truerank evaluate` say about exposure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from truerank import estimators
from truerank.core.errors import InputError
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.data.features import read_features
from truerank.data.read import read
from truerank.estimators.biased.doubly_robust import DoublyRobust
from truerank.estimators.biased.rewards import GivenRewards
from truerank.exposure import propensities
from truerank.exposure.kinds import BiasedExposure, Exposure, FullExposure, RandomExposure, Unlisted
from truerank.exposure.propensities import PropensityModel, parse_propensity


def check_exposure(name: str, *, rate: float | None, unlisted: str, biased: Mapping[str, Any]) -> None:
    """Options that do not go with the exposure are refused before anything is read."""
    if rate is not None and name != "random":
        raise InputError("--rate goes with --exposure random.")
    if unlisted != "unknown" and name != "full":
        raise InputError(f"--unlisted negative goes with --exposure full: with {name} exposure unlisted is unknown.")
    given = [option for option, value in biased.items() if value is not None]
    if given and name != "biased":
        raise InputError(f"{', '.join(given)} {'goes' if len(given) == 1 else 'go'} with --exposure biased.")


def propensity_option(text: str | None, columns: dict[str, str]) -> tuple[PropensityModel | None, dict[str, str]]:
    """The model of propensities, and the columns with the one that holds them; a name that is no model is a column."""
    if text is None:
        return None, columns
    name, _, option = (part.strip() for part in text.partition(":"))
    model = name.partition("(")[0].strip().lower()
    if model == "column" or model not in propensities.catalogue():
        return None, {**columns, "propensity": option if model == "column" and option else text.strip()}
    return parse_propensity(text), columns


def check_uses(model: PropensityModel | None, given: Mapping[str, Any]) -> None:
    """Files that the propensities do not use are refused: who gives one expects it to matter."""
    known = propensities.catalogue()
    uses = known["column"].uses if model is None else model.uses
    for name in [name for name, value in given.items() if value is not None and name not in uses]:
        users = " or ".join(f"--propensity {each}" for each, kind in known.items() if name in kind.uses)
        what = "a column of propensities" if model is None else f"--propensity {model}"
        raise InputError(f"--{name.replace('_', '-')} is not used by {what}; it goes with {users}. Leave one out.")


def check_propensities(log: Log, model: PropensityModel | None, columns: Mapping[str, str]) -> None:
    """A log must have the column of propensities that was named, unless they are to be fitted."""
    if model is None and log.propensity is None:
        known = ", ".join(name for name in propensities.catalogue() if name != "column")
        raise InputError(
            f"{log.source}: no column {columns.get('propensity', 'propensity')!r} with the propensity of each row. "
            f"Name it: --propensity COLUMN; or have propensities estimated: --propensity MODEL, one of {known}."
        )


def made_exposure(
    name: str,
    *,
    rate: float | None,
    unlisted: str,
    propensity: PropensityModel | None,
    random: Path | None,
    user_features: Path | None,
    item_features: Path | None,
    columns: Mapping[str, str],
    positive: str | None,
) -> Exposure:
    if name == "full":
        return FullExposure(Unlisted(unlisted))
    if name == "random":
        return RandomExposure(rate)
    return BiasedExposure(
        propensity,
        random=None if random is None else read(random, columns=columns, positive=positive),
        user_features=None if user_features is None else read_features(user_features, kind="user", columns=columns),
        item_features=None if item_features is None else read_features(item_features, kind="item", columns=columns),
    )


def chosen_estimators(names: tuple[str, ...], *, rewards: Scores | None) -> list[Estimator] | None:
    """The estimators asked for, with the reward model where one takes it; None for the defaults."""
    made: list[Estimator] = [estimators.parse(name) for name in names]
    if rewards is None:
        return made or None
    able = DoublyRobust.about.name
    if all(estimator.about.name != able for estimator in made):
        raise InputError(f"--rewards is for --estimator {able}; add it.")
    reward = GivenRewards(rewards)
    return [replace(each, reward=reward) if isinstance(each, DoublyRobust) else each for each in made]
