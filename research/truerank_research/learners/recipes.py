"""What the learned models are put together from, without torch: a backbone, a method and a way of training.

A backbone says what a score is; a method says which loss is minimised, and what it needs. Each is a small frozen value
whose torch side stands in `networks` or `debiasing`, so that `truerank train --list` lists all without torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from truerank.models import Labels, LogUniform, OneOf, setting

RATES = OneOf((1e-4, 1e-3, 1e-2, 1e-1))


class PointwiseLoss(StrEnum):
    """How far a score is from a label.

    BCE  binary cross-entropy of the score as a logit, ln(1 + eˢ) - y s
    MSE  squared error with labels -1 and 1, (s - (2y - 1))²: AutoDebias's code
    """

    BCE = "bce"
    MSE = "mse"


class Descent(StrEnum):
    """How steps are taken down the gradient.

    ADAM  Adam, as the URE paper says
    SGD   plain steps along the gradient: the base models of AutoDebias's code
    """

    ADAM = "adam"
    SGD = "sgd"


class Beside(StrEnum):
    """What a method needs beside the log.

    NOTHING     a random slice, if given, only decides when training stops
    PROPENSITY  a column of propensities in the log, or a random slice from which they are estimated
    SLICE       a random slice
    """

    NOTHING = "nothing"
    PROPENSITY = "propensities, or a random slice"
    SLICE = "a random slice"


class Method:
    """Which loss is minimised (`debiasing.OBJECTIVES` has its torch side). `about` completes "<backbone>, ..."."""

    __slots__ = ()
    summary: ClassVar[str]
    labels: ClassVar[Labels] = Labels.BOTH
    beside: ClassVar[Beside] = Beside.NOTHING


@dataclass(frozen=True, slots=True)
class Training:
    """Gradient descent on batches of rows; the best epoch by validation AUC is kept."""

    loss: PointwiseLoss = setting(PointwiseLoss.BCE, "what is minimised for a row")
    optimiser: Descent = setting(Descent.ADAM, "how steps are taken")
    learning_rate: float = setting(0.01, "of the optimiser", above=0, search=RATES)
    weight_decay: float = setting(0.01, "weight of ½(‖p_u‖² + ‖q_i‖²) of each row", least=0, search=RATES)
    batch: int = setting(1024, "rows of a batch; large ones are faster and take more memory", least=1)
    epochs: int = setting(500, "passes over the rows, at most", least=1)
    patience: int = setting(60, "epochs without a better validation AUC after which training stops", least=1)
    least_gain: float = setting(0.0, "rise of the validation AUC above which an epoch is better", least=0)
    biased_validation: bool = setting(False, "stop by a tenth of the log even where there is a random slice")
    threads: int = setting(1, "threads of torch; bits are promised for one", least=1)


# ----------------------------------------------------------------------------------------------------------- backbones


@dataclass(frozen=True, slots=True)
class MatrixFactorisation:
    """s = p_u · q_i + b_u + b_i, without a global mean."""

    summary: ClassVar[str] = "Matrix factorisation with biases"
    dimensions: int = setting(10, "numbers that describe a user and an item", least=1, search=OneOf((10, 32, 64)))


@dataclass(frozen=True, slots=True)
class GraphConvolution:
    """s = e_u · e_i, e the mean of layers 0 ... L of embeddings propagated over the graph of positives."""

    summary: ClassVar[str] = "LightGCN"
    dimensions: int = setting(64, "numbers that describe a user and an item", least=1, search=OneOf((32, 64)))
    layers: int = setting(3, "steps over the graph", least=0, search=OneOf((1, 2, 3)))
    biases: bool = setting(False, "add b_u + b_i to the score", search=OneOf((False, True)))


Backbone = MatrixFactorisation | GraphConvolution


# ------------------------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True, slots=True)
class Bias(Method):
    """The mean loss of the rows as they are: what is seen stands for what is not."""

    summary: ClassVar[str] = "trained on the log as it is"


@dataclass(frozen=True, slots=True)
class IPSLearning(Method):
    """Each row's loss times 1 / its propensity (Schnabel et al. 2016, eq. 8)."""

    summary: ClassVar[str] = "each row weighted by 1 / its propensity"
    beside: ClassVar[Beside] = Beside.PROPENSITY


@dataclass(frozen=True, slots=True)
class DoublyRobustLearning(Method):
    """Imputed errors of all pairs, corrected by the rows that were seen (Wang et al. 2019, joint learning)."""

    summary: ClassVar[str] = "doubly robust: imputed errors of all pairs, corrected where rows were seen"
    beside: ClassVar[Beside] = Beside.PROPENSITY
    imputation_rate: float = setting(0.01, "learning rate of the imputation model", above=0, search=RATES)
    imputation_decay: float = setting(0.1, "weight decay of the imputation model", least=0, search=RATES)
    imputation_dimensions: int = setting(0, "size of the imputation model; 0: that of the model", least=0)


@dataclass(frozen=True, slots=True)
class AutoDebias(Method):
    """Weights and imputed labels learned so that one step on them helps on the random slice (Chen et al. 2021)."""

    summary: ClassVar[str] = "weights and imputed labels learned from a random slice (AutoDebias)"
    beside: ClassVar[Beside] = Beside.SLICE
    imputed: float = setting(0.05, "weight of the imputed part of the loss", least=0, search=LogUniform(1e-3, 1))
    step: float = setting(0.001, "size of the assumed step", above=0, search=LogUniform(1e-4, 1e-1))
    row_rate: float = setting(0.01, "learning rate of the weights of rows", above=0, search=LogUniform(1e-4, 1e-1))
    row_decay: float = setting(0.01, "weight decay of the same", least=0, search=LogUniform(1e-4, 1e-1))
    pair_rate: float = setting(0.001, "learning rate of the weights of pairs", above=0, search=LogUniform(1e-4, 1e-1))
    pair_decay: float = setting(0.01, "weight decay of the same", least=0, search=LogUniform(1e-4, 1e-1))
    label_rate: float = setting(0.1, "learning rate of the imputed labels", above=0, search=LogUniform(1e-4, 1e-1))
    label_decay: float = setting(0.0001, "weight decay of the same", least=0, search=LogUniform(1e-4, 1e-1))
    warm_up: int = setting(20, "epochs before the weights are learned", least=0)
    patient_from: int = setting(20, "epochs before patience is counted; 50 in AutoDebias's code", least=0)


@dataclass(frozen=True, slots=True)
class HardNegatives(Method):
    """For each positive, the hardest of some random negatives: DNS(H, U) (Shi et al. 2023)."""

    summary: ClassVar[str] = "each positive against the hardest of some random items, DNS(H, U)"
    labels: ClassVar[Labels] = Labels.POSITIVES
    drawn: int = setting(50, "U: items drawn for each positive", least=1, search=OneOf((50, 100, 200)))
    hardness: float = setting(
        0.2, "H / U: share of them that is kept, highest scores first", above=0, most=1,
        search=OneOf((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    )  # fmt: skip

    @property
    def kept(self) -> int:
        """H = max(1, round(U · share)), halves upwards.

        >>> HardNegatives(drawn=50, hardness=0.1).kept, HardNegatives(drawn=3, hardness=0.1).kept
        (5, 1)
        """
        return max(1, int(self.drawn * self.hardness + 0.5))


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model taken apart again; `name` is for messages."""

    name: str
    backbone: Backbone
    method: Method
    training: Training
