"""Intervened test sets: what strategies weigh, what is drawn, and what is refused (spec 13.3 among them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank import intervene, with_inclusion
from truerank.core.log import Log
from truerank.exposure.counts import Floor, Smoothed
from truerank.exposure.interventions import (
    STRATEGIES,
    EqualPerItemIntervention,
    PopularityStratifiedIntervention,
    RegularIntervention,
    SkewIntervention,
    WTDHIntervention,
    WTDIntervention,
    drawing_rule,
)

every_strategy = pytest.mark.parametrize(
    "strategy", [cls() for cls in STRATEGIES.catalogue().values()], ids=lambda each: each.name
)


def log_of(pairs: Sequence[tuple[int, int]], *, name: str = "log") -> Log:
    user, item = zip(*pairs, strict=True)
    return tr.read(pl.DataFrame({"user": user, "item": item}), values=False, name=name)


def biased(n_users: int, n_items: int, n: int, *, seed: int, name: str) -> Log:
    """Rows that favour items of small number and some users."""
    rng = np.random.default_rng(seed)
    chance = np.outer(rng.gamma(2.0, size=n_users), 1 / (1 + np.arange(n_items)) ** 0.8).ravel()
    cell = rng.choice(n_users * n_items, n, replace=False, p=chance / chance.sum())
    return log_of([(int(c) // n_items, int(c) % n_items) for c in cell], name=name)


HELDOUT, TRAIN = (biased(60, 40, n, seed=seed, name=name) for n, seed, name in ((501, 1, "heldout"), (700, 2, "train")))
SHOWN = log_of([(u, (7 * u + 3 * j) % 40) for u in range(60) for j in range(4)], name="random")
DATA: dict[str, Any] = {"train": TRAIN, "random": SHOWN}


def cells(log: Log) -> list[tuple[str, str]]:
    return list(zip(log.users.texts(log.user), log.items.texts(log.item), strict=True))


# ------------------------------------------------------------------------------------------------------------- drawing


@every_strategy
@pytest.mark.parametrize("fraction", [0.1, 0.5, 1.0])
def test_size_no_duplicates_subset(strategy: Any, fraction: float) -> None:
    size = int(fraction * len(HELDOUT))
    if strategy == EqualPerItemIntervention() and fraction == 0.1:
        size = 40  # of 50 rows for 40 items, one each, where all have one
    found = intervene(HELDOUT, strategy, **DATA, fraction=fraction, seed=3)
    assert len(set(cells(found))) == len(found)
    assert set(cells(found)) <= set(cells(HELDOUT))
    assert found.users == HELDOUT.users
    assert found.items == HELDOUT.items
    if strategy.name == "full":
        assert len(found) == len(HELDOUT)
    elif strategy.name in ("popularity-stratified", "equal-per-item"):
        assert 0 < len(found) <= size
    else:
        assert len(found) == size


@every_strategy
def test_draws_do_not_depend_on_the_order_of_rows(strategy: Any) -> None:
    order = np.random.default_rng(0).permutation(len(HELDOUT))
    first, second = (
        intervene(log, strategy, **DATA, seed=3) for log in (HELDOUT, replace(HELDOUT.select(order), source="other"))
    )
    assert set(cells(first)) == set(cells(second))
    other = intervene(HELDOUT, strategy, **DATA, seed=4)
    assert (set(cells(other)) == set(cells(first))) == (strategy.name == "full")


@pytest.mark.parametrize(
    "strategy",
    [RegularIntervention(), SkewIntervention(), WTDIntervention(), WTDHIntervention()],
    ids=lambda each: each.name,
)
def test_a_larger_fraction_holds_the_smaller(strategy: Any) -> None:
    small, large = (set(cells(intervene(HELDOUT, strategy, **DATA, fraction=f, seed=3))) for f in (0.2, 0.6))
    assert small < large


@every_strategy
def test_inclusion_probabilities_are_how_often_rows_are_drawn(strategy: Any) -> None:
    """Over 400 draws; each frequency within 5 standard errors, their sum the size exactly."""
    chance = with_inclusion(HELDOUT, strategy, **DATA).inclusion
    assert chance is not None
    numbered = replace(HELDOUT, position=np.arange(len(HELDOUT)))
    count, sizes = np.zeros(len(HELDOUT)), set()
    for seed in range(400):
        rows = intervene(numbered, strategy, **DATA, seed=seed).position
        assert rows is not None
        count[rows] += 1
        sizes.add(len(rows))
    assert sizes == {round(float(chance.sum()))}
    assert float(chance.sum()) == pytest.approx(sizes.pop(), abs=1e-8)
    noise = np.sqrt(chance * (1 - chance) / 400)
    assert (np.abs(count / 400 - chance) <= 5 * noise + 0.003).all()  # 0.003: Rosén's equation


# ------------------------------------------------------------------------------------------------- weights (spec 13.3)


def test_zero_counts() -> None:
    """Spec 7.2: floor 0.0001 in both shares, or (count + 1) / (rows + size)."""
    train, shown = log_of([(1, 1), (1, 2), (1, 3), (1, 4)]), log_of([(1, 1), (1, 5)])
    log = log_of([(1, 1), (1, 2), (1, 5)])
    floor = WTDIntervention(user_power=0, item_power=1).weights(log, train=train, random=shown)
    np.testing.assert_allclose(floor, [0.5 / 0.25, 1e-4 / 0.25, 0.5 / 1e-4])
    smooth = WTDIntervention(user_power=0, item_power=1, zero=Smoothed()).weights(log, train=train, random=shown)
    np.testing.assert_allclose(smooth, [(2 / 7) / (2 / 9), (1 / 7) / (2 / 9), (2 / 7) / (1 / 9)])
    with refused("item 5 unseen in frame"):
        WTDIntervention(zero=Floor(0)).weights(log, train=replace(train, source="frame"), random=shown)


# ------------------------------------------------------------------------------------------------------ older baselines


def test_popularity_strata_have_equal_numbers_of_items_and_give_equal_numbers_of_rows() -> None:
    strategy = PopularityStratifiedIntervention(4)
    stratum = drawing_rule(HELDOUT, strategy, train=TRAIN, random=None, fraction=0.5, seed=0).pool
    assert stratum is not None
    assert np.bincount(stratum).tolist() == [10, 10, 10, 10]
    popularity = np.bincount(TRAIN.item, minlength=40)
    means = [popularity[stratum == at].mean() for at in range(4)]
    assert means == sorted(means)
    found = intervene(HELDOUT, strategy, **DATA, seed=0)
    available = np.bincount(stratum[HELDOUT.item])
    assert np.bincount(stratum[found.item]).tolist() == np.minimum(available, 250 // 4).tolist()


# ------------------------------------------------------------------------------------------------------------ bad input


REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a fraction of nan": ("reg", {"fraction": float("nan")}),
    "heldout and random have no user and no item in common": ("wtd", {"random": log_of([(900, 900)], name="random")}),
    "expected a strategy or its text, one of equal-per-item, full": (SkewIntervention, {}),
    r"unknown strategy 'skw'; .* Did you mean skew\?": ("skw", {}),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_bad_calls_are_refused(message: str) -> None:
    strategy, changed = REFUSED[message]
    with refused(message):
        intervene(**{"log": HELDOUT, "strategy": strategy, **DATA, "seed": 0, **changed})


@pytest.mark.parametrize("text", ["wtd(item_power=-1)", "wtd(zero=floor:-1)", "wtd(zero=smoothed:0)",
                                  "popularity-stratified(strata=0)", "equal-per-item(per_item=0)"])  # fmt: skip
def test_options_out_of_range_are_refused(text: str) -> None:
    with refused(r"expected a (whole )?number"):
        STRATEGIES.parse(text)
