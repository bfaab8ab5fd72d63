"""What a log can tell: which kind it is, what it holds, and which estimators are for it under which assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.estimator import Estimator, Exposed
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log, Pairs
from truerank.core.messages import Message, message
from truerank.core.ranking import Scores
from truerank.estimators import ESTIMATORS
from truerank.evaluation.compatibility import DEFAULT_METRICS, names_for
from truerank.evaluation.diagnosed import Diagnosis, Usable, check_positives
from truerank.evaluation.diagnosis_ranked import ranked_diagnosis
from truerank.exposure.propensities import PROPENSITIES
from truerank.exposure.randomness.labelled import LARGE
from truerank.exposure.randomness.tests import Randomness, randomness
from truerank.inference.verdicts import FEWEST
from truerank.io.batches import LazyTable
from truerank.io.columns import RULE, VALUE_NAMES, PositiveRule, with_usual
from truerank.io.read import read

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
        findings += check_positives(positives)
    if len(log.users) < FEWEST:
        findings.append(message("few-users.log", users=len(log.users), fewest=FEWEST))
    tested = None
    if positives is not None and positives == len(log):
        exposed, why = Exposed.HOLDOUT, "every row is a positive: nothing tells what was shown and not liked"
    elif density == 1:
        exposed, why = Exposed.FULL, f"every one of {len(log):,} pairs of users and items has a label"
    elif density >= NEARLY:
        exposed, why = Exposed.FULL, f"{density:.1%} of all pairs have a label; the others would count as irrelevant"
        findings.append(message("pairs-missing", share=1 - density))
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
        findings=(*findings, *_check_scores(log, scores)),
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
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    return log.select(first), [message("repeated-pairs", rows=twice)]


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


def _by_exposure(log: Log, tested: Randomness, pairs: int, *, alone: bool) -> tuple[Exposed, str, list[Message]]:
    """What the test of random exposure and the propensities say."""
    if log.propensity is not None:
        constant = bool(np.ptp(log.propensity) == 0)
        if not (constant and tested.random):
            why = "rows carry the propensity with which they were shown"
            return Exposed.BIASED, why, [_check_propensities(log.propensity, pairs)]
    if tested.random or tested.random is None:
        return Exposed.RANDOM, tested.verdict.rstrip("."), []
    effect = 0.0 if tested.unevenness is None else tested.unevenness.effect
    failed = [check.name for check in tested.checks if check.failed and check.verdict]
    if effect <= LARGE and failed == ["items"]:
        almost = message("not-quite-random", effect=effect)
        return Exposed.RANDOM, "almost a uniform sample of items for each user", [almost]
    among_unseen = [message("drawn-among-unseen")] if alone else []
    return Exposed.BIASED, tested.verdict.rstrip("."), [message("no-propensities"), *among_unseen]


def _known_pairs(excluded: Log, log: Log) -> int:
    """How many excluded pairs are of users and items of the log."""
    user, item = log.users.locate(excluded.users)[excluded.user], log.items.locate(excluded.items)[excluded.item]
    known = (user >= 0) & (item >= 0)
    return len(Pairs.of(user[known], item[known], n_units=len(log.users)).item)


def _check_propensities(propensity: Floats, pairs: int) -> Message:
    """Each row represents 1 / π pairs: together all of them, if propensities are probabilities of exposure."""
    weight = 1 / propensity
    noise = float(np.sqrt(((1 - propensity) * weight**2).sum()))
    total = float(weight.sum())
    off = abs(total - pairs) > FAR * noise and abs(total / pairs - 1) > MUCH
    key = "propensity-scale.log" if off else "propensities.sum"
    return message(key, stand_for=total, pairs=pairs, numbers={"smallest": float(propensity.min())})


def _check_scores(log: Log, scores: Mapping[str, Scores]) -> Iterator[Message]:
    """Whether models have scores for the users and items of the log."""
    n_users, n_items = len(log.users), len(log.items)
    for name, model in scores.items():
        users = int(np.count_nonzero(model.users.locate(log.users) >= 0))
        items = int(np.count_nonzero(model.items.locate(log.items) >= 0))
        key = "no-scores.log" if not users or not items else "scores-missing" if users < n_users else "scores"
        kind = "item" if users else "user"
        yield message(key, model=name, users=users, n_users=n_users, items=items, n_items=n_items, kind=kind)


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
