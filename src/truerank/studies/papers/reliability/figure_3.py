"""E-S2: whether a sample keeps what all candidates of a log say (figure 3)."""

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
from truerank.studies.papers.reliability.rules import FIDELITY
from truerank.studies.work import Keep, StudySize, StudySource

CLAIMS = claims_of("Q2")


@dataclass(frozen=True, slots=True)
class FidelityOfSamplers:
    """Q2: a sample against all candidates of the same log."""

    name: ClassVar[str] = "E-S2"
    about: ClassVar[str] = "Agreement of sampled with full evaluation on the same log."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 3",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec", "jester")
    minutes: ClassVar[float] = 6
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = as_paper(CLAIMS, figure="Figure 3")

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        return measured(FIDELITY, CLAIMS, source, size=size, seed=seed, keep=keep, progress=progress)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        return verdicts(obtained, CLAIMS)
