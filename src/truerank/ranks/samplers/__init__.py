"""Samplers of negatives as values: Skew(100) == Skew(100), and `Skew@100` parses back; `ranks.sampling` draws.

A new sampler is one new module here; `catalogue` and the law tests find it by themselves. Its number of negatives is
`n`, where it has one; other fields are options whose types list what is allowed.

>>> from truerank.ranks.samplers.skew import Skew
>>> parse("Skew@100") == Skew(100), str(Skew.released(5)), parse(str(Skew.released(5))) == Skew.released(5)
(True, 'Skew@5(favours=popular,positives=drawn)', True)
"""

from __future__ import annotations

from truerank.ranks.samplers.draw import SAMPLERS as SAMPLERS

catalogue = SAMPLERS.catalogue
parse = SAMPLERS.parse
