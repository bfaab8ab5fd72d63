"""Times and true recall of models trained on KuaiRec's big matrix: writes docs/results/models.md.

Each model is fitted in a process of its own, so that its processor time and memory are its own. What is done is kept in a folder,
so an interrupted run goes on where it stopped; delete the folder to start again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import kuairec
from result_pages import bare, write_page
from truerank import models
from truerank.core.log import Log
from truerank.data.read import read
from truerank.data.whole import whole_file
from truerank.evaluation.judged import evaluate
from truerank.metrics.recall import Recall
from truerank.models import Labels, Side

OUT = Path("docs/results/models.md")
LEARNED = OUT.with_name("models-torch.md")
DONE = Path("build/models-on-kuairec")
CUTOFFS = (5, 50, 500)
SEED = 0


@dataclass(frozen=True)
class Entry:
    """A model with its settings; `features` adds the item categories."""

    name: str
    settings: dict[str, str] = field(default_factory=dict)
    features: bool = False

    @property
    def title(self) -> str:
        chosen = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return self.name + (f" ({chosen})" if chosen else "") + (" with item categories" if self.features else "")


def entries() -> list[Entry]:
    """Every model that learns from positives without torch, as its defaults have it, and the variants worth a row.

    Of models that learn from values nothing is left here: every listed value is a 1.
    """
    plain = [
        Entry(name)
        for name, each in models.catalogue().items()
        if each.labels in (Labels.NOTHING, Labels.POSITIVES) and each.needs != "torch"
    ]
    variants = [
        Entry("sar", {"similarity": "jaccard"}),
        Entry("ease", {"regularisation": "500"}),
        Entry("lightfm", features=True),
    ]
    return plain + variants


def train() -> Log:
    folder = kuairec.data_folder() / "kuairec"
    liked = pl.read_parquet(folder / "big_matrix_positives.parquet").select("user_id", "video_id", label=pl.lit(1))
    return read(liked, columns=kuairec.COLUMNS)


def categories() -> Side:
    folder = kuairec.data_folder() / "kuairec"
    return Side(item_features=pl.read_parquet(folder / "item_categories.parquet").rename({"video_id": "item"}))


def measure(entry: Entry, path: Path) -> None:
    """Fit one model, evaluate it on every pair of the small matrix, and keep what was found."""
    log, side = train(), categories() if entry.features else Side()
    model = models.make(entry.name, entry.settings)
    start = time.process_time()
    scores = model.fit(log, seed=SEED, side=side)
    seconds = time.process_time() - start
    labels = read(kuairec.data_folder() / "kuairec" / "small_matrix_binary_grid.parquet", columns=kuairec.COLUMNS)
    start = time.process_time()
    found = evaluate({entry.name: scores}, labels, items=labels.items, metrics=[Recall(k) for k in CUTOFFS])
    row: dict[str, Any] = {
        "title": entry.title,
        "pairs": len(log),
        "fit_seconds": seconds,
        "evaluate_seconds": time.process_time() - start,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "recall": {each.metric: [each.value, each.low, each.high] for each in found.estimates},
    }
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(row, indent=1))


def main() -> None:
    DONE.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    rows = []
    for entry in entries():
        path = DONE / f"{entry.title.replace(' ', '_')}.json"
        if not path.exists():
            print(f"{entry.title} ...", file=sys.stderr, flush=True)
            process = context.Process(target=measure, args=(entry, path))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{entry.title} failed")
        rows.append(json.loads(path.read_text()))
    write_page(OUT, "models", page(rows) + learned())


def learned() -> str:
    """The page of the torch models, which has a script of its own, as a part of this one."""
    if not LEARNED.exists():
        return ""
    text = (
        bare(LEARNED.read_text())
        .replace("\n## ", "\n### ")
        .replace("# Learned models on KuaiRec", "## Learned models", 1)
    )
    return f"\n{text}"


def page(rows: list[dict[str, Any]]) -> str:
    total = sum(row["fit_seconds"] for row in rows)
    lines = [
        "# Recommenders on KuaiRec",
        "",
        "Written by `make models-on-kuairec`. Trained on the positive pairs of the big matrix "
        f"({rows[0]['pairs']:,}; watch ratio above 2), evaluated on every cell of the small matrix (1,411 users x 3,327 items, of "
        "which the big matrix has none): mean Recall@K over users with a positive, all items compete, with 95 % "
        "intervals for the population of users. Settings are the defaults, not tuned; seed 0. 17,827 unobserved cells of the small "
        "matrix count as negatives, as the files have them.",
        "",
        "The order is that of this task: no pair of the block is in the training data, so all that is known of a user lies outside the "
        "items to rank. EASE, ALS and iALS fit 0 to every unlisted pair, those of the block among them; that the block is "
        "empty says how the data was cut and nothing about taste. PosPop equals popularity here, and averages of values that are all 1 rank nothing.",
        "",
        f"Fitting all of them took {total / 60:.1f} minutes of processor time, each in a process of its own (als on {os.cpu_count()} cores, the others "
        "on one); memory is the peak of that process, evaluation included.",
        "",
        "| model | fit | evaluate | memory | " + " | ".join(f"Recall@{k}" for k in CUTOFFS) + " |",
        "|---|---|---|---|" + "---|" * len(CUTOFFS),
    ]
    for row in sorted(rows, key=lambda row: -float(row["recall"]["Recall@50"][0])):
        values = " | ".join(f"{v:.4f} ({low:.4f} to {high:.4f})" for v, low, high in row["recall"].values())
        lines.append(
            f"| {row['title']} | {row['fit_seconds']:.1f} s | {row['evaluate_seconds']:.1f} s | "
            f"{row['peak_megabytes']:,.0f} MB | {values} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
