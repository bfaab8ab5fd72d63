"""What one evaluation of labels and one off-policy evaluation touch on ten rows: python -m benchmarks trace.

Counts modules, functions and switches between packages that each call touches, and the functions of estimators,
inference and evaluation that both share.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

import truerank as tr

ROOT = Path(tr.__file__).parent
CORE = ("estimators", "inference", "evaluation")


@dataclass
class Trace:
    """Functions of truerank that were called, and how often one package called another."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    switches: int = 0

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.functions}

    def within(self, packages: tuple[str, ...]) -> set[tuple[str, str]]:
        return {(module, name) for module, name in self.functions if module.split("/")[0] in packages}


def trace(call: Callable[[], Any]) -> Trace:
    """What a call touches; run once before, so that imports and compiled code are not counted."""
    call()
    touched, package = Trace(), ""

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal package
        path = Path(frame.f_code.co_filename)
        if event != "call" or ROOT not in path.parents:
            return
        module = path.relative_to(ROOT).as_posix()
        touched.functions.add((module, frame.f_code.co_qualname))
        touched.switches += module.split("/")[0] != package
        package = module.split("/")[0]

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return touched


def evaluate_ten_rows() -> Any:
    users = [1, 2, 3, 4, 5]
    scores = {name: tr.scores.dense([row] * 5, users=users, items=[1, 2, 3, 4]) for name, row in MODELS.items()}
    labels = pl.DataFrame({"user": sorted(users * 2), "item": [1, 3, 2, 4, 1, 2, 3, 4, 1, 4], "label": [1, 0] * 5})
    return tr.evaluate(scores, labels, exposure="random", metrics=["Precision@2"], estimators=["hajek"])


MODELS = {"first": [4.0, 3, 2, 1], "second": [1.0, 2, 3, 4]}


def off_policy_ten_rows() -> Any:
    log = pl.DataFrame(
        {
            "session": sorted([1, 2, 3, 4, 5] * 2),
            "item": [1, 2, 2, 1, 1, 2, 2, 1, 1, 2],
            "position": [1, 2] * 5,
            "reward": [1, 0, 0, 1, 1, 1, 0, 0, 1, 0],
            "first": [1, 2, 2, 1, 1, 2, 2, 1, 1, 2],
            "second": [2, 1, 1, 2, 2, 1, 1, 2, 2, 1],
        }
    )
    targets = {name: tr.exposure.RankColumn(name) for name in MODELS}
    position = tr.positions.parse_position("exp:0.5")
    return tr.off_policy(log, targets, position=position, estimators=["ips"])


def run() -> dict[str, Any]:
    traces = {"evaluate": trace(evaluate_ten_rows), "off_policy": trace(off_policy_ten_rows)}
    touched = {
        name: f"{len(each.modules)} modules, {len(each.functions)} functions, {each.switches} switches of package"
        for name, each in traces.items()
    }
    first, second = (each.within(CORE) for each in traces.values())
    shared = first & second
    return touched | {
        f"shared in {', '.join(CORE)}": f"{len(shared)} functions of {len(first | second)}: "
        f"{len(shared) / len(first):.0%} of evaluate's, {len(shared) / len(second):.0%} of off_policy's"
    }
