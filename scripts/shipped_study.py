"""The studies that come with the package: KuaiRec and Jester in fewer scenarios, packed small.

Writes src/truerank/studies/reliability/shipped/: aggregates of scenarios alone, no row of the data, rounded to three
significant digits. Scores of models and studies are kept in build/reliability, so that an interrupted run goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from kuairec import data_folder
from truerank.core.metric import Metric
from truerank.data.folders import seal
from truerank.data.marker import read_marker
from truerank.data.whole import whole_file
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.studies.papers.reliability.studied import FittedScores, scores_of
from truerank.studies.papers.reliability.worlds import SEED, SETTINGS
from truerank.studies.reliability import Grid, study
from truerank.studies.reliability.advising import SHIPPED, WORLD, StudiedWorld
from truerank.studies.reliability.folder import KIND, LOGS, NOTE, PAIRS, RESULTS
from truerank.studies.reliability.studied import NEEDED, QUESTIONS
from truerank.studies.work import StudySource

DONE = Path("build/reliability")
REPETITIONS = 10
DIGITS = 3
MADE_BY = "scripts/shipped_study.py, with the models of experiment E-S0 (untuned)"


@dataclass(frozen=True, slots=True)
class Asked:
    """The scenarios of a world that are shipped: sparser logs than the paper's, as people have them, and fewer sizes."""

    sparsities: tuple[float, ...]
    sizes: tuple[int, ...]
    metrics: tuple[Metric, ...]
    world: StudiedWorld

    def grid(self, repetitions: int) -> Grid:
        return Grid.of(sparsities=self.sparsities, sizes=self.sizes, metrics=self.metrics, repetitions=repetitions)


ASKED: Mapping[str, Asked] = {
    "kuairec": Asked(
        (0.3, 0.5, 0.7, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995),
        (5, 20, 100, 500),
        (Recall(10), NDCG(10), NDCG(100)),
        StudiedWorld(
            "KuaiRec",
            "1,411 users x 3,327 short videos",
            "https://kuairec.com (Gao et al., CIKM 2022)",
            "CC BY-SA 4.0; what is here are aggregates derived from it, under the same licence",
            MADE_BY,
        ),
    ),
    "jester": Asked(
        (0.3, 0.5, 0.7, 0.85, 0.9, 0.95),
        (2, 5, 10, 25),
        (Recall(10), NDCG(10)),
        StudiedWorld(
            "Jester",
            "{users:,} users x 80 jokes",
            "https://eigentaste.berkeley.edu/dataset (Goldberg et al., Information Retrieval 2001)",
            "free for research use, with the citation; what is here are aggregates derived from it",
            MADE_BY,
        ),
    ),
}


def run(name: str, repetitions: int, folder: Path) -> None:
    source, setting = StudySource(data_folder()), SETTINGS[name]
    data = setting.data(source)
    scores = []
    for entry in setting.entries:
        path = folder.parent / "models" / f"{entry.title.replace(' ', '-')}.parquet"
        if not path.exists():
            print(f"{name}: {entry.title} ...", file=sys.stderr, flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as temporary:
                FittedScores(source, name, entry, SEED).table().write_parquet(temporary)
        scores.append((entry.title, pl.read_parquet(path)))
    known = scores_of(scores, data.world)
    study(known, data.world, folder, grid=ASKED[name].grid(repetitions), train=data.train, seed=SEED)


def pack(name: str, folder: Path, out: Path) -> None:
    """The tables that advice needs, rounded, with what was studied and where it comes from."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for table, columns in NEEDED.items():
        found = pl.read_parquet(folder / table).select(columns)
        if table == RESULTS:
            found = found.filter(pl.col("question").is_in(QUESTIONS))
        figures = pl.selectors.float().exclude("sparsity")
        rounded = found.with_columns(figures.round_sig_figs(DIGITS)) if table != LOGS else found
        rounded.write_parquet(out / table, compression="zstd", compression_level=22)
    shutil.copy(folder / NOTE, out / NOTE)
    noted = json.loads((folder / NOTE).read_text())
    world = asdict(ASKED[name].world)
    world["what"] = world["what"].format(**noted)
    (out / WORLD).write_text(json.dumps(world, indent=1) + "\n")
    seal(out, kind=KIND, names=(NOTE, WORLD, LOGS, PAIRS, RESULTS))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=REPETITIONS)
    options.add_argument("--done", type=Path, default=DONE)
    asked = options.parse_args()
    for name in ASKED:
        folder = asked.done / name / f"shipped-{asked.repetitions}"
        if read_marker(folder) is None:
            print(f"{name}: {asked.repetitions} repetitions ...", file=sys.stderr, flush=True)
            run(name, asked.repetitions, folder)
        pack(name, folder, SHIPPED / name)


if __name__ == "__main__":
    main()
