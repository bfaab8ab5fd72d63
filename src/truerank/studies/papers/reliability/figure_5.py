"""E-S4: whether a sample of a biased log recovers the truth (figure 5)."""

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
from truerank.studies.papers.reliability.rules import POWER
from truerank.studies.work import Keep, StudySize, StudySource

CLAIMS = claims_of("Q4", "C", "I.2", "I.3")


@dataclass(frozen=True, slots=True)
class PowerOfSamplers:
    """Q4: a sample of a biased log against the truth."""

    name: ClassVar[str] = "E-S4"
    about: ClassVar[str] = "Agreement of sampled evaluation on a biased log with the truth, and the conclusions."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 5",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec", "jester")
    minutes: ClassVar[float] = 6
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = as_paper(CLAIMS, figure="Figure 5")

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        return measured(POWER, CLAIMS, source, size=size, seed=seed, keep=keep, progress=progress)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        return verdicts(obtained, CLAIMS)
