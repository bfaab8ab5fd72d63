"""What engines listen on asks for the key of the run: nobody else on this machine can send work to their processes.

A port is asked in every way that one without a key is open to: by Dask, by HTTP, by TLS with another key, by Spark.
"""

from __future__ import annotations

import http.client
import os
import socket
import struct
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest
from engines_there import require
from refusals import refused

import truerank as tr

SECONDS = 3.0
PROBE = """
import asyncio, os, sys
import distributed
from distributed.core import rpc

async def is_open(address, security):
    try:
        async with rpc(address, timeout=3, connection_args=security.get_connection_args("client")) as process:
            return bool(await asyncio.wait_for(process.identity(), 3))
    except (OSError, asyncio.TimeoutError, RuntimeError, ValueError):
        return False

async def main(ports, uid):
    security = distributed.Security.temporary()  # a key, but not that of the run
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    for port in ports:
        plain = await is_open(f"tcp://127.0.0.1:{port}", distributed.Security())
        other = await is_open(f"tls://127.0.0.1:{port}", security)
        print(port, os.getuid(), plain, other, flush=True)

asyncio.run(main([int(port) for port in sys.argv[2:]], int(sys.argv[1])))
"""


def listening(*, java: bool) -> dict[int, int]:
    """The ports that this process and those it started listen on, and whose they are."""
    own = psutil.Process()
    return {
        connection.laddr.port: process.pid
        for process in (own, *own.children(recursive=True))
        if (process.name() == "java") == java
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def of_dask(client: Any) -> set[int]:
    """The ports of a cluster: scheduler, workers, and the processes that start these again."""
    info = client.scheduler_info(n_workers=-1)
    addresses = [info["address"], *info["workers"], *(each["nanny"] for each in info["workers"].values())]
    return {int(address.rsplit(":", 1)[1]) for address in addresses}


def speaks_http(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status > 0
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def asked(ports: set[int], *, uid: int = 0) -> list[list[str]]:
    """What a process without the key finds at each port, as a user of this machine."""
    words = [sys.executable, "-c", PROBE, str(uid), *map(str, sorted(ports))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def test_a_cluster_listens_only_where_it_asks_for_the_key(dask: Any) -> None:
    assert set(dask.run(os.getpid)) == set(dask.scheduler_info(n_workers=-1)["workers"])  # who has the key
    ports = of_dask(dask)
    assert len(ports) == 1 + 2 * len(dask.nthreads())
    assert not [port for port in ports if speaks_http(port)]
    assert asked(ports) == [[str(port), str(os.getuid()), "False", "False"] for port in sorted(ports)]


def test_a_worker_that_replaces_another_opens_no_other_port(dask: Any) -> None:
    address, pid = next(iter(dask.run(os.getpid).items()))
    os.kill(pid, 9)
    end = time.monotonic() + 60
    while address in dask.nthreads() or len(dask.nthreads()) < 2:
        assert time.monotonic() < end
        time.sleep(0.1)
    workers = dask.run(os.getpid)
    assert address not in workers
    mine = {port for port, pid in listening(java=False).items() if pid in workers.values()}
    assert mine == {int(each.rsplit(":", 1)[1]) for each in workers}


def command_line(process: psutil.Process) -> list[str]:
    """Its words; none of a process that has just ended or that nobody has waited for yet."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_the_key_stands_in_no_command_line(dask: Any) -> None:
    own = psutil.Process()
    assert dask.security.tls_client_key
    lines = [line for process in (own, *own.children(recursive=True)) if (line := command_line(process))]
    assert len(lines) >= 3  # this process and the two workers
    assert not [word for line in lines for word in line if "PRIVATE KEY" in word]


def test_without_cryptography_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    require("dask")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with refused(r"\.\[dask\]"):
        tr.evaluate({"a": {1: [2]}}, {1: [2]}, exposure="holdout", engine="dask")


def test_a_session_asks_for_the_key(spark: Any) -> None:
    """Without it Spark reads what anybody sends it as an object of Java."""
    answers = [rpc_answer(port) for port in listening(java=True)]
    assert len(answers) >= 3  # its endpoint, its blocks, and py4j, which does not understand this
    closed = [answer for answer in answers if b"Sasl" in answer]
    assert len(closed) >= 2
    assert [answer for answer in answers if answer] == closed


def rpc_answer(port: int) -> bytes:
    """What Spark answers to a message for an endpoint, sent without a key: nothing within a second, or bytes."""
    body = b"\x00" + struct.pack(">H", 4) + b"none" + b"no object of Java"
    message = b"\x03" + struct.pack(">qi", 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
        connection.sendall(struct.pack(">q", 8 + len(message)) + message)
        try:
            return connection.recv(1 << 16)
        except TimeoutError:
            return b""
