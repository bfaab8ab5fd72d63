"""A finished study of two loggers in hand-made frames: every figure can be checked by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from truerank.io.atomic_write import MARKER, seal
from truerank.reliability import FinishedStudy
from truerank.reliability.studied import FORMAT, KIND, LogProfile

# (difference, sd) at each sparsity, by (sampler, size)
Differences = Mapping[tuple[str, int | None], tuple[tuple[float, float], ...]]

PAIRS: dict[tuple[str, int | None], tuple[tuple[float, float], ...]] = {
    ("Full", None): ((0.10, 0.5), (0.06, 0.5)),
    ("Random", 10): ((0.10, 0.8), (0.08, 1.0)),
    ("Random", 50): ((0.10, 0.6), (0.10, 1.0)),
}
SPARSITIES = (0.0, 0.5)
OBSERVED = (0.0, 0.6)
SIGNATURES = {"uniform": ((0.0, 0.0), (0.0, 0.0)), "popularity": ((0.0, 0.0), (0.6, 0.8))}  # spread, lift


def tiny_studied(
    pairs: Differences | None = None,
    *,
    more: Mapping[tuple[str, str], Differences] | None = None,
    users: int = 400,
    metrics: tuple[str, ...] = ("nDCG@100",),
) -> FinishedStudy:
    """`pairs` are of the models a and b; `more` of others by name."""
    of_models: dict[tuple[str, str], Differences] = {("a", "b"): PAIRS if pairs is None else pairs, **(more or {})}
    scenarios = [
        (logger, s, sampler, size, metric)
        for logger in SIGNATURES
        for s in range(len(SPARSITIES))
        for sampler, size in of_models["a", "b"]
        for metric in metrics
    ]
    differences = [
        {
            **_scenario(*each),
            "model": model,
            "other": other,
            "difference": figures[each[2], each[3]][each[1]][0],
            "sd": figures[each[2], each[3]][each[1]][1],
            "users": users,
            "repetitions": 4,
        }
        for (model, other), figures in of_models.items()
        for each in scenarios
    ]
    results = [
        {
            **_scenario(*each),
            "question": question,
            "value": value,
            "undefined": 0.1,
            "value_undefined_as_0": 0.4,
            "low_undefined_as_0": 0.3,
            "high_undefined_as_0": 0.5,
        }
        for each in scenarios
        for question, value in (("resolution", 0.2), ("predictive_power", 0.45))
    ]
    logs = [
        {
            "logger": logger,
            "sparsity": SPARSITIES[s],
            "users": 500.0,
            "items": 100.0,
            "items_shown": 100.0,
            "rows": 50000.0 * (1 - OBSERVED[s]),
            "positives": 5000.0 * (1 - OBSERVED[s]),
            "observed_sparsity": OBSERVED[s],
            "spread": SIGNATURES[logger][s][0],
            "lift": SIGNATURES[logger][s][1],
            "repetitions": 4,
        }
        for logger in SIGNATURES
        for s in range(len(SPARSITIES))
    ]
    return FinishedStudy(
        pl.DataFrame(results, schema_overrides={"size": pl.Int64}),
        pl.DataFrame(differences, schema_overrides={"size": pl.Int64}),
        pl.DataFrame(logs),
    )


def write_studied(studied: FinishedStudy, folder: Path) -> Path:
    """The same as a finished study's folder."""
    folder.mkdir()
    (folder / "study.json").write_text(f'{{"format": {FORMAT}}}')
    for name in ("results", "pairs", "logs"):
        getattr(studied, name).write_parquet(folder / f"{name}.parquet")
    return sealed(folder)


def sealed(folder: Path) -> Path:
    """The same folder, its study finished with the files that it holds."""
    seal(folder, kind=KIND, names=[each.name for each in folder.iterdir() if each.name != MARKER])
    return folder


def tiny_look(**changes: Any) -> LogProfile:
    """A log of 500 users and 100 items at sparsity 0.6, exposed as the popularity logger does."""
    given = {
        "users": 500,
        "items": 100,
        "items_shown": 100,
        "rows": 20000,
        "positives": 2000,
        "spread": 0.6,
        "lift": 0.8,
    }
    return LogProfile(**(given | changes))


def _scenario(logger: str, s: int, sampler: str, size: int | None, metric: str) -> dict[str, Any]:
    return {"logger": logger, "sparsity": SPARSITIES[s], "sampler": sampler, "size": size, "metric": metric}
