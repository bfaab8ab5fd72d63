"""What results say of their inputs: size and hash of files, what others are."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from refusals import refused

from truerank.io.paths import fingerprint, input_of


def test_one_file_is_hashed_as_sha256sum_does(tmp_path: Path) -> None:
    content = b"user,item\n1,2\n" * 100_000
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    found = fingerprint(path)
    assert found is not None
    assert found == (len(content), hashlib.sha256(content).hexdigest())


def test_parts_are_hashed_as_the_lines_of_sha256sum(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for at in range(5):
        (folder / f"part-{at}.csv").write_text(f"user,item\n{at},1\n")
    (folder / "_SUCCESS").touch()
    found = fingerprint(folder)
    lines = subprocess.run("sha256sum part-*", cwd=folder, shell=True, capture_output=True, check=True).stdout
    assert found is not None
    assert found[1] == hashlib.sha256(lines).hexdigest()
    assert found[0] == sum(part.stat().st_size for part in folder.glob("part-*"))
    assert fingerprint(folder / "*.csv") == found


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with refused("no such file"):
        input_of(tmp_path / "none.csv", role="labels")
