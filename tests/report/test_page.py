"""The report as a file: the same bytes in every process, and nothing that runs but its own programs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from calling import call
from reported import HOSTILE, judged

from truerank.core.results import Results
from truerank.report.results_page import report, report_of

AGAIN = (
    "import sys; from pathlib import Path; from truerank.report.results_page import report_of;"
    "sys.stdout.buffer.write(report_of(Path(sys.argv[1])))"
)


def data_of(content: bytes) -> dict[str, dict[str, object]]:
    found = re.search(rb'<script type="application/json" id="data">(.*?)</script>', content, flags=re.S)
    assert found is not None
    decoded: dict[str, dict[str, object]] = json.loads(found[1])
    return decoded


def test_two_processes_make_the_same_bytes_and_name_no_clock(tmp_path: Path) -> None:
    judged().save(tmp_path / "saved")
    first, second = (
        subprocess.run([sys.executable, "-c", AGAIN, str(tmp_path / "saved")], capture_output=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second == report_of(tmp_path / "saved")
    assert len(first) < 1.2e6


def test_only_its_own_programs_may_run() -> None:
    content = report(judged()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', content)
    assert policy is not None
    allowed = policy[1].replace("&#39;", "'")
    assert allowed.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in allowed
    assert "unsafe-inline" not in allowed.partition("style-src-attr")[0]
    scripts = re.findall(r"<script>(.*?)</script>", content, flags=re.S)
    assert len(scripts) == 2
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    assert re.findall(r"script-src ([^;]*);", allowed)[0].split() == [f"'sha256-{each}'" for each in hashes]
    without = re.sub(r"<script>.*?</script>", "", content, flags=re.S)
    assert not re.findall(r'(?:src|href)="(?!#|data:)', without)


def test_hostile_names_stand_in_the_page_as_text_alone() -> None:
    content = report(judged(HOSTILE)).decode()
    for name in HOSTILE[:2]:
        assert name not in content
    assert "&lt;script&gt;window.harmed" in content
    assert set(data_of(content.encode())["charts"]) >= {"values-0", "differences-0"}


def test_all_numbers_of_the_results_are_in_the_page() -> None:
    tables = data_of(report(judged()))["tables"]
    columns = {each["name"]: each["values"] for each in tables["values-table-0"]["columns"]}  # type: ignore[index]
    assert columns["value"] == [each.value for each in judged().estimates]
    assert columns["high"] == [each.high for each in judged().estimates]


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rows = [f"{user},{item},{int((user * item) % 3 == 0)}" for user in range(30) for item in range(8)]
    (tmp_path / "labels.csv").write_text("\n".join(["user,item,label", *rows]))
    for name, sign in (("up", 1), ("down", -1)):
        scores = [f"{user},{item},{sign * item}" for user in range(30) for item in range(8)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,item,score", *scores]))
    return tmp_path


def test_commands_write_reports(labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(labels)
    asked = ["evaluate", "labels.csv", "--scores", "up=up.csv", "--scores", "down=down.csv", "--exposure", "full",
             "--metric", "Recall@2", "--quiet"]  # fmt: skip
    call(*asked, "--report", "report.html", "--save", "saved", seconds=200).fine()
    content = Path("report.html").read_text()
    assert "truerank evaluate labels.csv --scores up=up.csv" in content
    call("report", "saved", "--out", "again.html", seconds=200).fine()
    assert Results.read("saved").estimates[0].model in Path("again.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "labels.csv", "--out", "report.html"), "cannot be read as JSON"),
        (("report", ".", "--out", "report.html"), "holds neither results (results.json) nor a study (study.json)"),
        (("report", "nothing", "--out", "report.html"), "nothing"),
        (("report", "labels.csv", "--out", "report.pdf"), "a report is a page; expected a name that ends in .html"),
        (("report", "labels.csv", "--out", "labels.csv"), "labels.csv"),
        (("report", "labels.csv", "--metric", "Recall@2", "--out", "r.html"), "has all their metrics"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    arguments: tuple[str, ...], message: str, labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(labels)
    before = sorted(path.name for path in labels.iterdir())
    done = call(*arguments, seconds=100)
    assert done.code == 2
    assert message in done.err
    assert sorted(path.name for path in labels.iterdir()) == before
