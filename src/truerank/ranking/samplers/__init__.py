"""Samplers of negatives as values: SkewSampler(100) == SkewSampler(100), and `Skew@100` parses back; `draw` draws.

A new sampler is one new module here; `catalogue` and the law tests find it by themselves. Its number of negatives is
`n`, where it has one; other fields are options whose types list what is allowed.

>>> from truerank.ranking.samplers.weighted import SkewSampler
>>> parse("Skew@100") == SkewSampler(100), str(SkewSampler.released(5))
(True, 'Skew@5(favours=popular,positives=drawn)')
>>> parse("Skew@5(favours=popular,positives=drawn)") == SkewSampler.released(5)
True
"""

from __future__ import annotations

from truerank.core.lazy_imports import export_classes
from truerank.ranking.samplers.draw import SAMPLERS as SAMPLERS

catalogue = SAMPLERS.catalogue
parse = SAMPLERS.parse
__getattr__, __dir__ = export_classes(__name__, lambda: (SAMPLERS,))
