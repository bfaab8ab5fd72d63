"""First steps with the libraries people come from: their numbers at once, without a word on columns."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from calling import call as called

import truerank as tr
from newcomers import NAMES, check, live, load, script

INSTALLED = [name for name in ("pandas", "implicit", *NAMES) if find_spec(name) is not None]


def test_pandas_and_implicit_are_always_live() -> None:
    assert {"pandas", "implicit"} <= {*INSTALLED}


@pytest.mark.parametrize("name", INSTALLED)
def test_first_steps_with_the_library_itself(name: str, tmp_path: Path) -> None:
    made = live(name, tmp_path)
    numbers = made.pop("numbers")
    check(script(name).ours(**made), numbers)


@pytest.mark.parametrize("name", NAMES)
def test_first_steps_with_what_the_library_gave(name: str, tmp_path: Path) -> None:
    made = load(name, tmp_path)
    numbers = made.pop("numbers")
    results = script(name).ours(**made)
    check(results, numbers)
    assert not [message for message in results.messages if message.severity == "warning"]


def test_the_numbers_are_not_the_same_for_every_tool() -> None:
    """The comparison can fail: another tool's forms of the metrics give other numbers."""
    made = load("rectools", Path())
    test, lists, numbers = made["test"], made["lists"], made["numbers"]
    other = tr.evaluate({"m": lists}, test, exclude=made["train"], like="lenskit", metrics=list(numbers))
    with pytest.raises(AssertionError):
        check(other, numbers)


def written(name: str, folder: Path) -> tuple[list[str], dict[str, float]]:
    """What a newcomer of each library has in files, as a command."""
    made = live(name, folder) if name in INSTALLED else load(name, folder)
    if name == "recbole":
        place = folder / "films"
        listed, tokens = made["top"][1], made["dataset"].field2id_token
        rows = [
            (tokens["user_id"][user], tokens["item_id"][item], rank)
            for user, items in zip(made["users"], np.asarray(listed), strict=True)
            for rank, item in enumerate(items, start=1)
        ]
        pd.DataFrame(rows, columns=["user_id", "item_id", "rank"]).to_csv(folder / "lists.csv", index=False)
        return [f"{place}/films.test.inter", "--exclude", f"{place}/films.train.inter"], made["numbers"]
    if name == "ranx":
        judged = "".join(f"{q} 0 {d} {grade}\n" for q, grades in made["qrels"].items() for d, grade in grades.items())
        (folder / "q.qrels").write_text(judged)
        frame = [(q, d, score) for q, scores in made["run"].items() for d, score in scores.items()]
        pd.DataFrame(frame, columns=["query_id", "doc_id", "score"]).set_axis(["user", "item", "score"], axis=1).to_csv(
            folder / "lists.csv", index=False
        )
        return [f"{folder}/q.qrels"], made["numbers"]
    for part in ("train", "test", "lists"):
        frame = made[part]
        if hasattr(frame, "to_df"):
            frame = frame.to_df()
        elif hasattr(frame, "interaction_table"):
            frame = frame.interaction_table(format="pandas", original_ids=True)
        frame.to_csv(folder / f"{part}.csv", index=False)
    return [f"{folder}/test.csv", "--exclude", f"{folder}/train.csv"], made["numbers"]


@pytest.mark.parametrize("name", ["pandas", *NAMES])
def test_the_same_from_files_on_the_command_line(name: str, tmp_path: Path) -> None:
    call, numbers = written(name, tmp_path)
    like = ["--positive", "all"] if name == "pandas" else ["--like", name]
    metrics = [word for metric in numbers for word in ("--metric", metric)]
    call = ["evaluate", *call, "--scores", f"m={tmp_path}/lists.csv", "--exposure", "holdout", *like, *metrics]
    out = tmp_path / "found.json"
    called(*call, "--out", str(out), seconds=60).fine()
    found = {each["metric"].partition("(")[0]: each["value"] for each in json.loads(out.read_text())["estimates"]}
    assert found == pytest.approx(numbers, rel=0, abs=1e-9)


def test_implicit_factors_in_a_file(tmp_path: Path) -> None:
    made = live("implicit", tmp_path)
    model, users, items = made["model"], np.asarray(made["users"]), np.asarray(made["items"])
    arrays = {"user_factors": model.user_factors, "item_factors": model.item_factors, "users": users, "items": items}
    np.savez(tmp_path / "als.npz", **arrays)
    for part in ("train", "test"):
        rows = made[part].tocoo()
        frame = pd.DataFrame({"user_id": users[rows.row], "item_id": items[rows.col]})
        frame.to_csv(tmp_path / f"{part}.csv", index=False)
    call: list[Any] = ["evaluate", tmp_path / "test.csv", "--exclude", tmp_path / "train.csv", "--like", "implicit"]
    call += ["--exposure", "holdout", "--scores", f"als={tmp_path}/als.npz", "--out", tmp_path / "found.json"]
    call += ["--metric", "AP@10", "--metric", "nDCG@10"]
    called(*map(str, call), seconds=60).fine()
    found = {each["metric"]: each["value"] for each in json.loads((tmp_path / "found.json").read_text())["estimates"]}
    assert found == pytest.approx(made["numbers"], rel=0, abs=1e-9)
