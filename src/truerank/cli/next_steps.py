"""The commands that follow from what a log is: complete, to be pasted into a terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from truerank.cli.groups import Reading, Scoring

if TYPE_CHECKING:
    from truerank.evaluation.diagnosed import Diagnosis

STAND_IN = "random"  # a model that knows nothing, in place of one's own


def next_commands(found: Diagnosis, log: Path, reading: Reading, scoring: Scoring) -> list[str]:
    """What to run: with the models that are given, or first with one in their place."""
    if any(message.code == "repeated-pairs" for message in found.findings):
        return []  # evaluations refuse such a log
    if found.exposed == "ranked":
        return [_offpolicy(found, log)]
    renamed = {kind: name for kind, name in found.columns.items() if kind not in (name, "propensity")}
    named = ",".join(f"{kind}={name}" for kind, name in renamed.items()) or reading.columns
    read = [*_option("--columns", named), *_option("--positive", reading.positive or found.needs_positive)]
    before = []
    models = [word for name, path in scoring.paths().items() for word in ("--scores", f"{name}={path}")]
    if not models:
        made = f"{STAND_IN}.npz"
        before = [["train", STAND_IN, str(log), *read, *_catalogue(reading), "--out", made]]
        models = ["--scores", f"{STAND_IN}={made}"]
    words = ["evaluate", str(log), *read, *_catalogue(reading), "--exposure", str(found.exposed), *_exposure(found)]
    words += _option("--exclude", None if scoring.exclude is None else str(scoring.exclude))
    return [_command(each) for each in (*before, [*words, *models])]


def _exposure(found: Diagnosis) -> list[str]:
    if found.extra.get("unlisted"):
        return ["--unlisted", "negative"]
    if found.exposed != "biased":
        return []
    if found.propensities:
        return ["--propensity", found.columns["propensity"]]
    from truerank.evaluation.diagnosis import propensity_models

    return ["--propensity", f"{propensity_models()[0]}:0.5"]


def _offpolicy(found: Diagnosis, log: Path) -> str:
    own = {kind: name for kind, name in found.columns.items() if kind != name and name not in found.rewards}
    words = ["offpolicy", str(log), *_option("--columns", ",".join(f"{k}={v}" for k, v in own.items()) or None)]
    words += [word for name in found.rewards for word in ("--reward", name)]
    if found.extra["chosen"]:
        return _command([*words, "--target", f"log=@exposure:{found.columns['propensity']}"])
    position = [] if found.propensities else ["--position", "log"]
    return _command([*words, "--target", f"log=@{found.columns['position']}", *position])


def _catalogue(reading: Reading) -> list[str]:
    return _option("--items", None if reading.items is None else str(reading.items))


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]


def _command(words: list[str]) -> str:
    return shlex.join(["truerank", *words])
