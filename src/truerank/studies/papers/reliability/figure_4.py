"""E-S3: whether a sampler says the same when part is hidden (figure 4)."""

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
from truerank.studies.papers.reliability.rules import ROBUSTNESS
from truerank.studies.work import Keep, StudySize, StudySource

CLAIMS = claims_of("Q3", "I.1")


@dataclass(frozen=True, slots=True)
class RobustnessOfSamplers:
    """Q3: the same sampler with and without exposure bias."""

    name: ClassVar[str] = "E-S3"
    about: ClassVar[str] = "Agreement of a sampler on a biased log with itself where everything is shown."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 4",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec", "jester")
    minutes: ClassVar[float] = 6
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = as_paper(CLAIMS, figure="Figure 4")

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        return measured(ROBUSTNESS, CLAIMS, source, size=size, seed=seed, keep=keep, progress=progress)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        return verdicts(obtained, CLAIMS)
