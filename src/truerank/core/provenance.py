"""What results were made of: inputs, settings, counts, versions, and the call that makes them again."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from enum import Enum
from importlib import metadata
from typing import Any

import numpy as np

from truerank.core.escaping import redacted
from truerank.core.record import record
from truerank.version import __version__

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
    if isinstance(value, list | tuple):
        return [plain(content) for content in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -_WIDEST <= value < _WIDEST else str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else str(float(value)) if math.isinf(value) else float(value)
    return redacted(str(value))


def comparable(value: Any) -> tuple[Any, ...]:
    """The fields of a dataclass, in which NaN equals NaN."""
    contents = (getattr(value, field.name) for field in fields(value))
    return tuple(_NAN if isinstance(content, float) and math.isnan(content) else content for content in contents)


LIBRARIES = ("numpy", "polars", "numba")  # whose versions may move the last digits of a number


@record(kw_only=True)
class Input:
    """One input: its role (labels, scores, log, target ...), the name of the model it belongs to, where it came from.

    `bytes` and `sha256` are of the file or of all its parts (see `io.paths.fingerprint`), None where it was no file.
    """

    role: str
    source: str
    name: str | None = None
    format: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    rows: int | None = None
    users: int | None = None
    items: int | None = None
    positives: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", redacted(self.source))


@record(kw_only=True)
class Provenance:
    """What the results were made of. No clock: the same inputs and settings give the same bytes.

    `settings` and `details` are plain data (see `plain`); `details` has what one command alone can tell, such as
    chosen clips, diagnostics of weights and position fits.

    >>> Provenance(settings={"clips": (1, 8)}).settings
    {'clips': [1, 8]}
    """

    truerank: str = __version__
    call: str | None = None
    inputs: tuple[Input, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int | None] = field(default_factory=dict)
    unit: str = "user"
    population: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "call", None if self.call is None else redacted(self.call))
        for name in ("settings", "counts", "versions", "details"):
            object.__setattr__(self, name, plain(getattr(self, name)))


def versions() -> dict[str, str]:
    """The versions of the libraries that compute, of those that are there."""
    installed = {}
    for name in LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def shell_call(arguments: Sequence[str]) -> str:
    """The command that was given.

    >>> shell_call(["evaluate", "my labels.csv", "--metric", "Recall@10"])
    "truerank evaluate 'my labels.csv' --metric Recall@10"
    """
    return shlex.join(["truerank", *arguments])
