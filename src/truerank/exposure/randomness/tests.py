"""Is this log random? Tests of uniform draws, the figures beside them, and a verdict in words.

Random means: of each user's candidates, as many as were shown, all subsets equally likely (Carraro and Bridge 2020,
eqs. 1 to 6, with the number shown to each user taken as given). What a log alone cannot tell: whether rows went missing
after they were shown, and whether exposure depends on rewards within items and users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.calls import checked_arguments
from truerank.core.chance import cell_uniforms
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs
from truerank.core.multiple import holm
from truerank.core.options import Drawn
from truerank.core.wording import option
from truerank.exposure.randomness.draws import Dispersion, Draws, interaction, item_dispersion, owners
from truerank.exposure.randomness.unevenness import Unevenness, unevenness
from truerank.exposure.randomness.users import UserCounts, WithoutPositive
from truerank.io.describe import gini

ALPHA = 0.05
POWER = 0.8
FEW = 5.0  # pairs in common with training expected by chance, below which their absence says nothing
LEFT_OUT = 0.1  # of those pairs: with at most so many, training pairs were (almost) left out
COMMON = "pairs in common with training"


@dataclass(frozen=True, slots=True)
class Check:
    """One test of uniform draws: its statistic, p, p adjusted by Holm over the checks of the verdict, what it found.

    `df` is NaN for a standard normal statistic. A check with `verdict` False is about the number of rows of users,
    which uniform draws take as given: it is told, and its p is not adjusted.
    """

    name: str
    statistic: float
    df: float
    p: float
    finding: str  # said where the check fails
    p_adjusted: float = math.nan
    verdict: bool = True

    @property
    def failed(self) -> bool:
        return (self.p_adjusted if self.verdict else self.p) <= ALPHA


@dataclass(frozen=True, slots=True)
class Randomness:
    """The checks, the verdict (`random` is None where nothing can be tested), figures, and what they leave open.

    `unevenness` says how much items differ beyond chance, and which stand out; `without_positive` whether users were
    kept for their labels. None where there is nothing to test, or no label.
    """

    random: bool | None
    verdict: str
    checks: tuple[Check, ...]
    drawn: Drawn
    gini: float
    never_exposed: float  # share of items
    never_exposed_expected: float
    overlap: int | None
    overlap_expected: float | None
    detectable: float  # coefficient of variation of items' exposure that is found with 80 % power
    unevenness: Unevenness | None
    without_positive: WithoutPositive | None
    notes: tuple[str, ...]


@checked_arguments()
def randomness(log: Log, *, train: Log | None = None, drawn: Drawn | str | None = None, seed: int = 0) -> Randomness:
    """Test whether a log was shown at random; `train` is what was known before, where there is such a log.

    The candidates of a user are the items of the log, also those without a row where they are declared. `drawn` says
    whether they include the user's training items; by default that is seen from the pairs both logs share. The check of
    groups without `train` makes groups from a half of the rows, drawn by `seed`.

    >>> from truerank.core.ids import Ids
    >>> user, item = np.divmod(np.arange(12), 4)
    >>> randomness(Log(Ids.of(range(3)), Ids.of(range(4)), user, item, {})).verdict.split(":")[0]
    'Every candidate was shown to every user, so there is nothing to test'
    """
    if len(log) == 0:
        raise InputError(f"{log.source}: no rows; expected pairs of users and items that were shown.")
    seen = None if train is None else _within(train, log)
    everything = Draws.of(log)
    overlap, expected, noise = (None, None, 0.0) if seen is None else _overlap(everything, seen)
    if drawn is None:
        apart = overlap is not None and expected is not None and _left_out(overlap, expected)
        rule = Drawn.UNSEEN if apart else Drawn.ALL
    else:
        rule = _rule(drawn, train)
    excluded = seen if rule is Drawn.UNSEEN else None
    draws = everything if excluded is None else Draws.of(log, excluded=excluded)
    dispersion = item_dispersion(draws)
    uneven = None if dispersion is None else unevenness(draws, dispersion, log.items)
    checks = []
    if dispersion is not None and uneven is not None:
        checks = [_items(dispersion, uneven), *_checks(log, draws, train=train, seen=seen, seed=seed)]
    if overlap is not None and expected is not None and rule is Drawn.ALL and noise > 0:
        checks.append(_overlap_check(overlap, expected, noise))
    adjusted = holm(np.array([each.p if each.verdict else math.nan for each in checks]))
    checks = [replace(each, p_adjusted=float(p)) for each, p in zip(checks, adjusted, strict=True)]
    without = UserCounts.of_log(log, draws.n_candidates).test() if "label" in log.rewards else None
    random, verdict = _verdict(checks, draws, without, tested=dispersion is not None)
    never = float(_chance_never(draws).mean())
    return Randomness(
        random=random,
        verdict=verdict,
        checks=tuple(checks),
        drawn=rule,
        gini=gini(draws.count),
        never_exposed=float((draws.count == 0).mean()),
        never_exposed_expected=never,
        overlap=overlap,
        overlap_expected=expected,
        detectable=math.nan if dispersion is None else _detectable(draws, dispersion),
        unevenness=uneven,
        without_positive=without,
        notes=(
            *([] if overlap is None or expected is None else [_about_overlap(overlap, expected, rule, checks)]),
            *_notes(log, draws, dispersion, train=train, never=never),
        ),
    )


def _rule(drawn: Drawn | str, train: Log | None) -> Drawn:
    if drawn not in list(Drawn):
        raise InputError(f"drawn {drawn!r}; expected {' or '.join(Drawn)}.")
    if train is None and drawn == Drawn.UNSEEN:
        raise InputError(f"drawn among unseen items, but without a training log; give {option('train FILE')}.")
    return Drawn(drawn)


def _within(train: Log, log: Log) -> Pairs:
    """Training pairs of the log's users and items."""
    unit = log.users.locate(train.users, where=f"{train.source}, column 'user'")[train.user]
    item = log.items.locate(train.items, where=f"{train.source}, column 'item'")[train.item]
    for kind, at in (("user", unit), ("item", item)):
        if not (at >= 0).any():
            raise InputError(f"{train.source} and {log.source} have no {kind} in common. Check the id columns.")
    known = (unit >= 0) & (item >= 0)
    return Pairs.of(unit[known], item[known], n_units=log.n_units)


def _overlap(draws: Draws, seen: Pairs) -> tuple[int, float, float]:
    """Pairs in both logs, how many uniform draws from all items give, and the standard deviation of that."""
    width = draws.n_items
    both = np.isin(owners(draws.shown) * width + draws.shown.item, owners(seen) * width + seen.item)
    variance = draws.spread_of_sums * seen.count * (1 - seen.count / width)
    return int(both.sum()), float((draws.share * seen.count).sum()), math.sqrt(float(variance.sum()))


def _overlap_check(overlap: int, expected: float, noise: float) -> Check:
    z = (overlap - expected) / noise
    more = "more" if z > 0 else "fewer"
    finding = f"{overlap:,} pairs are also in training, {more} than the {expected:,.0f} that chance gives"
    return Check(COMMON, z, math.nan, _two_sided(z), finding)


def _left_out(overlap: int, expected: float) -> bool:
    """Whether training pairs were (almost) left out of the log.

    >>> _left_out(6, 3207.0), _left_out(366, 371.2), _left_out(0, 2.0)
    (True, False, False)
    """
    return expected >= FEW and overlap <= LEFT_OUT * expected


def _about_overlap(overlap: int, expected: float, rule: Drawn, checks: list[Check]) -> str:
    """What the pairs in common with training say about the candidates."""
    pairs = f"{overlap:,} pairs are also in training, where draws from all items would give about {expected:,.0f}:"
    without = "left out" if overlap == 0 else "almost all left out"
    leaving = "" if overlap == 0 else f" The {overlap:,} rows leave the test."
    if rule is Drawn.UNSEEN and not _left_out(overlap, expected):
        return f"{pairs} as said, a user's candidates leave out the training items.{leaving}"
    if rule is Drawn.UNSEEN:
        return (
            f"{pairs} training pairs were {without}, the log was drawn among items the user had no training row for. "
            "So a user's candidates leave out the training items; leave them out of evaluations too."
            f"{leaving}"
        )
    if _left_out(overlap, expected):
        return f"{pairs} training pairs were {without}, though candidates are said to be all items."
    if not any(each.name == COMMON and each.failed for each in checks):
        told = (
            "candidates are all items" if expected >= FEW else "too few to tell, candidates are taken to be all items"
        )
        return f"{pairs} {told}."
    if overlap > expected:
        return f"{pairs} training pairs were shown again more often than others. Candidates are taken to be all items."
    return (
        f"{pairs} training pairs were left out in part, so neither all items nor the unseen ones alone are the "
        "candidates. Find out which rows were left out; drawn 'unseen' asks about unseen items."
    )


def _items(dispersion: Dispersion, uneven: Unevenness) -> Check:
    finding = (
        f"{uneven.words} (coefficient of variation of exposure beyond chance {uneven.effect:.2f}; dispersion "
        f"{dispersion.total / dispersion.n:.2f} times that of uniform draws)"
    )
    return Check("items", dispersion.statistic, dispersion.df, dispersion.p, finding)


def _checks(log: Log, draws: Draws, *, train: Log | None, seen: Pairs | None, seed: int) -> list[Check]:
    """The checks beside that of items."""
    found: list[Check] = []
    groups = _groups(log, draws, seen, seed=seed)
    if groups is not None:
        found.append(groups)
    if train is not None and seen is not None:
        popularity = np.bincount(_items_in(train, log), minlength=draws.n_items).astype(np.float64)
        contrast = _contrast("popularity in training", draws, _midranks(popularity), "popular in training")
        found += [] if contrast is None else [contrast]
    rewarded = train if train is not None and "label" in train.rewards else log if "label" in log.rewards else None
    if rewarded is not None:
        name = "reward" if rewarded is log else "reward in training"
        contrast = _contrast(name, draws, _mean_label(rewarded, log), "liked")
        found += [] if contrast is None else [contrast]
    users = _users(draws)
    return found if users is None else [*found, users]


def _groups(log: Log, draws: Draws, seen: Pairs | None, *, seed: int) -> Check | None:
    """Groups from training pairs, or from a half of the rows, which then leave what is tested."""
    if seen is not None:
        found, source = interaction(draws, seen), "training data"
    else:
        owner = owners(draws.shown)
        chance = cell_uniforms(seed, "groups", log.users.keys()[owner], log.items.keys()[draws.shown.item])
        half = Pairs.of(owner[chance < 0.5], draws.shown.item[chance < 0.5], n_units=log.n_units)
        left = int(np.count_nonzero(chance >= 0.5))
        tested = Draws.of(log, excluded=half) if len(half.item) and left else None
        found, source = None if tested is None else interaction(tested, half), "a half of the rows"
    if found is None:
        return None
    finding = f"some groups of users were shown other items than other groups (groups from {source})"
    return Check("groups of users x items", found.statistic, float(found.df), found.p, finding)


def _contrast(name: str, draws: Draws, score: Floats, what: str) -> Check | None:
    """Are items with a high score shown more often than uniform draws would?"""
    difference, variance = draws.contrast(score)
    if variance <= 1e-12 * max(1.0, float((score**2).sum())):
        return None
    z = difference / math.sqrt(variance)
    finding = f"items that are {what} were shown {'more' if z > 0 else 'less'} often"
    return Check(name, z, math.nan, _two_sided(z), finding)


def _items_in(train: Log, log: Log) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    at = log.items.locate(train.items)[train.item]
    return at[at >= 0]


def _midranks(value: Floats) -> Floats:
    """The share of items with a smaller value, ties halved: popularity without its heavy tail."""
    order = np.sort(value)
    below, upto = np.searchsorted(order, value, "left"), np.searchsorted(order, value, "right")
    return np.asarray((below + upto) / (2 * len(value)), dtype=np.float64)


def _mean_label(rewarded: Log, log: Log) -> Floats:
    """The mean label of each item, the mean of all where an item has none."""
    at = log.items.locate(rewarded.items)[rewarded.item]
    kept = at >= 0
    n = np.bincount(at[kept], minlength=len(log.items))
    total = np.bincount(at[kept], weights=rewarded.label[kept], minlength=len(log.items))
    return np.where(n > 0, total / np.maximum(n, 1), float(rewarded.label.mean()))


def _users(draws: Draws) -> Check | None:
    """Does the number of rows differ between users more than one rate for all gives? None where all have as many.

    Given the number of all rows, users' numbers are multivariate hypergeometric; X² has mean U - 1 exactly.
    """
    count, n = draws.shown.count.astype(np.float64), draws.n_candidates
    able = n > 0
    count, n = count[able], n[able]
    cells, rate = float(n.sum()), float(count.sum() / n.sum())
    if len(count) < 2 or (count == count[0]).all() or rate >= 1:
        return None
    statistic = float(((count - n * rate) ** 2 / (n * rate * (1 - rate))).sum() * (cells - 1) / cells)
    df = float(len(count) - 1)
    finding = (
        "users have more unequal numbers of rows than independent draws with one rate give; estimators for random "
        "exposure allow that, as long as the number does not depend on the labels"
    )
    return Check("rows of users", statistic, df, _upper_tail(df, statistic), finding, verdict=False)


def _verdict(
    checks: list[Check], draws: Draws, without: WithoutPositive | None, *, tested: bool
) -> tuple[bool | None, str]:
    also = [each.finding for each in checks if not each.verdict and each.failed]
    also += [] if without is None or not without.too_few else [without.words]
    more = "".join(f" Also: {each}." for each in also)
    if not tested and (draws.share == 1).all():
        return None, (
            "Every candidate was shown to every user, so there is nothing to test: nothing is missing among the users "
            f"and items that the file names. Declared items and users (`items`, `population`) may be more.{more}"
        )
    if not tested:
        return None, f"Each user was shown all candidates or none: there is no choice of items to test.{more}"
    failed = [each.finding for each in checks if each.verdict and each.failed]
    if failed:
        return False, f"Not random: {'; '.join(failed)}.{more}"
    least = min(each.p_adjusted for each in checks if each.verdict)
    return True, (
        "Consistent with random exposure: which items a user was shown does not differ from uniform draws "
        f"(smallest adjusted p {least:.2g}).{more}"
    )


def _chance_never(draws: Draws) -> Floats:
    """The probability of each item to be shown to nobody."""
    with np.errstate(divide="ignore"):
        certain = draws.share >= 1
        log_missed = np.log1p(-np.where(certain, 0.0, draws.share))
    never = np.exp(-draws.over_users(-log_missed))
    return np.where(draws.over_users(certain.astype(np.float64)) > 0.5, 0.0, never)


def _detectable(draws: Draws, dispersion: Dispersion) -> float:
    """The coefficient of variation of items' exposure at which the check of items fails with probability POWER.

    Rates E_i (1 + δ_i) make X² non-central with λ = Σ (δ_i E_i)² / V_i = cv² Σ E_i² / V_i.
    """
    from truerank.core.special import chdtri, chndtrinc

    variance, expected = draws.over_users(draws.spread), draws.over_users(draws.share)
    varies = variance > 1e-9
    critical = float(chdtri(dispersion.df, ALPHA))
    noncentral = float(chndtrinc(critical, dispersion.df, 1 - POWER))
    if not noncentral > 0 or dispersion.variance <= 1e-9 * dispersion.n:
        return math.nan
    return math.sqrt(noncentral / float((expected[varies] ** 2 / variance[varies]).sum()))


def _notes(
    log: Log,
    draws: Draws,
    dispersion: Dispersion | None,
    *,
    train: Log | None,
    never: float,
) -> list[str]:
    notes = []
    if train is not None:
        outside = int(np.count_nonzero(log.items.locate(train.items) < 0))
        if outside:
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
    if dispersion is not None:
        notes.append(_power(_detectable(draws, dispersion), dispersion))
    return notes


def _power(detectable: float, dispersion: Dispersion) -> str:
    if dispersion.total < dispersion.n - 4 * math.sqrt(dispersion.variance):
        return (
            "Items were shown more evenly than independent draws give: a balanced design. Each item is equally likely, "
            "but intervals for independent draws are too wide."
        )
    if math.isnan(detectable) or detectable > 1:
        return "With so few rows hardly any difference between items would be found: the test has little power."
    return (
        f"With so many rows, exposure rates of items that differ by a standard deviation of {detectable:.0%} of their "
        f"mean are found with {POWER:.0%} probability; smaller differences would go unnoticed."
    )


def _two_sided(z: float) -> float:
    return math.erfc(abs(z) / math.sqrt(2))


def _upper_tail(df: float, statistic: float) -> float:
    from truerank.core.special import chdtrc

    return float(chdtrc(df, statistic))
