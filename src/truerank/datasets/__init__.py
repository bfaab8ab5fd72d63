"""Loaders of public datasets: files as they are published -> logs. The data itself is never part of the library.

A new dataset is one new class in a module here; `catalogue` finds it by itself.
"""

from __future__ import annotations

from truerank.core.language import Kind
from truerank.core.lazy_imports import export_classes
from truerank.datasets.dataset import Dataset

DATASETS: Kind[Dataset] = Kind("dataset", __name__, Dataset, group="truerank.datasets")
catalogue = DATASETS.catalogue
named = DATASETS.named
__getattr__, __dir__ = export_classes(__name__, lambda: (DATASETS,))
