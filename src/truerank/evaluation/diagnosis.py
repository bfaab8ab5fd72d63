"""What a log can tell: which kind it is, what it holds, and which estimators are for it under which assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.estimator import Estimator, Exposed
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log, Pairs
from truerank.core.messages import Message, caution, note, warning
from truerank.core.ranking import Scores
from truerank.core.wording import option
from truerank.data.batches import LazyTable
from truerank.data.read import VALUE_NAMES, read
from truerank.data.recognise import with_usual
from truerank.data.rules import RULE, PositiveRule
from truerank.estimators import ESTIMATORS
from truerank.evaluation.asked import DEFAULT_METRICS, names_for
from truerank.evaluation.diagnosed import Diagnosis, Usable, about_positives
from truerank.evaluation.diagnosis_ranked import ranked_diagnosis
from truerank.exposure.propensities import PROPENSITIES
from truerank.exposure.randomness.items import LARGE
from truerank.exposure.randomness.tests import Randomness, randomness
from truerank.uncertainty.verdicts import FEWEST

KINDS = ("user", "item", "label", "rating", "time", "session", "position", "propensity")
NEARLY = 0.99  # of all pairs labelled
FAR, MUCH = 3.0, 0.1  # standard errors and share that Σ 1 / propensity may lie off


@checked_arguments(positive=RULE)
def diagnose(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    exclude: Log | None = None,
    items: Ids | IdColumn | None = None,
    n_items: int | None = None,
    scores: Mapping[str, Scores] | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Look at a log and say what it can tell; `scores` are models that shall be evaluated on it.

    `exclude` are pairs that were known before (training): random items are often drawn among the others.

    >>> import polars as pl
    >>> user, item = np.divmod(np.arange(40), 4)
    >>> found = diagnose(pl.DataFrame({"user": user, "item": item, "label": (user + item) % 2}))
    >>> str(found.exposed), [each.name for each in found.estimators if each.valid][:1]
    ('full', ['full'])
    """
    given = dict(columns or {})
    rows = LazyTable.of(source, columns=columns)
    mapping = with_usual(rows.columns, given, KINDS)
    names = {kind: mapping.get(kind, kind) for kind in KINDS if mapping.get(kind, kind) in rows.columns}
    names |= {kind: mapping.get(kind, kind) for kind in VALUE_NAMES if mapping.get(kind, kind) in rows.columns}
    if "position" in names and ("session" in names or "propensity" in names or "user" not in names):
        return ranked_diagnosis(source, mapping, names)
    log = read(source, columns=mapping, positive=positive, items=items, values=_valued(names))
    return _judged(log, names, excluded=exclude, n_items=n_items, scores=scores or {}, seed=seed)


def _valued(names: Mapping[str, str]) -> bool:
    return any(kind in names for kind in VALUE_NAMES)


# --------------------------------------------------------------------------------------------------------------- judged


def _judged(
    log: Log,
    names: Mapping[str, str],
    *,
    excluded: Log | None,
    n_items: int | None,
    scores: Mapping[str, Scores],
    seed: int,
) -> Diagnosis:
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected pairs of users and items.")
    log, repeated = _once(log)
    catalogue = max(n_items or 0, len(log.items))
    pairs = len(log.users) * catalogue - (0 if excluded is None else _known_pairs(excluded, log))
    density = len(log) / max(pairs, len(log))
    labelled, rule = _labels(log)
    positives = None if labelled is None else int(np.count_nonzero(labelled))
    facts: dict[str, float | int] = {
        "rows": len(log), "users": len(log.users), "items": catalogue, "density": density,
        "rows_per_user": len(log) / len(log.users),
    }  # fmt: skip
    findings = list(repeated)
    if positives is not None and labelled is not None:
        per_user = np.bincount(log.user, weights=labelled, minlength=len(log.users))
        facts |= {"positives": positives, "users_without_positive": int(np.count_nonzero(per_user == 0))}
        findings += about_positives(positives)
    findings += _about_users(len(log.users))
    tested = None
    if positives is not None and positives == len(log):
        exposed, why = Exposed.HOLDOUT, "every row is a positive: nothing tells what was shown and not liked"
    elif density == 1:
        exposed, why = Exposed.FULL, f"every one of {len(log):,} pairs of users and items has a label"
    elif density >= NEARLY:
        exposed, why = Exposed.FULL, f"{density:.1%} of all pairs have a label; the others would count as irrelevant"
        findings.append(caution("pairs-missing", f"{1 - density:.1%} of all pairs have no label"))
    else:
        tested = randomness(log, train=excluded, seed=seed)
        exposed, why, said = _by_exposure(log, tested, pairs, alone=excluded is None)
        findings += said
    found = Diagnosis(
        source=log.source,
        exposed=exposed,
        why=why,
        columns=names,
        facts=facts,
        findings=(*findings, *_about_scores(log, scores)),
        estimators=(),
        randomness=tested,
        propensities=log.propensity is not None,
        needs_positive=rule,
        extra={"inclusion": log.inclusion is not None, "unlisted": exposed is Exposed.FULL and density < 1},
    )
    return replace(found, estimators=tuple(_usable(each(), found) for each in _usual_first(exposed)))


def _usual_first(exposed: Exposed) -> list[type[Estimator]]:
    """All estimators: first what is taken where none is asked for, last those that are for other logs."""
    order = names_for(exposed)
    every = ESTIMATORS.catalogue().values()
    return sorted(every, key=lambda each: order.index(each.about.name) if each.about.name in order else len(order))


def _once(log: Log) -> tuple[Log, list[Message]]:
    """The first row of each pair, and that there are others."""
    again = (np.diff(log.user) == 0) & (np.diff(log.item) == 0)  # rows are in the order of users and items
    twice = int(np.count_nonzero(again))
    if not twice:
        return log, []
    sentence = (
        f"{twice:,} rows repeat a pair that is listed already, where one label per pair is expected: keep one of each, "
        "or name the session if these are impressions; what follows is of the first of each"
    )
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    return log.select(first), [warning("repeated-pairs", sentence, numbers={"rows": twice})]


def _labels(log: Log) -> tuple[Any, str | None]:
    """0 or 1 for each row, and the rule to start with where values need one; every row is 1 where there is no value."""
    if "label" in log.rewards:
        return log.label, None
    if not log.rewards:
        return np.ones(len(log)), None
    values = next(iter(log.rewards.values()))
    for value in np.unique(values).tolist():
        if (values >= value).mean() <= 0.5:
            return None, f">={value:g}"
    return None, f">={values.max():g}"


def _about_users(users: int) -> list[Message]:
    if users >= FEWEST:
        return []
    sentence = f"{users:,} users: a verdict needs at least {FEWEST} who tell two models apart"
    return [warning("few-users", sentence, numbers={"users": users})]


def _by_exposure(log: Log, tested: Randomness, pairs: int, *, alone: bool) -> tuple[Exposed, str, list[Message]]:
    """What the test of random exposure and the propensities say."""
    if log.propensity is not None:
        constant = bool(np.ptp(log.propensity) == 0)
        if not (constant and tested.random):
            why = "rows carry the propensity with which they were shown"
            return Exposed.BIASED, why, _about_propensities(log, pairs)
    if tested.random or tested.random is None:
        return Exposed.RANDOM, tested.verdict.rstrip("."), []
    effect = 0.0 if tested.unevenness is None else tested.unevenness.effect
    failed = [check.name for check in tested.checks if check.failed and check.verdict]
    if effect <= LARGE and failed == ["items"]:
        almost = caution("not-quite-random", f"items were shown unequally by {effect:.0%} of the mean beyond chance")
        return Exposed.RANDOM, "almost a uniform sample of items for each user", [almost]
    said: list[Message] = [
        warning(
            "no-propensities",
            "how likely each row was shown is not in the log: what is estimated rests on a model of it, which nothing "
            "here can check. A few randomly exposed items per user would",
        )
    ]
    if alone:
        unseen = (
            f"if items were drawn at random among those a user had not seen, say which were seen ({option('exclude')})"
        )
        said.append(note("drawn-among-unseen", unseen))
    return Exposed.BIASED, tested.verdict.rstrip("."), said


def _known_pairs(excluded: Log, log: Log) -> int:
    """How many excluded pairs are of users and items of the log."""
    user, item = log.users.locate(excluded.users)[excluded.user], log.items.locate(excluded.items)[excluded.item]
    known = (user >= 0) & (item >= 0)
    return len(Pairs.of(user[known], item[known], n_units=len(log.users)).item)


def _about_propensities(log: Log, pairs: int) -> list[Message]:
    """Each row stands for 1 / π pairs: together for all of them, if propensities are probabilities of exposure."""
    if log.propensity is None:
        return []
    weight = 1 / log.propensity
    noise = float(np.sqrt(((1 - log.propensity) * weight**2).sum()))
    stand_for = float(weight.sum())
    numbers = {"stand_for": stand_for, "pairs": pairs, "smallest": float(log.propensity.min())}
    if abs(stand_for - pairs) > FAR * noise and abs(stand_for / pairs - 1) > MUCH:
        return [
            warning(
                "propensity-scale",
                f"the rows stand for {stand_for:,.0f} pairs (Σ 1 / propensity), but there are {pairs:,}: propensities "
                "are not the probabilities of exposure, users or items are missing, or heavy rows were not drawn; "
                "only what needs their ratios is valid",
                numbers=numbers,
            )
        ]
    return [note("propensities", f"Σ 1 / propensity is {stand_for:,.0f}, near the {pairs:,} pairs", numbers=numbers)]


def _about_scores(log: Log, scores: Mapping[str, Scores]) -> list[Message]:
    """Whether models have scores for the users and items of the log."""
    found: list[Message] = []
    for name, each in scores.items():
        users = int(np.count_nonzero(each.users.locate(log.users) >= 0))
        items = int(np.count_nonzero(each.items.locate(log.items) >= 0))
        sentence = f"{name}: scores for {users:,} of {len(log.users):,} users and {items:,} of {len(log.items):,} items"
        numbers = {"users": users, "items": items}
        if not users or not items:
            what = "user" if not users else "item"
            found.append(warning("no-scores", f"{sentence}: no {what} in common, check the ids", numbers=numbers))
        elif users < len(log.users):
            found.append(caution("scores-missing", f"{sentence}; the other users are left out", numbers=numbers))
        else:
            found.append(note("scores", sentence, numbers=numbers))
    return found


def _usable(estimator: Estimator, of: Diagnosis) -> Usable:
    """Whether an estimator is for such a log, by what it says of itself."""
    about = estimator.about
    usual = DEFAULT_METRICS[of.exposed]
    if of.exposed not in about.exposures:
        kinds = " or ".join(sorted(about.exposures))
        return Usable(about.name, why_not=f"is for {kinds} exposure")
    if "inclusion" in about.uses and not of.extra.get("inclusion"):
        return Usable(about.name, why_not="needs the column inclusion of an intervened test set")
    codes = {message.code for message in of.findings}
    unscaled = "propensity-scale" in codes or (about.weighs and not of.propensities)
    if about.needs_scale and unscaled:
        return Usable(about.name, why_not="needs propensities that are probabilities, not only proportional to them")
    if of.extra.get("unlisted") and not about.complete:
        return Usable(about.name, why_not="needs every pair labelled or none missing by a rule of its own")
    answered = tuple(str(metric) for metric in usual if estimator.refusal(metric) is None)
    if not answered:
        return Usable(about.name, why_not=str(estimator.refusal(usual[0])).rstrip("."))
    return Usable(about.name, answered, about.assumptions, caution=about.caution)


def propensity_models() -> Sequence[str]:
    """Models of propensities that need no further data: what a log without propensities can start with."""
    return [name for name, cls in PROPENSITIES.catalogue().items() if not cls.uses and name != "column"]
