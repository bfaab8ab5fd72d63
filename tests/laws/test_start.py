"""What a command loads before it begins: nothing heavy for help, and for small work only what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = {"numpy", "polars", "scipy", "numba", "rich", "msgspec", "sklearn", "torch", "pandas", "altair"}
LOADED = """
import atexit, sys
from pathlib import Path
place = Path(sys.argv.pop(1))
atexit.register(lambda: place.write_text(" ".join(sys.modules)))
from truerank.cli import main
main()
"""
EVERY_HELP = """
import sys
import click
from truerank.cli import main
from truerank.cli.commands import cli

def show(command, words):
    sys.argv = ["truerank", *words, "--help"]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            show(command.get_command(context, name), (*words, name))

show(cli, ())
print("loaded:", *sys.modules)
"""


def loaded(*words: str, place: Path) -> tuple[set[str], str]:
    found = subprocess.run(
        [sys.executable, "-c", LOADED, str(place / "modules.txt"), *words],
        cwd=place, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set((place / "modules.txt").read_text().split()), found.stdout


def test_help_loads_nothing_heavy() -> None:
    """Of any command: what one would load would be there at the end."""
    done = subprocess.run([sys.executable, "-c", EVERY_HELP], capture_output=True, text=True, check=True)
    shown, _, modules = done.stdout.rpartition("loaded: ")
    assert shown.count("Usage: ") > 15
    assert "truerank.cli.evaluate" in modules.split()
    assert not HEAVY & set(modules.split())


def test_a_small_evaluation_loads_what_it_needs(tmp_path: Path) -> None:
    """No compiler, no wrapped scipy.special, no pictures: the small work is done before these are there."""
    (tmp_path / "labels.csv").write_text(
        "user,item,label\n" + "".join(f"{row // 4},{row % 4},{row % 3 == 0:d}\n" for row in range(120))
    )
    for name, step in (("a", 1), ("b", 3)):
        rows = (f"{user},{item},{(user * step + item * 7) % 11}\n" for user in range(30) for item in range(4))
        (tmp_path / f"{name}.csv").write_text("user,item,score\n" + "".join(rows))
    words = [
        "evaluate",
        "labels.csv",
        "--scores",
        "a=a.csv",
        "--scores",
        "b=b.csv",
        "--metric",
        "Recall@2",
        "--exposure",
        "full",
    ]
    modules, shown = loaded(*words, place=tmp_path)
    assert "Recall@2" in shown
    assert {"numpy", "polars"} <= modules
    unneeded = {"numba", "scipy.stats", "scipy.sparse", "scipy.special", "scipy.optimize", "pandas", "rich"}
    assert not unneeded & modules


BOTH_WAYS = """
import sys, threading
from truerank.core.special import {names}
alone = "scipy.special" not in sys.modules
import scipy.special, scipy.stats
from truerank.core import special
assert scipy.special.__file__ and special.zeta is scipy.special.zeta
print(alone, all(function is getattr(scipy.special, function.__name__) for function in ({names},)))
"""


def test_functions_alone_are_those_of_scipy() -> None:
    names = "stdtr, stdtrit, chdtrc, chdtri, chndtrinc, bdtr, bdtrc, gammainc, gammaln, ndtr, ndtri, expit"
    found = subprocess.run(
        [sys.executable, "-c", BOTH_WAYS.format(names=names)], capture_output=True, text=True, check=True
    )
    assert found.stdout == "True True\n"


def test_beside_other_threads_the_package_is_loaded() -> None:
    code = (
        "import sys, threading; end = threading.Event(); threading.Thread(target=end.wait).start()\n"
        "from truerank.core.special import stdtr; end.set()\n"
        "print('scipy.special._support_alternative_backends' in sys.modules, round(float(stdtr(5.0, 2.0)), 4))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "True 0.949\n"
