"""`tr.describe`: how far from random, in which direction, by which items; training pairs almost left out; users kept
for their labels. Each departure is beside a log that has none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import chdtri

from realdata import folder_of
from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.options import Drawn
from truerank.datasets.ratings import Coat
from truerank.exposure.randomness import COMMON, Randomness, randomness
from truerank.exposure.randomness.draws import Direction, Unevenness

N_ITEMS = 60


def log_of(items: Ints, label: Bools | None = None) -> Log:
    """One row of items for each user."""
    user, item = np.repeat(np.arange(len(items)), items.shape[1]), items.ravel()
    rewards = {} if label is None else {"label": label[user, item].astype(np.float64)}
    return Log(Ids.of(range(len(items))), Ids.of([f"i{at:02d}" for at in range(N_ITEMS)]), user, item, rewards)


def drawn(rng: np.random.Generator, n: int, *, n_users: int = 400, weight: Floats | float = 1.0) -> Ints:
    """n items of each user by successive weighted draws."""
    return np.argsort(-(rng.gumbel(size=(n_users, N_ITEMS)) + np.log(weight)), axis=1)[:, :n]


def uneven(found: Randomness) -> Unevenness:
    assert found.unevenness is not None
    return found.unevenness


# ------------------------------------------------------------------------------------------------- effect and direction


def test_items_shown_too_rarely_are_said_to_be_shown_too_rarely() -> None:
    weight = np.where(np.arange(N_ITEMS) < 12, 0.05, 1.0)
    found = randomness(log_of(drawn(np.random.default_rng(1), 6, weight=weight)))
    assert found.verdict.startswith("Not random: some items were exposed far more rarely than uniform draws give")
    assert "often" not in found.verdict
    assert uneven(found).direction is Direction.RARELY


def test_items_shown_too_often_are_said_to_be_shown_too_often() -> None:
    weight = np.where(np.arange(N_ITEMS) < 2, 8.0, 1.0)
    found = randomness(log_of(drawn(np.random.default_rng(2), 6, weight=weight)))
    assert found.verdict.startswith("Not random: some items were exposed far more often than uniform draws give")
    assert uneven(found).direction is Direction.OFTEN


@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
def test_the_effect_is_the_coefficient_of_variation_of_exposure(spread: float) -> None:
    """Rates 1 ± spread for half of the items each; two of 60 items per user, so that draws hardly compete."""
    rate = 1 + spread * np.where(np.arange(N_ITEMS) % 2 == 0, 1.0, -1.0)
    found = randomness(log_of(drawn(np.random.default_rng(4), 2, n_users=20_000, weight=rate)))
    assert uneven(found).effect == pytest.approx(spread, abs=0.02)
    assert ("far more" in found.verdict) is (spread > 0.1)
    assert ("a little more" in found.verdict) is (spread < 0.1)


def test_chance_alone_has_no_effect() -> None:
    """Effects are small: X² on 59 degrees of freedom exceeds 105.3 once in 5,000, an effect of .139 with 2,400 rows."""
    rng = np.random.default_rng(5)
    found = [uneven(randomness(log_of(drawn(rng, 6)))) for _ in range(100)]
    assert max(each.effect for each in found) < math.sqrt((float(chdtri(59, 0.0002)) - 59) / 2400)
    assert any(each.effect == 0 and each.direction is None for each in found)


@pytest.mark.realdata
def test_the_effect_on_coat() -> None:
    logs = Coat().load(folder_of("coat"))
    assert uneven(randomness(logs["train"])).effect == pytest.approx(0.577, abs=0.001)
    assert uneven(randomness(logs["random"])).effect == 0


# -------------------------------------------------------------------------------------------- few pairs instead of none


def unseen_but(rng: np.random.Generator, n: int) -> tuple[Log, Log]:
    """A log drawn among items unseen in training, but for n rows that are training pairs; and the training log."""
    order = np.argsort(-rng.gumbel(size=(400, N_ITEMS)) - np.linspace(2, 0, N_ITEMS), axis=1)
    known = order[:, :15]
    shown = np.array([rng.permutation(row[15:])[:8] for row in order])
    shown[np.arange(n) % 400, np.arange(n) // 400] = known[np.arange(n) % 400, np.arange(n) // 400]
    return log_of(shown), log_of(known)


def test_few_pairs_in_common_mean_that_training_pairs_were_left_out() -> None:
    log, train = unseen_but(np.random.default_rng(6), 6)
    found = randomness(log, train=train)
    assert found.overlap == 6
    assert found.overlap_expected == pytest.approx(800)
    assert (found.drawn, found.random) == (Drawn.UNSEEN, True)
    assert "6 pairs are also in training, where draws from all items would give about 800" in found.notes[0]
    assert "training pairs were almost all left out" in found.notes[0]
    assert "The 6 rows leave the test." in found.notes[0]
    assert "candidates are all items" not in " ".join(found.notes)


def test_half_of_the_pairs_in_common_are_left_out_in_part() -> None:
    log, train = unseen_but(np.random.default_rng(7), 400)
    found = randomness(log, train=train)
    assert (found.drawn, found.random) == (Drawn.ALL, False)
    assert "training pairs were left out in part" in found.notes[0]
    assert "candidates are all items" not in " ".join(found.notes)


@pytest.mark.parametrize(("n_users", "words"), [(400, "candidates are all items"), (3, "too few to tell")])
def test_pairs_in_common_by_chance_tell_all_items(n_users: int, words: str) -> None:
    rng = np.random.default_rng(9)
    found = randomness(log_of(drawn(rng, 8, n_users=n_users)), train=log_of(drawn(rng, 8, n_users=n_users)))
    assert found.drawn is Drawn.ALL
    assert words in found.notes[0]


@pytest.mark.realdata
def test_coat_with_its_shared_pairs_removed_but_for_six() -> None:
    logs = Coat().load(folder_of("coat"))
    log, train = logs["random"], logs["train"]
    pair, known = ({*zip(each.user.tolist(), each.item.tolist(), strict=True)} for each in (log, train))
    assert len(pair & known) == 366
    both = np.array([each in known for each in zip(log.user.tolist(), log.item.tolist(), strict=True)])
    found = randomness(log.select(~both | (np.cumsum(both) <= 6)), train=train)
    assert (found.overlap, found.drawn) == (6, Drawn.UNSEEN)
    assert "almost all left out" in found.notes[0]
    assert not any(each.name == COMMON for each in found.checks)


# ------------------------------------------------------------------------------------------ users kept for their labels


def rated(rng: np.random.Generator, rate: Floats | float, *, n_users: int = 1500) -> Log:
    """Three random rows of each user, positive with the user's rate."""
    label = rng.random((n_users, N_ITEMS)) < np.broadcast_to(np.asarray(rate).reshape(-1, 1), (n_users, N_ITEMS))
    return log_of(drawn(rng, 3, n_users=n_users), label)


def with_a_positive(log: Log) -> Log:
    positives = np.bincount(log.user, weights=log.label, minlength=len(log.users))
    return log.select(positives[log.user] > 0)


def test_users_kept_for_their_labels_are_noticed() -> None:
    """A positive rate of 0.2 leaves 732 of 1,500 users; their own rate of 0.41 would leave 146 of them without one."""
    log = with_a_positive(rated(np.random.default_rng(10), 0.2))
    found = randomness(log)
    assert found.random is True
    assert found.without_positive is not None
    rate = float(log.label.mean())
    kept = len(np.unique(log.user))
    assert found.without_positive.users == 0
    expected = kept * math.prod(1 - rate * N_ITEMS / (N_ITEMS - drawn_before) for drawn_before in range(3))
    assert found.without_positive.expected == pytest.approx(expected)
    assert found.without_positive.p < 1e-12
    assert f"no user lacks a positive, where random exposure gives at least about {expected:,.0f}" in found.verdict


@pytest.mark.parametrize("how", ["alike", "different"])
def test_users_who_were_not_kept_for_their_labels_are_left_in_peace(how: str) -> None:
    """Also where users differ: then more of them lack a positive, never fewer."""
    rng = np.random.default_rng(11)
    found = randomness(rated(rng, 0.2 if how == "alike" else rng.beta(0.2, 0.8, 1500)))
    assert found.without_positive is not None
    assert not found.without_positive.too_few
    assert "lacks a positive" not in found.verdict
    assert (found.without_positive.users > 1.2 * found.without_positive.expected) is (how == "different")


def test_a_log_of_positives_alone_says_nothing_about_users() -> None:
    found = randomness(rated(np.random.default_rng(12), 1.1)).without_positive
    assert found is not None
    assert (found.users, found.expected, found.too_few) == (0, 0, False)


def test_with_full_labels_nothing_can_be_told() -> None:
    """Where every candidate is labelled no draw can leave a user without a positive: all may simply have one."""
    label = np.random.default_rng(13).random((400, 5)) < 0.2
    user, item = np.divmod(np.arange(2000), 5)
    log = Log(Ids.of(range(400)), Ids.of(range(5)), user, item, {"label": label.ravel().astype(np.float64)})
    kept = randomness(with_a_positive(log), train=None)
    assert kept.without_positive is not None
    assert not kept.without_positive.too_few
    assert "no user lacks a positive" not in randomness(log).verdict + kept.verdict


@pytest.mark.realdata
def test_coat_kept_for_its_labels() -> None:
    log = Coat().load(folder_of("coat"))["random"]
    whole, kept = randomness(log).without_positive, randomness(with_a_positive(log)).without_positive
    assert whole is not None
    assert kept is not None
    assert (whole.users, whole.too_few) == (53, False)
    positives = 860 / 4640 * 300
    assert whole.expected == pytest.approx(290 * math.prod(1 - positives / (300 - before) for before in range(16)))
    assert kept.users == 0
