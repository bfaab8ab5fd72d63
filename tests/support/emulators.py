"""Object stores of the tests' own, on 127.0.0.1: Azurite for Microsoft's, moto's server for Amazon's and Google's."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

AZURITE = "3.35.0"  # later ones need a newer node than Debian has
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # every Azurite's


def missing(what: str) -> None:
    """A skip with its reason, except in CI, where it is a failure."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def azurite() -> Iterator[str]:
    """The address of a server that keeps what it is given in memory."""
    program = _installed() / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    options = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    process = subprocess.Popen(
        ["node", str(program), *options, "--blobHost", "127.0.0.1", "--blobPort", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        said = next((line for line in process.stdout if "successfully listens on" in line), None)
        assert said is not None, "Azurite did not start"
        yield said.split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _installed() -> Path:
    """Azurite, fetched once from npm and kept outside the project."""
    place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "truerank-tests" / f"azurite-{AZURITE}"
    if place.is_dir():
        return place
    npm = shutil.which("npm")
    if npm is None:
        missing("no npm: install Debian's package, to fetch Azurite")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fetched = Path(folder) / "fetched"
        fetched.mkdir()
        quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save"]
        command = [str(npm), "install", *quiet, f"azurite@{AZURITE}"]
        ran = subprocess.run(command, cwd=fetched, capture_output=True, check=False)
        if ran.returncode or not (fetched / "node_modules" / "azurite").is_dir():
            missing(f"azurite {AZURITE} cannot be fetched from npm")
        with suppress(OSError):  # another process was faster
            fetched.rename(place)
    return place


@contextmanager
def moto() -> Iterator[str]:
    """The address of moto's server."""
    from moto.server import ThreadedMotoServer

    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        started.stop()


class answering:  # noqa: N801
    """A server that says one thing to everybody, and hangs up."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.socket = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> str:
        threading.Thread(target=self._serve, daemon=True).start()
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(self.answer)


class between:  # noqa: N801
    """What stands between a program and a server: it passes on all bytes until `cut`, when every connection is lost."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self.target = host, int(port)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.open: list[socket.socket] = []
        self.is_cut = False
        self.n_refused = 0

    def __enter__(self) -> between:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self.socket.close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def cut(self) -> None:
        self.is_cut = True
        for each in self.open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            if self.is_cut:
                self.n_refused += 1
                connection.close()
                continue
            server = socket.create_connection(self.target)
            self.open += [connection, server]
            for source, target in ((connection, server), (server, connection)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:
            while content := source.recv(65536):
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)
