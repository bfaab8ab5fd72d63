"""Intervened test sets: what strategies weigh, what is drawn, and what is refused (spec 13.3 among them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from outcomes import outcomes

import truerank as tr
from truerank import intervene, with_inclusion
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.exposure.counts import Floor, Smoothed
from truerank.exposure.interventions import (
    STRATEGIES,
    EqualPerItemIntervention,
    FullIntervention,
    PopularityStratifiedIntervention,
    RegularIntervention,
    SkewIntervention,
    Unseen,
    WTDHIntervention,
    WTDIntervention,
    drawing_rule,
    index_of_dispersion,
)
from truerank.sampling.designs import WeightedDesign
from truerank.sampling.pools import Members

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


def item_ratio(strategy: WTDIntervention | WTDHIntervention, train: Log, **more: Any) -> float:
    """The weight of a row of item 1 relative to one of item 2 of the same user."""
    log = log_of([(1, 1), (1, 2)])
    one, two = strategy.weights(log, train=train, **more)
    return float(one / two)


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


@pytest.mark.parametrize(
    "strategy", [SkewIntervention(), WTDIntervention(), WTDHIntervention()], ids=lambda each: each.name
)
def test_small_pools_have_exact_inclusion_probabilities(strategy: Any) -> None:
    small = HELDOUT.select(np.arange(0, 501, 63))
    weight = drawing_rule(small, strategy, **DATA, fraction=0.5, seed=0).design(small)[1].weights
    expected = np.zeros(len(small))
    for rows, chance in outcomes(WeightedDesign(4), Members.alone(len(small), weight=weight)):
        expected[list(rows)] += chance
    found = with_inclusion(small, strategy, **DATA).inclusion
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_training_set_can_be_intervened_on() -> None:
    drawn, regular = (
        intervene(TRAIN, strategy, train=TRAIN, seed=0)
        for strategy in (WTDHIntervention(item_power=1), RegularIntervention())
    )
    assert len(drawn) == 350
    level, usual = (index_of_dispersion(np.bincount(log.item, minlength=40)) for log in (drawn, regular))
    assert level < 0.7 * usual


# ------------------------------------------------------------------------------------------------- weights (spec 13.3)


def test_random_like_the_biased_log_makes_wtd_regular() -> None:
    weight = WTDIntervention().weights(HELDOUT.select(np.arange(40)), train=HELDOUT, random=HELDOUT)
    np.testing.assert_allclose(weight, 1, rtol=1e-12)
    found, regular = (
        intervene(HELDOUT, s, train=HELDOUT, random=HELDOUT, seed=1) for s in (WTDIntervention(), RegularIntervention())
    )
    assert cells(found) == cells(regular)


def test_a_uniform_biased_log_makes_wtd_h_regular() -> None:
    log = log_of([(u, (u + j) % 6) for u in range(6) for j in range(3)])
    np.testing.assert_allclose(WTDHIntervention().weights(log, train=log), 1, rtol=1e-12)
    assert cells(intervene(log, WTDHIntervention(), train=log, seed=1)) == cells(
        intervene(log, RegularIntervention(), seed=1)
    )


def test_disjoint_random_items_leave_the_floor() -> None:
    """Every random share is the floor, so w_i is proportional to 1 / popularity, as in SKEW and WTD_H (A-25)."""
    elsewhere = log_of([(u, 100 + u % 3) for u in range(60)], name="random")
    wtd = WTDIntervention(user_power=0, item_power=1).weights(HELDOUT, train=TRAIN, random=elsewhere)
    hypothesised = WTDHIntervention(user_power=0, item_power=1).weights(HELDOUT, train=TRAIN)
    seen = np.bincount(TRAIN.item, minlength=40)[HELDOUT.item] > 0
    skew = SkewIntervention().weights(HELDOUT, train=TRAIN, seed=0)
    for other in (hypothesised, skew):
        ratio = (wtd / other)[seen]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    with pytest.raises(InputError, match="no row has a positive weight"):
        intervene(HELDOUT, WTDIntervention(zero=Floor(0)), train=HELDOUT, random=elsewhere, seed=0)


@pytest.mark.parametrize(("power", "factor"), [(2.0, 4.0), (1.0, 2.0)])
def test_doubling_the_count_of_an_item(power: float, factor: float) -> None:
    rows = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 3)]
    shown = log_of([(1, 1), (2, 2)])
    once, twice = log_of(rows), log_of([*rows, (3, 1), (4, 1)])
    for strategy, more in (
        (WTDIntervention(item_power=power), {"random": shown}),
        (WTDHIntervention(item_power=power), {}),
    ):
        assert item_ratio(strategy, once, **more) == pytest.approx(1)
        assert item_ratio(strategy, twice, **more) == pytest.approx(1 / factor)


def test_users_weigh_too() -> None:
    train = log_of([(1, 1), (1, 2), (2, 3)])
    log = log_of([(1, 3), (2, 3)])
    one, two = WTDHIntervention(user_power=1).weights(log, train=train)
    assert two / one == pytest.approx(2)
    one, two = WTDHIntervention(user_power=0).weights(log, train=train)
    assert one == two


def test_zero_counts() -> None:
    """Spec 7.2: floor 0.0001 in both shares, or (count + 1) / (rows + size)."""
    train, shown = log_of([(1, 1), (1, 2), (1, 3), (1, 4)]), log_of([(1, 1), (1, 5)])
    log = log_of([(1, 1), (1, 2), (1, 5)])
    floor = WTDIntervention(user_power=0, item_power=1).weights(log, train=train, random=shown)
    np.testing.assert_allclose(floor, [0.5 / 0.25, 1e-4 / 0.25, 0.5 / 1e-4])
    smooth = WTDIntervention(user_power=0, item_power=1, zero=Smoothed()).weights(log, train=train, random=shown)
    np.testing.assert_allclose(smooth, [(2 / 7) / (2 / 9), (1 / 7) / (2 / 9), (2 / 7) / (1 / 9)])
    with pytest.raises(InputError, match="item 5 unseen in frame"):
        WTDIntervention(zero=Floor(0)).weights(log, train=replace(train, source="frame"), random=shown)


def test_presets() -> None:
    assert (WTDIntervention.published(), WTDIntervention.released()) == (
        WTDIntervention(1, 2, Floor(1e-4)),
        WTDIntervention(1, 1, Floor(1e-4)),
    )
    assert (WTDHIntervention.published(), WTDHIntervention.released()) == (
        WTDHIntervention(1, 2, Floor(1e-4)),
        WTDHIntervention(1, 1, Floor(1e-4)),
    )
    assert (SkewIntervention.published(), SkewIntervention.released()) == (
        SkewIntervention(1, Unseen.ONCE),
        SkewIntervention(1, Unseen.RANDOM),
    )
    for cls in (FullIntervention, RegularIntervention, PopularityStratifiedIntervention, EqualPerItemIntervention):
        assert cls.published() == cls.released() == cls()


def test_items_unseen_in_training_under_skew() -> None:
    log, train = log_of([(1, 1), (1, 8), (2, 8), (1, 9)]), log_of([(1, 1), (2, 1)])
    assert SkewIntervention.published().weights(log, train=train, seed=0).tolist() == [
        0.5,
        1,
        1,
        1,
    ]  # by user, then item
    first, again, other = (SkewIntervention.released().weights(log, train=train, seed=seed) for seed in (0, 0, 1))
    assert first.tolist() == again.tolist()
    assert first[0] == other[0] == 0.5
    assert ((first > 0) & (first < 1)).all()
    assert (first[1:] != other[1:]).all()
    assert first[1] == first[3]  # a property of the item


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


def test_equal_numbers_per_item() -> None:
    count = np.bincount(HELDOUT.item, minlength=40)
    found = np.bincount(intervene(HELDOUT, EqualPerItemIntervention(), seed=0).item, minlength=40)
    number = 250 // 40
    assert found.tolist() == np.where(count >= number, number, 0).tolist()
    two = np.bincount(intervene(HELDOUT, EqualPerItemIntervention(2), seed=0).item, minlength=40)
    assert set(two[count >= 2]) == {2}
    with pytest.raises(InputError, match="fewer than one for each of 40 items"):
        intervene(HELDOUT, EqualPerItemIntervention(), fraction=0.01, seed=0)


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: intervene(HELDOUT, SkewIntervention(), seed=0),
            r"skew counts rows in the training log; give it: train=",
        ),
        (lambda: intervene(HELDOUT, WTDIntervention(), train=TRAIN, seed=0), "give it: random=, or use wtd_h"),
        (
            lambda: intervene(HELDOUT, RegularIntervention(), fraction=0, seed=0),
            r"a fraction of 0; expected a number in \(0, 1\]",
        ),
        (lambda: intervene(HELDOUT, RegularIntervention(), fraction=1.2, seed=0), r"a fraction of 1.2"),
        (lambda: intervene(HELDOUT, RegularIntervention(), fraction=float("nan"), seed=0), r"a fraction of nan"),
        (lambda: intervene(HELDOUT.select(np.zeros(0, int)), RegularIntervention(), seed=0), r"heldout: no rows"),
        (
            lambda: intervene(HELDOUT, WTDIntervention(), train=TRAIN, random=SHOWN.select(np.zeros(0, int)), seed=0),
            r"random: no rows; wtd counts rows there",
        ),
        (
            lambda: intervene(HELDOUT, SkewIntervention(), train=log_of([(1, 900)], name="train"), seed=0),
            r"heldout and train have no item in common: items such as 0, 1, 2 against 900",
        ),
        (
            lambda: intervene(HELDOUT, WTDHIntervention(), train=log_of([(900, 1)], name="train"), seed=0),
            r"heldout and train have no user in common",
        ),
        (
            lambda: intervene(
                HELDOUT, WTDIntervention(), train=TRAIN, random=log_of([(900, 900)], name="random"), seed=0
            ),
            r"heldout and random have no user and no item in common",
        ),
        (
            lambda: intervene(log_of([(1, 1), (1, 1)]), RegularIntervention(), seed=0),
            r"1 pairs occur more than once",
        ),
        (
            lambda: intervene(HELDOUT, SkewIntervention, train=TRAIN, seed=0),  # type: ignore[arg-type]
            r"expected a strategy or its text, one of full, reg, .*skew, wtd, wtd_h",
        ),
        (lambda: intervene(HELDOUT, "skw", train=TRAIN, seed=0), r"unknown strategy 'skw'; .* Did you mean skew\?"),
        (lambda: STRATEGIES.named("wtdh"), r"unknown strategy 'wtdh'; expected one of .* Did you mean wtd_h\?"),
        (lambda: Floor(-1), "floor: least=-1; expected a number from 0 up to 1"),
        (lambda: Smoothed(0), "smoothed: added=0; expected a number above 0"),
        (lambda: WTDIntervention(item_power=-1), "wtd: item_power=-1; expected a number from 0"),
        (lambda: WTDHIntervention(user_power=float("inf")), "wtd_h: user_power=inf; expected a number from 0"),
        (lambda: SkewIntervention(item_power=float("nan")), "skew: item_power=nan; expected a number from 0"),
        (lambda: PopularityStratifiedIntervention(0), "strata=0; expected a whole number from 1"),
        (lambda: EqualPerItemIntervention(0), "per_item=0; expected a whole number from 1"),
    ],
)
def test_bad_calls_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_ids_of_another_type_are_refused() -> None:
    text = tr.read(pl.DataFrame({"user": ["a"], "item": ["b"]}), name="train")
    with pytest.raises(InputError, match="text never matches numbers"):
        intervene(HELDOUT, SkewIntervention(), train=text, seed=0)
