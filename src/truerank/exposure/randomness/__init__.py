"""Is this log random? Tests of uniform draws, the figures beside them, and a verdict in words.

Random means: of each user's candidates, as many as were shown, all subsets equally likely (Carraro and Bridge 2020,
eqs. 1 to 6, with the number shown to each user taken as given). What a log alone cannot tell: whether rows went missing
after they were shown, and whether exposure depends on rewards within items and users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log, Pairs
from truerank.core.multiple import holm
from truerank.core.options import Drawn
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.validation import ANYTHING, checked_arguments
from truerank.core.wording import option
from truerank.exposure.randomness.draws import (
    LEAST,
    Dispersion,
    Draws,
    Unevenness,
    item_dispersion,
    unevenness,
)
from truerank.exposure.randomness.interaction import interaction
from truerank.exposure.randomness.labelled import UserCounts, WithoutPositive
from truerank.io.batches import LazyTable
from truerank.io.columns import RULE, VALUE_NAMES, PositiveRule
from truerank.io.facts import summary
from truerank.io.read import read

ALPHA = 0.05
POWER = 0.8
FEW = 5.0  # pairs in common with training expected by chance, below which their absence says nothing
LEFT_OUT = 0.1  # of those pairs: with at most so many, training pairs were (almost) left out
COMMON = "pairs in common with training"


@record
class Check:
    """One test of uniform draws: its statistic, p, p adjusted by Holm over the checks of the verdict, what it found.

    `df` is NaN for a standard normal statistic. A check with `verdict` False is about the number of rows of users,
    which uniform draws take as given: it is reported, and its p is not adjusted.
    """

    name: str
    statistic: float
    df: float
    p: float
    finding: str  # reported where the check fails
    p_adjusted: float = math.nan
    verdict: bool = True

    @property
    def failed(self) -> bool:
        return (self.p_adjusted if self.verdict else self.p) <= ALPHA


@record
class Randomness:
    """The checks, the verdict (`random` is None where nothing can be tested), figures, and what they leave open.

    `unevenness` says how much items differ beyond chance; `without_positive` whether users were kept for their labels.
    None where there is nothing to test, or no label.
    """

    random: bool | None
    verdict: str
    checks: tuple[Check, ...]
    drawn: Drawn
    overlap: int | None
    overlap_expected: float | None
    detectable: float  # coefficient of variation of items' exposure that is found with 80 % power
    unevenness: Unevenness | None
    without_positive: WithoutPositive | None
    notes: tuple[str, ...]


@checked_arguments()
def randomness(log: Log, *, train: Log | None = None, drawn: Drawn | str | None = None, seed: int = 0) -> Randomness:
    """Test whether the items of a log were exposed at random.

    Parameters
    ----------
    log : its items are the candidates, also those without a row where they are declared
    train : training interactions
    drawn : whether candidates include a user's training items, "all" or "unseen"; by default inferred from the pairs
    seed : without `train`, groups of users are made from a random half of the rows

    >>> from truerank.core.ids import Ids
    >>> user, item = np.divmod(np.arange(12), 4)
    >>> randomness(Log(Ids.of(range(3)), Ids.of(range(4)), user, item, {})).verdict.split(":")[0]
    'Every user was exposed to every candidate, so there is nothing to test'
    """
    if len(log) == 0:
        raise InputError(f"{log.source}: no rows; expected pairs of users and items that were shown.")
    if drawn is not None and drawn not in list(Drawn):
        raise InputError(f"drawn {drawn!r}; expected {' or '.join(Drawn)}.")
    if train is None and drawn == Drawn.UNSEEN:
        raise InputError(f"drawn among unseen items, but without a training log; give {option('train FILE')}.")
    draws, seen = Draws.of(log), None if train is None else _within(train, log)
    overlap, expected, noise = (None, math.nan, 0.0) if seen is None else _overlap(draws, seen)
    # whether training pairs were (almost) left out of the log
    left_out = overlap is not None and expected >= FEW and overlap <= LEFT_OUT * expected
    rule = Drawn(drawn) if drawn is not None else Drawn.UNSEEN if left_out else Drawn.ALL
    if seen is not None and rule is Drawn.UNSEEN:
        draws = Draws.of(log, excluded=seen)
    dispersion = item_dispersion(draws)
    uneven = None if dispersion is None else unevenness(draws, dispersion)
    checks = []
    if dispersion is not None and uneven is not None:
        finding = (
            f"{uneven.words} (the number of exposures varies by {uneven.effect:.0%} of its mean, beyond sampling error)"
        )
        items = Check("items", dispersion.statistic, dispersion.df, dispersion.p, finding)
        checks = [items, *_checks(log, draws, train=train, seen=seen, seed=seed)]
    if overlap is not None and rule is Drawn.ALL and noise > 0:
        more = "more" if overlap > expected else "fewer"
        finding = f"{overlap:,} pairs are also in training, {more} than the {expected:,.0f} that chance gives"
        checks.append(_normal(COMMON, (overlap - expected) / noise, finding))
    adjusted = holm(np.array([check.p if check.verdict else math.nan for check in checks]))
    checks = [replace(check, p_adjusted=float(p)) for check, p in zip(checks, adjusted, strict=True)]
    without = UserCounts.from_log(log, draws.n_candidates).test() if "label" in log.rewards else None
    random, verdict = _verdict(checks, draws, without, tested=dispersion is not None)
    certain = draws.share >= 1
    never_shown = np.exp(-draws.over_users(-np.log1p(-np.where(certain, 0.0, draws.share))))
    never = float(np.where(draws.over_users(certain.astype(np.float64)) > 0.5, 0.0, never_shown).mean())
    detectable = math.nan if dispersion is None else _detectable(draws, dispersion)
    notes = _notes(log, draws, dispersion, train=train, never=never, detectable=detectable)
    if overlap is not None:
        common_failed = any(check.name == COMMON and check.failed for check in checks)
        notes.insert(0, _about_overlap(overlap, expected, rule, left_out=left_out, failed=common_failed))
    return Randomness(
        random=random,
        verdict=verdict,
        checks=tuple(checks),
        drawn=rule,
        overlap=overlap,
        overlap_expected=None if overlap is None else expected,
        detectable=detectable,
        unevenness=uneven,
        without_positive=without,
        notes=tuple(notes),
    )


def _within(train: Log, log: Log) -> Pairs:
    """Training pairs of the log's users and items."""
    unit, item = train.places_in(log.users, log.items)
    for kind, place in (("user", unit), ("item", item)):
        if not (place >= 0).any():
            raise InputError(f"{train.source} and {log.source} have no {kind} in common. Check the id columns.")
    inside = (unit >= 0) & (item >= 0)
    return Pairs.of(unit[inside], item[inside], n_units=log.n_units)


def _overlap(draws: Draws, seen: Pairs) -> tuple[int, float, float]:
    """Pairs in both logs, how many uniform draws from all items give, and the standard deviation of that."""
    both = seen.hold(draws.shown.unit, draws.shown.item)
    variance = draws.spread_of_sums * seen.count * (1 - seen.count / draws.n_items)
    return int(both.sum()), float((draws.share * seen.count).sum()), math.sqrt(float(variance.sum()))


def _about_overlap(overlap: int, expected: float, rule: Drawn, *, left_out: bool, failed: bool) -> str:
    """What the pairs in common with training say about the candidates."""
    pairs = f"{overlap:,} pairs are also in training, where draws from all items would give about {expected:,.0f}:"
    without = "left out" if overlap == 0 else "almost all left out"
    leaving = "" if overlap == 0 else f" The {overlap:,} rows leave the test."
    if rule is Drawn.UNSEEN and not left_out:
        return f"{pairs} as said, a user's candidates leave out the training items.{leaving}"
    if rule is Drawn.UNSEEN:
        return (
            f"{pairs} training pairs were {without}, the log was drawn among items the user had no training row for. "
            "So a user's candidates leave out the training items; leave them out of evaluations too."
            f"{leaving}"
        )
    if left_out:
        return f"{pairs} training pairs were {without}, though candidates are said to be all items."
    if not failed:
        few = "are" if expected >= FEW else "are taken to be"
        return f"{pairs} {'' if expected >= FEW else 'too few to tell, '}candidates {few} all items."
    if overlap > expected:
        return f"{pairs} training pairs were repeated more often than others. Candidates are taken to be all items."
    return (
        f"{pairs} training pairs were left out in part, so neither all items nor the unseen ones alone are the "
        "candidates. Find out which rows were left out; drawn 'unseen' asks about unseen items."
    )


def _checks(log: Log, draws: Draws, *, train: Log | None, seen: Pairs | None, seed: int) -> list[Check]:
    """The checks beside that of items."""
    checks = [_groups(log, draws, seen, seed=seed)]
    if train is not None:
        place = log.items.locate(train.items)[train.item]
        popularity = np.bincount(place[place >= 0], minlength=draws.n_items).astype(np.float64)
        # the share of items with a smaller value, ties halved: popularity without its heavy tail
        below, upto = (np.searchsorted(np.sort(popularity), popularity, side) for side in ("left", "right"))
        score = np.asarray((below + upto) / (2 * len(popularity)), dtype=np.float64)
        checks.append(_contrast("popularity in training", draws, score, "popular in training"))
    rewarded = train if train is not None and "label" in train.rewards else log if "label" in log.rewards else None
    if rewarded is not None:
        name = "reward" if rewarded is log else "reward in training"
        checks.append(_contrast(name, draws, _mean_label(rewarded, log), "liked"))
    return [check for check in (*checks, _users(draws)) if check is not None]


def _groups(log: Log, draws: Draws, seen: Pairs | None, *, seed: int) -> Check | None:
    """Groups from training pairs, or from a half of the rows, which then leave what is tested."""
    source, tested, groups = "training data", draws, seen
    if groups is None:
        source, owner, item = "a half of the rows", draws.shown.unit, draws.shown.item
        first = cell_uniforms(seed, "groups", log.users.keys()[owner], log.items.keys()[item]) < 0.5
        if not first.any() or first.all():
            return None
        groups = Pairs.of(owner[first], item[first], n_units=log.n_units)
        tested = Draws.of(log, excluded=groups)
    test = interaction(tested, groups)
    if test is None:
        return None
    finding = f"some groups of users were exposed to other items than other groups (groups from {source})"
    return _chi_square("groups of users x items", *test, finding)


def _contrast(name: str, draws: Draws, score: Floats, what: str) -> Check | None:
    """Are items with a high score shown more often than uniform draws would?"""
    difference, variance = draws.contrast(score)
    if variance <= 1e-12 * max(1.0, float((score**2).sum())):
        return None
    finding = f"items that are {what} were exposed {'more' if difference > 0 else 'less'} often"
    return _normal(name, difference / math.sqrt(variance), finding)


def _normal(name: str, z: float, finding: str) -> Check:
    return Check(name, z, math.nan, math.erfc(abs(z) / math.sqrt(2)), finding)


def _chi_square(name: str, statistic: float, df: float, finding: str) -> Check:
    from truerank.core.special import chdtrc

    return Check(name, statistic, float(df), float(chdtrc(df, statistic)), finding)


def _mean_label(rewarded: Log, log: Log) -> Floats:
    """The mean label of each item, the mean of all where an item has none."""
    place = log.items.locate(rewarded.items)[rewarded.item]
    rows = place >= 0
    n = np.bincount(place[rows], minlength=len(log.items))
    total = np.bincount(place[rows], weights=rewarded.label[rows], minlength=len(log.items))
    return np.where(n > 0, total / np.maximum(n, 1), float(rewarded.label.mean()))


def _users(draws: Draws) -> Check | None:
    """Does the number of rows differ between users more than one rate for all gives? None where all have as many.

    Given the number of all rows, users' numbers are multivariate hypergeometric; X² has mean U - 1 exactly.
    """
    able = draws.n_candidates > 0
    count, n = draws.shown.count[able].astype(np.float64), draws.n_candidates[able]
    cells, rate = float(n.sum()), float(count.sum() / n.sum())
    if len(count) < 2 or (count == count[0]).all() or rate >= 1:
        return None
    statistic = float(((count - n * rate) ** 2 / (n * rate * (1 - rate))).sum() * (cells - 1) / cells)
    finding = (
        "users have more unequal numbers of rows than independent draws with one rate give; estimators for random "
        "exposure allow that, as long as the number does not depend on the labels"
    )
    return replace(_chi_square("rows of users", statistic, len(count) - 1, finding), verdict=False)


def _verdict(
    checks: list[Check], draws: Draws, without: WithoutPositive | None, *, tested: bool
) -> tuple[bool | None, str]:
    also = [check.finding for check in checks if not check.verdict and check.failed]
    also += [] if without is None or not without.too_few else [without.words]
    more = "".join(f" Also: {finding}." for finding in also)
    if not tested and (draws.share == 1).all():
        return None, (
            "Every user was exposed to every candidate, so there is nothing to test: nothing is missing among the "
            f"users and items that the file names. Declared items and users (`items`, `population`) may be more.{more}"
        )
    if not tested:
        return None, f"Each user was exposed to all candidates or to none: there is no choice of items to test.{more}"
    failed = [check.finding for check in checks if check.verdict and check.failed]
    if failed:
        return False, f"Not random: {'; '.join(failed)}.{more}"
    least = min(check.p_adjusted for check in checks if check.verdict)
    return True, (
        "Consistent with random exposure: which items users were exposed to does not differ from uniform draws "
        f"(smallest adjusted p {least:.2g}).{more}"
    )


def _detectable(draws: Draws, dispersion: Dispersion) -> float:
    """The coefficient of variation of items' exposure at which the check of items fails with probability POWER.

    Rates E_i (1 + δ_i) make X² non-central with λ = Σ (δ_i E_i)² / V_i = cv² Σ E_i² / V_i.
    """
    from truerank.core.special import chdtri, chndtrinc

    variance, expected = draws.variance, draws.expected
    varies = variance > LEAST
    noncentral = float(chndtrinc(float(chdtri(dispersion.df, ALPHA)), dispersion.df, 1 - POWER))
    if not noncentral > 0 or dispersion.variance <= 1e-9 * dispersion.n:
        return math.nan
    return math.sqrt(noncentral / float((expected[varies] ** 2 / variance[varies]).sum()))


def _notes(
    log: Log, draws: Draws, dispersion: Dispersion | None, *, train: Log | None, never: float, detectable: float
) -> list[str]:
    notes = []
    outside = 0 if train is None else int(np.count_nonzero(log.items.locate(train.items) < 0))
    if train is not None and outside:
        notes.append(
            f"{outside:,} of {len(train.items):,} training items are not among the log's items and are left out; "
            "if they could have been shown, declare all `items`."
        )
    count = draws.shown.count
    if (count == count[0]).all() and dispersion is not None:
        notes.append(f"Every user has {int(count[0]):,} rows: that number is part of the design and tells nothing.")
    if never * draws.n_items >= 3 and (draws.count > 0).all():
        notes.append(
            f"By chance about {never * draws.n_items:,.0f} items would be shown to nobody, but all have a row: items "
            "without a row are probably missing from the file. Declare all `items`."
        )
    if dispersion is None:
        return notes
    if dispersion.total < dispersion.n - 4 * math.sqrt(dispersion.variance):
        power = (
            "Items were shown more evenly than independent draws give: a balanced design. Each item is equally likely, "
            "but intervals for independent draws are too wide."
        )
    elif math.isnan(detectable) or detectable > 1:
        power = "With so few rows hardly any difference between items would be found: the test has little power."
    else:
        power = (
            f"With so many rows, exposure rates of items that differ by a standard deviation of {detectable:.0%} of "
            f"their mean are found with {POWER:.0%} probability; smaller differences would go unnoticed."
        )
    return [*notes, power]


@record
class Description:
    """Counts and spreads of a log, and the test of random exposure; None for a log without rows."""

    summary: dict[str, Any]
    randomness: Randomness | None


@checked_arguments(train=ANYTHING, positive=RULE)
def describe(
    source: Any,
    *,
    train: Any = None,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    users: Ids | IdColumn | None = None,
    items: Ids | IdColumn | None = None,
    drawn: Drawn | str | None = None,
    seed: int = 0,
) -> Description:
    """Describe a log, a file or a frame; the options are those of `read` and `randomness`.

    >>> import polars as pl
    >>> description = describe(pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2]}))
    >>> description.summary["rows"], description.randomness.random
    (4, None)
    """
    log = source
    if not isinstance(source, Log):
        log = read(source, columns=columns, positive=positive, users=users, items=items)
    if train is not None and not isinstance(train, Log):  # training pairs, with labels where there is a value column
        table = LazyTable.of(train, columns=columns)
        valued = any((columns or {}).get(name, name) in table.columns for name in VALUE_NAMES)
        train = read(table, columns=columns, positive=positive if valued else None, values=valued)
    return Description(summary(log), randomness(log, train=train, drawn=drawn, seed=seed) if len(log) else None)
