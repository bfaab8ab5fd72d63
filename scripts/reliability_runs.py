"""A reliability study as it was done, read from its files for the page."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import polars as pl

from truerank.studies.papers.reliability.rules import (
    POWER,
    ResultReading,
    SamplerClaim,
    StudyFigures,
    SupportFound,
    WorldScale,
    judge,
)
from truerank.studies.papers.reliability.worlds import StudiedSetting
from truerank.studies.reliability import Preset

TITLES = {"kuairec": "KuaiRec", "jester": "Jester"}


@dataclass(frozen=True, slots=True)
class Pair:
    """The true difference of two models, over users."""

    model: str
    other: str
    difference: float
    stderr: float
    users: int

    @property
    def sd(self) -> float:
        return self.stderr * sqrt(self.users)

    @property
    def z(self) -> float:
        return abs(self.difference) / self.stderr


@dataclass(frozen=True, slots=True)
class Run:
    """One study as it was done: its results, in every reading."""

    work: StudiedSetting
    preset: Preset
    repetitions: int
    users: int
    times: dict[str, Any]
    truth: dict[str, list[float]]  # of each model: mean, low, high
    pairs: list[Pair]
    figures: dict[ResultReading, StudyFigures]
    undefined: dict[tuple[str, float], float]  # share of undefined τ of predictive power, by sampler and sparsity
    judged: dict[tuple[str, ResultReading], SupportFound] = field(default_factory=dict)  # so that each is judged once

    @classmethod
    def read(cls, work: StudiedSetting, preset: Preset, folder: Path, *, times: Path, truth: Path) -> Run:
        scale = work.scale
        results = pl.read_parquet(folder / "results.parquet")
        figures = {each: StudyFigures.read(results, scale=scale, reading=each) for each in ResultReading}
        true = json.loads(truth.read_text())
        return cls(
            work,
            preset,
            int(results["repetitions"][0]),
            int(results["users"].max()),  # type: ignore[arg-type]
            json.loads(times.read_text()),
            true["means"],
            [Pair(*each) for each in true["pairs"]],
            figures,
            _undefined(results, scale),
        )

    @property
    def name(self) -> str:
        return f"{TITLES[self.work.name]}, {self.preset.value}"

    def verdict(self, claim: SamplerClaim, reading: ResultReading = ResultReading.USERS) -> SupportFound:
        found = self.judged.get((claim.name, reading))
        if found is None:
            found = self.judged[claim.name, reading] = judge(claim, self.figures[reading])
        return found


def _undefined(results: pl.DataFrame, scale: WorldScale) -> dict[tuple[str, float], float]:
    chosen = results.filter(
        (pl.col("metric") == scale.metric)
        & (pl.col("question") == POWER)
        & (pl.col("size").is_null() | (pl.col("size") == scale.large))
    ).with_columns(pl.col("sampler").str.replace(r"\(.*", ""))
    mean = chosen.group_by("sampler", "sparsity").agg(pl.col("undefined").mean())
    return {(sampler, sparsity): share for sampler, sparsity, share in mean.iter_rows()}
