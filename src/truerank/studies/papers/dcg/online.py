"""E-D3 and E-D4: what the paper measured on its platform (Table 2, Figure 1), which nobody outside can run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from truerank.core.errors import InputError
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.studies.papers.dcg import PAPER
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import ClaimFinding, Paper, PaperClaim
from truerank.studies.work import Keep, StudySize, StudySource

INSTEAD = "it needs the logs of a platform with 40 million users, which are not public; E-D5 simulates one."
RULE = "Cannot be tested: the logs are not public."


def _refused(name: str) -> InputError:
    return InputError(f"{name} cannot be run here: {INSTEAD}")


@dataclass(frozen=True, slots=True)
class OnlineCorrelation:
    """Daily offline estimates against daily online reward, on the authors' platform."""

    name: ClassVar[str] = "E-D3"
    about: ClassVar[str] = "Correlation of daily offline estimates with daily online reward, on a real platform."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 2",)}
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 0.0
    instead: ClassVar[str] = INSTEAD
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim("platform-dcg", "On the platform DCG correlates with online reward.", "Table 2", RULE),
        PaperClaim("platform-ndcg", "On the platform nDCG correlates negatively with online reward.", "Table 2", RULE),
    )

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        raise _refused(self.name)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        raise _refused(self.name)


@dataclass(frozen=True, slots=True)
class OnlineSensitivity:
    """How often true improvements are found offline, over clips, on the authors' platform."""

    name: ClassVar[str] = "E-D4"
    about: ClassVar[str] = (
        "How many true improvements offline estimates find, by the clip of weights, on a real platform."
    )
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Figure 1",)}
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 0.0
    instead: ClassVar[str] = INSTEAD
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "platform-sensitivity",
            "On the platform DCG finds more improvements than nDCG at most clips.",
            "Figure 1",
            RULE,
        ),
    )

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        raise _refused(self.name)

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        raise _refused(self.name)
