"""The splits of the papers: sizes, disjointness, and the same rows whatever the order of the file."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import truerank as tr
from realdata import folder_of
from truerank.core.log import Log
from truerank_research.papers.splits import (
    dcg_movielens,
    kuairec_parts,
    movielens_parts,
    popular_first,
    ure_kuairec,
    wtd,
)


def block(users: int = 40, items: int = 60) -> Log:
    rng = np.random.default_rng(0)
    cell = np.flatnonzero(rng.random(users * items) < 0.97)
    rating = rng.integers(1, 6, len(cell))
    return tr.read(pl.DataFrame({"user": cell // items, "item": cell % items, "rating": rating}), positive=">3")


def cells(log: Log) -> set[tuple[str, str]]:
    users, items = log.users.texts(), log.items.texts()
    return {(users[u], items[i]) for u, i in zip(log.user.tolist(), log.item.tolist(), strict=True)}


def test_ure_kuairec() -> None:
    full = block()
    weight = popular_first(full, scale=10)
    parts = ure_kuairec(full, weight, seed=1, shown=8)
    assert cells(parts["train"]) | cells(parts["full"]) == cells(full)
    assert not cells(parts["train"]) & cells(parts["full"])
    assert cells(parts["random"]) < cells(parts["full"])
    assert np.bincount(parts["random"].user).tolist() == [8] * 40
    n, share = np.bincount(full.user), 1_934_404 / 4_676_570
    assert np.bincount(parts["train"].user).tolist() == np.floor(share * n + 0.5).tolist()
    # what is likely to be shown is shown
    assert weight[parts["train"].item].mean() > weight[parts["full"].item].mean() + 1
    level = ure_kuairec(full, popular_first(full, scale=np.inf), seed=1, shown=8)
    assert abs(weight[level["train"].item].mean() - weight[level["full"].item].mean()) < 0.4
    shuffled = full.select(np.random.default_rng(3).permutation(len(full)))
    assert cells(ure_kuairec(shuffled, weight, seed=1, shown=8)["train"]) == cells(parts["train"])
    assert cells(ure_kuairec(full, weight, seed=2, shown=8)["train"]) != cells(parts["train"])


def test_weighted_draws_have_the_right_first_probabilities() -> None:
    """One of three items for each of 30,000 users: drawn in proportion to exp(weight)."""
    users = 30_000
    full = tr.read(pl.DataFrame({"user": np.repeat(np.arange(users), 3), "item": [0, 1, 2] * users, "label": 1}))
    chance = np.array([0.6, 0.3, 0.1])
    drawn = ure_kuairec(full, np.log(chance), seed=1, shown=1, share=0.34)["train"]
    found = np.bincount(drawn.item) / users
    assert np.abs(found - chance).max() < 5 * np.sqrt(0.25 / users)


def test_wtd() -> None:
    rng = np.random.default_rng(1)
    train = tr.read(
        pl.DataFrame({"user": rng.integers(0, 30, 500), "item": rng.integers(0, 90, 500), "label": 1}).unique()
    )
    random = tr.read(
        pl.DataFrame({"user": rng.integers(9, 40, 400), "item": rng.integers(9, 99, 400), "label": 0}).unique()
    )
    parts = wtd(train, random, seed=3)
    for part in parts.values():
        assert part.users == parts["train"].users
        assert part.items == parts["train"].items
    biased, shown = len(parts["train"]) + len(parts["heldout"]), cells(parts["weights"]) | cells(parts["truth"])
    assert len(parts["train"]) == int(0.6 * biased + 1e-9)
    shown |= cells(parts["validation"])
    assert [len(parts[name]) for name in ("weights", "validation")] == [int(0.15 * len(shown) + 1e-9)] * 2
    assert sum(len(parts[name]) for name in ("weights", "validation", "truth")) == len(shown)


def test_dcg_movielens() -> None:
    log = block()
    parts = dcg_movielens(log, least=14)
    both = cells(parts["train"]) | cells(parts["test"])
    assert not cells(parts["train"]) & cells(parts["test"])
    liked = np.bincount(log.item, weights=log.label)
    assert len(both) == int(liked[liked >= 14].sum())
    n = np.bincount(parts["train"].user) + np.bincount(parts["test"].user, minlength=len(parts["train"].users))
    assert (np.bincount(parts["train"].user) == np.ceil(n / 2)).all()


@pytest.mark.slow
@pytest.mark.realdata
def test_ure_on_kuairec() -> None:
    """The compact block has its missing cells: 1,411 x 3,327, of which the same share is training data."""
    parts = kuairec_parts(folder_of("kuairec"), seed=0)
    assert len(parts["train"]) + len(parts["full"]) == 4_694_397
    assert len(parts["train"]) == 1_411 * round(3_327 * 1_934_404 / 4_676_570)
    assert len(parts["random"]) == 1_411 * 80


@pytest.mark.realdata
def test_dcg_on_movielens() -> None:
    """The published number of positives of items with at least 5 of them."""
    assert sum(len(part) for part in movielens_parts(folder_of("movielens_1m"), seed=0).values()) == 574_385
