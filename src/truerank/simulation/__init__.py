"""Simulated datasets and feeds whose truth is known."""

from __future__ import annotations

from truerank.core.lazy_imports import export_stub

__getattr__, __dir__ = export_stub(__name__, __file__)
