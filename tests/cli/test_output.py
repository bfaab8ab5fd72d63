"""What comes out: results on standard output or in a file, messages on standard error, everything whole."""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import Run

import truerank
from truerank.cli import terminal
from truerank.metrics.additive import DCG, Recall

CALL = "evaluate labels.csv --scores second=b.csv --scores first=a.npz --metric DCG@2 --metric Recall@2"

# design, section 7
ESTIMATE = [
    "model", "metric", "k", "estimator", "settings", "estimand", "value", "stderr", "low", "high", "level", "interval",
    "units", "undefined", "clusters", "evidence", "ess", "reward", "clip", "segment", "directed", "assumptions",
    "warnings",
]  # fmt: skip
COMPARISON = [
    "model", "baseline", "metric", "estimator", "difference", "stderr", "low", "high", "level", "interval_level", "p",
    "p_adjusted", "family", "units", "clusters", "evidence", "reward", "clip", "segment", "verdict", "reasons",
]  # fmt: skip


def parsed(run: Run, call: str) -> dict[str, Any]:
    """The JSON of a call, read by a parser that takes no NaN: strict readers must be able to read it."""
    outcome = run(f"{call} --format json").fine()
    content: dict[str, Any] = json.loads(outcome.out, parse_constant=pytest.fail)
    return content


# ---------------------------------------------------------------------------------------------------------------- JSON


def test_json_estimates_and_comparisons_have_the_keys_of_the_design(run: Run) -> None:
    content = parsed(run, CALL)
    assert [list(each) for each in content["estimates"]] == [ESTIMATE] * 4
    assert [list(each) for each in content["comparisons"]] == [COMPARISON] * 2
    assert isinstance(content["provenance"], dict)


def test_json_says_where_it_comes_from(run: Run) -> None:
    provenance = parsed(run, f"{CALL} --seed 7 --level 0.9 --ties strict")["provenance"]
    assert provenance["truerank"] == truerank.__version__
    assert [(each["role"], each["name"]) for each in provenance["inputs"]] == [
        ("labels", None),
        ("scores", "second"),
        ("scores", "first"),
    ]
    labels, second, first = provenance["inputs"]
    assert (labels["source"], labels["format"], labels["rows"], labels["users"]) == ("labels.csv", "csv", 20, 4)
    assert (second["source"], first["source"]) == ("b.csv", "a.npz")
    for name, entry in (("labels.csv", labels), ("a.npz", first)):
        assert entry["sha256"] == hashlib.sha256(Path(name).read_bytes()).hexdigest()
        assert entry["bytes"] == Path(name).stat().st_size
    assert provenance["call"] == f"truerank {CALL} --seed 7 --level 0.9 --ties strict --format json --exposure full"
    settings, counts = provenance["settings"], provenance["counts"]
    assert (settings["seed"], settings["level"], settings["ties"]) == (7, 0.9, "strict")
    assert (counts["users"], counts["items"], counts["judged"], counts["relevant"]) == (4, 5, 20, 6)


def test_json_is_what_python_gives(run: Run) -> None:
    results = truerank.evaluate(
        {"second": truerank.read_scores("b.csv"), "first": truerank.read_scores("a.npz")},
        truerank.read("labels.csv"),
        metrics=[DCG(2), Recall(2)],
    )
    given, made = parsed(run, CALL), json.loads(results.json())
    for name in ("call", "inputs"):  # Python has no command, and was given what was read
        given["provenance"].pop(name)
        made["provenance"].pop(name)
    assert given == made


@pytest.mark.parametrize(
    "more",
    [
        "",
        "--bootstrap 20",
        "--interval design",
        "--ties optimistic",
        "--exposure random",
        "--exposure random --interval design",
        "--exposure random --bootstrap 20",
    ],
)
def test_undefined_is_null_everywhere(run: Run, folder: Path, more: str) -> None:
    """No positive at all: nothing may crash on the way, and every number of recall and its difference is null."""
    text = (folder / "labels.csv").read_text()
    (folder / "labels.csv").write_text(text.replace(",1\n", ",0\n"))
    content = parsed(run, f"evaluate labels.csv --scores a=a.npz --scores b=b.csv --metric Recall@2 {more}")
    for each in content["estimates"]:
        assert each["value"] is None
        assert each["low"] is None
    for each in content["comparisons"]:
        assert [each[key] for key in ("difference", "low", "high", "p", "p_adjusted")] == [None] * 5


# ----------------------------------------------------------------------------------------------------------------- CSV


def test_csv_reads_back(run: Run) -> None:
    outcome = run(f"{CALL} --format csv")
    frame = pl.read_csv(io.StringIO(outcome.out))
    assert frame["kind"].to_list() == ["estimate"] * 4 + ["comparison"] * 2
    assert set(ESTIMATE) - {"evidence"} <= set(frame.columns)
    assert {"informative", "df", "balance"} <= set(frame.columns)  # the parts of the evidence
    content = parsed(run, CALL)
    values = [each["value"] for each in content["estimates"]] + [each["difference"] for each in content["comparisons"]]
    assert frame["value"].to_list() == values
    assert frame["p"].to_list() == [None] * 4 + [each["p"] for each in content["comparisons"]]


# -------------------------------------------------------------------------------------------------------------- places


def messages(err: str) -> list[str]:
    """What is said; progress comes with time alone, on a machine that has much to do."""
    return [line for line in err.splitlines() if not re.search(r": [\d,]+ of [\d,]+ \(\d+%\)", line)]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_out_writes_the_file_and_nothing_on_standard_output(run: Run, folder: Path, form: str) -> None:
    shown = run(f"{CALL} --format {form}")
    written = run(f"{CALL} --format {form} --out result/out")
    assert (written.code, written.out) == (0, "")
    assert [path.name for path in (folder / "result").iterdir()] == ["out"]
    assert (folder / "result" / "out").read_text().replace(" --out result/out", "") == shown.out
    assert messages(written.err) == messages(shown.err)


def test_what_only_describes_the_data_is_not_printed_unless_asked(run: Run) -> None:
    loud, quiet, verbose = run(CALL), run(f"{CALL} --quiet"), run(f"{CALL} --verbose")
    assert messages(loud.err) == []
    assert quiet.err == ""
    assert quiet.out == loud.out
    assert "4 users, 5 items, 20 " in verbose.out
    assert verbose.out.startswith(loud.out.splitlines()[0])


# ------------------------------------------------------------------------------------------------- files and their ids


def test_columns_are_mapped_in_every_file(run: Run, folder: Path) -> None:
    expected = parsed(run, "evaluate labels.csv --scores b=b.csv --exclude train.csv --metric Recall@2")
    for name in ("labels.csv", "b.csv", "train.csv"):
        text = (folder / name).read_text()
        text = text.replace("user,item", "uid,video").replace("label", "liked").replace("score", "points")
        (folder / f"x{name}").write_text(text)
    call = "evaluate xlabels.csv --scores b=xb.csv --exclude xtrain.csv --metric Recall@2"
    found = parsed(run, f"{call} --columns user=uid,item=video,label=liked,score=points")
    assert found["estimates"] == expected["estimates"]


def test_a_matrix_takes_its_ids_from_files_in_their_order(run: Run, folder: Path) -> None:
    """Line j of the file names column j, sorted or not."""
    with np.load(folder / "a.npz") as archive:
        np.save(folder / "turned.npy", archive["scores"][::-1, ::-1])
    (folder / "users.csv").write_text("user\n4\n3\n2\n1\n")
    (folder / "items.csv").write_text("item\n50\n40\n30\n20\n10\n")
    plain = parsed(run, "evaluate labels.csv --scores m=a.npz --metric Recall@2")
    named = parsed(
        run, "evaluate labels.csv --scores m=turned.npy --users users.csv --items items.csv --metric Recall@2"
    )
    assert named["estimates"] == plain["estimates"]


# ------------------------------------------------------------------------------------------------------------ terminals


def test_colours_are_for_terminals_that_want_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in run(CALL).out
    monkeypatch.setattr(terminal, "width", lambda: 80)
    assert "\x1b[1m" in run(CALL).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run(CALL).out


def test_messages_are_wrapped_between_words_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stderr", shown := Terminal())
    terminal.say("a message of many words " * 10 + "/a/path/that/is/longer/than/forty/columns/of/a/terminal")
    lines = shown.getvalue().splitlines()
    assert len(lines) > 5
    assert all(len(line) <= 40 or " " not in line for line in lines)
