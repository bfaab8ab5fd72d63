"""What other packages add: metrics, estimators, models, datasets and readers, found by their entry points.

A package names what it offers in its pyproject.toml, and it is there as soon as the package is installed:

    [project.entry-points."truerank.estimators"]
    corrected = "truerank_research.estimators.corrected:Corrected"

The groups are `truerank.metrics`, `truerank.estimators`, `truerank.models`, `truerank.datasets` (classes),
`truerank.readers` (functions from a path to a frame, named by the ending of the files they read) and
`truerank.protocols` (functions from a dataset's folder to the logs of a paper's split, by name). The environment
variable TRUERANK_PLUGINS=none leaves all of them out.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from truerank.core.errors import InputError

RESEARCH = "truerank-research"
INSTALL = "./research in a checkout of truerank"  # what pip has to install


@cache
def plugins(group: str) -> dict[str, Any]:
    """What installed packages offer in a group, by name."""
    from importlib.metadata import entry_points

    offered: dict[str, Any] = {}
    if os.environ.get("TRUERANK_PLUGINS") == "none":
        return offered
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.value
        try:
            offered[entry.name] = entry.load()
        except Exception as error:
            raise InputError(
                f"the package {package} offers {entry.name} ({group}), which cannot be loaded ({error}). "
                f"Repair or remove the package."
            ) from None
    return offered
