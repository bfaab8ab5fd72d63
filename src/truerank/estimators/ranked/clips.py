"""What a clip limits in the weight of a row: the ratio of two exposures, or (paper 3) the inverse of the log's."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator


class Limited(StrEnum):
    """What a clip m limits, with ε the exposure of a row under the target and ε0 that under the log.

    RATIO    w = min(m, ε/ε0): the weights of the logging policy itself stay 1 at every m from 1, so that its value is
             what it has earned
    INVERSE  w = ε · min(m, 1/ε0) (paper 3, section 6.2): at m = 1 the raw label times ε; items that the log shows far
             down lose weight even where the target shows them as far down
    """

    RATIO = "ratio"
    INVERSE = "inverse"

    def left(self, gain: Floats, target: Floats) -> Floats:
        """What a weight is made of that the clip leaves alone, times a gain."""
        return gain if self is Limited.RATIO else gain * target

    def limited(self, target: Floats, inverse: Floats) -> Floats:
        """What the clip limits, of exposures ε and 1/ε0."""
        return target * inverse if self is Limited.RATIO else inverse

    def weights(self, target: Floats, inverse: Floats, clip: float | Floats) -> Floats:
        """The weights of rows.

        >>> shown, inverse = np.array([0.5, 1.0]), np.array([4.0, 2.0])
        >>> Limited.RATIO.weights(shown, inverse, 1.5).tolist(), Limited.INVERSE.weights(shown, inverse, 3.0).tolist()
        ([1.5, 1.5], [1.5, 2.0])
        """
        if self is Limited.RATIO:
            return np.asarray(np.minimum(target * inverse, clip), dtype=np.float64)
        return np.asarray(target * np.minimum(inverse, clip), dtype=np.float64)


def limited_by(estimator: Estimator) -> Limited:
    """What a clip of an estimator limits; the ratio where it has no weights."""
    limits: Limited = getattr(estimator, "of", Limited.RATIO)
    return limits
