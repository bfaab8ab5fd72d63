"""The models of Tables 3 and 4: two backbones with five methods, the settings that are tried for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from truerank.models.recipes import (
    AutoDebias,
    Bias,
    DoublyRobustLearning,
    GraphConvolution,
    HardNegatives,
    IPSLearning,
    MatrixFactorisation,
    Method,
    Training,
)
from truerank.studies.papers.ure.block import UreBlock
from truerank.studies.papers.ure.training import WARM_UP, TrainedModel, random_autodebias, recipe_of, training_of
from truerank.studies.work import StudySize

BACKBONES: dict[str, Any] = {
    "MF": MatrixFactorisation(dimensions=10),
    "LightGCN": GraphConvolution(dimensions=32, layers=2),
}
WITH_BIASES = "LightGCN with biases"
ALL_BACKBONES: dict[str, Any] = {
    **BACKBONES,
    WITH_BIASES: GraphConvolution(dimensions=32, layers=2, biases=True),
}
METHODS: dict[str, Method] = {
    "Bias": Bias(),
    "IPS": IPSLearning(),
    "DR": DoublyRobustLearning(),
    "AutoDebias": AutoDebias(warm_up=WARM_UP, patient_from=WARM_UP),
    "NegS": HardNegatives(drawn=50, hardness=0.8),
}
SAMPLED = "NegS"
RATES = ((0.02, 0.001), (0.02, 0.01), (0.1, 0.01), (0.005, 0.01), (0.02, 0.1), (0.1, 0.001))  # and weight decays
SHARES = (0.8, 0.2, 0.5, 1.0, 0.1, 0.65)  # H / U of hard negatives


def batch_of(method: str, size: StudySize) -> dict[str, float]:
    """Hard negatives are drawn for positives alone, which are few: their batches are smaller."""
    if method != SAMPLED:
        return {}
    return {"batch": 8_192 if size is StudySize.FULL else 1_024}


def fixed_pieces(block: UreBlock, *, size: StudySize, seed: int) -> list[TrainedModel]:
    """One model for each backbone and method, with settings that are not tuned."""
    return [
        TrainedModel(
            f"{name} {method}",
            block,
            recipe_of(backbone, how, training_of(size, learning_rate=0.02, **batch_of(method, size))),
            seed,
        )
        for name, backbone in BACKBONES.items()
        for method, how in METHODS.items()
    ]


def tried(method: str, number: int, *, size: StudySize, seed: int) -> list[tuple[str, Method, Training]]:
    """The settings that are tried for a method, in words too: a grid, and for AutoDebias settings drawn at random."""
    found: list[tuple[str, Method, Training]] = []
    for at in range(number):
        rate, decay = RATES[at % len(RATES)]
        how = METHODS[method]
        if method == SAMPLED:
            how = replace(how, hardness=SHARES[at % len(SHARES)])  # type: ignore[type-var]
            rate, decay = RATES[0]
        if method == "AutoDebias":
            how, drawn, _ = random_autodebias(at, seed=seed)
            rate, decay = drawn["learning_rate"], drawn["weight_decay"]
        training = training_of(size, learning_rate=rate, weight_decay=decay, **batch_of(method, size))
        said = f"learning rate {rate:.2g}, weight decay {decay:.2g}"
        found.append((f"{said}, H/U {SHARES[at]:g}" if method == SAMPLED else said, how, training))
    return found
