"""Run a study in a folder: pieces are kept, so that a stopped run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truerank.core.progress import Watching
from truerank.studies.kept import fingerprints, run_in
from truerank.studies.own.result import StudyResult, study_result
from truerank.studies.own.study import Study
from truerank.studies.work import StudySize, StudySource
from truerank.version import __version__

FORMAT = 1  # of the pieces; another one is another run


def run_study(
    study: Study,
    source: StudySource,
    folder: Path,
    *,
    size: StudySize,
    seed: int,
    processes: int | None = None,
    progress: Watching = None,
) -> tuple[StudyResult, tuple[str, ...]]:
    """Run a study, or go on with it, and say what was amiss in what was there.

    A folder belongs to one study, size, seed, source and version: for another it is refused.
    """
    data = fingerprints(study.name, study.data, source)
    synthetic = source.is_synthetic and bool(study.data)
    asked: Mapping[str, Any] = {
        "study": study.name, "format": FORMAT, "size": str(size), "seed": seed,
        "synthetic": synthetic, "data": data, "truerank": __version__,
    }  # fmt: skip
    found, notes = run_in(
        folder, lambda keep, say: study.run(source, size=size, seed=seed, keep=keep, progress=say),
        asked=asked, what="run of a study", processes=processes, progress=progress,
    )  # fmt: skip
    return study_result(study.name, found, size=size, seed=seed, synthetic=synthetic, data=data), notes
