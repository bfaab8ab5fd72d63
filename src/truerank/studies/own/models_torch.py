"""What models that learn with torch cost and find on KuaiRec, in two tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from truerank import models
from truerank.core.errors import extra
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.data.split import popular_first, ure_kuairec
from truerank.models import NOTHING_BESIDE, Side
from truerank.models.settings import load
from truerank.studies.own.fitting import alone, fit, peak_megabytes, recalls
from truerank.studies.own.kuairec import DATASET, block
from truerank.studies.own.study import StudyTables
from truerank.studies.work import Keep, StudySize, StudySource

TORCH = "torch"
BIASED = {"batch": "65536", "patience": "15", "epochs": "100"}
SAMPLED = {"mf-dns": {"batch": "16384"}, "lightgcn-dns": {"batch": "65536"}}  # a batch is a walk over the whole graph
LONGEST = {"patience": "10", "epochs": "25"}
QUICK = {"patience": "2", "epochs": "2"}
METHODS = ("", "-ips", "-dr", "-autodebias")
UNIFORM = 0.1  # share of the randomly exposed cells that is the slice


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A model with its settings (a `WorkPiece`); it learns from the `big` matrix or from the biased split of the block.

    DNS learns from positives; Bias, IPS, DR and AutoDebias need negatives, and a uniform slice.
    """

    model: str
    source: StudySource
    size: StudySize
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
        return alone(measure, self, fresh=self.size is StudySize.FULL)


def measure(piece: LearnedModel) -> Mapping[str, Any]:
    labels, positives = block(piece.source, size=piece.size, seed=piece.seed)
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


def pieces(source: StudySource, *, size: StudySize, seed: int) -> list[LearnedModel]:
    """The task of both classes first; the quick size has a model of each kind."""

    def piece(model: str, *settings: Mapping[str, str], big: bool = False) -> LearnedModel:
        chosen = {name: value for each in settings for name, value in each.items()}
        return LearnedModel(model, source, size, seed, tuple(chosen.items()), big)

    if size is StudySize.QUICK:
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


@dataclass(frozen=True, slots=True)
class LearnedModelsStudy:
    """Seconds, memory and true recall of the models that learn with torch: from both classes, and from positives."""

    name: ClassVar[str] = "models-torch"
    about: ClassVar[str] = "What do learned models cost, and do they find more than popularity does?"
    data: ClassVar[tuple[str, ...]] = (DATASET,)
    minutes: ClassVar[float] = 25.0

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        del progress
        # one after another, as they would share the cores, each in a process that it starts itself
        tables = keep(pieces(source, size=size, seed=seed), about="fitting models", apart=False)
        rows = pl.concat(tables, how="vertical_relaxed")
        first, second = (rows.filter(pl.col("big") == big).row(0, named=True) for big in (False, True))
        return StudyTables(
            {"models": rows.drop("rows", "cells", "items", "slice").to_dicts()},
            {
                "share learnt from": first["rows"] / first["cells"], "slice": first["slice"],
                "pairs": second["rows"], "items": second["items"],
            },
        )  # fmt: skip
