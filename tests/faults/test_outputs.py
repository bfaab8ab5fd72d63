"""Outputs that would replace an input or each other, or lie where nobody expects them: refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
from calling import Called, call
from commands import EVALUATE, FEED, OFFPOLICY, SPLIT, WORLD, make_inputs, words

from truerank.io.atomic_write import check_folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_inputs(tmp_path / "here"))
    return Path.cwd()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def refused(outcome: Called, *said: str) -> None:
    assert outcome.code == 2, outcome
    assert outcome.err.count("truerank: ") == 1, outcome.err
    for word in said:
        assert word in outcome.err, outcome.err


def test_a_folder_that_is_read_is_not_replaced(here: Path) -> None:
    """--force may replace a folder that truerank made, but not the one that the results are made of."""
    assert call(SPLIT).code == 0
    before = contents(here)
    for again in ("split made/train.csv", "split made", "split made/t*.csv"):
        refused(call(f"{again} --by random --out made --force --quiet"), "is read from there")
    Path("linked.csv").symlink_to(here / "made" / "train.csv")
    refused(call("split linked.csv --by random --out made --force --quiet"), "is read from there")
    Path("linked.csv").unlink()
    refused(call("study figures studied --out studied --force"), "is read from there")
    assert contents(here) == before


def test_results_are_not_saved_over_what_they_are_made_of(here: Path) -> None:
    """Both folders have a marker and are as truerank wrote them: --force would have replaced them."""
    assert call("split labels.parquet --by random --out made --quiet").code == 0
    assert call(FEED.replace("made", "feed")).code == 0
    before = contents(here)
    evaluate = EVALUATE.replace("labels.parquet", "made/test.parquet")
    refused(call(f"{evaluate} --save made --force"), "made/test.parquet is read from there")
    offpolicy = OFFPOLICY.replace("log.parquet", "feed/log.parquet").replace("new.parquet", "feed/better.parquet")
    refused(call(f"{offpolicy} --save feed --force"), "feed/log.parquet is read from there")
    assert contents(here) == before


def test_a_folder_is_replaced_by_its_own_kind_only(here: Path) -> None:
    """--force is meant for the last attempt of the same command, never for a study or a world."""
    assert call(WORLD).code == 0
    before = contents(here)
    for command in (
        f"{SPLIT} --force",
        f"{EVALUATE} --save made --force",
        f"{FEED} --force",
        "study figures studied --out made --force",
        "demo --out made --force",
    ):
        refused(call(command), "holds a world; expected a new or empty folder for a ")
    refused(call(*words(f"{WORLD} --force".replace("made", "studied"))), "holds a reliability study; expected a new")
    assert contents(here) == before


def test_links_that_lead_to_each_other(here: Path) -> None:
    Path("loop").symlink_to("loop")
    Path("nowhere").symlink_to("missing/there")
    for command in (f"{EVALUATE} --out loop", f"{EVALUATE} --units loop/u.parquet", f"{EVALUATE} --out nowhere"):
        refused(call(command), "cannot be written")
    for name in ("loop", "nowhere"):
        refused(call(f"{EVALUATE} --save {name}"), name)
    refused(call(SPLIT.replace("made", "loop")), "loop: is a link that leads nowhere")


def test_links_are_followed_and_stay_links(here: Path, tmp_path: Path) -> None:
    """A link to a file on another disk: the file there is replaced, whole, and the link still leads to it."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "r.json").write_text("old")
    Path("r.json").symlink_to(tmp_path / "far" / "r.json")
    Path("folder").symlink_to(tmp_path / "far" / "parts")
    assert call(f"{EVALUATE} --out r.json").code == 0
    assert Path("r.json").is_symlink()
    assert (tmp_path / "far" / "r.json").read_bytes()[:1] == b"{"
    assert call(SPLIT.replace("made", "folder")).code == 0
    assert Path("folder").is_symlink()
    check_folder(tmp_path / "far" / "parts", kind="split", expected="parts")
    assert sorted(each.name for each in (tmp_path / "far").iterdir()) == ["parts", "r.json"]


def test_names_that_look_like_options_or_patterns(here: Path) -> None:
    for name in ("--force", "-", "a b", "[x]*?", "%s", "~"):
        assert call(*words(SPLIT)[:-3], f"--out={name}", "--quiet").code == 0, name
        check_folder(here / name, kind="split", expected="parts")
        assert call(*words(EVALUATE), f"--out={name}.json").code == 0, name
        assert (here / f"{name}.json").read_bytes()[:1] == b"{"


def test_no_place_for_temporary_files_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only system without TMPDIR: what does not fit into memory has nowhere to go."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(here / "missing")])
    monkeypatch.setattr("truerank.evaluation.conclude.BUDGET", 0)
    monkeypatch.setattr("truerank.evaluation.labels.MOST_ROWS", 0)  # of few rows what each adds is kept
    refused(call(EVALUATE), "temporary files: cannot be written", "Set TMPDIR to a folder")
