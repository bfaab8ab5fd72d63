"""The page of the reliability study, from tables in which every figure is the same number."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from reliability_claims import CLAIMS, SCALES
from reliability_lessons import lessons
from reliability_page import Run, page
from reliability_verdicts import FIXED, SIZED
from reliability_worlds import STUDIES
from truerank.studies.reliability import Preset
from truerank.studies.reliability.grid import LOGGERS, SPARSITIES

VALUE = 0.8


def results(name: str) -> pl.DataFrame:
    scale, sizes = SCALES[name], STUDIES[name].sizes
    samplers = [(each, None) for each in FIXED] + [(each, n) for each in SIZED for n in sizes]
    questions = ("resolution", "resolution_rounded", "fidelity", "robustness", "predictive_power")
    axes = (
        pl.DataFrame({"metric": [scale.metric, scale.shorter]})
        .join(pl.DataFrame({"question": questions}), how="cross")
        .join(pl.DataFrame({"logger": LOGGERS}), how="cross")
        .join(pl.DataFrame({"sparsity": SPARSITIES}), how="cross")
        .join(pl.DataFrame(samplers, schema={"sampler": pl.String, "size": pl.Int64}, orient="row"), how="cross")
    )
    columns = [f"{end}{kind}" for kind in ("", "_undefined_as_0") for end in ("value", "low", "high")]
    columns += [f"tau_of_means{end}" for end in ("", "_low", "_high")]
    same = {each: pl.lit(VALUE) for each in columns}
    return axes.with_columns(undefined=pl.lit(0.0), users=pl.lit(5), repetitions=pl.lit(3), **same)


def test_page_has_every_claim_once_and_counts_what_agrees(tmp_path: Path) -> None:
    times, truth = tmp_path / "times.json", tmp_path / "truth.json"
    spent = {"seconds": 60, "processor_seconds": 90, "peak_megabytes": 2048, "cores": 2, "resumed": False}
    times.write_text(json.dumps(spent))
    runs = []
    for name, work in STUDIES.items():
        truth.write_text(json.dumps({each.title: [0.2, 0.1, 0.3] for each in work.entries}))
        results(name).write_parquet(tmp_path / "results.parquet")
        runs += [Run.read(work, preset, tmp_path, times=times, truth=truth) for preset in Preset]
    text = page(runs, lessons=lessons(runs))
    for claim in CLAIMS:
        assert text.count(f"| {claim.name} | {claim.sentence}") == 1
    # of the figures of fidelity, these lie within 0.05 of 0.8; none of the ties lies near
    assert "| Q1, share of pairs of models that tie | 0 of 47 (0 within 0.05), " in text
    assert "| Q2, fidelity: τ with Full on the same log | 37 of 76, " in text
    assert "| KuaiRec, published | 5 | 1,512 | 16 | 1.0 min | 1.5 min | 2.0 GB |" in text
    assert "nan" not in text
