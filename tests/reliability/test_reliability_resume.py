"""A study that was stopped, killed or ran out of disk goes on where it was, and ends with the same files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from small_study import small_grid, small_scores, small_train, small_world

from truerank.core.log import Log
from truerank.metrics.additive import Recall
from truerank.metrics.listwise import NDCG
from truerank.reliability import Grid, study

FILES = ("results.parquet", "means.parquet", "pairs.parquet", "logs.parquet", "study.json", "truerank.json")
SUPPORT = Path(__file__).parents[1] / "support"
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from dataclasses import replace
from pathlib import Path
import test_reliability_resume as here
here.run(Path(sys.argv[1]), progress=lambda *what: print(*what, flush=True))
"""


def grid() -> Grid:
    return replace(small_grid(), metrics=(NDCG(10), Recall(3)), sparsities=(0.0, 0.5))


def run(out: Path, *, labels: Log | None = None, **options: Any) -> None:
    world = small_world()
    given: dict[str, Any] = {"grid": grid(), "train": small_train(), "seed": 1, "resamples": 30, "threads": 2}
    given |= {"block_users": 3} | options
    study(given.pop("scores", small_scores(world)), world if labels is None else labels, out, **given)


def contents(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in FILES]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "study"
    run(out)
    assert sorted(each.name for each in out.iterdir()) == sorted(FILES)
    return contents(out)


def kill_at_random(folder: Path, *, kills: int, seed: int) -> list[Path]:
    """Kill a study again and again, after some of its steps and a little; whatever is finished first stays."""
    rng = np.random.default_rng(seed)
    done, outs, killed = False, [folder / "0"], 0
    here = str(Path(__file__).parent)
    path = os.pathsep.join([*sys.path, str(SUPPORT)])
    while killed < kills or not done:
        out = outs[-1]
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(out), here],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert process.stdout is not None
        if killed < kills:
            for _ in range(int(rng.integers(0, 16))):
                process.stdout.readline()
            time.sleep(float(rng.uniform(0, 0.03)))
            os.kill(process.pid, signal.SIGKILL)
        _, err = process.communicate()
        done = process.returncode == 0
        assert done or process.returncode == -signal.SIGKILL, err
        killed += not done
        if done and killed < kills:
            outs.append(folder / str(len(outs)))
    return outs


def test_killed_at_some_moments_it_ends_with_the_same_files(tmp_path: Path, undisturbed: list[bytes]) -> None:
    for out in kill_at_random(tmp_path, kills=3, seed=0):
        assert contents(out) == undisturbed
        assert sorted(each.name for each in out.iterdir()) == sorted(FILES)


def test_another_input_or_setting_is_noticed_and_refused(tmp_path: Path, undisturbed: list[bytes]) -> None:
    world = small_world()

    class StoppedError(Exception):
        pass

    def stop(what: str, done: int, total: int) -> None:
        if what == "evaluating scenarios":
            raise StoppedError

    with pytest.raises(StoppedError):
        run(tmp_path, progress=stop)
    label = world.label.copy()
    label[5] = 1 - label[5]
    changes: dict[str, dict[str, Any]] = {
        "seed: 1, now 2": {"seed": 2},
        "resamples: 30, now 31": {"resamples": 31},
        "sparsities: 0.0, 0.5, now 0.0, 0.4": {"grid": replace(grid(), sparsities=(0.0, 0.4))},
        "metrics": {"grid": replace(grid(), metrics=(NDCG(10),))},
        "repetitions: 2, now 3": {"grid": replace(grid(), repetitions=3)},
        "labels": {"labels": replace(world, rewards={"label": label})},
        "scores": {"scores": small_scores(world, seed=8)},
        "train": {"train": small_train().select(np.arange(100))},
        "users in a block": {"block_users": 4},
    }
    for message, change in changes.items():
        with refused(f"holds a study of something else.*{message}"):
            run(tmp_path, **change)
    run(tmp_path)
    assert contents(tmp_path) == undisturbed
    with refused("something else"):
        run(tmp_path, seed=2)
    run(tmp_path)  # finished: nothing to do
    assert contents(tmp_path) == undisturbed
