"""Matrix factorisation, plain and with each method (docs/debiased-learners.md)."""

from __future__ import annotations

from truerank.models.learned import learned
from truerank.models.recipes import (
    AutoDebias,
    Bias,
    DoublyRobustLearning,
    HardNegatives,
    IPSLearning,
    MatrixFactorisation,
)

MF = learned("MF", "mf", backbone=MatrixFactorisation, method=Bias, module=__name__)
MFIPS = learned("MFIPS", "mf-ips", backbone=MatrixFactorisation, method=IPSLearning, module=__name__)
MFDR = learned("MFDR", "mf-dr", backbone=MatrixFactorisation, method=DoublyRobustLearning, module=__name__)
MFAutoDebias = learned(
    "MFAutoDebias", "mf-autodebias", backbone=MatrixFactorisation, method=AutoDebias, module=__name__
)
MFDNS = learned("MFDNS", "mf-dns", backbone=MatrixFactorisation, method=HardNegatives, module=__name__)
