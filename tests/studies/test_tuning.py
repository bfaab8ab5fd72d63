"""Tuning: the same search however it is interrupted, judged on rows that the model has not seen."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank import models
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.estimators.biased.ips import IPS
from truerank.estimators.judged.pooled import Pooled
from truerank.exposure.kinds import FullExposure, RandomExposure, Unlisted
from truerank.metrics.recall import Recall
from truerank.models import Labels, Side
from truerank.models.settings import LogUniform, OneOf, WholeNumbers, space
from truerank.studies.objectives import HoldOut, RandomSlice
from truerank.studies.tuning import Tuned, tune
from truerank.studies.world import WorldSettings, make_world

WORLD = make_world(WorldSettings(users=80, items=50, shown=20, judged=10), seed=3)
SIDE = Side(random=WORLD.random)


def search(folder: Path, *, name: str = "ials", trials: int, **options: Any) -> Tuned:
    given = {"objective": HoldOut(Recall(10)), "seed": 1, "fixed": (), "log": WORLD.train, **options}
    model = given.pop("model", models.make(name, {"iterations": "3"} if name == "ials" else {}))
    return tune(model, given.pop("log"), trials=trials, folder=folder, **given)


def tried(found: Tuned) -> list[Any]:
    return [(dict(each.settings), each.value) for each in found.trials]


def test_an_interrupted_search_ends_like_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search(tmp_path / "whole", trials=14)
    fit = models.named("ials").fit
    calls = 0

    def stops(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return fit(self, *args, **options)

    monkeypatch.setattr(models.named("ials"), "fit", stops)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "parts", trials=14)
    assert search(tmp_path / "parts", trials=8).resumed == 4
    again = search(tmp_path / "parts", trials=14)
    assert again.resumed == 8
    assert tried(again) == tried(whole)
    assert (again.model, again.value) == (whole.model, whole.value)


def test_a_finished_search_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = search(tmp_path / "a", trials=3)
    monkeypatch.setattr(models.named("ials"), "fit", None)
    again = search(tmp_path / "a", trials=3)
    assert tried(again) == tried(first)
    assert again.resumed == 3


@pytest.mark.parametrize(("name", "trials"), [("ials", 3), ("item-knn", 10)])
def test_an_incomplete_last_line_is_dropped_and_said(tmp_path: Path, name: str, trials: int) -> None:
    whole = search(tmp_path / "whole", name=name, trials=trials)
    path = tmp_path / "whole" / "trials.log"
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(len(lines)):
        path.write_bytes(b"".join(lines[:kept]) + lines[kept][:-5])
        again = search(tmp_path / "whole", name=name, trials=trials)
        assert [note.partition(": ")[2] for note in again.notes] == [
            "the last line was damaged and has been dropped; its trial is done again."
        ]
        assert tried(again) == tried(whole)
    assert search(tmp_path / "whole", name=name, trials=trials).notes == ()
    path.write_bytes(lines[0] + b"{]\n" + lines[1])
    with pytest.raises(InputError, match=r"trials.log: line 2 of 3 is damaged. Restore the file, or choose another"):
        search(tmp_path / "whole", name=name, trials=trials)


def test_the_best_value_is_that_of_the_best_model(tmp_path: Path) -> None:
    found = search(tmp_path / "a", trials=5)
    assert found.value == max(each.value for each in found.trials if each.value is not None)
    train, held = tr.split(WORLD.train, "user", 0.2, seed=1)
    results = tr.evaluate(
        {"best": found.model.fit(train, seed=1)}, held, exclude=train, metrics=[Recall(10)],
        exposure=FullExposure(Unlisted.NEGATIVE),
    )  # fmt: skip
    assert results.estimates[0].value == found.value


def test_a_small_grid_is_tried_whole_and_once(tmp_path: Path) -> None:
    found = search(tmp_path / "a", name="item-knn", trials=30)
    assert [each.settings["neighbours"] for each in found.trials] == list(range(10, 101, 10))
    assert found.model.neighbours == 10 or found.value > 0  # type: ignore[attr-defined]
    part = search(tmp_path / "b", name="item-knn", trials=9)
    sampled = {each.settings["neighbours"] for each in part.trials}
    assert len(part.trials) == 9
    assert len(sampled) < 9  # sampled with repetition, so that the rest has something to leave out
    more = search(tmp_path / "b", name="item-knn", trials=10)
    assert more.resumed == len(sampled)
    assert tried(more) == tried(found)
    assert (more.model, more.value) == (found.model, found.value)


def test_fixed_settings_stay(tmp_path: Path) -> None:
    model = models.make("ials", {"factors": "3", "iterations": "2"})
    found = search(tmp_path / "a", model=model, trials=6, fixed=("factors",))
    assert {each.settings["regularisation"] for each in found.trials} == {0.001, 0.006, 0.01, 0.06, 0.1, 0.6}
    assert dataclasses.asdict(found.model)["factors"] == 3  # type: ignore[call-overload]


def test_a_random_slice_judges_by_an_estimator(tmp_path: Path) -> None:
    objective = RandomSlice(Recall(10), Pooled())
    found = search(tmp_path / "a", name="item-knn", trials=10, objective=objective, side=SIDE)
    results = tr.evaluate(
        {"best": found.model.fit(WORLD.train, seed=1)}, WORLD.random, exclude=WORLD.train, metrics=[Recall(10)],
        estimators=[Pooled()], exposure=RandomExposure(),
    )  # fmt: skip
    assert results.estimates[0].value == found.value


def test_a_model_of_both_classes_is_judged_on_rows_it_has_not_seen() -> None:
    task = RandomSlice().task(WORLD.train, SIDE, labels=Labels.BOTH, seed=1)
    assert task.side.random is not None
    assert 0 < len(task.side.random) < len(WORLD.random)
    assert RandomSlice().task(WORLD.train, SIDE, labels=Labels.POSITIVES, seed=1).side.random is WORLD.random


def test_pairs_without_values_are_positives(tmp_path: Path) -> None:
    rows = WORLD.train.select(WORLD.train.label == 1)
    bare = dataclasses.replace(rows, rewards={})
    assert search(tmp_path / "a", trials=2, log=bare).value == search(tmp_path / "b", trials=2, log=rows).value


def test_another_question_needs_another_folder(tmp_path: Path) -> None:
    search(tmp_path / "a", trials=1)
    other: list[dict[str, Any]] = [
        {"seed": 2}, {"objective": HoldOut(Recall(5))}, {"objective": HoldOut(Recall(10), 0.204)},
        {"log": WORLD.train.select(np.arange(900))},
        {"fixed": ("factors",)}, {"name": "item-knn"}, {"side": SIDE},
    ]  # fmt: skip
    for change in other:
        with pytest.raises(InputError, match="holds a search of something else"):
            search(tmp_path / "a", trials=1, **change)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds files of something else"):
        search(tmp_path / "b", trials=1)
    assert [each.name for each in (tmp_path / "b").iterdir()] == ["thesis.txt"]


def test_the_settings_of_an_objective_are_part_of_the_question() -> None:
    assert str(HoldOut(Recall(10), 0.2)) == "Recall@10 on 0.2 of each user's rows, held out"
    assert str(RandomSlice(Recall(10))) == "Recall@10 by the default estimator on the random slice"
    assert str(RandomSlice(Recall(10), IPS(clip=5.0))) == "Recall@10 by IPS(clip=5.0) on the random slice"


def test_bad_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 trials; expected"):
        search(tmp_path / "a", trials=0)
    with pytest.raises(InputError, match="popularity: nothing to search"):
        search(tmp_path / "a", name="popularity", trials=1)
    with pytest.raises(InputError, match="needs one: side="):
        search(tmp_path / "a", trials=1, objective=RandomSlice())
    few = tr.read(pl.DataFrame({"user": [1, 2], "item": [3, 4], "label": [1, 1]}))
    with pytest.raises(InputError, match=r"none is relevant|no rows"):
        search(tmp_path / "b", trials=1, log=few)
    negatives: Log = WORLD.train.select(WORLD.train.label == 0)
    with pytest.raises(InputError, match="rows is positive"):
        search(tmp_path / "c", trials=1, log=negatives)


def test_a_refused_call_is_not_in_the_way_of_the_corrected_one(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"log": WORLD.train.select(np.arange(0))}, {"objective": HoldOut(Recall(10), 0.0)},
        {"objective": HoldOut(Recall(10), 1.0)}, {"objective": HoldOut(Recall(10), 2.0)},
        {"objective": RandomSlice()},
        {"objective": RandomSlice(), "side": Side(random=WORLD.random.select(np.arange(0)))},
    ]  # fmt: skip
    for change in wrong:
        with pytest.raises(InputError):
            search(tmp_path / "a", trials=1, **change)
        assert not (tmp_path / "a").exists()
    assert len(search(tmp_path / "a", trials=1).trials) == 1


def test_settings_that_cannot_be_fitted_are_kept_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = models.named("item-knn").fit

    def fails(self: Any, *args: Any, **options: Any) -> Any:
        if self.neighbours == 30:
            raise InputError("too many cooks")
        return fit(self, *args, **options)

    monkeypatch.setattr(models.named("item-knn"), "fit", fails)
    found = search(tmp_path / "a", name="item-knn", trials=10)
    assert [each.reason for each in found.trials if each.value is None] == ["too many cooks"]
    assert len(found.trials) == 10


def test_the_first_settings_may_fail_and_the_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = models.named("item-knn")
    fit = cls.fit
    possible = 30

    def fails(self: Any, *args: Any, **options: Any) -> Any:
        if self.neighbours < possible:
            raise InputError(f"{self.neighbours} are too few")
        return fit(self, *args, **options)

    monkeypatch.setattr(cls, "fit", fails)
    found = search(tmp_path / "a", name="item-knn", trials=10)
    assert [each.reason for each in found.trials[:3]] == ["10 are too few", "20 are too few", None]
    possible = 1000
    with pytest.raises(InputError, match="none of 10 trials could be fitted, so none is kept; the last: 100 are too"):
        search(tmp_path / "b", name="item-knn", trials=10)
    possible = 30  # as after installing what was missing
    assert tried(search(tmp_path / "b", name="item-knn", trials=10)) == tried(found)


def test_the_spaces_are_those_of_the_papers() -> None:
    grid = {name: space(models.named(name)) for name in ("ease", "kunn", "user-knn", "als", "bpr", "lightfm", "ials")}
    assert grid["ease"]["regularisation"] == OneOf(tuple(float(x) for x in range(500, 1601, 10)))
    assert grid["kunn"] == {"users": OneOf(tuple(range(70, 111, 5))), "items": OneOf(tuple(range(70, 111, 5)))}
    assert grid["user-knn"]["neighbours"] == OneOf(tuple(range(10, 101, 10)))
    assert grid["als"] == {
        "factors": WholeNumbers(10, 200), "iterations": WholeNumbers(10, 50), "regularisation": LogUniform(1e-5, 10.0),
        "alpha": WholeNumbers(1, 100),
    }  # fmt: skip
    assert grid["bpr"]["learning_rate"] == LogUniform(1e-4, 0.1)
    assert grid["lightfm"]["user_alpha"] == grid["lightfm"]["item_alpha"] == LogUniform(1e-6, 1e-2)
    assert grid["ials"]["factors"] == OneOf(tuple(range(20, 201, 20)))
