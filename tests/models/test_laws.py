"""What holds for every model: the same scores twice, in any block and any order of ids, and clear answers to bad input.

Models that need torch have their own tests.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank import models
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.metrics.recall import Recall
from truerank.models import Labels, Side
from truerank.models.baselines import Random
from truerank.models.settings import settings_of, space
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


def test_the_guide_names_every_model() -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text()
    for name in NAMES:
        assert f"| `{name}` |" in guide
        needs = models.named(name).needs
        assert needs is None or f"`.[{needs}]`" in next(x for x in guide.splitlines() if f"| `{name}` |" in x)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_scores(name: str) -> None:
    assert (block(fit(name, WORLD.train)) == block(fit(name, WORLD.train))).all()


@pytest.mark.parametrize("name", ["random", "als", "bpr", "lightfm"])
def test_another_seed_gives_other_scores(name: str) -> None:
    assert (block(fit(name, WORLD.train, seed=1)) != block(fit(name, WORLD.train, seed=2))).any()


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_same_bits_in_any_block(name: str) -> None:
    scores = fit(name, WORLD.train)
    whole = block(scores)
    assert whole.shape == (60, 40)
    for rows in ([7], [5, 3, 59], np.arange(20, 60)):
        assert (scores.block(np.array(rows)) == whole[np.array(rows)]).all()


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_same_after_a_file(name: str, tmp_path: Path) -> None:
    scores = fit(name, WORLD.train)
    for path in (tmp_path / "a.npz", tmp_path / "b.npz"):
        tr.write_scores(scores, path)
    again = tr.read_scores(tmp_path / "a.npz")
    assert (block(again) == block(scores)).all()
    assert again.users == scores.users
    assert again.items == scores.items
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_written_to(name: str) -> None:
    log = WORLD.train
    before = [log.user.copy(), log.item.copy(), *(each.copy() for each in log.rewards.values())]
    fit(name, log)
    after = [log.user, log.item, *log.rewards.values()]
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_progress_never_goes_back_or_beyond(name: str) -> None:
    seen: list[tuple[str, int, int]] = []
    fit(name, WORLD.train, progress=lambda what, done, total: seen.append((what, done, total)))
    assert all(0 <= done <= total for _, done, total in seen)
    for what in {each[0] for each in seen}:
        done = [each[1] for each in seen if each[0] == what]
        assert done == sorted(done)


@pytest.mark.parametrize("name", ["popularity", "user-knn", "item-knn", "sar", "ease", "kunn"])
def test_names_of_users_and_items_do_not_matter(name: str) -> None:
    """Renamed, so that they come in another order inside, users get the same scores, up to rounding of sums."""
    log = WORLD.train
    rng = np.random.default_rng(2)
    user, item = rng.permutation(60), rng.permutation(40)
    frame = pl.DataFrame({"user": user[log.user], "item": item[log.item], "label": log.label})
    moved = tr.read(frame, users=np.arange(60), items=np.arange(40))
    np.testing.assert_allclose(block(fit(name, moved))[user][:, item], block(fit(name, log)), rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------------- odd input


@pytest.mark.parametrize("name", LEARNING)
def test_an_empty_log_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"train: no rows; expected"):
        fit(name, WORLD.train.select(np.zeros(0, dtype=np.int64)))


def test_random_needs_no_rows() -> None:
    assert block(fit("random", WORLD.train.select(np.zeros(0, dtype=np.int64)))).shape == (60, 40)


@pytest.mark.parametrize("name", [name for name in LEARNING if models.named(name).labels is Labels.POSITIVES])
def test_a_log_without_positives_is_refused(name: str) -> None:
    negatives = WORLD.train.select(WORLD.train.label == 0)
    with pytest.raises(InputError, match=r"none of [\d,]+ rows is positive"):
        fit(name, negatives)


def test_ratings_that_are_all_low_leave_nothing_to_count() -> None:
    with pytest.raises(InputError, match=r"none of [\d,]+ values is above 3"):
        fit("pos-pop", WORLD.train.select(WORLD.train.label == 0))
    assert np.isfinite(block(fit("avg-rating", WORLD.train.select(WORLD.train.label == 0)))).all()


@pytest.mark.parametrize("name", LEARNING)
def test_a_log_of_positives_alone_is_enough(name: str) -> None:
    assert np.isfinite(block(fit(name, WORLD.train.select(WORLD.train.label == 1)))).all()


@pytest.mark.parametrize("name", [name for name in LEARNING if models.named(name).labels is Labels.POSITIVES])
def test_without_a_value_column_every_row_is_positive(name: str) -> None:
    rows = WORLD.train.select(WORLD.train.label == 1)
    bare, ones = replace(rows, rewards={}), replace(rows, rewards={"label": np.ones(len(rows))})
    assert (block(fit(name, bare)) == block(fit(name, ones))).all()


def test_sar_on_all_rows_needs_no_values() -> None:
    """Without a value column all rows are positive: both readings of occurrence agree."""
    log = tr.read(pl.DataFrame({"user": [1, 2, 2, 2], "item": [7, 7, 8, 8]}))
    by_rows = models.make("sar", {"occurrence": "rows", "similarity": "jaccard"}).fit(log, seed=0)
    assert block(by_rows).tolist() == [[1.0, 0.5], [2.0, 2.5]]
    assert (block(by_rows) == block(models.make("sar", {"similarity": "jaccard"}).fit(log, seed=0))).all()


def test_an_average_needs_values() -> None:
    with pytest.raises(InputError, match="no value column"):
        fit("avg-rating", replace(WORLD.train, rewards={}))


@pytest.mark.parametrize("name", ["popularity", "ease", "als", "item-knn"])
def test_values_that_are_no_labels_need_a_rule(name: str) -> None:
    log = replace(WORLD.train, rewards={"rating": WORLD.train.rewards["rating"]})
    with pytest.raises(InputError, match="Say which values are positive"):
        fit(name, log)


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


@pytest.mark.parametrize("name", NAMES)
def test_one_user_and_one_item(name: str) -> None:
    log = tr.read(pl.DataFrame({"user": ["u"], "item": ["i"], "label": [1]}))
    assert np.isfinite(block(fit(name, log))).all()


def test_several_values_are_refused() -> None:
    rewards = {**WORLD.train.rewards, "watched": WORLD.train.label}
    with pytest.raises(InputError, match="several value columns"):
        fit("avg-rating", replace(WORLD.train, rewards=rewards))


def test_negative_ratings_are_no_confidences() -> None:
    log = tr.read(pl.DataFrame({"user": [1, 2], "item": [7, 8], "rating": [-2.0, 3.0]}))
    with pytest.raises(InputError, match=r"values down to -2; ials needs values from 0"):
        models.make("ials", {"rows": "values"}).fit(log, seed=0)


@pytest.mark.parametrize("copies", [2, 5, 40])
def test_ease_refuses_a_regularisation_that_is_lost_in_rounding(copies: int) -> None:
    """n copies of an item liked by m users: all weights between them are m / (m (n - 1) + λ)."""
    rows = [(user, item) for user in range(30) for item in range(copies)]
    log = tr.read(pl.DataFrame(rows, schema=["user", "item"], orient="row"))
    for tiny in ("1e-14", "1e-300"):
        with pytest.raises(InputError, match=f"ease: regularisation {tiny} is too small for this log"):
            models.make("ease", {"regularisation": tiny}).fit(log, seed=0)
    found = block(models.make("ease", {"regularisation": "1e-6"}).fit(log, seed=0))
    assert found == pytest.approx(np.ones((30, copies)), abs=1e-5)


@pytest.mark.lightfm
def test_a_diverging_fit_is_said_in_our_words() -> None:
    with pytest.raises(InputError, match=r"diverged in epoch 1 with user_alpha=1e\+300"):
        models.make("lightfm", {"user_alpha": "1e300"}).fit(WORLD.train, seed=0)


# -------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("name", NAMES)
def test_settings_have_words_and_searched_values_are_allowed(name: str) -> None:
    cls = models.named(name)
    assert cls.summary.endswith(".")
    for each in settings_of(cls).values():
        assert each.summary
    for key, search in space(cls).items():
        ends = search.values if hasattr(search, "values") else (search.low, search.high)
        for value in ends:
            assert getattr(cls(**{key: value}), key) == value


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("als", {"dim": "3"}, "als: no setting 'dim'; expected one of factors, iterations, regularisation, alpha."),
        ("als", {"factor": "3"}, "Did you mean factors?"),
        ("als", {"factors": "3.5"}, "als: factors=3.5; expected a whole number from 1."),
        ("als", {"factors": "0"}, "als: factors=0; expected a whole number from 1."),
        (
            "als",
            {"factors": "1" + "0" * 400},
            "als: factors=a whole number of 1329 bits, which is too large; expected",
        ),
        ("als", {"factors": "1" + "0" * 5000}, "expected a whole number from 1."),
        ("ease", {"regularisation": "1" + "0" * 400}, "ease: regularisation=inf; expected a number above 0."),
        ("ease", {"regularisation": "0"}, "ease: regularisation=0; expected a number above 0."),
        ("ease", {"regularisation": "nan"}, "ease: regularisation=nan; expected a number above 0."),
        ("ease", {"regularisation": "much"}, "ease: regularisation=much; expected a number above 0."),
        ("sar", {"similarity": "dice"}, "sar: similarity=dice; expected cosine or jaccard."),
        ("popularity", {"k": "1"}, "popularity: no setting 'k'; expected none: popularity has no settings."),
        ("item-nn", {}, "Did you mean item-knn?"),
        ("nothing-like-it", {}, "unknown model 'nothing-like-it'; expected one of als, avg-rating"),
    ],
)
def test_unknown_settings_are_refused(name: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as error:
        models.make(name, settings)
    assert message in str(error.value)


def test_settings_of_the_wrong_type_are_refused_in_python_too() -> None:
    cls = models.named("item-knn")
    for value in (True, "5", 2.5, None, float("inf")):
        with pytest.raises(InputError, match="item-knn: neighbours="):
            cls(neighbours=value)
    for value in (10**400, 10**5000, 2**63, 1e300, float("nan")):
        with pytest.raises(InputError, match="item-knn: neighbours="):
            cls(neighbours=value)
    with pytest.raises(InputError, match="ease: regularisation=a whole number of 1329 bits, which is too large"):
        models.named("ease")(regularisation=10**400)
    assert models.named("ease")(regularisation=10**20).regularisation == 1e20
    assert cls(neighbours=np.int64(5)).neighbours == 5
    assert cls(rows="values").rows.value == "values"


# ---------------------------------------------------------------------------------------------------------- size


def test_random_scores_of_ten_thousand_by_ten_thousand_are_never_held() -> None:
    ids = np.arange(10_000)
    log = tr.read(pl.DataFrame({"user": [0], "item": [0]}), users=ids, items=ids)
    tracemalloc.start()
    scores = Random().fit(log, seed=0)
    found = scores.block(np.arange(50))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # the matrix would take 800 MB
    assert len(np.unique(found[0])) == 10_000


def test_similar_users_are_never_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyone likes the same item: users x users is dense, what is kept and held is not."""
    n = 4000
    monkeypatch.setattr("truerank.models.neighbours.BLOCK_CELLS", 2**17)
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": np.tile(np.arange(n), 2), "item": [*[0] * n, *rng.integers(1, 3000, n)]})
    log = tr.read(frame.unique())
    tracemalloc.start()
    models.make("user-knn", {"neighbours": "5"}).fit(log, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # all pairs would take 128 MB as numbers alone


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


@pytest.mark.lightfm
def test_features_help_where_rows_are_missing() -> None:
    """Items that nobody has seen can only be told apart by their features."""
    rng = np.random.default_rng(5)
    user, item = np.nonzero(rng.random((200, 60)) < 0.5)
    same = (user % 2 == item % 2) & (item < 50)
    log = tr.read(pl.DataFrame({"user": user[same], "item": item[same]}), users=np.arange(200), items=np.arange(60))
    features = pl.DataFrame({"item": np.arange(60), "kind": [("even", "odd")[each % 2] for each in range(60)]})
    plain = block(models.make("lightfm", {}).fit(log, seed=0))[:, 50:]
    known = block(models.make("lightfm", {}).fit(log, seed=0, side=Side(item_features=features)))[:, 50:]
    mine = np.arange(200)[:, None] % 2 == np.arange(50, 60)[None, :] % 2
    assert (known[mine].reshape(200, 5).min(axis=1) > known[~mine].reshape(200, 5).max(axis=1)).mean() > 0.95
    assert (plain[mine].reshape(200, 5).min(axis=1) > plain[~mine].reshape(200, 5).max(axis=1)).mean() < 0.5
