"""What docs/assumptions.md says of Recall, HitRate, RR and ERR, by enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.arrays import Floats
from truerank.exposure.positions.position_models import Table, YuleSimon

Lists = dict[str, list[str]]  # of each policy, a list of items for each context


def values(lists: Lists, liked: list[str], metric: str, exposure: str = "full") -> dict[str, float]:
    """The value of each policy where every pair is labelled; items are letters, those liked listed by context."""
    items = sorted({item for texts in (liked, *lists.values()) for text in texts for item in text})
    scores = {
        name: tr.scores.dense([[float(-(texts[at] + item).index(item)) for item in items] for at in range(len(liked))],
                       users=range(len(liked)), items=items)
        for name, texts in lists.items()
    }  # fmt: skip
    rows = [(user, item, int(item in text)) for user, text in enumerate(liked) for item in items]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    results = tr.evaluate(scores, labels, metrics=[metric], exposure=exposure)
    return {each.model: each.value for each in results.estimates}


def test_recall_inverts_reward_and_pooled_recall_does_not() -> None:
    """In context 1 one item is relevant, in context 2 four are; two ranks are viewed."""
    lists, liked = {"A": ["ax", "xy"], "B": ["xy", "bc"]}, ["a", "bcde"]
    reward = {name: 2 * value for name, value in values(lists, liked, "Precision@2").items()}
    assert reward == {"A": 0.5, "B": 1.0}
    assert values(lists, liked, "Recall@2") == {"A": 0.5, "B": 0.25}
    assert values(lists, liked, "Recall@2", exposure="random") == {"A": 0.2, "B": 0.4}  # pooled: all were drawn


def test_exposure_does_not_determine_hit_rate() -> None:
    """Each of two lists is shown half of the time; whatever is viewed, every item is exposed as much under A as B."""
    lists = {"A": ["ab", "cd"], "B": ["ad", "cb"]}
    assert values(lists, ["ab", "ab"], "Precision@2") == {"A": 0.5, "B": 0.5}
    assert values(lists, ["ab", "ab"], "HitRate@2") == {"A": 0.5, "B": 1.0}
    for model in (Table((1.0, 1.0)), Table((1.0, 0.25)), YuleSimon(1.5)):
        assert exposures(lists["A"], model) == exposures(lists["B"], model)


def exposures(lists: Sequence[str], model: Table | YuleSimon) -> dict[str, Fraction]:
    """The expected views of every item, each list shown equally often."""
    view: Floats = model.view(np.arange(1.0, 1 + len(lists[0])))
    found: dict[str, Fraction] = {}
    for text in lists:
        for item, seen in zip(text, view, strict=True):
            found[item] = found.get(item, Fraction(0)) + Fraction(float(seen)) / len(lists)
    return found


def satisfied(chance: list[float]) -> float:
    """The probability that a cascade user is satisfied: every outcome of liking and of going on, enumerated."""
    n, total = len(chance), 0.0
    for likes in product((False, True), repeat=n):
        for goes in product((False, True), repeat=n - 1):
            p = float(np.prod([s if like else 1 - s for s, like in zip(chance, likes, strict=True)]))
            p *= float(np.prod([k / (k + 1) if go else 1 / (k + 1) for k, go in enumerate(goes, 1)]))
            for rank in range(n):
                if likes[rank]:
                    total += p
                    break
                if rank < n - 1 and not goes[rank]:
                    break
    return total


def of_one_list(metric: str, grade: list[int]) -> float:
    """A metric of one user whose items have these grades, in the order of the list."""
    n = len(grade)
    scores = {"list": tr.scores.dense([[float(-at) for at in range(n)]], users=[1], items=range(n))}
    labels = tr.read(pl.DataFrame({"user": [1] * n, "item": range(n), "rating": grade}), positive=">0")
    return tr.evaluate(scores, labels, metrics=[metric], exposure="full").estimates[0].value


@pytest.mark.parametrize("grade", [[1, 2, 0, 1], [0, 0, 2, 1], [2, 1, 1, 0], [0, 1, 0, 0]])
def test_err_is_the_reward_of_a_cascade_user(grade: list[int]) -> None:
    """An item of grade g satisfies with probability (2^g - 1) / 2^highest."""
    expected = satisfied([(2**g - 1) / 4 for g in grade])
    assert of_one_list("ERR@4(highest=2)", grade) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("label", [[1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
def test_rr_is_the_reward_of_a_cascade_user_whom_every_liked_item_satisfies(label: list[int]) -> None:
    assert of_one_list("RR", label) == pytest.approx(satisfied([float(each) for each in label]), abs=1e-12)


def test_the_discount_of_rr_is_yule_1() -> None:
    rank = np.arange(1.0, 50.0)
    np.testing.assert_allclose(YuleSimon(1.0).view(rank), 1 / rank, rtol=1e-13)
