"""Every study of our own: found by its place, complete, run in its quick size; pages are made of committed results."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import call

from truerank.cli.own import study_names
from truerank.cli.study import study as group
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.datasets.kuairec import KuaiRec
from truerank.estimators import terms_of
from truerank.estimators.judged.full import Full
from truerank.metrics.recall import Recall
from truerank.report.study_pages import files_of, page_of, pages, with_pages, write_pages
from truerank.studies.own.kuairec import SHAPE, every_cell, liked_pairs, observed
from truerank.studies.own.lists import ListDraws, held
from truerank.studies.own.result import StudyResult, read_results, study_result
from truerank.studies.own.run import run_study
from truerank.studies.own.study import STUDIES, StudyTables
from truerank.studies.work import StudySize, StudySource

DOCS = Path(__file__).parents[2] / "docs" / "results"
RESULTS = DOCS / "studied"
QUICK: dict[str, Any] = {"size": StudySize.QUICK, "seed": 0, "processes": 1}


# ------------------------------------------------------------------------------------------------------- what there is


def test_the_command_line_lists_all_that_are_there() -> None:
    assert study_names() == sorted(STUDIES.catalogue())
    assert not set(study_names()) & set(group.commands)  # each is reached by its name


def test_every_study_has_a_page_and_every_page_a_committed_result() -> None:
    assert set(study_names()) <= set(with_pages())
    assert with_pages() == sorted(path.stem for path in RESULTS.glob("*.json"))


def test_every_page_is_of_a_study_that_is_listed() -> None:
    listed = {row["study"] for row in json.loads(call("study", "list", "--format", "json").out)["studies"]}
    for name, result in read_results(RESULTS).items():
        assert re.match(r"truerank study (\S+)", result.command)[1] in listed, name  # type: ignore[index]


@pytest.mark.parametrize("cls", STUDIES.catalogue().values(), ids=lambda cls: str(cls.name))
def test_a_study_says_what_it_is(cls: Any) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", cls.name)
    assert cls.about.endswith(("?", "."))
    assert cls.minutes > 0


# -------------------------------------------------------------------------------------------------------------- running


@pytest.mark.parametrize("cls", [cls for cls in STUDIES.catalogue().values() if cls.data], ids=lambda cls: cls.name)
def test_a_folder_without_the_data_is_refused_before_any_work(cls: Any, tmp_path: Path) -> None:
    def keep(pieces: Any, *, about: str, **more: Any) -> Any:
        pieces[-1].table()  # of those that are worked on side by side, one that looks
        pytest.fail(f"{about}: work before a look at the data")

    refusal = "needs torch" if learns(cls) and find_spec("torch") is None else "expected"
    with pytest.raises(InputError, match=refusal):
        cls().run(StudySource(tmp_path), size=StudySize.FULL, seed=0, keep=keep, progress=None)


def learns(cls: Any) -> bool:
    """Whether a study trains models with torch."""
    return "truerank.models.settings import load" in Path(str(sys.modules[cls.__module__].__file__)).read_text()


@pytest.mark.parametrize("cls", STUDIES.catalogue().values(), ids=lambda cls: str(cls.name))
def test_the_quick_size_runs_without_data_and_again_is_the_same(cls: Any, tmp_path: Path) -> None:
    if find_spec("torch") is None and learns(cls):
        with pytest.raises(InputError, match="needs torch"):
            run_study(cls(), StudySource(), tmp_path / "out", **QUICK)
        return
    result, notes = run_study(cls(), StudySource(), tmp_path / "out", **QUICK)
    assert not notes
    assert any(result.tables.values())
    assert result.synthetic == bool(cls.data)
    blocks = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.block")}
    again, _ = run_study(cls(), StudySource(), tmp_path / "out", **QUICK)
    assert again.encoded() == result.encoded()
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.block")} == blocks
    (tmp_path / result.file_name).write_bytes(result.encoded())
    assert StudyResult.read(tmp_path / result.file_name) == result
    text = files_of(result)[f"{cls.name}.md"].decode()
    assert f"`truerank study {cls.name}{' --data synthetic' if cls.data else ''} --size quick`" in text
    assert page_of(result).chart.to_dict()  # checked against the schema of Vega-Lite


class _Counted:
    """A study of one's own, whose pieces are counted."""

    name, about, minutes, data = "counted", "Two pieces.", 1.0, ()

    def __init__(self) -> None:
        self.made: list[str] = []
        self.stops = True

    def run(self, source: Any, *, size: Any, seed: int, keep: Any, progress: Any) -> StudyTables:
        tables = keep([_Piece(self, name) for name in ("a b", "a/b")], about="making", apart=False)
        return StudyTables({"found": [{"x": table["x"][0]} for table in tables]}, {"third": 1 / 3})


class _Piece:
    def __init__(self, home: _Counted, name: str) -> None:
        self.home, self.name = home, name

    def table(self) -> pl.DataFrame:
        if self.home.made and self.home.stops:
            raise KeyboardInterrupt
        self.home.made.append(self.name)
        return pl.DataFrame({"x": [len(self.name)]})


def test_rows_of_a_table_have_the_same_columns() -> None:
    with pytest.raises(ValueError, match="rows of found have different columns"):
        study_result("x", StudyTables({"found": [{"a": 1}, {"b": 1}]}), command="", size=StudySize.QUICK, seed=0)


def test_a_stopped_run_goes_on_and_another_question_is_refused(tmp_path: Path) -> None:
    study: Any = _Counted()
    with pytest.raises(KeyboardInterrupt):
        run_study(study, StudySource(), tmp_path, **QUICK)
    study.stops = False
    result, _ = run_study(study, StudySource(), tmp_path, **QUICK)
    assert study.made == ["a b", "a/b"]
    assert result.rows("found") == [{"x": 3}, {"x": 3}]
    assert result.frame("found").to_dicts() == result.rows("found")
    assert result.settings == {"third": 0.333333333}
    with pytest.raises(InputError, match="seed: 0, now 1"):
        run_study(study, StudySource(), tmp_path, size=StudySize.QUICK, seed=1)
    with pytest.raises(InputError, match="needs no data"):
        run_study(study, StudySource(tmp_path), tmp_path / "other", **QUICK)
    with pytest.raises(InputError, match=r"no page of this study; expected one of .*watch"):
        page_of(result)


def test_a_world_stands_for_the_block_of_kuairec() -> None:
    block = KuaiRec.published["full"]
    assert (SHAPE.users, SHAPE.items) == (block.users, block.items)
    world, train = observed(StudySource(), size=StudySize.QUICK, seed=0)
    assert len(world.labels) == world.n_users * world.n_items
    assert len(train) > 0
    for ranks in world.ranks.values():  # a quarter of the items is shown
        assert terms_of(Full(), world.labels, ranks, metrics=[Recall(50)])[0].value() > 0.3


def test_cells_that_nobody_observed_are_not_liked_and_what_was_liked_twice_counts_once() -> None:
    users, items = Ids.of(["a", "b"]), Ids.of([5, 6, 7])

    def log(*rows: tuple[int, int, float]) -> Log:
        user, item, label = (np.array(each) for each in zip(*rows, strict=True))
        return Log(users, items, user, item, rewards={"label": label})

    whole = every_cell(log((0, 2, 1.0), (1, 0, 0.0), (1, 1, 1.0), (0, 0, 0.0)))
    assert whole.label.reshape(2, 3).tolist() == [[0, 0, 1], [0, 1, 0]]
    assert every_cell(whole) is whole
    liked = liked_pairs(log((1, 1, 1.0), (0, 0, 0.0), (1, 1, 1.0), (1, 2, 1.0)))
    assert (liked.user.tolist(), liked.item.tolist(), liked.label.tolist()) == ([1, 1], [1, 2], [1, 1])


# ---------------------------------------------------------------------------------------------------- committed results


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_are_small_and_whole(path: Path) -> None:
    result = StudyResult.read(path)
    kept = StudyTables({name: result.rows(name) for name in result.tables}, result.settings)
    again = study_result(
        result.study, kept, command=result.command, size=result.size, seed=result.seed, data=result.data
    )
    assert (again.tables, again.settings) == (result.tables, result.settings)  # no digit more than is kept
    assert result.command.startswith("truerank study ")
    assert result.encoded() == path.read_bytes()
    assert result.size is StudySize.FULL
    assert not result.synthetic
    assert len(path.read_bytes()) <= 400_000


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_pages_are_made_of_the_committed_results_to_the_byte(path: Path) -> None:
    for name, content in files_of(StudyResult.read(path)).items():
        assert (DOCS / name).read_bytes() == content, f"truerank study pages {RESULTS} --out {DOCS} --force"


def test_a_page_that_says_something_else_is_replaced_only_by_force(tmp_path: Path) -> None:
    results = {"watch": read_results(RESULTS)["watch"]}
    assert write_pages(results, tmp_path / "out") == [tmp_path / "out" / "watch.md"]
    assert write_pages(results, tmp_path / "out")  # the same again
    (tmp_path / "out" / "watch.md").write_text("mine")
    with pytest.raises(InputError, match=r"watch\.md: is there already and says something else"):
        write_pages(results, tmp_path / "out")
    assert (tmp_path / "out" / "watch.md").read_text() == "mine"
    write_pages(results, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "watch.md").read_bytes() == pages(results)["watch.md"]
    with pytest.raises(InputError, match="is a file; expected the name of a folder"):
        write_pages(results, tmp_path / "out" / "watch.md")


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no result of a study"):
        read_results(tmp_path)
    (tmp_path / "other.json").write_bytes((RESULTS / "watch.json").read_bytes())
    with pytest.raises(InputError, match=r"other\.json: holds watch\.json"):
        read_results(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match="is no result of a study"):
        read_results(tmp_path)


def test_a_result_of_another_version_is_told_as_such() -> None:
    result = read_results(RESULTS)["watch"]
    old = replace(result, settings={name: each for name, each in result.settings.items() if name != "runs"})
    with pytest.raises(InputError, match=r"watch\.json: it has no 'runs', so another version .* truerank study watch"):
        page_of(old)


def test_what_is_committed_is_what_is_measured() -> None:
    """A piece of a study at its full size, which follows from its seed: estimators that change show here."""
    result = read_results(RESULTS)["lists"]
    draws, everybody = result.settings["draws"], result.settings["population"]
    found = held(ListDraws("small catalogue", 20, draws, everybody, result.seed).table())
    committed = [row for row in result.rows("intervals") if (row["world"], row["users"]) == ("small catalogue", 20)]
    assert len(found) == len(committed) == 4
    for row, kept in zip(found, committed, strict=True):
        for name in ("mean", "sd", "stderr", "held", "without"):
            assert kept[name] == (None if row[name] is None else pytest.approx(row[name], rel=1e-7))


def test_intervals_that_hold_at_every_look_do() -> None:
    """Ever wrong in at most 5 % of runs; stops within 1.2 of a single test; looks start at 100 events."""
    rows = read_results(RESULTS)["watch"].rows("streams")
    assert all(row["wrong"] <= 0.05 for row in rows)
    assert all(row["median"] <= 1.2 * row["fixed"] for row in rows if row["fixed"] is not None)
    assert all(row["peeked"] > 0.15 for row in rows)


# ------------------------------------------------------------------------------------------------------- command line


def test_the_command_line_runs_a_study_and_makes_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Does an interval that holds at every look" in call("study", "list").out
    found = call("study", "Watch", "--size", "quick", "--threads", "1", "--out", "made", "--quiet")
    assert found.code == 0, found.err
    assert set(found.out.split()) == {"made/watch.json", "made/watch.md", "made/watch.svg"}
    refused = call("study", "pages", "made", "--out", "pages")
    assert refused.code == 2
    assert "study.json" in refused.err  # the folder of a run holds more than results
    Path("results").mkdir()
    Path("made/watch.json").rename("results/watch.json")
    assert call("study", "pages", "results", "--out", "pages").code == 0
    assert Path("pages/watch.md").read_bytes() == Path("made/watch.md").read_bytes()
    assert call("study", "watch", "--data", "results", "--out", "other").code == 2
    assert not Path("other").exists()
