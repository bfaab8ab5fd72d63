"""The three most common mistakes, each caught with one clear sentence: train not excluded, other ids, not random."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr

RNG = np.random.default_rng(5)
N_USERS, N_ITEMS = 40, 30
LIKED = RNG.random((N_USERS, N_ITEMS)) < 0.3
TRAIN = pl.DataFrame({"user": (at := np.argwhere(LIKED))[:, 0], "item": at[:, 1]})
TEST = TRAIN.filter(pl.Series(np.arange(len(TRAIN)) % 4 == 0))
SEEN = TRAIN.join(TEST, on=["user", "item"], how="anti")
SCORES = LIKED + RNG.random(LIKED.shape)


def found(results: tr.Results, code: str) -> list[str]:
    return [str(message) for message in results.messages if message.code == code]


# ------------------------------------------------------------------------------------------------ train not excluded


@pytest.mark.parametrize("exposure", ["holdout", "random"])
def test_scores_of_all_items_without_exclusions(exposure: str) -> None:
    labels = TEST.with_columns(label=pl.lit(1.0)) if exposure == "random" else TEST
    options: dict[str, Any] = {"exposure": exposure, "metrics": ["Recall@5"]}
    if exposure == "random":
        options["estimators"] = ["pooled"]  # no labelled row is in a list, without which others have no value
    results = tr.evaluate({"m": SCORES}, labels, **options)
    (said,) = found(results, "no-exclusions")
    assert said.startswith("nothing is excluded: training items are candidates beside the test items")
    assert said.endswith("give the training pairs with exclude=.")
    assert said in " ".join(str(results).split())
    better = tr.evaluate({"m": SCORES}, labels, exclude=SEEN, **options)
    assert not found(better, "no-exclusions")
    assert better.estimates[0].value > results.estimates[0].value


def test_full_labels_need_no_exclusions() -> None:
    user, item = np.divmod(np.arange(LIKED.size), N_ITEMS)
    labels = pl.DataFrame({"user": user, "item": item, "label": LIKED.ravel()})
    assert not found(tr.evaluate({"m": SCORES}, labels, metrics=["Recall@5"]), "no-exclusions")


def lists(scores: Any) -> pl.DataFrame:
    order = np.argsort(-scores, axis=1)[:, :10]
    rows = [(user, int(item), rank) for user in range(N_USERS) for rank, item in enumerate(order[user], start=1)]
    return pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")


def test_lists_that_hold_what_users_had_in_training() -> None:
    results = tr.evaluate({"m": lists(SCORES)}, TEST, exposure="holdout", exclude=SEEN, metrics=["Recall@5"])
    (said,) = found(results, "seen-in-lists")
    held = lists(SCORES).join(SEEN, on=["user", "item"], how="semi")
    assert said.startswith(f"m: {len(held) / (10 * N_USERS):.0%} of the listed items are excluded")
    assert said.endswith("Make the lists without them.")
    seen = np.zeros(LIKED.shape)
    seen[SEEN["user"], SEEN["item"]] = 10
    clean = tr.evaluate({"m": lists(SCORES - seen)}, TEST, exposure="holdout", exclude=SEEN, metrics=["Recall@5"])
    assert not found(clean, "seen-in-lists")


def test_lists_without_exclusions_are_taken_as_they_are_which_is_noted() -> None:
    results = tr.evaluate({"m": lists(SCORES)}, TEST, exposure="holdout", metrics=["Recall@5"])
    (message,) = [each for each in results.messages if each.code == "no-exclusions"]
    assert message.severity == "note"


# --------------------------------------------------------------------------------------------- ids of another type


TEXT = TEST.with_columns(pl.col("user").cast(pl.String))


@pytest.mark.parametrize(
    ("scores", "labels", "exclude"),
    [
        (lists(SCORES), TEXT, None),
        (lists(SCORES).with_columns(pl.col("user").cast(pl.String)), TEST, None),
        (lists(SCORES), TEST, SEEN.with_columns(pl.col("user").cast(pl.String))),
        (lists(SCORES).with_columns(pl.col("item").cast(pl.String)), TEST, None),
        (lists(SCORES), TEST.with_columns(pl.col("item").cast(pl.String)), None),
        ({str(user): [1, 2] for user in range(N_USERS)}, TEST, None),
    ],
    ids=["labels", "scores", "exclude", "items of scores", "items of labels", "a dict"],
)
def test_numbers_against_text(scores: Any, labels: Any, exclude: Any) -> None:
    with refused(r"ids are (text|numbers) \(such as .+\) where the others are (text|numbers) "
                       r"\(such as .+\); text never matches numbers\. Store both as the same type\.$"):  # fmt: skip
        tr.evaluate({"m": scores}, labels, exposure="holdout", exclude=exclude, metrics=["Recall@5"])


def test_users_who_hardly_meet() -> None:
    moved = lists(SCORES).with_columns(pl.col("user") + 30)
    results = tr.evaluate({"m": moved}, TEST, exposure="holdout", metrics=["Recall@5"])
    (said,) = found(results, "few-users-in-common")
    assert "no scores for 30 of 40 users of labels, such as 0, 1, 2; its users are such as 30, 31, 32" in said
    assert not found(tr.evaluate({"m": lists(SCORES)}, TEST, exposure="holdout"), "few-users-in-common")


def test_items_that_never_meet() -> None:
    """Places in a matrix where the labels have ids: every value would be 0, and nothing would say why."""
    moved = lists(SCORES).with_columns(pl.col("item") + 1000)
    results = tr.evaluate({"m": moved}, TEST, exposure="holdout", metrics=["Recall@5"])
    (said,) = found(results, "no-item-in-common")
    assert said.startswith("m and labels have no item in common: m has items such as 1000, 1001, 1002, labels such as")
    assert results.estimates[0].value == 0


# ---------------------------------------------------------------------------------------------- test set not random


def test_a_test_set_that_is_not_random() -> None:
    rng = np.random.default_rng(1)
    weight = np.r_[np.full(5, 20.0), np.ones(N_ITEMS - 5)]
    rows = [
        (user, int(item), float(LIKED[user, item]))
        for user in range(N_USERS)
        for item in rng.choice(N_ITEMS, 6, replace=False, p=weight / weight.sum())
    ]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    other = RNG.random(LIKED.shape)
    results = tr.evaluate({"m": SCORES, "n": other}, labels, exposure="random", metrics=["Recall@5"])
    (said,) = found(results, "not-random")
    assert said.startswith('exposure="random" does not fit, the labelled pairs are no uniform sample')
    assert said in " ".join(str(results).split())
    assert {each.verdict for each in results.comparisons} == {"insufficient"}
