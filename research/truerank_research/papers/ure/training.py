"""Models of the experiments as pieces of work: their settings, their training, and their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.rng import generator
from truerank.models import Side
from truerank_research.claims import printed_table
from truerank_research.learners.recipes import (
    AutoDebias,
    Backbone,
    Bias,
    DoublyRobustLearning,
    GraphConvolution,
    HardNegatives,
    IPSLearning,
    MatrixFactorisation,
    Method,
    Recipe,
    Training,
)
from truerank_research.papers.ure.data import Block, CoatBlock, Split, coat_split, recall_at, traditional

BATCH, EPOCHS, PATIENCE, LEAST_GAIN, WARM_UP = 16_384, 200, 5, 1e-4, 4
BACKBONES: dict[str, Backbone] = {
    "MF": MatrixFactorisation(dimensions=10),
    "LightGCN": GraphConvolution(dimensions=32, layers=2),
}
NEGS = "NegS"
YAHOO_BATCH = 4_096
# KuaiRec: Recall@5̄ (also of Table 3), Recall@5, URE@5, URE@500, Recall@500; Yahoo!R3: Recall@5̄, URE@5, URE@500
TABLE_4 = printed_table("""
MF Bias | .3546 .0215 .0213 .3280 .3237 .7085 .0131 .6777
MF IPS | .3102 .0213 .0230 .2771 .2743 .6572 .0095 .6236
MF DR | .5465 .0353 .0362 .5077 .5050 .7195 .0075 .6879
MF AutoDebias | .5482 .0355 .0352 .5129 .5097 .8085 .0550 .7849
MF NegS | .5358 .0327 .0326 .5052 .5012 .8330 .0490 .8001
LightGCN Bias | .4859 .0257 .0267 .4503 .4482 .7883 .0491 .7680
LightGCN IPS | .4889 .0266 .0273 .4539 .4522 .7584 .0457 .7367
LightGCN DR | .4849 .0262 .0267 .4500 .4457 .7576 .0455 .7373
LightGCN AutoDebias | .5181 .0317 .0323 .4571 .4558 .8046 .0592 .7820
LightGCN NegS | .5288 .0237 .0245 .4954 .4944 .8141 .0616 .7913""")
METHODS: dict[str, Method] = {
    "Bias": Bias(),
    "IPS": IPSLearning(),
    "DR": DoublyRobustLearning(),
    "AutoDebias": AutoDebias(warm_up=WARM_UP, patient_from=WARM_UP),
    NEGS: HardNegatives(drawn=50, hardness=0.8),
}
RATES = ((0.02, 0.001), (0.02, 0.01), (0.1, 0.01), (0.005, 0.01), (0.02, 0.1), (0.1, 0.001))  # and weight decays
HARDNESS = (0.8, 0.2, 0.5, 1.0, 0.1, 0.65)  # H / U of hard negatives


def train_model(block: Block | CoatBlock, recipe: Recipe, seed: int) -> pl.DataFrame:
    """Factors of all users and items, item biases as a last column, the validation AUC and the number of epochs.

    A training that diverges gives a table without rows.
    """
    from truerank_research.learners.train import train

    log, uniform = block.training_data()
    width = recipe.backbone.dimensions + 1
    try:
        model = train(recipe, log, seed=seed, side=Side(random=uniform))
    except InputError as error:
        if "diverged" not in str(error):
            raise
        return factor_table(np.empty((0, width)), np.empty((0, width)))
    bias = np.zeros(len(model.item_factors)) if model.item_bias is None else np.ravel(model.item_bias)
    users = np.column_stack([model.user_factors, np.ones(len(model.user_factors))])
    factors, aucs = np.column_stack([model.item_factors, bias]), model.validation_auc
    return factor_table(users, factors, auc=aucs[model.best_epoch - 1], epochs=len(aucs))


def factor_table(users: Floats, items: Floats, *, auc: float = float("nan"), epochs: int = 0) -> pl.DataFrame:
    values = np.concatenate([users, items]).astype(np.float32)
    kinds = {"user": np.arange(len(values)) < len(users), "auc": np.full(len(values), auc)}
    columns = {f"f{column}": values[:, column] for column in range(values.shape[1])}
    return pl.DataFrame(kinds | columns).with_columns(epochs=pl.lit(epochs))


def positions_of(table: pl.DataFrame, split: Split) -> Ints:
    """The rank of every candidate by the scores of a trained model."""
    is_user, values = table["user"].to_numpy(), table.drop("user", "auc", "epochs").to_numpy()
    return split.positions(values[is_user], values[~is_user])


def training_of(*, full: bool, **settings: float) -> Training:
    """How a model is trained: until a tenth of the biased log stops it (A-35: the paper does not say what does)."""
    batch, epochs = (BATCH, EPOCHS) if full else (2_048, 2)
    usual = {"batch": batch, "epochs": epochs, "patience": PATIENCE, "least_gain": LEAST_GAIN}
    return Training(**{**usual, **settings}, biased_validation=True)  # type: ignore[arg-type]


def on_random_part(block: CoatBlock, table: pl.DataFrame, cutoffs: Sequence[int]) -> dict[str, float]:
    """The traditional scheme and the URE estimate on the one random part; the truth is not known."""
    split, labelled = coat_split(block)
    position = positions_of(table, split)
    alone = np.where(labelled, position, position.shape[1] + 1)  # items without a label are no candidates
    ure = recall_at(position, split.label, cutoffs)
    return {"Recall@5̄": float(traditional(alone, split.label, [5])[0])} | {
        f"URE@{k}": float(value) for k, value in zip(cutoffs, ure, strict=True)
    }


def small_batches(recipe: Recipe, batch: int) -> Recipe:
    """For logs of fewer rows than KuaiRec's."""
    return replace(recipe, training=replace(recipe.training, batch=batch))


def recipe_of(backbone: Backbone, method: Method, training: Training) -> Recipe:
    return Recipe(f"{type(backbone).__name__} with {type(method).__name__}", backbone, method, training)


def _batch(method: str, *, full: bool) -> dict[str, float]:
    """Hard negatives are drawn for positives alone, which are few: their batches are smaller."""
    return {"batch": 4_096 if full else 1_024} if method == NEGS else {}


def tuning_recipe(backbone: Backbone, method: str, number: int, *, full: bool, seed: int) -> Recipe:
    """One of the settings that are tried for a method: a grid; for AutoDebias drawn at random.

    The two models of doubly robust learning have the same rate and decay, as in AutoDebias's settings of it.
    """
    how: Any = METHODS[method]
    rate, decay = RATES[0 if method == NEGS else number % len(RATES)]
    if method == NEGS:
        how = replace(how, hardness=HARDNESS[number % len(HARDNESS)])
    if method == "DR":
        how = replace(how, imputation_rate=rate, imputation_decay=decay)
    if method == "AutoDebias":
        how, settings = random_autodebias(number, seed=seed)
        rate, decay = settings["learning_rate"], settings["weight_decay"]
    batch = _batch(method, full=full)
    return recipe_of(backbone, how, training_of(full=full, learning_rate=rate, weight_decay=decay, **batch))


def random_autodebias(number: int, *, seed: int) -> tuple[AutoDebias, dict[str, float]]:
    """One of many configurations of method and training, each a function of its number alone.

    Rates, steps and decays are drawn with uniform logarithms: those of the method over the range in which tuning
    searches, the learning rate from 0.01 to 0.1 and its weight decay from 0.0001 to 0.1.
    """
    rng = generator(seed, f"AutoDebias {number}")

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    names = ("step", "row_rate", "row_decay", "pair_rate", "pair_decay", "label_rate", "label_decay")
    method = AutoDebias(
        imputed=between(1e-3, 1), warm_up=WARM_UP, patient_from=WARM_UP, **{name: between(1e-4, 1e-1) for name in names}
    )
    training = {"learning_rate": between(1e-2, 1e-1), "weight_decay": between(1e-4, 1e-1)}
    return method, training


def size_settings(split: Split) -> dict[str, Any]:
    return {"users": len(split.count), "candidates per user": round(split.n_candidates, 1)}
