"""Every public function describes each of its parameters, as numpydoc has them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import truerank as tr

PUBLIC = {name: getattr(tr, name) for name in dir(tr) if inspect.isfunction(getattr(tr, name))}
NAMES = re.compile(r"^(\w+(?:, \w+)*)(?: : \S|\n    \S)", flags=re.M)


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the section Parameters."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Parameters\n----------\n(.*?)(?=^\w+\n---|^$|\Z)", text, flags=re.M | re.S)
    return [name for names in NAMES.findall(section[1]) for name in names.split(", ")] if section else []


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_those_of_the_signature(name: str) -> None:
    assert sorted(parameters(PUBLIC[name])) == sorted(inspect.signature(PUBLIC[name]).parameters)


def test_the_public_functions_are_there() -> None:
    assert {"evaluate", "off_policy", "watch", "split", "read", "plan_exposure"} <= set(PUBLIC)
