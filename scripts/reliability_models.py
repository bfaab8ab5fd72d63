"""Fit the models of a reliability study, each in a process of its own, and keep their scores for the world as files."""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kuairec import data_folder
from truerank import models
from truerank.core.metric import Metric
from truerank.core.ranking import Scores
from truerank.data.whole import whole_file
from truerank.evaluation.judged import evaluate
from truerank.models import Side
from truerank.ranks.kernel.rank import Aligned
from truerank.ranks.scores.files import read_scores, write_scores
from truerank.ranks.scores.scores import dense
from truerank.studies.papers.reliability.worlds import SEED, SETTINGS, StudiedData, StudiedModel, StudiedSetting
from truerank.studies.work import StudySource

STUDIES = {name: SETTINGS[name] for name in ("kuairec", "jester")}


def data_of(study: StudiedSetting) -> StudiedData:
    return study.data(StudySource(data_folder()))


def alone(target: Callable[..., None], *given: object, what: str) -> None:
    """Run something in a fresh process, so that its time and memory are its own."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=given)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{what} failed")


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def note(path: Path, found: dict[str, Any]) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(found, indent=1))


def fit(study: StudiedSetting, entry: StudiedModel, path: Path) -> None:
    """Fit one model and write what it says about the world's users and items."""
    data = data_of(study)
    start = time.process_time()
    scores = models.make(entry.name, dict(entry.settings)).fit(
        data.train, seed=SEED, side=data.side if entry.features else Side()
    )
    seconds = time.process_time() - start
    world = data.world
    known = Aligned.of(scores, users=world.users, items=world.items, name=entry.title)
    matrix = known.block(np.arange(len(world.users)))
    write_scores(dense(matrix, users=world.users.values, items=world.items.values), path)
    note(path.with_suffix(".json"), {"fit_seconds": seconds, "peak_megabytes": peak_megabytes()})


def fitted(study: StudiedSetting, folder: Path) -> dict[str, Scores]:
    """The scores of every model, fitted where there is no file yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in study.entries:
        path = folder / f"{entry.title.replace(' ', '-')}.npz"
        if not path.with_suffix(".json").exists():
            print(f"{study.name}: {entry.title} ...", file=sys.stderr, flush=True)
            alone(fit, study, entry, path, what=entry.title)
    return {entry.title: read_scores(folder / f"{entry.title.replace(' ', '-')}.npz") for entry in study.entries}


def truths(study: StudiedSetting, metric: Metric, folder: Path, path: Path) -> None:
    """The true mean of every model over all pairs of the world, with its interval for the population of users.

    Beside them the paired differences of models: mean, standard error and number of users.
    """
    labels = data_of(study).world
    found = evaluate(fitted(study, folder), labels, items=labels.items, metrics=[metric])
    means = {each.model: [each.value, each.low, each.high] for each in found.estimates}
    pairs = [[each.model, each.baseline, each.difference, each.stderr, each.units] for each in found.comparisons]
    note(path, {"means": means, "pairs": pairs})
