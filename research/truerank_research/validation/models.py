"""What recommenders cost and find on KuaiRec: fitted to its big matrix, tested on its fully observed block."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank import models
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.evaluation.labels import evaluate
from truerank.metrics.additive import Recall
from truerank.models import Labels, Side
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Source, Study
from truerank_research.validation.kuairec import DATASET, block

CATEGORIES = 10  # of items of a synthetic world
CUTOFFS = (5, 50, 500)
VARIANTS = (("sar", "similarity=jaccard"), ("ease", "regularisation=500"))
FEATURES = "with item categories"


def measure_model(setting: Setting, model: str, variant: str) -> pl.DataFrame:
    """Seconds, memory and true recall of a model, as its defaults have it or in a variant."""
    return run_alone(fit_and_evaluate, setting, model, variant, fresh=setting.full)


def fit_and_evaluate(setting: Setting, model: str, variant: str) -> Mapping[str, Any]:
    labels, train = block(setting.source, full=setting.full, seed=setting.seed)
    side = Side(item_features=categories(setting.source, train)) if variant == FEATURES else Side()
    chosen = dict([variant.split("=")]) if "=" in variant else {}
    start = time.process_time()
    scores = models.make(model, chosen).fit(train, seed=setting.seed, side=side)
    fitted = time.process_time()
    recall = recalls(model, scores, labels)
    return {
        "model": model + (f" ({variant})" if chosen else f" {variant}" * bool(variant)), "pairs": len(train),
        "users": len(labels.users), "items": len(labels.items), "fit": fitted - start,
        "evaluate": time.process_time() - fitted, "megabytes": peak_megabytes(), **recall,
    }  # fmt: skip


def recalls(name: str, scores: Scores, truth: Log) -> dict[str, float]:
    """The mean recall over users at each cut-off with the ends of its interval: `recall@50`, `low@50`, `high@50`."""
    results = evaluate({name: scores}, truth, metrics=[Recall(k) for k in CUTOFFS], items=truth.items)
    return {
        f"{what}@{k}": value
        for k, estimate in zip(CUTOFFS, results.estimates, strict=True)
        for what, value in (("recall", estimate.value), ("low", estimate.low), ("high", estimate.high))
    }


def categories(source: Source, train: Log) -> pl.DataFrame:
    """The categories of items; those of a synthetic world say nothing."""
    if source.is_synthetic:
        return pl.DataFrame({"item": train.items.values, "categories": np.arange(len(train.items)) % CATEGORIES})
    return pl.read_parquet(source.path(DATASET) / "item_categories.parquet").rename({"video_id": "item"})


def peak_megabytes() -> float:
    """The most memory that this process has had; not a number where the system does not count it."""
    status = Path("/proc/self/status")
    # what getrusage tells is also of the process that started this one
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return math.nan if found is None else int(found[1]) / 1024


def run_alone(function: Callable[..., Mapping[str, Any]], *arguments: Any, fresh: bool) -> pl.DataFrame:
    """A row of what was measured; `fresh` is by a process that does nothing else, so that its memory is its own."""
    if not fresh:
        return pl.DataFrame([function(*arguments)])
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:  # the threads of polars do not survive a fork
        return pl.DataFrame([executor.submit(function, *arguments).result()])


def measure(run: Run) -> Measured:
    """Every model that learns from positives without torch, as its defaults have it, and the variants worth a row.

    Of models that learn from values nothing is left here: every listed value is a 1. E-U4 has those in torch.
    """
    plain = [
        (name, "")
        for name, info in models.catalogue().items()
        if info.labels in {Labels.NOTHING, Labels.POSITIVES} and info.needs != "torch"
    ]
    arguments = [(run.setting, *names) for names in (*plain, *VARIANTS, ("lightfm", FEATURES))]
    # one after another, as they would share the cores, each in a process that it starts itself
    rows = pl.concat(replace(run, processes=1).pieces(measure_model, arguments, about="fitting models"))
    size = {name: rows[name][0] for name in ("pairs", "users", "items")}
    return Measured({"models": rows.drop(*size).to_dicts()}, size)


STUDIES = (
    Study(
        "models", "What do recommenders cost, and how much of what users like do they find?",
        measure, data=(DATASET,), minutes=6,
    ),
)  # fmt: skip
