"""Models of URE's experiments as pieces that are kept: trained on the split of a block, each a table of its factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator
from truerank.core.errors import InputError, extra
from truerank.core.log import Log
from truerank.models import Side
from truerank.models.recipes import AutoDebias, Backbone, MatrixFactorisation, Method, Recipe, Training
from truerank.models.settings import load
from truerank.studies.papers.ure.block import UreBlock, UreSplit
from truerank.studies.work import StudySize

BATCH, EPOCHS, PATIENCE, WARM_UP = 65_536, 12, 6, 4
QUICK_EPOCHS = 2


class LearningBlock(Protocol):
    """Where a biased log and a random slice come from."""

    def learning(self) -> tuple[Log, Log]: ...


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A piece: factors of all users and items, item biases as a last column, and the AUC of the rows that decide.

    A training that diverges leaves a table without rows.
    """

    name: str
    block: LearningBlock
    recipe: Recipe
    seed: int

    def table(self) -> pl.DataFrame:
        load("torch", install=extra("torch"), who=self.recipe.name)
        from truerank.models.learners.train import train

        log, uniform = self.block.learning()
        width = self.recipe.backbone.dimensions + 1
        try:
            found = train(self.recipe, log, seed=self.seed, side=Side(random=uniform))
        except InputError as error:
            if "diverged" not in str(error):
                raise
            return _table(np.empty((0, width)), np.empty((0, width)), auc=float("nan"), epoch=0)
        bias = np.zeros(len(found.item_factors)) if found.item_bias is None else np.ravel(found.item_bias)
        user = np.column_stack([found.user_factors, np.ones(len(found.user_factors))])
        item = np.column_stack([found.item_factors, bias])
        return _table(user, item, auc=max(found.validation_auc), epoch=found.best_epoch)


def _table(user: Floats, item: Floats, *, auc: float, epoch: int) -> pl.DataFrame:
    values = np.concatenate([user, item]).astype(np.float32)
    side = {"user": np.arange(len(values)) < len(user), "auc": np.full(len(values), auc)}
    epochs = {"epoch": np.full(len(values), epoch)}
    return pl.DataFrame(side | epochs | {f"f{at}": values[:, at] for at in range(values.shape[1])})


def trained(table: pl.DataFrame) -> bool:
    """Whether training ended with finite scores."""
    return table.height > 0


def positions_of(table: pl.DataFrame, split: UreSplit) -> Ints:
    """The rank of every candidate by the scores of a kept model."""
    names = [name for name in table.columns if name[0] == "f" and name[1:].isdigit()]
    of_user = table["user"].to_numpy()
    values = table.select(names).to_numpy()
    return split.positions(values[of_user], values[~of_user])


def training_of(size: StudySize, **settings: float) -> Training:
    """How a model is trained: large batches and few epochs, so that many can be."""
    full = size is StudySize.FULL
    usual: dict[str, float] = {
        "batch": BATCH if full else 2_048,
        "epochs": EPOCHS if full else QUICK_EPOCHS,
        "patience": PATIENCE,
    }
    return Training(**{**usual, **settings})  # type: ignore[arg-type]


def recipe_of(backbone: Backbone, method: Method, training: Training) -> Recipe:
    return Recipe(f"{type(backbone).__name__} with {type(method).__name__}", backbone, method, training)


# ------------------------------------------------------------------------------------------- AutoDebias drawn at random


def random_autodebias(number: int, *, seed: int) -> tuple[AutoDebias, dict[str, float], int]:
    """One of many configurations: method, settings of training, dimensions; each a function of its number alone.

    Rates, steps and decays are drawn with uniform logarithms: those of the method over the range in which tuning
    searches, the learning rate from 0.001 to 0.1 and its weight decay from 0.0001 to 0.1.
    """
    rng = generator(seed, f"AutoDebias {number}")

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    names = ("step", "row_rate", "row_decay", "pair_rate", "pair_decay", "label_rate", "label_decay")
    method = AutoDebias(
        imputed=between(1e-3, 1), warm_up=WARM_UP, patient_from=WARM_UP, **{name: between(1e-4, 1e-1) for name in names}
    )
    training = {"learning_rate": between(1e-3, 1e-1), "weight_decay": between(1e-4, 1e-1)}
    return method, training, int(rng.choice([8, 16, 32, 64]))


def autodebias_pieces(block: UreBlock, number: int, *, size: StudySize, seed: int) -> list[TrainedModel]:
    """AutoDebias models whose settings are drawn at random, each with a seed of its own."""
    found = []
    for at in range(number):
        method, settings, dimensions = random_autodebias(at, seed=seed)
        recipe = recipe_of(MatrixFactorisation(dimensions=dimensions), method, training_of(size, **settings))
        found.append(TrainedModel(f"autodebias {at:02d}, λ = {block.scale:g}", block, recipe, seed + at))
    return found


def kept_positions(tables: Sequence[pl.DataFrame], split: UreSplit) -> list[Ints]:
    """Ranks by every model whose training did not diverge."""
    return [positions_of(table, split) for table in tables if trained(table)]
