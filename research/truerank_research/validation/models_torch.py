"""What models that learn with torch cost and find on KuaiRec, in two tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from truerank import models
from truerank.core.errors import extra
from truerank.core.log import Log
from truerank.models import NOTHING_BESIDE, Side
from truerank.models.settings import load
from truerank_research.pages import Page, Picture
from truerank_research.papers.splits import popular_first, ure_kuairec
from truerank_research.results import Measured
from truerank_research.runner import Run, Source, Study
from truerank_research.validation.fitting import alone, fit, peak_megabytes, recalls
from truerank_research.validation.kuairec import DATASET, block

TORCH = "torch"
BIASED = {"batch": "65536", "patience": "15", "epochs": "100"}
SAMPLED = {"mf-dns": {"batch": "16384"}, "lightgcn-dns": {"batch": "65536"}}  # a batch is a walk over the whole graph
LONGEST = {"patience": "10", "epochs": "25"}
QUICK = {"patience": "2", "epochs": "2"}
METHODS = ("", "-ips", "-dr", "-autodebias")
UNIFORM = 0.1  # share of the randomly exposed cells that is the slice


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A model with its settings (a piece); it learns from the `big` matrix or from the biased split of the block.

    DNS learns from positives; Bias, IPS, DR and AutoDebias need negatives, and a uniform slice.
    """

    model: str
    source: Source
    full: bool
    seed: int
    settings: tuple[tuple[str, str], ...] = ()
    big: bool = False

    @property
    def title(self) -> str:
        return self.model + "".join(f", {name}={value}" for name, value in self.settings if name not in BIASED)

    @property
    def name(self) -> str:
        return f"{'big' if self.big else 'small'} {self.title}"

    def table(self) -> pl.DataFrame:
        if self.settings:
            load(TORCH, install=extra(TORCH), who=self.model)
        return alone(measure_piece, self, fresh=self.full)


def measure_piece(piece: LearnedModel) -> Mapping[str, Any]:
    labels, positives = block(piece.source, full=piece.full, seed=piece.seed)
    log, side, truth = (positives, NOTHING_BESIDE, labels) if piece.big else biased(labels, seed=piece.seed)
    if piece.settings:
        load(TORCH, install=extra(TORCH), who=piece.model)  # loading it is no part of the time
    fitted = fit(models.make(piece.model, dict(piece.settings)), log, seed=piece.seed, side=side)
    megabytes = peak_megabytes()
    pool: dict[str, Any] = {"items": truth.items} if piece.big else {"candidates": truth}
    return {
        "model": piece.title, "big": piece.big, "processor": fitted.processor, "clock": fitted.clock,
        "epochs": fitted.epochs if piece.settings else None, "megabytes": megabytes,
        **recalls(piece.model, fitted.scores, truth, **pool),
        "rows": len(log), "cells": len(labels), "items": len(labels.items),
        "slice": 0 if side.random is None else len(side.random),
    }  # fmt: skip


def biased(labels: Log, *, seed: int) -> tuple[Log, Side, Log]:
    """41 % of the cells, popular items more often; a uniform slice of a tenth of 80 per user, not evaluated."""
    parts = ure_kuairec(labels, popular_first(labels), seed=seed, uniform=UNIFORM)
    return parts["train"], Side(random=parts["uniform"]), parts["full"]


def pieces(source: Source, *, full: bool, seed: int) -> list[LearnedModel]:
    """The task of both classes first; the quick size has a model of each kind."""

    def piece(model: str, *settings: Mapping[str, str], big: bool = False) -> LearnedModel:
        chosen = {name: value for each in settings for name, value in each.items()}
        return LearnedModel(model, source, full, seed, tuple(chosen.items()), big)

    if not full:
        return [
            piece("popularity"), piece("mf", BIASED, QUICK), piece("lightgcn-ips", BIASED, QUICK, {"biases": "true"}),
            piece("popularity", big=True), piece("mf-dns", SAMPLED["mf-dns"], QUICK, big=True),
        ]  # fmt: skip
    return [
        piece("popularity"),
        *(piece(f"mf{method}", BIASED) for method in METHODS),
        *(piece(f"lightgcn{method}", BIASED) for method in METHODS),
        *(piece(f"lightgcn{method}", BIASED, {"biases": "true"}) for method in METHODS),
        piece("popularity", big=True),
        *(piece(name, own, LONGEST, big=True) for name, own in SAMPLED.items()),
    ]


def measure(run: Run) -> Measured:
    """Seconds, memory and true recall of the models that learn with torch: from both classes, and from positives."""
    source, full, seed = run.source, run.full, run.seed
    # one after another, as they would share the cores, each in a process that it starts itself
    tables = replace(run, processes=1).tables(pieces(source, full=full, seed=seed), about="fitting models")
    rows = pl.concat(tables, how="vertical_relaxed")
    first, second = (rows.filter(pl.col("big") == big).row(0, named=True) for big in (False, True))
    return Measured(
        {"models": rows.drop("rows", "cells", "items", "slice").to_dicts()},
        {
            "share learnt from": first["rows"] / first["cells"], "slice": first["slice"],
            "pairs": second["rows"], "items": second["items"],
        },
    )  # fmt: skip


PAGE = Page(
    "Learned recommenders",
    "Models that learn with torch were trained on the biased split of KuaiRec's block "
    "({{ settings['share learnt from'] | percent(0) }} of its cells, with a uniform slice of "
    "{{ settings.slice | number }}) or on the {{ settings.pairs | number }} positive pairs of the big matrix, and "
    "evaluated on the rest of the block. Popularity is the first row of each. The best Recall@50 is "
    "{{ tables.models | map(attribute='recall@50') | max | number }}.",
    Picture(
        "Recall@50 on the block, with 95% intervals", "ranges", x="model", y="recall@50", low="low@50", high="high@50",
        group="big", y_title="Recall@50", table="models",
        labels={"True": "positives of the big matrix", "False": "biased split of the block"},
    ),
    "models",
    {
        "model": "model", "recall@5": "Recall@5", "recall@50": "Recall@50", "recall@500": "Recall@500",
        "processor": "processor seconds", "epochs": "epochs", "megabytes": "MB",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "models-torch", "What do learned models cost, and do they find more than popularity does?",
        measure, data=(DATASET,), minutes=25, page=PAGE,
    ),
)  # fmt: skip
