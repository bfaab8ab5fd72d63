"""The commands that follow from what a log is: complete, to be pasted into a terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from truerank.cli.groups import Reading, Scoring

if TYPE_CHECKING:
    from truerank.evaluation.diagnostics import Diagnosis

STAND_IN = "random"  # a model that knows nothing, in place of one's own


def next_commands(diagnosis: Diagnosis, log: Path, reading: Reading, scoring: Scoring) -> list[str]:
    """What to run: with the models that are given, or first with one in their place."""
    if any(message.code == "repeated-pairs" for message in diagnosis.findings):
        return []  # evaluations refuse such a log
    if diagnosis.exposed == "ranked":
        return [_offpolicy(diagnosis, log)]
    renamed = {kind: name for kind, name in diagnosis.columns.items() if kind not in (name, "propensity")}
    named = ",".join(f"{kind}={name}" for kind, name in renamed.items()) or reading.columns
    read = [*_option("--columns", named), *_option("--positive", reading.positive or diagnosis.needs_positive)]
    before = []
    models = [word for name, path in scoring.paths().items() for word in ("--scores", f"{name}={path}")]
    if not models:
        scores = f"{STAND_IN}.npz"
        before = [["train", STAND_IN, str(log), *read, *_catalogue(reading), "--out", scores]]
        models = ["--scores", f"{STAND_IN}={scores}"]
    words = [
        "evaluate",
        str(log),
        *read,
        *_catalogue(reading),
        "--exposure",
        str(diagnosis.exposed),
        *_exposure(diagnosis),
    ]
    words += _option("--exclude", None if scoring.exclude is None else str(scoring.exclude))
    return [_command(words_of_command) for words_of_command in (*before, [*words, *models])]


def _exposure(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.extra.get("unlisted"):
        return ["--unlisted", "negative"]
    if diagnosis.exposed != "biased":
        return []
    if diagnosis.propensities:
        return ["--propensity", diagnosis.columns["propensity"]]
    from truerank.evaluation.diagnostics import propensity_models

    return ["--propensity", f"{propensity_models()[0]}:0.5"]


def _offpolicy(diagnosis: Diagnosis, log: Path) -> str:
    renamed = {kind: name for kind, name in diagnosis.columns.items() if kind != name and name not in diagnosis.rewards}
    words = ["offpolicy", str(log), *_option("--columns", ",".join(f"{k}={v}" for k, v in renamed.items()) or None)]
    words += [word for name in diagnosis.rewards for word in ("--reward", name)]
    if diagnosis.extra["chosen"]:
        return _command([*words, "--target", f"log=@exposure:{diagnosis.columns['propensity']}"])
    position = [] if diagnosis.propensities else ["--position", "log"]
    return _command([*words, "--target", f"log=@{diagnosis.columns['position']}", *position])


def _catalogue(reading: Reading) -> list[str]:
    return _option("--items", None if reading.items is None else str(reading.items))


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]


def _command(words: list[str]) -> str:
    return shlex.join(["truerank", *words])
