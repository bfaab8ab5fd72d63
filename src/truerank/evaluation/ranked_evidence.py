"""What is said of a single off-policy value: on how much it rests, and whether that carries an interval."""

from __future__ import annotations

import numpy as np

from truerank.core.estimator import Asked
from truerank.core.messages import Message, caution, warning
from truerank.core.refits import Refitted
from truerank.core.terms import Terms
from truerank.core.wording import option
from truerank.evaluation.ranked_facts import RankedFacts
from truerank.uncertainty.tails import about_tails

FEW_UNITS = 30
FEW_PAYING = 20


def about_value(facts: RankedFacts, asked: Asked, terms: Terms, *, n_units: int, strata: bool) -> list[Message]:
    """Who is left out, how many clusters earn, and whether a few of them carry the value.

    `strata` says that the interval is within loggers, where there are several.
    """
    sums, who = terms.whole, facts.cluster
    messages: list[Message] = []
    if n_units < facts.n_units:
        missing = facts.n_units - n_units
        messages.append(
            caution(
                "left-out",
                f"{missing:,} of {facts.n_units:,} {facts.unit}s {asked.metric.left_out} and are left out",
                numbers={"units": missing},
            )
        )
    paying = int(np.count_nonzero(sums.clusters.sums(np.abs(sums.sums[:, 0]))))
    if not paying:
        messages.append(
            warning(
                "no-reward",
                "nothing that this target would show has a reward: nothing tells how far the value is from 0",
            )
        )
    elif paying < FEW_PAYING:
        messages.append(
            caution(
                "few-rewards",
                f"rests on {paying} {who}s with a reward: the interval is rough",
                numbers={"units": paying},
            )
        )
    single = _single(terms, who, strata=strata)
    clusters = int(np.count_nonzero(terms.clusters.has(terms.defined)))
    if single is not None:
        messages.append(warning("no-interval", f"no interval: {single}"))
    elif 0 < clusters < FEW_UNITS:
        messages.append(
            caution("few-units", f"only {clusters} {who}s: the interval is rough", numbers={"units": clusters})
        )
    return [*messages, *about_tails(sums, cluster=who)]


def _single(terms: Terms, who: str, *, strata: bool) -> str | None:
    """Why nothing tells how far the value may be off: a single cluster, in all or of a logger."""
    clusters = terms.clusters
    used = clusters.has(terms.defined)
    if np.count_nonzero(used) == 1:
        return f"all is from one {who}, and a spread needs at least two"
    linear = not isinstance(terms, Refitted) and strata
    if linear and clusters.stratum is not None and (np.bincount(clusters.stratum[used]) == 1).any():
        return (
            f"a logger has a single {who}, and the spread within it needs at least two; leave that logger out, "
            f"or use {option('bootstrap 1000', 'interval=Bootstrap(1000)')}"
        )
    return None
