"""What recommenders cost and find on KuaiRec: fitted to its big matrix, tested on its fully observed block."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from truerank import models
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.models import Labels, Side
from truerank.studies.own.fitting import alone, fit, peak_megabytes, recalls, settings_text
from truerank.studies.own.kuairec import DATASET, block
from truerank.studies.own.study import StudyTables
from truerank.studies.work import Keep, StudySize, StudySource

CATEGORIES = 10  # of items of a synthetic world


@dataclass(frozen=True, slots=True)
class PositivesModel:
    """A model with its settings (a `WorkPiece`), fitted and evaluated; `features` adds the categories of items."""

    model: str
    source: StudySource
    size: StudySize
    seed: int
    settings: tuple[tuple[str, str], ...] = ()
    features: bool = False

    @property
    def name(self) -> str:
        chosen = settings_text(dict(self.settings))
        return self.model + f" ({chosen})" * bool(chosen) + " with item categories" * self.features

    def table(self) -> pl.DataFrame:
        return alone(measure, self, fresh=self.size is StudySize.FULL)


def measure(piece: PositivesModel) -> Mapping[str, Any]:
    labels, train = block(piece.source, size=piece.size, seed=piece.seed)
    side = Side(item_features=categories(piece.source, train)) if piece.features else Side()
    fitted = fit(models.make(piece.model, dict(piece.settings)), train, seed=piece.seed, side=side)
    start = time.process_time()
    found = recalls(piece.model, fitted.scores, labels, items=labels.items)
    seconds = time.process_time() - start
    return {
        "model": piece.name, "pairs": len(train), "users": len(labels.users), "items": len(labels.items),
        "fit": fitted.processor, "evaluate": seconds, "megabytes": peak_megabytes(), **found,
    }  # fmt: skip


def categories(source: StudySource, train: Log) -> pl.DataFrame:
    """The categories of items; those of a synthetic world say nothing."""
    if source.is_synthetic:
        return pl.DataFrame({"item": train.items.values, "categories": np.arange(len(train.items)) % CATEGORIES})
    return pl.read_parquet(source.place(DATASET) / "item_categories.parquet").rename({"video_id": "item"})


def pieces(source: StudySource, *, size: StudySize, seed: int) -> list[PositivesModel]:
    """Every model that learns from positives without torch, as its defaults have it, and the variants worth a row.

    Of models that learn from values nothing is left here: every listed value is a 1.
    """
    plain = [
        PositivesModel(name, source, size, seed)
        for name, each in models.catalogue().items()
        if each.labels in {Labels.NOTHING, Labels.POSITIVES} and each.needs != "torch"
    ]
    return [
        *plain,
        PositivesModel("sar", source, size, seed, (("similarity", "jaccard"),)),
        PositivesModel("ease", source, size, seed, (("regularisation", "500"),)),
        PositivesModel("lightfm", source, size, seed, features=True),
    ]


@dataclass(frozen=True, slots=True)
class ModelsStudy:
    """Seconds, memory and true recall of every recommender that learns from positives."""

    name: ClassVar[str] = "models"
    about: ClassVar[str] = "What do recommenders cost, and how much of what users like do they find?"
    data: ClassVar[tuple[str, ...]] = (DATASET,)
    minutes: ClassVar[float] = 6.0

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        del progress
        # one after another, as they would share the cores, each in a process that it starts itself
        tables = keep(pieces(source, size=size, seed=seed), about="fitting models", apart=False)
        rows = pl.concat(tables)
        world = {name: rows[name][0] for name in ("pairs", "users", "items")}
        return StudyTables({"models": rows.drop(*world).to_dicts()}, {**world, "cores": os.cpu_count()})
