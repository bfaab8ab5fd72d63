"""What a log can tell: which kind it is, what it holds, and which estimators are for it under which assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from truerank.core.errors import InputError
from truerank.core.estimator import Estimator, Exposed
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log, Pairs
from truerank.core.messages import Message, message
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.validation import checked_arguments
from truerank.estimators import ESTIMATORS, RANKED
from truerank.estimators.impressions import RankedContext
from truerank.estimators.refitting import CHOSEN, FIVE, RankedEstimator
from truerank.evaluation.compatibility import DEFAULT_METRICS, names_for
from truerank.exposure.propensities import PROPENSITIES
from truerank.exposure.randomness import Randomness, randomness
from truerank.exposure.randomness.labelled import LARGE
from truerank.inference.verdicts import FEWEST
from truerank.io.batches import LazyTable
from truerank.io.columns import RULE, VALUE_NAMES, PositiveRule, with_usual
from truerank.io.read import read, read_impressions

KINDS = ("user", "item", "label", "rating", "time", "session", "position", "propensity")
FEW_POSITIVES = 30
NEARLY = 0.99  # of all pairs labelled
FAR, MUCH = 3.0, 0.1  # standard errors and share that Σ 1 / propensity may lie off


@record
class Usable:
    """An estimator, and for which of the usual metrics it is valid here; or why it is not."""

    name: str
    metrics: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    why_not: str = ""
    caution: str = ""

    @property
    def valid(self) -> bool:
        return not self.why_not


@record
class Diagnosis:
    """What a log contains.

    `exposed` is what it shows of the truth, `why` the sentence that explains it; `columns` are its names of what was
    recognised; `facts` are counts; `needs_positive` is a rule to start with where values are no labels.
    """

    source: str
    exposed: Exposed
    why: str
    columns: Mapping[str, str]
    facts: Mapping[str, float | int]
    findings: tuple[Message, ...]
    estimators: tuple[Usable, ...] = ()
    randomness: Randomness | None = None
    propensities: bool = False
    rewards: tuple[str, ...] = ()
    needs_positive: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


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
    """Look at a log and tell what it supports; `scores` are models that shall be evaluated on it.

    `exclude` are pairs that were known before (training): random items are often drawn among the others.

    >>> import polars as pl
    >>> user, item = np.divmod(np.arange(40), 4)
    >>> diagnosis = diagnose(pl.DataFrame({"user": user, "item": item, "label": (user + item) % 2}))
    >>> str(diagnosis.exposed), [usable.name for usable in diagnosis.estimators if usable.valid][:1]
    ('full', ['full'])
    """
    rows = LazyTable.of(source, columns=columns)
    mapping = with_usual(rows.columns, dict(columns or {}), KINDS)
    names = {kind: mapping.get(kind, kind) for kind in (*KINDS, *VALUE_NAMES)}
    names = {kind: name for kind, name in names.items() if name in rows.columns}
    if "position" in names and ("session" in names or "propensity" in names or "user" not in names):
        return _impressions(source, mapping, names)
    valued = any(kind in names for kind in VALUE_NAMES)
    log = read(source, columns=mapping, positive=positive, items=items, values=valued)
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected pairs of users and items.")
    return _labels(log, names, excluded=exclude, n_items=n_items, scores=scores or {}, seed=seed)


def check_positives(positives: int) -> Iterator[Message]:
    if positives == 0:
        yield message("no-positive.log")
    elif positives < FEW_POSITIVES:
        yield message("few-positives", positives=positives)


# -------------------------------------------------------------------------------------------------------------- labels


def _labels(
    log: Log,
    names: Mapping[str, str],
    *,
    excluded: Log | None,
    n_items: int | None,
    scores: Mapping[str, Scores],
    seed: int,
) -> Diagnosis:
    findings: list[Message] = []
    repeated = (np.diff(log.user) == 0) & (np.diff(log.item) == 0)  # rows are in the order of users and items
    if repeated.any():
        findings.append(message("repeated-pairs", rows=int(np.count_nonzero(repeated))))
        log = log.select(np.flatnonzero(np.concatenate([[True], ~repeated])))
    n_users, catalogue = len(log.users), max(n_items or 0, len(log.items))
    pairs = n_users * catalogue
    if excluded is not None:
        user, item = excluded.places_in(log.users, log.items)
        within = (user >= 0) & (item >= 0)
        pairs -= len(Pairs.of(user[within], item[within], n_units=n_users).item)
    density = len(log) / max(pairs, len(log))
    facts: dict[str, float | int] = {
        "rows": len(log), "users": n_users, "items": catalogue, "density": density, "rows_per_user": len(log) / n_users,
    }  # fmt: skip
    rule, positives = None, None
    if log.rewards and "label" not in log.rewards:
        values = next(iter(log.rewards.values()))
        thresholds = np.unique(values).tolist()
        rule = f">={next((value for value in thresholds if (values >= value).mean() <= 0.5), thresholds[-1]):g}"
    else:
        labels = log.label if log.rewards else np.ones(len(log))
        positives = int(np.count_nonzero(labels))
        per_user = np.bincount(log.user, weights=labels, minlength=n_users)
        facts |= {"positives": positives, "users_without_positive": int(np.count_nonzero(per_user == 0))}
        findings += check_positives(positives)
    if n_users < FEWEST:
        findings.append(message("few-users.log", users=n_users, fewest=FEWEST))
    tested = None
    if positives == len(log):
        exposed, why = Exposed.HOLDOUT, "every row is a positive: nothing tells what was shown and not liked"
    elif density == 1:
        exposed, why = Exposed.FULL, f"every one of {len(log):,} pairs of users and items has a label"
    elif density >= NEARLY:
        exposed, why = Exposed.FULL, f"{density:.1%} of all pairs have a label; the others would count as irrelevant"
        findings.append(message("pairs-missing", share=1 - density))
    else:
        tested = randomness(log, train=excluded, seed=seed)
        exposed, why, messages = _by_exposure(log, tested, pairs, without_exclusions=excluded is None)
        findings += messages
    diagnosis = Diagnosis(
        source=log.source,
        exposed=exposed,
        why=why,
        columns=names,
        facts=facts,
        findings=(*findings, *_check_scores(log, scores)),
        randomness=tested,
        propensities=log.propensity is not None,
        needs_positive=rule,
        extra={"inclusion": log.inclusion is not None, "unlisted": exposed is Exposed.FULL and density < 1},
    )
    # first what is used by default, last those that are for other logs
    order = {name: place for place, name in enumerate(names_for(exposed))}
    estimators = sorted(ESTIMATORS.catalogue().values(), key=lambda cls: order.get(cls.info.name, len(order)))
    return replace(diagnosis, estimators=tuple(_usable(cls(), diagnosis) for cls in estimators))


def _by_exposure(
    log: Log, tested: Randomness, pairs: int, *, without_exclusions: bool
) -> tuple[Exposed, str, list[Message]]:
    """What the test of random exposure and the propensities tell."""
    propensity = log.propensity
    if propensity is not None and not (tested.random and np.ptp(propensity) == 0):
        # each row represents 1 / π pairs: together all of them, if propensities are probabilities of exposure
        total, noise = float((1 / propensity).sum()), float(np.sqrt(((1 - propensity) / propensity**2).sum()))
        off = abs(total - pairs) > FAR * noise and abs(total / pairs - 1) > MUCH
        key = "propensity-scale.log" if off else "propensities.sum"
        scale = message(key, stand_for=total, pairs=pairs, numbers={"smallest": float(propensity.min())})
        return Exposed.BIASED, "rows carry the propensity with which they were exposed", [scale]
    why = tested.verdict.rstrip(".")
    if tested.random or tested.random is None:
        return Exposed.RANDOM, why, []
    effect = 0.0 if tested.unevenness is None else tested.unevenness.effect
    failed = [check.name for check in tested.checks if check.failed and check.verdict]
    if effect <= LARGE and failed == ["items"]:
        almost = message("not-quite-random", effect=effect)
        return Exposed.RANDOM, "almost a uniform sample of items for each user", [almost]
    among_unseen = [message("drawn-among-unseen")] if without_exclusions else []
    return Exposed.BIASED, why, [message("no-propensities"), *among_unseen]


def _check_scores(log: Log, scores: Mapping[str, Scores]) -> Iterator[Message]:
    """Whether models have scores for the users and items of the log."""
    n_users, n_items = len(log.users), len(log.items)
    for name, model in scores.items():
        users = int(np.count_nonzero(model.users.locate(log.users) >= 0))
        items = int(np.count_nonzero(model.items.locate(log.items) >= 0))
        key = "no-scores.log" if not users or not items else "scores-missing" if users < n_users else "scores"
        kind = "item" if users else "user"
        yield message(key, model=name, users=users, n_users=n_users, items=items, n_items=n_items, kind=kind)


def _usable(estimator: Estimator, diagnosis: Diagnosis) -> Usable:
    """Whether an estimator is for such a log, by its description."""
    info, extra, usual = estimator.info, diagnosis.extra, DEFAULT_METRICS[diagnosis.exposed]
    codes = {message.code for message in diagnosis.findings}
    unscaled = "propensity-scale" in codes or (info.weighs and not diagnosis.propensities)
    answered = tuple(str(metric) for metric in usual if estimator.refusal(metric) is None)
    if diagnosis.exposed not in info.exposures:
        why_not = _other_exposure(estimator)
    elif "inclusion" in info.uses and not extra.get("inclusion"):
        why_not = "needs the column inclusion of an intervened test set"
    elif info.needs_scale and unscaled:
        why_not = "needs propensities that are probabilities, not only proportional to them"
    elif extra.get("unlisted") and not info.complete:
        why_not = "needs every pair labelled or none missing by a rule of its own"
    elif not answered:
        why_not = str(estimator.refusal(usual[0])).rstrip(".")
    else:
        caution = info.caution or (info.differs if diagnosis.exposed is Exposed.RANDOM else "")
        return Usable(info.name, answered, info.assumptions, caution=caution)
    return Usable(info.name, why_not=why_not)


def _other_exposure(estimator: Estimator | type[Estimator]) -> str:
    return f"is for {' or '.join(sorted(estimator.info.exposures))} exposure"


def propensity_models() -> Sequence[str]:
    """Models of propensities that need no further data: what a log without propensities can start with."""
    return [name for name, cls in PROPENSITIES.catalogue().items() if not cls.uses and name != "column"]


# --------------------------------------------------------------------------------------------------------- impressions


def _impressions(source: Any, mapping: Mapping[str, str], names: Mapping[str, str]) -> Diagnosis:
    reward = next((names[kind] for kind in VALUE_NAMES if kind in names), None)
    if reward is None:
        raise InputError(
            f"{LazyTable.of(source).where}: positions, but no reward: expected a column of what was earned, as reward "
            "or click. Name it as the label."
        )
    others = {kind: name for kind, name in mapping.items() if kind not in VALUE_NAMES}
    log = read_impressions(source, columns=others, rewards=[reward])
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected impressions.")
    earned, items = np.asarray(log.reward(reward), dtype=np.float64), len(log.items)
    rewarded = int(np.count_nonzero(earned))
    facts: dict[str, float | int] = {
        "rows": len(log), "sessions": log.n_units, "items": items, "rewarded": rewarded,
        "mean_reward": float(earned.mean()),
    }  # fmt: skip
    facts |= {} if not log.has_users else {"users": len(log.users)}
    findings = [*check_positives(rewarded)]
    if log.position is not None:
        position = np.asarray(log.position, dtype=np.int64)
        deepest = int(position.max())
        findings.append(message("positions", first=int(position.min()), deepest=deepest))
        findings += [message("one-position")] if deepest == 1 and log.sessions is not None else []
    chosen = log.propensity is not None and "session" not in names
    if log.propensity is not None:
        mean = float((1 / log.propensity).mean())
        facts |= {"smallest_propensity": float(log.propensity.min())}
        if chosen and abs(mean / items - 1) > MUCH:
            findings.append(message("propensity-scale.actions", mean=mean, items=items))
    # what is known of a target that gives the propensity of each logged item, and of one that ranks all of a session
    context = RankedContext(
        "the target", views_known=True, whole=not chosen, total=True, ranks=not chosen, models=not chosen,
        several=False, logging_models=not chosen, reward=reward, negative=bool((earned < 0).any()),
    )  # fmt: skip
    ranked = RANKED.catalogue()
    return Diagnosis(
        source=log.source,
        exposed=Exposed.RANKED,
        why="each row is an item that was chosen with a known propensity"
        if chosen
        else "rows are items at positions of sessions, with what they earned",
        columns=names,
        facts=facts,
        findings=tuple(findings),
        estimators=(
            *(_usable_ranked(cls(), context, CHOSEN if chosen else FIVE) for cls in ranked.values()),
            *(
                Usable(name, why_not=_other_exposure(cls))
                for name, cls in ESTIMATORS.catalogue().items()
                if name not in ranked
            ),
        ),
        propensities=log.propensity is not None,
        rewards=(reward,),
        extra={"chosen": chosen},
    )


def _usable_ranked(estimator: RankedEstimator, context: RankedContext, assumptions: Sequence[str]) -> Usable:
    info, reason = estimator.info, estimator.refusal(context)
    if reason is not None:
        return Usable(info.name, why_not=reason.rstrip("."))
    assumed = (*assumptions, *estimator.metric.assumptions)
    return Usable(info.name, (f"{context.reward}, {estimator.metric}",), assumed, caution=info.caution)
