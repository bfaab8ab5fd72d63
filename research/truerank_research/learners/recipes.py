"""What the learned models are put together from, without torch: a backbone, a method and a way of training.

A backbone says what a score is; a method says which loss is minimised, and what it needs. Each is a small frozen value
whose torch side stands in `networks` or `debiasing`, so that `truerank train --list` lists all without torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from truerank.core.values import Count, CountFrom0, NotNegative, Positive, Probability
from truerank.models import Labels


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

    loss: Annotated[PointwiseLoss, "what is minimised for a row"] = PointwiseLoss.BCE
    optimiser: Annotated[Descent, "how steps are taken"] = Descent.ADAM
    learning_rate: Annotated[Positive, "of the optimiser"] = 0.01
    weight_decay: Annotated[NotNegative, "weight of ½(‖p_u‖² + ‖q_i‖²) of each row"] = 0.01
    batch: Annotated[Count, "rows of a batch; large ones are faster and take more memory"] = 1024
    epochs: Annotated[Count, "passes over the rows, at most"] = 500
    patience: Annotated[Count, "epochs without a better validation AUC after which training stops"] = 60
    least_gain: Annotated[NotNegative, "rise of the validation AUC above which an epoch is better"] = 0.0
    biased_validation: Annotated[bool, "stop by a tenth of the log even where there is a random slice"] = False
    threads: Annotated[Count, "threads of torch; bits are promised for one"] = 1


# ----------------------------------------------------------------------------------------------------------- backbones


@dataclass(frozen=True, slots=True)
class MatrixFactorisation:
    """s = p_u · q_i + b_u + b_i, without a global mean."""

    summary: ClassVar[str] = "Matrix factorisation with biases"
    dimensions: Annotated[Count, "numbers that describe a user and an item"] = 10


@dataclass(frozen=True, slots=True)
class GraphConvolution:
    """s = e_u · e_i, e the mean of layers 0 ... L of embeddings propagated over the graph of positives."""

    summary: ClassVar[str] = "LightGCN"
    dimensions: Annotated[Count, "numbers that describe a user and an item"] = 64
    layers: Annotated[CountFrom0, "steps over the graph"] = 3
    biases: Annotated[bool, "add b_u + b_i to the score"] = False


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
    imputation_rate: Annotated[Positive, "learning rate of the imputation model"] = 0.01
    imputation_decay: Annotated[NotNegative, "weight decay of the imputation model"] = 0.1
    imputation_dimensions: Annotated[CountFrom0, "size of the imputation model; 0: that of the model"] = 0


@dataclass(frozen=True, slots=True)
class AutoDebias(Method):
    """Weights and imputed labels learned so that one step on them helps on the random slice (Chen et al. 2021)."""

    summary: ClassVar[str] = "weights and imputed labels learned from a random slice (AutoDebias)"
    beside: ClassVar[Beside] = Beside.SLICE
    imputed: Annotated[NotNegative, "weight of the imputed part of the loss"] = 0.05
    step: Annotated[Positive, "size of the assumed step"] = 0.001
    row_rate: Annotated[Positive, "learning rate of the weights of rows"] = 0.01
    row_decay: Annotated[NotNegative, "weight decay of the same"] = 0.01
    pair_rate: Annotated[Positive, "learning rate of the weights of pairs"] = 0.001
    pair_decay: Annotated[NotNegative, "weight decay of the same"] = 0.01
    label_rate: Annotated[Positive, "learning rate of the imputed labels"] = 0.1
    label_decay: Annotated[NotNegative, "weight decay of the same"] = 0.0001
    warm_up: Annotated[CountFrom0, "epochs before the weights are learned"] = 20
    patient_from: Annotated[CountFrom0, "epochs before patience is counted; 50 in AutoDebias's code"] = 20


@dataclass(frozen=True, slots=True)
class HardNegatives(Method):
    """For each positive, the hardest of some random negatives: DNS(H, U) (Shi et al. 2023)."""

    summary: ClassVar[str] = "each positive against the hardest of some random items, DNS(H, U)"
    labels: ClassVar[Labels] = Labels.POSITIVES
    drawn: Annotated[Count, "U: items drawn for each positive"] = 50
    hardness: Annotated[Probability, "H / U: share of them that is kept, highest scores first"] = 0.2

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
