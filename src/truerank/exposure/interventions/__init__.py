"""Intervened test sets: rows drawn from a biased log so that what is left looks as if it had been shown at random.

Carraro and Bridge 2020 (the WTD paper). `intervene` draws one such test set; `with_inclusion` gives every row its
probability to be drawn, with which one evaluation replaces the average over many drawn test sets. A new strategy is
one new class in a module here; `catalogue` and the command line find it by its place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truerank.core.arrays import Ints, frozen
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.wording import option
from truerank.exposure.counts import Margins, counts_in
from truerank.exposure.interventions.design import STRATEGIES as STRATEGIES
from truerank.exposure.interventions.design import DrawingRule, RowDesign, Strategy

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
    >>> from truerank.exposure.interventions.skew import SkewIntervention
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> len(intervene(log, SkewIntervention(), train=log, seed=0))
    2
    """
    design = design_of(log, strategy, train=train, random=random, fraction=fraction, seed=seed)
    return log.select(design.draw(seed=seed))


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

    Exact for uniform draws and for small pools, by Rosén's equation beyond (`sampling.inclusion`). The seed matters
    only where weights are themselves drawn (the released form of SKEW).

    >>> import polars as pl, truerank as tr
    >>> from truerank.exposure.interventions.design import RegularIntervention
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> with_inclusion(log, RegularIntervention(), fraction=0.25).inclusion.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    design = design_of(log, strategy, train=train, random=random, fraction=fraction, seed=seed)
    return replace(log, inclusion=frozen(design.inclusion(len(log))))


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
    if train is None:
        return []
    found = []
    for margin in strategy.margins:
        unseen = counts_in(log.ids(margin), train, margin=margin, size=0).count == 0
        rows = log.rows(margin)[unseen]
        missing = int(np.count_nonzero(rows))
        if missing:
            found.append(
                f"{missing:,} {margin}s of {log.source} ({int(rows.sum()):,} rows) are unseen in "
                f"{train.source}; their weights follow the rule for zero counts."
            )
    return found


def design_of(
    log: Log, strategy: Strategy | str, *, train: Log | None, random: Log | None, fraction: float, seed: int
) -> RowDesign:
    """How the rows of a log in memory are drawn."""
    counted = [None if each is None else Margins.of(each) for each in (train, random)]
    check_pairs(log)
    found = rule_of(Margins.of(log), strategy, train=counted[0], random=counted[1], fraction=fraction, seed=seed)
    return found.design(log)


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
    for needed, given in ((bool(chosen.margins), train), (chosen.needs_random, random)):
        if needed and given is not None and not len(given):
            raise InputError(f"{given.source}: no rows; {chosen.name} counts rows there.")
    if train is not None:
        for margin in chosen.margins:
            _check_common(log, train, (margin,))
    if chosen.needs_random and random is not None:
        _check_common(log, random, chosen.margins)  # one of them is enough: the others have a rule for zero counts
    return chosen.rule(log, train=log if train is None else train, random=random, fraction=fraction, seed=seed)


def check_pairs(log: Log) -> None:
    """Refuse a pair that occurs more than once."""
    cell = log.user * max(len(log.items), 1) + log.item
    if (cell[1:] > cell[:-1]).all():
        return
    order = np.argsort(cell, kind="stable")
    same = np.flatnonzero(np.diff(cell[order]) == 0)
    if len(same):
        row = order[same[:1]]
        user, item = log.users.texts(log.user[row])[0], log.items.texts(log.item[row])[0]
        raise InputError(
            f"{log.source}: {len(same):,} pairs occur more than once, such as user {user}, item {item}; "
            "expected one row per pair. Keep one row per pair."
        )


def _check_common(log: Margins, other: Margins, margins: tuple[str, ...]) -> None:
    """At least one user or item must be in both, or the ids are of different things."""
    if any(counts_in(log.ids(m), other, margin=m, size=0).count.any() for m in margins):
        return
    ours, theirs = (
        ", ".join(each.ids(margins[-1]).texts(np.arange(min(3, len(each.ids(margins[-1])))))) for each in (log, other)
    )
    raise InputError(
        f"{log.source} and {other.source} have no {' and no '.join(margins)} in common: {margins[-1]}s such as {ours} "
        f"against {theirs}. Check the id columns."
    )
