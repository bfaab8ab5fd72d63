"""The studies that come with the package: KuaiRec and Jester in fewer scenarios, packed small.

What is packed are aggregates of scenarios alone, no row of the data, rounded to three significant digits.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.core.metric import Metric
from truerank.core.progress import Progress, Watching
from truerank.data.folders import FolderKind, whole_folder
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.studies.kept import fingerprints, run_in
from truerank.studies.papers.reliability.studied import RESAMPLES, fitted, scores_of
from truerank.studies.papers.reliability.worlds import SEED, StudiedSetting, settings_of
from truerank.studies.reliability import Grid, study
from truerank.studies.reliability.advising import WORLD, StudiedWorld
from truerank.studies.reliability.folder import KIND, LOGS, NOTE, RESULTS
from truerank.studies.reliability.studied import NEEDED, QUESTIONS
from truerank.studies.work import Keep, StudySize, StudySource
from truerank.version import __version__

DATASETS = ("kuairec", "jester")
REPETITIONS = {StudySize.FULL: 10, StudySize.QUICK: 1}
DIGITS = 3
FOLDER = FolderKind(KIND, (*NEEDED, NOTE, WORLD))
MADE_BY = "truerank study pack, with the models of experiment E-S0 (untuned)"


@dataclass(frozen=True, slots=True)
class ShippedScenarios:
    """The scenarios of a world that are shipped: sparser logs than the paper's, as people have them; fewer sizes."""

    sparsities: tuple[float, ...]
    sizes: tuple[int, ...]
    metrics: tuple[Metric, ...]
    world: StudiedWorld

    def grid(self, repetitions: int) -> Grid:
        return Grid.of(sparsities=self.sparsities, sizes=self.sizes, metrics=self.metrics, repetitions=repetitions)


SYNTHETIC = ShippedScenarios(
    (0.5, 0.9),
    (5, 20),
    (NDCG(10),),
    StudiedWorld("synthetic", "{users:,} users of a made world", "truerank simulate", "none", MADE_BY),
)
SCENARIOS: Mapping[str, ShippedScenarios] = {
    "kuairec": ShippedScenarios(
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
    "jester": ShippedScenarios(
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
    "synthetic": SYNTHETIC,
    "small": SYNTHETIC,
}


def pack_studies(
    source: StudySource,
    folder: Path,
    *,
    size: StudySize,
    processes: int | None = None,
    progress: Watching = None,
) -> tuple[list[Path], tuple[str, ...]]:
    """Study every world and pack it, or go on with it: the packed folders, and what was amiss in what was there.

    Each is a folder of the world's name in `folder`, beside its study and the scores of models that it was made of.
    """
    asked: Mapping[str, Any] = {
        "pack": [each.name for each in settings_of(source, size)], "size": str(size),
        "data": fingerprints("pack", DATASETS, source), "truerank": __version__,
    }  # fmt: skip

    def work(keep: Keep, say: Progress | None) -> list[Path]:
        made = []
        for setting in settings_of(source, size):
            studied = folder / f"{setting.name}-study"
            _study(setting, source, studied, size=size, keep=keep, threads=processes, progress=say)
            made.append(folder / setting.name)
            pack(studied, made[-1], world=SCENARIOS[setting.name].world)
        return made

    return run_in(folder, work, asked=asked, what="packing of studies", processes=processes, progress=progress)


def _study(
    setting: StudiedSetting, source: StudySource, folder: Path, *, size: StudySize, keep: Keep, threads: int | None,
    progress: Progress | None,
) -> None:  # fmt: skip
    data = setting.data(source)
    scores = scores_of(tuple(fitted(source, setting, keep, seed=SEED).items()), data.world)
    grid = SCENARIOS[setting.name].grid(REPETITIONS[size])
    study(
        scores, data.world, folder, grid=grid, train=data.train, seed=SEED, resamples=RESAMPLES[size], threads=threads,
        progress=progress,
    )  # fmt: skip


def pack(studied: Path, out: Path, *, world: StudiedWorld) -> None:
    """The tables of a finished study that advice needs, rounded, with what was studied and where it comes from.

    Another pack in `out` is replaced. What is said of the world may name what the study noted, such as {users}.
    """
    noted = msgspec.json.decode((studied / NOTE).read_bytes(), type=dict[str, Any])
    described = asdict(world) | {"what": world.what.format(**noted)}
    with whole_folder(out, kind=FOLDER, force=True) as part:
        for table, columns in NEEDED.items():
            found = pl.read_parquet(studied / table).select(columns)
            if table == RESULTS:
                found = found.filter(pl.col("question").is_in(QUESTIONS))
            figures = pl.selectors.float().exclude("sparsity")
            rounded = found if table == LOGS else found.with_columns(figures.round_sig_figs(DIGITS))
            rounded.write_parquet(part / table, compression="zstd", compression_level=22)
        shutil.copy(studied / NOTE, part / NOTE)
        (part / WORLD).write_bytes(msgspec.json.format(msgspec.json.encode(described), indent=1) + b"\n")
