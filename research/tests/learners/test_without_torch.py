"""Torch is loaded only when a model that needs it is fitted, and named where it is missing."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.models import catalogue, make

NAMES = [name for name, model in catalogue().items() if model.needs == "torch"]


def test_listing_and_making_models_does_not_load_torch() -> None:
    code = (
        "import sys; from truerank.models import catalogue, make;"
        "[make(name, {}) for name in catalogue()]; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_torch_is_named_with_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    log = tr.read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    with refused(rf"{name} needs torch, which is .*pip install \./research"):
        make(name, {}).fit(log, seed=0)
