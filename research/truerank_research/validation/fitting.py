"""A model fitted and measured for studies: what it costs, and its true recall."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.evaluation.judged import evaluate
from truerank.metrics.recall import Recall
from truerank.models import NOTHING_BESIDE, Model, Side

CUTOFFS = (5, 50, 500)

Task = TypeVar("Task")


@dataclass(frozen=True, slots=True)
class TimedFit:
    """Scores of a model, the seconds that `fit` took, by the processor and by the clock, and how far it came."""

    scores: Scores
    processor: float
    clock: float
    epochs: int


def fit(model: Model, log: Log, *, seed: int, side: Side = NOTHING_BESIDE) -> TimedFit:
    epochs = [0]

    def count(what: str, done: int, total: int) -> None:
        del what, total
        epochs[0] = done + 1

    clock, processor = time.perf_counter(), time.process_time()
    scores = model.fit(log, seed=seed, side=side, progress=count)
    return TimedFit(scores, time.process_time() - processor, time.perf_counter() - clock, epochs[0])


def recalls(name: str, scores: Scores, truth: Log, **pool: Any) -> dict[str, float]:
    """The mean recall over users at each cut-off with the ends of its interval: `recall@50`, `low@50`, `high@50`."""
    found = evaluate({name: scores}, truth, metrics=[Recall(k) for k in CUTOFFS], **pool)
    return {
        f"{what}@{k}": value
        for k, each in zip(CUTOFFS, found.estimates, strict=True)
        for what, value in (("recall", each.value), ("low", each.low), ("high", each.high))
    }


def peak_megabytes() -> float:
    """The most memory that this process has had; not a number where the system does not count it."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage tells is also of the process that started this one
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]
    try:
        import resource
    except ImportError:
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * (1024 if sys.platform == "darwin" else 1))


def alone(measure: Callable[[Task], Mapping[str, Any]], task: Task, *, fresh: bool) -> pl.DataFrame:
    """A row of what was measured; `fresh` is by a process that does nothing else, so that its memory is its own."""
    if not fresh:
        return pl.DataFrame([measure(task)])
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:  # the threads of polars do not survive a fork
        return pl.DataFrame([executor.submit(measure, task).result()])


def settings_text(settings: Mapping[str, str]) -> str:
    """Settings as they are said.

    >>> settings_text({"batch": "16384", "epochs": "25"})
    'batch=16384, epochs=25'
    """
    return ", ".join(f"{name}={value}" for name, value in settings.items())
