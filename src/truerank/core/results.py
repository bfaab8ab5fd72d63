"""What is reported: estimates and comparisons, with all that is needed to read them rightly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from truerank.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number, what it estimates, and how sure it is."""

    model: str
    metric: str
    estimator: str
    estimand: str
    value: float
    stderr: float
    low: float
    high: float
    level: float
    interval: str
    units: int
    undefined: int
    ess: float | None
    reward: str
    clip: float | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference model - baseline, over the `units` that both define.

    `p_adjusted` holds over all comparisons of the results. `reward` and `clip` say which estimates are compared, where
    there are several; no clip is None.
    """

    model: str
    baseline: str
    metric: str
    estimator: str
    difference: float
    stderr: float
    low: float
    high: float
    p: float
    p_adjusted: float
    units: int
    reward: str | None = None
    clip: float | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """Estimates and comparisons with their provenance; shows itself in a terminal and a notebook."""

    estimates: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def table(self) -> Any:
        """The estimates as a polars frame."""
        from truerank.report import frames

        return frames.estimates(self)

    def clips(self) -> Any:
        """The bias-variance curve over clips as a polars frame: how far each value is from that of the largest clip."""
        from truerank.report import frames

        return frames.clips(self)

    def compare(self, model: str, baseline: str) -> tuple[Comparison, ...]:
        """All comparisons of two models, as model - baseline."""
        found = [c for c in self.comparisons if {c.model, c.baseline} == {model, baseline}]
        if not found:
            raise InputError(f"no comparison of {model!r} with {baseline!r} in these results.")
        return tuple(c if c.model == model else _turned(c) for c in found)

    def json(self) -> bytes:
        """The results as one JSON object; undefined numbers are null."""
        from truerank.report import frames

        return frames.json(self)

    def __str__(self) -> str:
        from truerank.report import text

        return text.render(self)

    def _repr_html_(self) -> str:
        from truerank.report import frames

        return frames.notebook(self)


def _turned(c: Comparison) -> Comparison:
    return replace(c, model=c.baseline, baseline=c.model, difference=-c.difference, low=-c.high, high=-c.low)
