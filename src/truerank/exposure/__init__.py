"""Layer 3: what was shown, and how likely."""

from __future__ import annotations

from typing import Any

from truerank.core.lazy_imports import export_classes


def _contents() -> tuple[Any, ...]:
    from truerank.exposure.interventions import STRATEGIES
    from truerank.exposure.kinds import EXPOSURES
    from truerank.exposure.logging_policies import LOGGERS
    from truerank.exposure.policies.rankers import exposures
    from truerank.exposure.policies.targets import ExposureColumn, RankColumn
    from truerank.exposure.propensities import fit_propensities
    from truerank.exposure.propensities.calibration import calibration

    return EXPOSURES, LOGGERS, STRATEGIES, RankColumn, ExposureColumn, exposures, fit_propensities, calibration


__getattr__, __dir__ = export_classes(__name__, _contents)
