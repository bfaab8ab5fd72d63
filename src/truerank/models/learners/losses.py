"""Losses of a score against a label between 0 and 1."""

from __future__ import annotations

from typing import Protocol

import torch
from torch.nn.functional import softplus

from truerank.models.recipes import PointwiseLoss


class Fit(Protocol):
    """How far a score is from a label; `predicted` puts a score on the scale of labels."""

    def loss(self, score: torch.Tensor, label: torch.Tensor) -> torch.Tensor: ...
    def predicted(self, score: torch.Tensor) -> torch.Tensor: ...
    def imputed(self, score: torch.Tensor, error: torch.Tensor) -> torch.Tensor: ...


class LogLoss:
    """ℓ(s, y) = ln(1 + eˢ) - y s: binary cross-entropy of σ(s); y may lie between 0 and 1."""

    def loss(self, score: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return softplus(score) - label * score

    def predicted(self, score: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(score)

    def imputed(self, score: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
        """The label that a predicted error stands for; the loss has a minimum only for labels between 0 and 1."""
        return (self.predicted(score.detach()) + error).clamp(0.0, 1.0)


class SquaredLoss:
    """ℓ(s, y) = (s - (2y - 1))²: labels are -1 and 1, as in AutoDebias's code."""

    def loss(self, score: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return torch.square(score - (2.0 * label - 1.0))

    def predicted(self, score: torch.Tensor) -> torch.Tensor:
        return (score + 1.0) / 2.0

    def imputed(self, score: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
        return self.predicted(score.detach()) + error


FITS: dict[PointwiseLoss, Fit] = {PointwiseLoss.BCE: LogLoss(), PointwiseLoss.MSE: SquaredLoss()}
