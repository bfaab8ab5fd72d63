"""Plain data: what a JSON file gives back as it was put in. Values that are reported hold their settings as such."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

_NAN = object()  # stands for NaN where values are compared, because NaN does not equal itself
_WIDEST = 2**63  # integers beyond it are written as text


def plain(value: Any) -> Any:
    """The same as None, bool, int, finite float, str, list and dict with text keys; of anything else its text.

    NaN becomes None, and infinity the text `inf` or `-inf`, because JSON has neither.

    >>> plain({"clip": (1, math.inf), "tail": math.nan, "kind": frozenset})
    {'clip': [1, 'inf'], 'tail': None, 'kind': "<class 'frozenset'>"}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    elif isinstance(value, Enum):
        value = value.value
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(content) for key, content in value.items()}
    return [plain(content) for content in value] if isinstance(value, list | tuple) else _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -_WIDEST <= value < _WIDEST else str(value)
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> float | str | None:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return None if math.isnan(value) else float(value)


def comparable(value: Any) -> tuple[Any, ...]:
    """The fields of a dataclass, in which NaN equals NaN."""
    contents = (getattr(value, field.name) for field in fields(value))
    return tuple(_NAN if isinstance(content, float) and math.isnan(content) else content for content in contents)
