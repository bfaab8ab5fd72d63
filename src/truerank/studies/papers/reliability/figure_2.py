"""E-S1: whether a sample can tell models apart (figure 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import ClaimFinding, Paper, PaperClaim
from truerank.studies.papers.reliability import PAPER
from truerank.studies.papers.reliability.questions import as_paper, claims_of, measured, verdicts
from truerank.studies.papers.reliability.rules import RESOLUTION
from truerank.studies.work import Keep, StudySize, StudySource

CLAIMS = claims_of("Q1")


@dataclass(frozen=True, slots=True)
class ResolutionOfSamplers:
    """Q1: ties of models."""

    name: ClassVar[str] = "E-S1"
    about: ClassVar[str] = "How often models tie, by sampler, sample size and log."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 2",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec", "jester")
    minutes: ClassVar[float] = 6
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = as_paper(CLAIMS, figure="Figure 2")

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        return measured(RESOLUTION, CLAIMS, source, size=size, seed=seed, keep=keep, progress=progress)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        return verdicts(obtained, CLAIMS)
