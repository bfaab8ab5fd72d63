"""What recommenders cost and find on KuaiRec: fitted to its big matrix, tested on its fully observed block."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from truerank import models
from truerank.core.log import Log
from truerank.models import Labels, Side
from truerank_research.pages import Page, Picture
from truerank_research.results import Measured
from truerank_research.runner import Run, Source, Study
from truerank_research.validation.fitting import alone, fit, peak_megabytes, recalls, settings_text
from truerank_research.validation.kuairec import DATASET, block

CATEGORIES = 10  # of items of a synthetic world


@dataclass(frozen=True, slots=True)
class PositivesModel:
    """A model with its settings (a piece), fitted and evaluated; `features` adds the categories of items."""

    model: str
    source: Source
    full: bool
    seed: int
    settings: tuple[tuple[str, str], ...] = ()
    features: bool = False

    @property
    def name(self) -> str:
        chosen = settings_text(dict(self.settings))
        return self.model + f" ({chosen})" * bool(chosen) + " with item categories" * self.features

    def table(self) -> pl.DataFrame:
        return alone(measure_piece, self, fresh=self.full)


def measure_piece(piece: PositivesModel) -> Mapping[str, Any]:
    labels, train = block(piece.source, full=piece.full, seed=piece.seed)
    side = Side(item_features=categories(piece.source, train)) if piece.features else Side()
    fitted = fit(models.make(piece.model, dict(piece.settings)), train, seed=piece.seed, side=side)
    start = time.process_time()
    found = recalls(piece.model, fitted.scores, labels, items=labels.items)
    seconds = time.process_time() - start
    return {
        "model": piece.name, "pairs": len(train), "users": len(labels.users), "items": len(labels.items),
        "fit": fitted.processor, "evaluate": seconds, "megabytes": peak_megabytes(), **found,
    }  # fmt: skip


def categories(source: Source, train: Log) -> pl.DataFrame:
    """The categories of items; those of a synthetic world say nothing."""
    if source.is_synthetic:
        return pl.DataFrame({"item": train.items.values, "categories": np.arange(len(train.items)) % CATEGORIES})
    return pl.read_parquet(source.path(DATASET) / "item_categories.parquet").rename({"video_id": "item"})


def pieces(source: Source, *, full: bool, seed: int) -> list[PositivesModel]:
    """Every model that learns from positives without torch, as its defaults have it, and the variants worth a row.

    Of models that learn from values nothing is left here: every listed value is a 1.
    """
    plain = [
        PositivesModel(name, source, full, seed)
        for name, each in models.catalogue().items()
        if each.labels in {Labels.NOTHING, Labels.POSITIVES} and each.needs != "torch"
    ]
    return [
        *plain,
        PositivesModel("sar", source, full, seed, (("similarity", "jaccard"),)),
        PositivesModel("ease", source, full, seed, (("regularisation", "500"),)),
        PositivesModel("lightfm", source, full, seed, features=True),
    ]


def measure(run: Run) -> Measured:
    """Seconds, memory and true recall of every recommender that learns from positives."""
    source, full, seed = run.source, run.full, run.seed
    # one after another, as they would share the cores, each in a process that it starts itself
    tables = replace(run, processes=1).tables(pieces(source, full=full, seed=seed), about="fitting models")
    rows = pl.concat(tables)
    world = {name: rows[name][0] for name in ("pairs", "users", "items")}
    return Measured({"models": rows.drop(*world).to_dicts()}, {**world, "cores": os.cpu_count()})


PAGE = Page(
    "Cost and recall of recommenders",
    "Every recommender was fitted to the {{ settings.pairs | number }} positive pairs of KuaiRec's big matrix and "
    "evaluated on its fully observed block of {{ settings.users | number }} users and {{ settings['items'] | number }} "
    "items. Recall@50 is between {{ tables.models | map(attribute='recall@50') | min | number }} and "
    "{{ tables.models | map(attribute='recall@50') | max | number }}. Fitting takes at most "
    "{{ tables.models | map(attribute='fit') | max | number }} seconds of processor time.",
    Picture(
        "Recall@50 on all {{ settings['items'] | number }} items, with 95% intervals", "ranges", x="model",
        y="recall@50", low="low@50", high="high@50", y_title="Recall@50", table="models",
    ),
    "models",
    {
        "model": "model", "recall@5": "Recall@5", "recall@50": "Recall@50", "recall@500": "Recall@500",
        "fit": "seconds to fit", "evaluate": "seconds to evaluate", "megabytes": "MB",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "models", "What do recommenders cost, and how much of what users like do they find?",
        measure, data=(DATASET,), minutes=6, page=PAGE,
    ),
)  # fmt: skip
