"""Estimators for ranked logs: (RankedChunk, Exposures) -> Terms per session.

A new one is one new module here; the catalogue and the command line find it by themselves.
"""

from __future__ import annotations

from truerank.core.estimator import Estimator, Exposed
from truerank.core.language import Kind
from truerank.estimators.ranked.base import RankedEstimator


def _ranked(cls: type[Estimator]) -> bool:
    return Exposed.RANKED in cls.about.exposures


RANKED: Kind[RankedEstimator] = Kind("estimator", __name__, RankedEstimator, among=_ranked, group="truerank.estimators")
catalogue = RANKED.catalogue
named = RANKED.named
parse = RANKED.parse
