"""Simulated datasets and feeds whose truth is known."""

from __future__ import annotations

from truerank.core.rooms import of_stub

__getattr__, __dir__ = of_stub(__name__, __file__)
