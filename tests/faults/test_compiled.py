"""Compiled code without a place to keep it, or with damaged files there: the same numbers, never an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from processes import as_user, environment

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from kernels import total, twice
print(total(5), twice(21.0), sum(total.stats.cache_hits.values()) + sum(twice.stats.cache_hits.values()))
"""
KERNELS = """
from truerank.core.compiled import compiled

@compiled(boundscheck=False)
def twice(number):
    return 2 * number

@compiled(boundscheck=False)
def total(n):
    found = 0
    for i in range(n):
        found += twice(i)
    return found
"""
NOTE = "compiled code is kept in memory only"


def run(
    folder: Path, *, before: tuple[str, ...] = (), program: str = PROGRAM, **variables: str | None
) -> tuple[list[str], str]:
    """The two values and how often compiled code was found; what was said."""
    program = program.format(folder=str(folder))
    given = environment({"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": None, **variables})
    words = [*before, sys.executable, "-P", "-c", program]
    ended = subprocess.run(words, env=given, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split(), ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def files(folder: Path) -> list[Path]:
    return sorted((folder / "__pycache__").glob("*.nb?"))


def test_what_was_compiled_is_found_again(folder: Path) -> None:
    assert run(folder) == (["20", "42.0", "0"], "")
    assert run(folder)[0] == ["20", "42.0", "2"]


def test_code_is_compiled_again_where_what_it_calls_has_changed(folder: Path) -> None:
    """It has the functions of other modules built in, whose times and sizes numba does not ask for."""
    run(folder)
    changed = "import truerank.core.compiled as kept\nkept.all_sources = lambda: 'changed'\n" + PROGRAM
    assert run(folder, program=changed)[0] == ["20", "42.0", "0"]
    assert run(folder, program=changed)[0] == ["20", "42.0", "2"]


@pytest.mark.parametrize("damage", ["flip", "cut", "swap", "empty", "folder"])
def test_damaged_code_is_compiled_again(folder: Path, damage: str) -> None:
    """A flipped byte of machine code would be another number, or a crash; a swapped file the code of something else."""
    run(folder)
    kept = files(folder)
    assert {each.suffix for each in kept} == {".nbc"}
    contents = [each.read_bytes() for each in kept]
    for at, each in enumerate(kept):
        content = contents[at]
        if damage == "folder":
            each.unlink()
            each.mkdir()
        else:
            middle = len(content) // 2
            flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            others = [other for name, other in zip(kept, contents, strict=True) if name.suffix == each.suffix]
            swapped = others[1 - others.index(content) % 2] if len(others) > 1 else b""
            each.write_bytes({"flip": flipped, "cut": content[:middle], "swap": swapped, "empty": b""}[damage])
    found, said = run(folder)
    assert found[:2] == ["20", "42.0"]
    assert "Traceback" not in said
    if damage != "folder":  # what could be replaced was
        assert found[2] == "0"
        assert run(folder) == (["20", "42.0", "2"], "")


def test_without_a_place_it_works_in_memory_and_says_so_once(folder: Path) -> None:
    """As another user, who can write nowhere; who is no root can close the folder."""
    user = as_user(54321)
    if not user:
        folder.chmod(0o555)
    try:
        found, said = run(folder, before=user, HOME=None, XDG_CACHE_HOME=None if user else str(folder / "none"))
    finally:
        folder.chmod(0o755)
    assert found == ["20", "42.0", "0"]
    assert said.count(NOTE) == 1
    assert sorted(each.name for each in folder.iterdir()) == ["kernels.py"]  # no folder called ~


def test_a_place_that_is_full_is_no_error(folder: Path) -> None:
    """Writes of more than nothing fail, as on a full disk."""
    program = PROGRAM.format(folder=str(folder))
    script = 'ulimit -f 0; exec "$@"'
    words = ["bash", "-c", script, "bash", sys.executable, "-P", "-B", "-c", program]
    ended = subprocess.run(words, env=environment({}), cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["20", "42.0", "0"]
    assert ended.stderr.count(NOTE) == 1


def test_a_place_that_vanishes_is_no_error(folder: Path) -> None:
    program = PROGRAM.format(folder=str(folder)).replace(
        "print(", f"import shutil; shutil.rmtree({str(folder)!r})\nprint("
    )
    words = [sys.executable, "-P", "-B", "-c", program]
    ended = subprocess.run(words, env=environment({}), capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.split()[:2]) == (0, ["20", "42.0"]), ended.stderr


def test_only_one_module_knows_how_code_is_kept() -> None:
    import truerank

    source = Path(truerank.__file__).parent
    naming = [path.name for path in source.rglob("*.py") if "njit" in path.read_text() or "caching" in path.read_text()]
    assert naming == ["compiled.py"]
