"""What the commands read, and the server that lets their calls fail, once for each module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import make_inputs
from failing import Server, library


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_inputs(tmp_path_factory.mktemp("inputs") / "inputs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(library(tmp_path_factory.mktemp("library")))
    yield found
    found.close()
