"""The reliability study (paper 5) on KuaiRec and on Jester, and its claims one by one: writes docs/results/reliability.md.

Models and studies are kept in a folder, so an interrupted run goes on where it stopped; delete the folder to start again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from reliability_lessons import lessons
from reliability_models import STUDIES, alone, data_of, fitted, note, peak_megabytes, truths
from reliability_page import page
from reliability_runs import Run
from result_pages import write_page
from truerank.studies.papers.reliability.worlds import SEED, StudiedSetting
from truerank.studies.reliability import Grid, Preset, study
from truerank.studies.reliability.folder import FORMAT, NOTE

OUT = Path("docs/results/reliability.md")
DONE = Path("build/reliability")
REPETITIONS = 10
TIMES = "times.json"


def grid_of(work: StudiedSetting, preset: Preset, repetitions: int) -> Grid:
    made = Grid.of(preset=preset, sizes=work.sizes, metrics=work.metrics)
    return replace(made, repetitions=repetitions)


def times_of(folder: Path) -> Path:
    """Written when a study is done, beside its folder."""
    return folder.parent / f"{folder.name}-{TIMES}"


def finished(folder: Path) -> bool:
    """Whether a study is done; one of another format, done or not, is deleted: its figures may mean something else."""
    described = folder / NOTE
    if described.exists() and json.loads(described.read_text())["format"] != FORMAT:
        shutil.rmtree(folder)
        times_of(folder).unlink(missing_ok=True)
    return described.exists() and times_of(folder).exists()


def run(work: StudiedSetting, preset: Preset, repetitions: int, folder: Path) -> None:
    """One study, and how long it took where it was not interrupted."""
    data = data_of(work)
    scores = fitted(work, folder.parent / "models")
    resumed = folder.exists()
    clock, processor = time.perf_counter(), time.process_time()
    study(scores, data.world, folder, grid=grid_of(work, preset, repetitions), train=data.train, seed=SEED)
    found = {
        "seconds": time.perf_counter() - clock,
        "processor_seconds": time.process_time() - processor,
        "peak_megabytes": peak_megabytes(),
        "cores": os.cpu_count(),
        "resumed": resumed,
    }
    note(times_of(folder), found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=REPETITIONS)
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument("--done", type=Path, default=DONE)
    asked = options.parse_args()
    runs = []
    for work in STUDIES.values():
        models, truth = asked.done / work.name / "models", asked.done / work.name / "truth.json"
        fitted(work, models)
        if not truth.exists():
            metric = next(each for each in work.metrics if str(each) == work.scale.metric)
            alone(truths, work, metric, models, truth, what=f"truth of {work.name}")
        for preset in Preset:
            folder = asked.done / work.name / f"{preset.value}-{asked.repetitions}"
            if not finished(folder):
                print(f"{work.name}, {preset.value}: {asked.repetitions} repetitions ...", file=sys.stderr, flush=True)
                alone(run, work, preset, asked.repetitions, folder, what=str(folder))
            runs.append(Run.read(work, preset, folder, times=times_of(folder), truth=truth))
    write_page(asked.out, "reliability", page(runs, lessons=lessons(runs)))


if __name__ == "__main__":
    main()
