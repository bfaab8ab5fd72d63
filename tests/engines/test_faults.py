"""What goes wrong in other processes: killed, out of memory, not there. It is tried again, or told in one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
import pytest
from commands import STUDY, make_inputs
from engines_there import require
from refusals import refused

import truerank as tr
from truerank.core.errors import InputError, TruerankError
from truerank.engines.engine import as_chunks, map_chunks
from truerank.engines.named import as_engine


def test_an_evaluation_during_which_a_worker_is_killed(dask: Any) -> None:
    rng = np.random.default_rng(4)
    scores = {name: rng.normal(size=(400, 40)) for name in ("a", "b")}
    cells = rng.choice(400 * 40, 5000, replace=False)
    labels = pl.DataFrame({"user": cells // 40, "item": cells % 40, "label": rng.integers(0, 2, 5000)})
    killed: list[int] = []

    def kill(what: str, done: int, total: int) -> None:
        if what == "measuring" and not killed:
            killed.append(next(iter(dask.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = tr.evaluate(scores, labels, exposure="random", engine=dask, progress=kill)
    assert killed
    expected = tr.evaluate(scores, labels, exposure="random")
    assert [(each.value, each.units) for each in found.estimates] == [
        (each.value, each.units) for each in expected.estimates
    ]


def test_a_chunk_that_always_ends_its_worker_is_told_in_one_sentence() -> None:
    """On a cluster of its own, which it leaves in ruins."""
    require("dask")

    def work(number: int) -> int:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        return number

    told = pytest.raises(TruerankError, match="chunk 1 of 1 ended its worker 4 times")
    with as_engine("dask", threads=1).open() as workers, told:
        list(map_chunks(workers, work, as_chunks([0])))


def test_what_is_wrong_with_data_is_raised_as_it_is_here(engine: Any) -> None:
    def work(number: int) -> int:
        from truerank.core.wording import columns_option

        raise InputError(f"labels: row {number} is wrong; use {columns_option('user')}.")

    with as_engine(engine).open() as workers, refused("row 7 is wrong") as raised:
        list(map_chunks(workers, work, as_chunks([7])))
    assert raised.value.said(for_cli=True).endswith("use --columns user=NAME.")


def test_everything_listens_on_this_machine_only(engine: Any) -> None:
    with as_engine(engine).open() as workers:
        assert list(map_chunks(workers, abs, as_chunks([-1]))) == [1]
    own = psutil.Process()
    listening = {
        connection.laddr.ip
        for process in (own, *own.children(recursive=True))
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert {address.removeprefix("::ffff:") for address in listening} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize(("name", "module"), [("dask", "distributed"), ("spark", "pyspark")])
def test_a_missing_package_is_named_with_its_extra(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with refused(rf"\.\[{name}\]"), as_engine(name).open():
        pass


def test_neither_is_imported_unless_it_is_used() -> None:
    code = """
        import sys, numpy as np, polars as pl, truerank as tr
        labels = pl.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "label": [1, 0, 0, 1]})
        tr.evaluate({"a": np.eye(2)}, labels, metrics=["Recall@1"], engine="local")
        print(sorted({"dask", "distributed", "pyspark", "cloudpickle"} & set(sys.modules)))
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_scheduler_that_is_not_there_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truerank.engines.dask.PATIENCE", 0.5)
    absent = as_engine("dask:tcp://127.0.0.1:1")
    with refused(f"{absent}: no scheduler answers there") as raised, absent.open():
        pass
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("engine_name", ["dask", "spark"])
def test_ctrl_c_ends_workers_too(tmp_path: Path, engine_name: str) -> None:
    inputs = make_inputs(tmp_path / "inputs")
    many = ["--repetitions", "2000", "--engine", engine_name]
    process = subprocess.Popen(
        [sys.executable, "-m", "truerank", *STUDY.split(), *many], cwd=inputs, stderr=subprocess.PIPE
    )
    patience = time.monotonic() + 180
    while not list(inputs.glob("made/blocks/r*")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < patience
        time.sleep(0.2)
    started = psutil.Process(process.pid).children(recursive=True)
    assert started
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 3, said
    assert "the same command goes on from there" in said
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive


def test_a_script_that_every_process_would_start_again_is_told_so(tmp_path: Path) -> None:
    require("dask")
    script = tmp_path / "script.py"
    script.write_text(
        "import truerank as tr\n"
        "labels = {'user': [1], 'item': [2], 'label': [1]}\n"
        "tr.evaluate({'a': {1: [2]}}, labels, exposure='holdout', engine='dask')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert (
        "because every process loads the script again.\n" in done.stderr
    )  # a leaked semaphore may be told of after it


EXECUTOR = """
import os, signal, sys, time
import numpy as np, polars as pl, psutil, truerank as tr
from pathlib import Path
rng = np.random.default_rng(4)
scores = {name: rng.normal(size=(400, 40)) for name in ("a", "b")}
cells = rng.choice(400 * 40, 5000, replace=False)
labels = pl.DataFrame({"user": cells // 40, "item": cells % 40, "label": rng.integers(0, 2, 5000)})
killed = []
def called(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it ended just now
        return ""
def kill(what, done, total):
    if what == "measuring" and not killed:
        mine = psutil.Process().children(recursive=True)
        killed.extend(each.pid for each in mine if "CoarseGrainedExecutorBackend" in called(each))
        os.kill(killed[0], signal.SIGKILL)
if __name__ == "__main__":
    found = tr.evaluate(scores, labels, exposure="random", engine="spark:local-cluster[2,1,2048]", progress=kill)
    expected = tr.evaluate(scores, labels, exposure="random")
    assert len(killed) == 2
    assert [each.value for each in found.estimates] == [each.value for each in expected.estimates]
    print("same")
"""


@pytest.mark.slow
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    script = tmp_path / "evaluate.py"
    script.write_text(EXECUTOR)
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert found.stdout.strip() == "same", found.stderr[-2000:]


def test_a_cluster_that_is_there_is_joined_by_its_certificates_and_left_as_it_is(dask: Any) -> None:
    from dask import config

    address, key = f"dask:{dask.scheduler.address}", dask.security
    assert address.startswith("dask:tls://127.0.0.1:")
    names = {"ca-file": key.tls_ca_file, "client.cert": key.tls_client_cert, "client.key": key.tls_client_key}
    configured = config.set({f"distributed.comm.tls.{name}": value for name, value in names.items()})
    with configured, as_engine(address).open() as workers:
        assert sorted(map_chunks(workers, abs, as_chunks([-1, -2]))) == [1, 2]
    with refused("no scheduler answers there"), as_engine(address).open():
        pass
    assert dask.status == "running"
    assert str(as_engine(dask)) == str(as_engine(address)) == address
