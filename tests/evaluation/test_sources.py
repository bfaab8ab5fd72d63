"""Where rows come from: sources have identities, not display names; the population is said."""

from __future__ import annotations

import polars as pl
import pytest

import truerank as tr

LISTS = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 5, 4, 3], "rank": [1, 2, 1, 2]})


def test_two_frames_without_names_are_two_sources() -> None:
    """Both were called "frame", and the items of one hid those of the other from the catalogue."""
    labels = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 3], "label": [1, 0, 1]})
    train = pl.DataFrame({"user": [1, 2], "item": [4, 5]})
    how = {"exposure": "full(unlisted=negative)", "metrics": ["Recall@1"]}
    frames = tr.evaluate({"m": LISTS}, labels, exclude=train, **how)  # type: ignore[arg-type]
    logs = tr.evaluate({"m": LISTS}, tr.read(labels), exclude=tr.read(train, values=False), **how)  # type: ignore[arg-type]
    assert [estimate.value for estimate in logs.estimates] == [estimate.value for estimate in frames.estimates] == [0.5]


@pytest.mark.parametrize(("users", "said"), [([1, 2], False), ([1, 2, 3, 4], True)])
def test_users_without_a_row_are_counted_and_said(users: list[int], said: bool) -> None:
    labels = tr.read(pl.DataFrame({"user": [1, 2], "item": [1, 3], "label": [1, 1]}), users=users)
    results = tr.evaluate({"m": LISTS}, labels, exposure="full(unlisted=negative)", metrics=["HitRate@1"])
    message = [each for each in results.messages if each.code == "users-without-rows"]
    assert bool(message) is said
    assert not message or message[0].numbers["users"] == 2
    assert results.provenance.population is not None
    assert results.provenance.population.startswith(f"{len(users)} users")
