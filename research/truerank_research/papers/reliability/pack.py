"""The studies that come with truerank for `advise`: KuaiRec and Jester in fewer scenarios, packed small.

`python -m truerank_research.papers.reliability.pack --data DIR --out DIR`.

What is packed are aggregates of scenarios alone, no row of the data, rounded to three significant digits.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import polars as pl

from truerank.core.metric import Metric
from truerank.io.atomic_write import FolderKind, whole_folder
from truerank.metrics.additive import Recall
from truerank.metrics.listwise import NDCG
from truerank.reliability import Grid, study
from truerank.reliability.studied import KIND, LOGS, NEEDED, NOTE, QUESTIONS, RESULTS, WORLD, StudiedDataset
from truerank_research.papers.reliability.data import SEED, fitted, scores_of, settings_of
from truerank_research.runner import Run, Source

DIGITS = 3
FOLDER = FolderKind(KIND, (*NEEDED, NOTE, WORLD))
MADE_BY = "truerank_research, with the models of experiment E-S0 (untuned)"


@dataclass(frozen=True, slots=True)
class ShippedScenarios:
    """The scenarios of a world that are shipped: sparser logs than the paper's, as people have them; fewer sizes."""

    sparsities: tuple[float, ...]
    sizes: tuple[int, ...]
    metrics: tuple[Metric, ...]
    world: StudiedDataset

    def grid(self, repetitions: int) -> Grid:
        return Grid.from_names(
            sparsities=self.sparsities, sizes=self.sizes, metrics=self.metrics, repetitions=repetitions
        )


SYNTHETIC = ShippedScenarios(
    (0.5, 0.9),
    (5, 20),
    (NDCG(10),),
    StudiedDataset("synthetic", "{users:,} users of a made world", "truerank simulate", "none", MADE_BY),
)
SCENARIOS: Mapping[str, ShippedScenarios] = {
    "kuairec": ShippedScenarios(
        (0.3, 0.5, 0.7, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995),
        (5, 20, 100, 500),
        (Recall(10), NDCG(10), NDCG(100)),
        StudiedDataset(
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
        StudiedDataset(
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


def pack_studies(run: Run) -> list[Path]:
    """Study every dataset and pack it, or continue; the packed folders, named after the datasets."""
    assert run.folder is not None
    packed = []
    for setting in settings_of(run):
        data, studied = setting.data(run.source), run.folder / f"{setting.name}-study"
        scores = scores_of(fitted(run, setting, seed=SEED), data.world)
        grid = SCENARIOS[setting.name].grid(10 if run.full else 1)
        resamples = 1000 if run.full else 50
        study(
            scores, data.world, studied, grid=grid, train=data.train, seed=SEED, resamples=resamples,
            threads=run.processes,
        )  # fmt: skip
        packed.append(run.folder / setting.name)
        pack(studied, packed[-1], world=SCENARIOS[setting.name].world)
    return packed


def pack(studied: Path, out: Path, *, world: StudiedDataset) -> None:
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


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), help="A folder with both; simulated without it.")
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--quick", is_flag=True)
@click.option("--processes", default=1, show_default=True)
def main(data: Path | None, out: Path, processes: int, *, quick: bool) -> None:
    """Pack the studies that advise uses."""
    for folder in pack_studies(Run(Source(data), not quick, SEED, out, processes)):
        click.echo(folder)


if __name__ == "__main__":
    main()
