"""A study that was stopped, killed or ran out of disk goes on where it was, and ends with the same files."""

from __future__ import annotations

import errno
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
from small_study import small_grid, small_scores, small_train, small_world

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.io.checkpoint import working
from truerank.io.files import write
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.ranking.scores.files import write_scores
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


@pytest.mark.parametrize("after", [0, 4, 40, 49])
def test_a_full_disk_is_said_and_nothing_half_written_stays(
    tmp_path: Path, undisturbed: list[bytes], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    written, really = [0], Path.write_bytes

    def write_bytes(path: Path, data: Any) -> int:
        if written[0] == after:
            really(path, bytes(data)[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written[0] += 1
        return really(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_bytes)
        with pytest.raises(InputError, match=r"No space left on device.*make room and start the same study again"):
            run(tmp_path)
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path / "truerank.json").exists()
    run(tmp_path)
    assert contents(tmp_path) == undisturbed


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
        with pytest.raises(InputError, match=f"holds a study of something else.*{message}"):
            run(tmp_path, **change)
    run(tmp_path)
    assert contents(tmp_path) == undisturbed
    with pytest.raises(InputError, match="something else"):
        run(tmp_path, seed=2)
    run(tmp_path)  # finished: nothing to do
    assert contents(tmp_path) == undisturbed


def test_a_folder_is_for_one_process_and_for_a_study(tmp_path: Path) -> None:
    with working(tmp_path / "a"), pytest.raises(InputError, match="another process is working"):
        run(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="files of something else"):
        run(tmp_path / "b")


@pytest.mark.faults
def test_the_command_is_interrupted_with_code_3_and_goes_on(tmp_path: Path) -> None:
    world = small_world()
    write(world, tmp_path / "world.parquet")
    write(small_train(), tmp_path / "train.parquet")
    for name, each in small_scores(world).items():
        write_scores(each, tmp_path / f"{name}.npz")
    command = [
        sys.executable, "-m", "truerank", "study", "reliability", "world.parquet", "--train", "train.parquet",
        *(word for at in range(4) for word in ("--scores", f"m{at}.npz")),
        "--sparsities", "0,0.5", "--sizes", "1,3", "--samplers", "Exposed,Random,Skew(favours=popular)",
        "--metric", "nDCG@10", "--metric", "Recall@3", "--repetitions", "60", "--bootstrap", "30", "--out",
    ]  # fmt: skip
    first = subprocess.run([*command, "whole"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert first.stdout.splitlines() == [
        f"{name:8} whole/{name}.parquet" for name in ("results", "means", "pairs", "logs")
    ]
    assert "11 users evaluated, 30 items, 4 models." in first.stderr
    process = subprocess.Popen([*command, "part"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "part").glob("blocks/*-b0000000.block")):
        time.sleep(0.002)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 3
    assert "the same command goes on from there" in err
    assert not (tmp_path / "part" / "results.parquet").exists()
    subprocess.run([*command, "part"], cwd=tmp_path, capture_output=True, check=True)
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")
    wrong = subprocess.run([*command, "part", "--seed", "1"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "seed: 0, now 1" in wrong.stderr
