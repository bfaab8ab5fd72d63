"""Results of experiments with the verdicts and pictures that their numbers give by the rules as they are now."""

from __future__ import annotations

from docs.making.files import DOCS
from truerank.report.papers.pages import read_results
from truerank.studies.papers.reproduced import told_again

FOLDER = "results/reproduced"


def made() -> dict[str, bytes]:
    """The results by their place in docs; their numbers stay as they were obtained."""
    return {f"{FOLDER}/{name}": told_again(result).encoded() for name, result in read_results(DOCS / FOLDER).items()}
