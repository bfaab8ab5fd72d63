"""The page of the reliability study, from tables in which every figure is the same number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl

from reliability_lessons import lessons
from reliability_models import STUDIES
from reliability_page import page
from reliability_runs import Run
from reliability_study import finished, times_of
from truerank.studies.papers.reliability.claims import CLAIMS
from truerank.studies.papers.reliability.rules import FIXED, SIZED
from truerank.studies.reliability import Preset
from truerank.studies.reliability.folder import FORMAT
from truerank.studies.reliability.grid import LOGGERS, SPARSITIES

VALUE = 0.8


def results(name: str) -> pl.DataFrame:
    scale, sizes = STUDIES[name].scale, STUDIES[name].sizes
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


def runs_of(folder: Path, table: Callable[[str], pl.DataFrame]) -> list[Run]:
    times, truth = folder / "times.json", folder / "truth.json"
    spent = {"seconds": 60, "processor_seconds": 90, "peak_megabytes": 2048, "cores": 2, "resumed": False}
    times.write_text(json.dumps(spent))
    runs = []
    for name, work in STUDIES.items():
        means = {each.title: [0.2, 0.1, 0.3] for each in work.entries} | {"popularity": [0.25, 0.2, 0.3]}
        pairs = [["SAR cosine", "SAR jaccard", 0.01, 0.002, 2500], ["ALS", "BPR", -0.1, 0.002, 2500]]
        truth.write_text(json.dumps({"means": means, "pairs": pairs}))
        table(name).write_parquet(folder / "results.parquet")
        runs += [Run.read(work, preset, folder, times=times, truth=truth) for preset in Preset]
    return runs


def test_page_has_every_claim_once_and_counts_what_agrees(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, results)
    text = page(runs, lessons=lessons(runs))
    for claim in CLAIMS:
        assert text.count(f"| {claim.name} | {claim.sentence}") == 1
    assert "in most logs with something hidden, large n; in all cells." in text
    assert "clearly above Random's, large n; in at least 80 % of cells." in text
    assert "τ > 0.7 at the moderate n and all larger; in at least 50 % of cells." in text
    assert (
        "KuaiRec: for a single user 1 of the 2 pairs of models are close to a coin toss (a difference below a "
        "quarter of its standard deviation over users); the means of 1 of these differ clearly. The closest differ: "
        "SAR cosine and SAR jaccard by 0.0100 on average, with a standard deviation of 0.100 over users (z = 5.0)."
        in text
    )
    assert (
        "higher mean on KuaiRec than SAR cosine, SAR jaccard, ALS, BPR, LightFM and LightFM-F and on Jester than"
        in text
    )
    assert "the paper 4.5 % of pairs of models, ours released 80.00 %, published 80.00 %" in text
    # of the figures of fidelity, these lie within 0.05 of 0.8; none of the ties lies near
    assert "| Q1, share of pairs of models that tie | 0 of 47 (0 within 0.05), " in text
    assert "| Q2, fidelity: τ with Full on the same log | 37 of 76, " in text
    assert "| KuaiRec, published | 5 | 1,512 | 2 | 1.0 min | 1.5 min | 2.0 GB |" in text
    assert "nan" not in text


def test_a_headline_says_what_the_figures_say(tmp_path: Path) -> None:
    """All samplers alike; then Exposed clearly above the others at 70 % and more with a uniform logger, else below."""
    text = "\n".join(lessons(runs_of(tmp_path, results)))
    assert (
        "user's order of models clearly better in 36 of 36 logs at 10 to 50 % and 48 of 48 logs at 70 to 95 % sparsity"
        in text
    )
    assert (
        "no sample is clearly better in at least 80 % of logs with uniform exposure, 10 to 50 %; uniform exposure, "
        "70 to 95 %; biased exposure, 10 to 50 %; biased exposure, 70 to 95 %" in text
    )
    assert "turns round" not in text

    def changed(name: str) -> pl.DataFrame:
        sparse, power = pl.col("sparsity") >= 0.7, pl.col("question") == "predictive_power"
        lead = sparse & power & (pl.col("sampler") == "Exposed") & (pl.col("logger").cast(pl.String) == "uniform")
        trail = sparse & power & (pl.col("sampler") == "Exposed") & (pl.col("logger").cast(pl.String) != "uniform")
        moved = pl.when(lead).then(0.1).when(trail).then(-0.1).otherwise(0.0)
        means = pl.when(power & (pl.col("sampler") == "Positivity")).then(0.2).otherwise("tau_of_means")
        return results(name).with_columns(pl.col("value", "low", "high") + moved, tau_of_means=means)

    text = "\n".join(lessons(runs_of(tmp_path, changed)))
    assert "clearly better in 36 of 36 logs at 10 to 50 % and 32 of 48 logs at 70 to 95 % sparsity" in text
    assert "some sample is clearly better in most logs with biased exposure, 70 to 95 %.**" in text
    assert (
        "Uniform exposure, 70 to 95 % sparsity: 16, 16, 0 of 16. Biased exposure, 10 to 50 % sparsity: 24, 0, 0 of 24."
        in text
    )
    assert "turns round the order of many pairs of means: KuaiRec, published 40 %" in text


def test_a_study_of_another_format_is_run_again(tmp_path: Path) -> None:
    folder = tmp_path / "published-3"
    assert not finished(folder)
    folder.mkdir()
    (folder / "study.json").write_text(json.dumps({"format": FORMAT}))
    assert not finished(folder)  # interrupted, and kept
    assert folder.exists()
    times_of(folder).write_text("{}")
    assert finished(folder)
    (folder / "study.json").write_text(json.dumps({"format": FORMAT - 1}))
    assert not finished(folder)
    assert list(tmp_path.iterdir()) == []
