"""Commands that are killed at random moments: nothing lost, nothing mixed, and going on gives the same bytes."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import COMMANDS, Writing, copy, made, make_inputs, put_back, readable, visible
from failing import Case, Server, library


def killed_at_random(
    server: Server, writing: Writing, inputs: Path, folder: Path, *, kills: int, rng: random.Random
) -> Counter[str]:
    """What kills at random moments leave; each is followed by the same call, which ends as if nothing had been."""
    start = writing.prepare(inputs, folder / "start")
    if writing.before is not None:
        assert server.run(Case(writing.before, str(start))).code == 0
    old = made(start, inputs)
    whole = copy(start, folder / "whole")
    undisturbed = server.run(Case(writing.words, str(whole)))
    assert undisturbed.code == 0, undisturbed.err
    new = made(whole, inputs)
    found: Counter[str] = Counter()
    took = undisturbed.seconds
    while found["killed"] < kills:
        place = copy(start, folder / f"killed {found.total()}")
        fresh = True
        while found["killed"] < kills:
            # a growing folder is killed again and again before it may finish
            ended = server.run(Case(writing.words, str(place), after=rng.uniform(0, took)))
            was_killed = ended.code == -signal.SIGKILL
            if fresh and not was_killed:
                took = min(took, ended.seconds)  # the machine has less to do than when it was measured
            fresh = False
            found["killed" if was_killed else "done before"] += 1
            if not was_killed or not writing.grows or rng.random() < 0.5:
                break
        if put_back(place):
            found["earlier folder renamed back"] += 1
        seen = visible(made(place, inputs))
        if not writing.grows:
            if (place / "made").is_dir():
                assert seen in (old, new), sorted(seen)
                assert readable(place) or not seen
            assert all(content in (old.get(name), new.get(name)) for name, content in seen.items())
            found["left old" if seen == old else "left new" if seen == new else "left a part"] += 1
        again = server.run(Case(writing.words, str(place)))
        assert again.code == 0 or (again.code == 2 and "already" in again.err), again.err
        assert visible(made(place, inputs)) == new, sorted(made(place, inputs))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(library(tmp_path_factory.mktemp("library")))
    yield found
    found.close()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_inputs(tmp_path_factory.mktemp("inputs") / "inputs")


@pytest.mark.parametrize("name", ["world again", "tuning", "study"])
def test_killed_at_a_few_random_moments(server: Server, inputs: Path, tmp_path: Path, name: str) -> None:
    writing = next(each for each in COMMANDS if each.name == name)
    assert killed_at_random(server, writing, inputs, tmp_path, kills=2, rng=random.Random(1))["killed"] == 2


@pytest.mark.slow
def test_killed_at_200_random_moments(
    server: Server, inputs: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rng, found = random.Random(20261116), Counter[str]()
    for at, writing in enumerate(COMMANDS):
        kills = 200 * (at + 1) // len(COMMANDS) - 200 * at // len(COMMANDS)
        one = killed_at_random(server, writing, inputs, tmp_path / str(at), kills=kills, rng=rng)
        record_property(writing.name, dict(one))
        found += one
    assert found["killed"] == 200
