"""truerank: which recommender is truly better, from data that shows only part of the truth.

Names load when they are first used, so that importing the package costs next to nothing; `__init__.pyi` lists them.
What belongs to a kind is in its submodule: `tr.metrics.Recall(10)`, or simply "Recall@10".
"""

from __future__ import annotations

from truerank.core.lazy_imports import export_stub
from truerank.version import __version__ as __version__

__getattr__, __dir__ = export_stub(__name__, __file__)
