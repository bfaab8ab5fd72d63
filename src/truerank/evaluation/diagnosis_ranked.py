"""What a log of impressions can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.errors import InputError
from truerank.core.estimator import Exposed
from truerank.core.messages import Message, message
from truerank.estimators import ESTIMATORS, RANKED
from truerank.estimators.impressions import CHOSEN, FIVE, RankedContext
from truerank.estimators.refitting import RankedEstimator
from truerank.evaluation.diagnosed import Diagnosis, Usable, check_positives
from truerank.io.batches import LazyTable
from truerank.io.columns import VALUE_NAMES
from truerank.io.impressions import Impressions
from truerank.io.read_impressions import read_impressions

MUCH = 0.1  # that the mean of 1 / propensity may lie off the number of items

# what is known of a target that gives the propensity of each logged item, and of one that ranks all items of a session
CHOOSING = RankedContext(
    "the target", views_known=True, whole=False, total=True, ranks=False, models=False, several=False,
    logging_models=False,
)  # fmt: skip
RANKING = RankedContext(
    "the target", views_known=True, whole=True, total=True, ranks=True, models=True, several=False, logging_models=True
)


def ranked_diagnosis(source: Any, mapping: Mapping[str, str], names: Mapping[str, str]) -> Diagnosis:
    values = [names[kind] for kind in VALUE_NAMES if kind in names]
    if not values:
        raise InputError(
            f"{LazyTable.of(source).where}: positions, but no reward: expected a column of what was earned, as reward "
            "or click. Name it as the label."
        )
    others = {kind: name for kind, name in mapping.items() if kind not in VALUE_NAMES}
    log = read_impressions(source, columns=others, rewards=values[:1])
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected impressions.")
    earned = {name: float(np.asarray(log.reward(name), dtype=np.float64).mean()) for name in values[:1]}
    reward = values[0]
    positive = int(np.count_nonzero(np.asarray(log.reward(reward))))
    facts: dict[str, float | int] = {
        "rows": len(log), "sessions": log.n_units, "items": len(log.items), "rewarded": positive,
        "mean_reward": earned[reward],
    }  # fmt: skip
    if log.users is not None:
        facts["users"] = len(log.users)
    findings = [*check_positives(positive), *_check_positions(log)]
    chosen = log.propensity is not None and "session" not in names
    if log.propensity is not None:
        smallest, mean = float(log.propensity.min()), float((1 / log.propensity).mean())
        facts |= {"smallest_propensity": smallest}
        if chosen and abs(mean / len(log.items) - 1) > MUCH:
            findings.append(message("propensity-scale.actions", mean=mean, items=len(log.items)))
    why = (
        "each row is an item that was chosen with a known propensity"
        if chosen
        else "rows are items at positions of sessions, with what they earned"
    )
    negative = bool((np.asarray(log.reward(reward)) < 0).any())
    asked = replace(CHOOSING if chosen else RANKING, reward=reward, negative=negative)
    usable = tuple(_usable_ranked(cls(), asked, chosen=chosen) for cls in RANKED.catalogue().values())
    judged = (
        Usable(name, why_not=f"is for {' or '.join(sorted(cls.about.exposures))} exposure")
        for name, cls in ESTIMATORS.catalogue().items()
        if name not in RANKED.catalogue()
    )
    return Diagnosis(
        source=log.source,
        exposed=Exposed.RANKED,
        why=why,
        columns=names,
        facts=facts,
        findings=tuple(findings),
        estimators=(*usable, *judged),
        propensities=log.propensity is not None,
        rewards=(reward,),
        extra={"chosen": chosen},
    )


def _usable_ranked(estimator: RankedEstimator, asked: RankedContext, *, chosen: bool) -> Usable:
    about, reason = estimator.about, estimator.refusal(asked)
    if reason is not None:
        return Usable(about.name, why_not=reason.rstrip("."))
    assumed = (*(CHOSEN if chosen else FIVE), *estimator.metric.assumptions)
    return Usable(about.name, (f"{asked.reward}, {estimator.metric}",), assumed, caution=about.caution)


def _check_positions(log: Impressions) -> Iterator[Message]:
    """How deep sessions are, and whether that tells positions apart."""
    if log.position is None:
        return
    position = np.asarray(log.position, dtype=np.int64)
    deepest = int(position.max())
    yield message("positions", first=int(position.min()), deepest=deepest)
    if deepest == 1 and log.sessions is not None:
        yield message("one-position")
