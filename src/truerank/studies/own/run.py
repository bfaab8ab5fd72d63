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
    command = command_of(study.name, size=size, seed=seed, synthetic=synthetic, reads=bool(data))
    result = study_result(study.name, found, command=command, size=size, seed=seed, synthetic=synthetic, data=data)
    return result, notes


def command_of(name: str, *, size: StudySize, seed: int, synthetic: bool, reads: bool) -> str:
    """What makes a result again.

    >>> command_of("watch", size=StudySize.FULL, seed=9, synthetic=False, reads=False)
    'truerank study watch --seed 9'
    """
    options = (
        " --data DIR" * reads,
        " --data synthetic" * synthetic,
        f" --size {size}" * (size is not StudySize.FULL),
        f" --seed {seed}" * (seed != 0),
    )
    return f"truerank study {name}{''.join(options)}"
