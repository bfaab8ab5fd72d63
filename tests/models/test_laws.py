"""What holds for every model: the same scores twice, in any block and any order of ids, and clear answers to bad input.

Models that need torch have their own tests.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank import models
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.core.values import options_of
from truerank.metrics.additive import Recall
from truerank.models import Labels, Side
from truerank.ranking.scores.scores import Factors
from truerank.simulation.dataset import DatasetSettings, simulate_dataset

NAMES = [name for name, each in models.catalogue().items() if each.needs != "torch"]
LEARNING = [name for name in NAMES if models.named(name).labels is not Labels.NOTHING]
PERSONAL = ["user-knn", "item-knn", "sar", "ease", "kunn", "als", "ials", "bpr"]
WORLD = simulate_dataset(DatasetSettings(users=60, items=40, shown=12, judged=5), seed=3)


def fit(name: str, log: Log, **options: Any) -> Scores:
    return models.make(name, {}).fit(log, seed=options.pop("seed", 1), **options)


def block(scores: Scores) -> Any:
    return scores.block(np.arange(len(scores.users)))


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_is_a_function_of_log_and_seed(name: str, tmp_path: Path) -> None:
    """The same bits again, in any block and after a file; inputs are not written to, progress never goes back."""
    log, seen = WORLD.train, list[tuple[str, int, int]]()
    before = [log.user.copy(), log.item.copy(), *(values.copy() for values in log.rewards.values())]
    scores = fit(name, log, progress=lambda what, done, total: seen.append((what, done, total)))
    whole = block(scores)
    assert whole.shape == (60, 40)
    assert (block(fit(name, log)) == whole).all()
    for rows in ([7], [5, 3, 59], np.arange(20, 60)):
        assert (scores.block(np.array(rows)) == whole[np.array(rows)]).all()
    for path in (tmp_path / "a.npz", tmp_path / "b.npz"):
        tr.write_scores(scores, path)
    again = tr.read_scores(tmp_path / "a.npz")
    assert (block(again) == whole).all()
    assert (again.users, again.items) == (scores.users, scores.items)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert all((a == b).all() for a, b in zip(before, [log.user, log.item, *log.rewards.values()], strict=True))
    assert all(0 <= done <= total for _, done, total in seen)
    for what in {step[0] for step in seen}:
        done = [step[1] for step in seen if step[0] == what]
        assert done == sorted(done)


# ------------------------------------------------------------------------------------------------------- odd input


@pytest.mark.parametrize("name", LEARNING)
def test_an_empty_log_is_refused(name: str) -> None:
    with refused(r"train: no rows; expected"):
        fit(name, WORLD.train.select(np.zeros(0, dtype=np.int64)))


@pytest.mark.parametrize("name", [name for name in LEARNING if models.named(name).labels is Labels.POSITIVES])
def test_without_a_value_column_every_row_is_positive(name: str) -> None:
    rows = WORLD.train.select(WORLD.train.label == 1)
    bare, ones = replace(rows, rewards={}), replace(rows, rewards={"label": np.ones(len(rows))})
    assert np.isfinite(block(fit(name, bare))).all()
    assert (block(fit(name, bare)) == block(fit(name, ones))).all()
    with refused("Say which values are positive"):
        fit(name, replace(WORLD.train, rewards={"rating": WORLD.train.rewards["rating"]}))


@pytest.mark.parametrize("name", NAMES)
def test_users_and_items_without_rows(name: str) -> None:
    """They have finite scores; a model that knows nothing of a user treats all items that it knows alike or by bias."""
    frame = pl.DataFrame({"user": [1, 1, 2, 3, 3], "item": [7, 8, 7, 8, 9], "rating": [5, 4, 5, 4, 2]})
    log = tr.read(frame, positive=">3", users=[1, 2, 3, 4], items=[6, 7, 8, 9])
    scores = block(fit(name, log))
    assert scores.shape == (4, 4)
    assert np.isfinite(scores).all()
    if name in ("user-knn", "item-knn", "sar", "ease", "kunn", "als", "ials"):
        assert (scores[3] == 0).all()  # no rows
        assert (scores[:, 0] == 0).all()
        assert (scores[:, 3] == 0).all()  # rows, but no positive one


def test_values_that_a_model_cannot_learn_from_are_refused() -> None:
    train = WORLD.train
    low, below = train.select(train.label == 0), tr.read(pl.DataFrame({"user": [1], "item": [7], "rating": [-2.0]}))
    cases: dict[str, tuple[str, dict[str, str], Log]] = {
        "no value column": ("avg-rating", {}, replace(train, rewards={})),
        "several value columns": ("avg-rating", {}, replace(train, rewards={**train.rewards, "watched": train.label})),
        r"none of [\d,]+ values is above 3": ("pos-pop", {}, low),
        "values down to -2; ials needs values from 0": ("ials", {"rows": "values"}, below),
    }
    for message, (name, settings, log) in cases.items():
        with refused(message):
            models.make(name, settings).fit(log, seed=0)
    assert np.isfinite(block(fit("avg-rating", low))).all()


@pytest.mark.parametrize("copies", [2, 5, 40])
def test_ease_refuses_a_regularisation_that_is_lost_in_rounding(copies: int) -> None:
    """n copies of an item liked by m users: all weights between them are m / (m (n - 1) + λ)."""
    rows = [(user, item) for user in range(30) for item in range(copies)]
    log = tr.read(pl.DataFrame(rows, schema=["user", "item"], orient="row"))
    for tiny in ("1e-14", "1e-300"):
        with refused(f"ease: regularisation {tiny} is too small for this log"):
            models.make("ease", {"regularisation": tiny}).fit(log, seed=0)
    found = block(models.make("ease", {"regularisation": "1e-6"}).fit(log, seed=0))
    assert found == pytest.approx(np.ones((30, copies)), abs=1e-5)


@pytest.mark.lightfm
def test_a_diverging_fit_is_said_in_our_words() -> None:
    with refused(r"diverged in epoch 1 with user_alpha=1e\+300"):
        models.make("lightfm", {"user_alpha": "1e300"}).fit(WORLD.train, seed=0)


# -------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("name", NAMES)
def test_settings_have_words(name: str) -> None:
    cls = models.named(name)
    assert cls.summary.endswith(".")
    assert all(option.summary for option in options_of(cls).values())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("als", {"dim": "3"}, "als: no setting 'dim'; expected one of factors, iterations, regularisation, alpha."),
        ("als", {"factors": "3.5"}, "als: factors=3.5; expected a whole number from 1."),
        ("ease", {"regularisation": "nan"}, "ease: regularisation=nan; expected a number above 0."),
        ("popularity", {"k": "1"}, "popularity: no setting 'k'; expected none: popularity has no settings."),
        ("item-nn", {}, "Did you mean item-knn?"),
    ],
)
def test_unknown_settings_are_refused(name: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as error:
        models.make(name, settings)
    assert message in str(error.value)


# ------------------------------------------------------------------------------------------------- who is better


@pytest.mark.parametrize("names", [PERSONAL, pytest.param(["lightfm"], marks=pytest.mark.lightfm)], ids=len)
def test_personal_models_beat_popularity_and_popularity_beats_chance(names: list[str]) -> None:
    """On a world of strong taste, in true Recall@50, paired over users, every model with its default settings."""
    world = simulate_dataset(DatasetSettings(users=600, items=400, taste=8.0, shown=60), seed=1)
    fitted = {name: fit(name, world.train) for name in ("popularity", "random", *names)}
    results = tr.evaluate(
        fitted, world.truth, exclude=world.train, metrics=[Recall(50)], baseline="popularity", level=0.999
    )
    found = {each.model: each for each in results.comparisons}
    for name in names:
        assert found[name].low > 0.1, name
    assert found["random"].high < -0.1


@pytest.mark.lightfm
def test_a_new_user_whom_the_feature_table_lacks_gets_the_item_biases() -> None:
    """Users 3 and 4 have no rows; 3 has no features either, 4 has."""
    log = tr.read(pl.DataFrame({"user": [0, 0, 1, 2], "item": [0, 1, 1, 2]}), users=np.arange(5), items=np.arange(3))
    table = pl.DataFrame({"user": [0, 1, 2, 4], "kind": ["x", "x", "y", "y"]})
    found = models.make("lightfm", {}).fit(log, seed=0, side=Side(user_features=table))
    assert isinstance(found, Factors)
    assert not found.user[3, :-1].any()  # the last column takes the item bias
    assert found.user[4, :-1].any()
