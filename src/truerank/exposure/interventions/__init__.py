"""Intervened test sets: rows drawn from a biased log so that what is left looks as if it had been shown at random.

Carraro and Bridge 2020 (the WTD paper). `intervene` draws one such test set; `with_inclusion` gives every row its
probability to be drawn, with which one evaluation replaces the average over many drawn test sets. A new strategy is
one new class in `strategies`; `catalogue` and the command line find it there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truerank.core.arrays import Bools, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.validation import checked_arguments
from truerank.core.wording import option
from truerank.exposure.counts import Margins, counts_in, pair_order
from truerank.exposure.interventions.strategies import STRATEGIES as STRATEGIES
from truerank.exposure.interventions.strategies import DrawingRule, InterventionCounts, Strategy
from truerank.sampling.pools import Share

catalogue = STRATEGIES.catalogue
named = STRATEGIES.named
parse = STRATEGIES.parse


@checked_arguments()
def intervene(
    log: Log,
    strategy: Strategy | str,
    *,
    train: Log | None = None,
    random: Log | None = None,
    fraction: float = 0.5,
    seed: int,
) -> Log:
    """The rows of a log in memory that a strategy draws; what is public (`evaluation.intervening`) takes any table.

    >>> import polars as pl, truerank as tr
    >>> from truerank.exposure.interventions.strategies import SkewIntervention
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> len(intervene(log, SkewIntervention(), train=log, seed=0))
    2
    """
    rule = rule_in_memory(log, strategy, train=train, random=random, fraction=fraction, seed=seed)
    return log.select(rule.draw(log, seed=seed))


@checked_arguments()
def with_inclusion(
    log: Log,
    strategy: Strategy | str,
    *,
    train: Log | None = None,
    random: Log | None = None,
    fraction: float = 0.5,
    seed: int = 0,
) -> Log:
    """The same log with the probability of each row to be drawn by `intervene`, for `estimators.intervened`.

    Exact for uniform draws and for small pools, by Rosén's equation beyond (`sampling.designs`). The seed matters
    only where weights are themselves drawn (the released form of SKEW).

    >>> import polars as pl, truerank as tr
    >>> from truerank.exposure.interventions.strategies import RegularIntervention
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> with_inclusion(log, RegularIntervention(), fraction=0.25).inclusion.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    rule = rule_in_memory(log, strategy, train=train, random=random, fraction=fraction, seed=seed)
    return replace(log, inclusion=frozen(rule.inclusion(log)))


def dispersion(log: Log) -> float:
    """Variance / mean of the number of rows per item: about 1 at random, more where some items are favoured.

    >>> import polars as pl, truerank as tr
    >>> dispersion(tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]})))
    0.5
    """
    return unevenness(Margins.of(log).by_item)


def unevenness(count: Ints) -> float:
    """Variance / mean of counts."""
    return float(count.var() / count.mean())


def unseen_notes(log: Margins, strategy: Strategy, train: Margins | None) -> list[str]:
    """How many users and items of the log the training log does not have, where the strategy counts them there."""
    notes: list[str] = []
    if train is None:
        return notes
    for margin in strategy.margins:
        rows = log.rows(margin)[~_counted(log, train, margin)]
        missing = int(np.count_nonzero(rows))
        if missing:
            notes.append(
                f"{missing:,} {margin}s of {log.source} ({int(rows.sum()):,} rows) are unseen in "
                f"{train.source}; their weights follow the rule for zero counts."
            )
    return notes


def _counted(log: Margins, beside: Margins, margin: str) -> Bools:
    """Which users or items of a log have rows in another."""
    return counts_in(log.ids(margin), beside, margin=margin, size=0).count > 0


def rule_in_memory(
    log: Log, strategy: Strategy | str, *, train: Log | None, random: Log | None, fraction: float, seed: int
) -> DrawingRule:
    """How the rows of a log in memory are drawn."""
    pair_order(log)
    beside = [None if rows is None else Margins.of(rows) for rows in (train, random)]
    return rule_of(Margins.of(log), strategy, train=beside[0], random=beside[1], fraction=fraction, seed=seed)


def rule_of(
    log: Margins,
    strategy: Strategy | str,
    *,
    train: Margins | None,
    random: Margins | None,
    fraction: float,
    seed: int,
) -> DrawingRule:
    """How rows are drawn, from the counts of users and items alone."""
    chosen: Strategy = as_value(strategy, STRATEGIES)
    if not 0 < fraction <= 1:
        raise InputError(f"a fraction of {fraction:g}; expected a number in (0, 1], such as 0.5.")
    if not len(log):
        raise InputError(f"{log.source}: no rows; expected rows of users and items to draw from.")
    if chosen.margins and train is None:
        raise InputError(f"{chosen.name} counts rows in the training log; give it: {option('train TRAIN')}.")
    if chosen.needs_random and random is None:
        raise InputError(
            f"{chosen.name} compares with a slice that was shown at random; give it: {option('random MAR')}, "
            "or use wtd_h, which needs none."
        )
    for needed, counts in ((bool(chosen.margins), train), (chosen.needs_random, random)):
        if needed and counts is not None and not len(counts):
            raise InputError(f"{counts.source}: no rows; {chosen.name} counts rows there.")
    if train is not None:
        for margin in chosen.margins:
            _check_common(log, train, (margin,))
    if chosen.needs_random and random is not None:
        _check_common(log, random, chosen.margins)  # one of them is enough: the others have a rule for zero counts
    n = Share(fraction).of(len(log))
    return chosen.rule(InterventionCounts(log, log if train is None else train, random, n, seed))


def _check_common(log: Margins, beside: Margins, margins: tuple[str, ...]) -> None:
    """At least one user or item must be in both, or the ids are of different things."""
    if any(_counted(log, beside, margin).any() for margin in margins):
        return
    ours, theirs = (", ".join(counts.ids(margins[-1]).texts()[:3]) for counts in (log, beside))
    raise InputError(
        f"{log.source} and {beside.source} have no {' and no '.join(margins)} in common: {margins[-1]}s such as {ours} "
        f"against {theirs}. Check the id columns."
    )
