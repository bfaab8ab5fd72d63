"""Times and true recall of the torch models on KuaiRec: writes docs/results/models-torch.md.

DNS learns from the positives of the big matrix; Bias, IPS, DR and AutoDebias need negatives and learn from a biased split
of the small matrix with its uniform slice. Each model is fitted in a process of its own. What is done is kept in a folder,
so an interrupted run goes on where it stopped; delete the folder to start again.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import kuairec
from result_pages import write_page
from truerank import models
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.data.read import read
from truerank.data.split import popular_first, ure_kuairec
from truerank.data.whole import whole_file
from truerank.evaluation.judged import evaluate
from truerank.metrics.recall import Recall
from truerank.models import Side

OUT = Path("docs/results/models-torch.md")
DONE = Path("build/torch-models-on-kuairec")
CUTOFFS = (5, 50, 500)
SEED = 0
BIASED = {"batch": "65536", "patience": "15", "epochs": "100"}
SAMPLED = {"mf-dns": {"batch": "16384"}, "lightgcn-dns": {"batch": "65536"}}  # a batch is a walk over the whole graph
LONGEST = {"patience": "10", "epochs": "25"}


@dataclass(frozen=True)
class Entry:
    """A model, its settings, and whether it learns from the big matrix or from the biased split of the small one."""

    name: str
    settings: dict[str, str]
    big: bool = False

    @property
    def title(self) -> str:
        return self.name + "".join(f", {key}={value}" for key, value in self.settings.items() if key not in BIASED)

    @property
    def path(self) -> Path:
        return DONE / f"{'big' if self.big else 'small'}-{self.title.replace(', ', '-')}.json"


def entries() -> list[Entry]:
    methods = ("", "-ips", "-dr", "-autodebias")
    return [
        Entry("popularity", {}),
        *(Entry(f"mf{method}", BIASED) for method in methods),
        *(Entry(f"lightgcn{method}", BIASED) for method in methods),
        *(Entry(f"lightgcn{method}", BIASED | {"biases": "true"}) for method in methods),
        Entry("popularity", {}, big=True),
        *(Entry(name, own | LONGEST, big=True) for name, own in SAMPLED.items()),
    ]


def block() -> Log:
    return read(kuairec.data_folder() / "kuairec" / "small_matrix_binary_grid.parquet", columns=kuairec.COLUMNS)


def biased(labels: Log) -> dict[str, Log]:
    """41 % of the cells, popular items more often; a uniform slice of a tenth of 80 per user, which is not evaluated."""
    return ure_kuairec(labels, popular_first(labels), seed=SEED, uniform=0.1)


def measure(entry: Entry, path: Path) -> None:
    """Fit one model, evaluate it, and keep what was found."""
    labels = block()
    if entry.big:
        file = kuairec.data_folder() / "kuairec" / "big_matrix_positives.parquet"
        log = read(pl.read_parquet(file).select("user_id", "video_id", label=pl.lit(1)), columns=kuairec.COLUMNS)
        side, truth = Side(), labels
    else:
        parts = biased(labels)
        log, side, truth = parts["train"], Side(random=parts["uniform"]), parts["full"]
    model = models.make(entry.name, entry.settings)
    if entry.settings:
        import torch  # noqa: F401  - loading it is no part of the time

    epochs = [0]

    def count(what: str, done: int, total: int) -> None:
        epochs[0] = done + 1

    wall, processor = time.perf_counter(), time.process_time()
    scores: Scores = model.fit(log, seed=SEED, side=side, progress=count)
    seconds = (time.perf_counter() - wall, time.process_time() - processor)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    metrics = [Recall(k) for k in CUTOFFS]
    if entry.big:
        found = evaluate({entry.name: scores}, truth, items=truth.items, metrics=metrics)
    else:
        found = evaluate({entry.name: scores}, truth, candidates=truth, metrics=metrics)
    row: dict[str, Any] = {
        "title": entry.title,
        "big": entry.big,
        "rows": len(log),
        "seconds": seconds,
        "epochs": epochs[0] if entry.settings else None,
        "megabytes": memory,
        "recall": {each.metric: [each.value, each.low, each.high] for each in found.estimates},
    }
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(row, indent=1))


def main() -> None:
    DONE.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    for entry in entries():
        if not entry.path.exists():
            print(f"{entry.title} ...", file=sys.stderr, flush=True)
            process = context.Process(target=measure, args=(entry, entry.path))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{entry.title} failed")
        write()


def write() -> None:
    """The page of what is done so far."""
    rows = [json.loads(entry.path.read_text()) for entry in entries() if entry.path.exists()]
    write_page(OUT, "models-torch", page(rows))


def page(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Learned models on KuaiRec",
        "",
        "Written by `scripts/torch_models_on_kuairec.py`; seed 0, settings not tuned. Times are of `fit` on one thread, without "
        "loading torch: processor seconds, and in brackets what the clock showed on a machine with other work. Memory is the "
        "peak up to the end of `fit`. Recall@K is the mean over users with a positive candidate, with 95 % intervals for the "
        "population of users. 17,827 unobserved cells of the small matrix count as negatives, as the files have them.",
        "",
        "## Positives and negatives: a biased split of the small matrix",
        "",
        "Trained on 41 % of the cells, drawn per user without replacement with weights exp(-k / 1000), k the item's rank by "
        "positives; the slice has 11,288 uniform cells of the rest, of which half estimates propensities or the meta loss and half "
        "decides when to stop. Candidates are the cells that are left. "
        f"Settings: {_text(BIASED)}.",
        "",
        *_table([row for row in rows if not row["big"]]),
        "",
        "LightGCN as published has no biases; with three layers it cannot express that most labels are 0 "
        "([why](../debiased-learners.md#lightgcn)).",
        "",
        "## Positives only: the big matrix",
        "",
        "Trained on the 846,253 positive pairs of the big matrix; a tenth of them decides when to stop. All 3,327 items of the small "
        f"matrix compete, none of whose cells is in the big one. Settings: {_text(LONGEST)}, batch=16384 for mf and 65536 for lightgcn.",
        "",
        *_table([row for row in rows if row["big"]]),
    ]
    return "\n".join(lines) + "\n"


def _text(settings: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def _table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| model | fit | epochs | memory | " + " | ".join(f"Recall@{k}" for k in CUTOFFS) + " |",
        "|---|---|---|---|" + "---|" * len(CUTOFFS),
    ]
    for row in rows:
        values = " | ".join(f"{v:.4f} ({low:.4f} to {high:.4f})" for v, low, high in row["recall"].values())
        wall, processor = row["seconds"]
        lines.append(
            f"| {row['title']} | {processor:.0f} s ({wall:.0f} s) | {row['epochs'] or ''} | {row['megabytes']:,.0f} MB | {values} |"
        )
    return lines


if __name__ == "__main__":
    main()
