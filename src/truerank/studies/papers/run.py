"""Run an experiment in a folder: pieces are kept, so that a stopped run goes on; in the end it holds the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truerank.core.errors import InputError
from truerank.core.progress import Watching
from truerank.studies.kept import fingerprints, run_in
from truerank.studies.papers.experiment import Experiment
from truerank.studies.papers.reproduced import Reproduced, reproduced
from truerank.studies.work import StudySize, StudySource
from truerank.version import __version__

FORMAT = 1  # of the pieces; another one is another run


def reproduce(
    experiment: Experiment,
    source: StudySource,
    folder: Path,
    *,
    size: StudySize,
    seed: int,
    processes: int | None = None,
    progress: Watching = None,
) -> tuple[Reproduced, tuple[str, ...]]:
    """Run an experiment, or go on with it, and say what was amiss in what was there.

    A folder belongs to one experiment, size, seed, source and version: for another it is refused.
    """
    if experiment.instead:
        raise InputError(f"{experiment.name} cannot be run here: {experiment.instead}")
    data = fingerprints(experiment.name, experiment.data, source)
    asked: Mapping[str, Any] = {
        "experiment": experiment.name, "format": FORMAT, "size": str(size), "seed": seed,
        "synthetic": source.is_synthetic, "data": data, "truerank": __version__,
    }  # fmt: skip
    found, notes = run_in(
        folder, lambda keep, say: experiment.run(source, size=size, seed=seed, keep=keep, progress=say),
        asked=asked, what="run of an experiment", processes=processes, progress=progress,
    )  # fmt: skip
    result = reproduced(experiment, found, size=size, seed=seed, synthetic=source.is_synthetic, data=data)
    return result, notes
