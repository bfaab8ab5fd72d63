"""Where real data is, and KuaiRec's block, for scripts that have not moved into the package."""

from __future__ import annotations

import os
from pathlib import Path

from truerank.studies.coverage import ObservedWorld
from truerank.studies.own.kuairec import COLUMNS, observed, svd
from truerank.studies.work import StudySize, StudySource

__all__ = ["COLUMNS", "data_folder", "svd", "truth"]


def data_folder() -> Path:
    """Where real data is: TRUERANK_DATA, or beside the project."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("TRUERANK_DATA", default))


def truth() -> ObservedWorld:
    """Every cell of the 1,411 x 3,327 block, ranked by two scorers."""
    return observed(StudySource(data_folder()), size=StudySize.FULL, seed=0)[0]
