"""The experiments of five papers, run again: one folder for each paper, one module for each experiment.

A new experiment is one new module: `truerank reproduce list`, its pages and the tests find it by themselves.
"""

from __future__ import annotations

from typing import Any

from truerank.core.rooms import room


def _contents() -> tuple[Any, ...]:
    from truerank.studies.papers.experiment import EXPERIMENTS

    return (EXPERIMENTS,)


__getattr__, __dir__ = room(__name__, _contents)
