"""What the figures of the sampler paper show at n = 1,000, read off to ±0.005; ~ where lines hide one another.

Figures 2 to 5 (nDCG@100 on KuaiRec); an empty cell is hidden behind another line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truerank_research.papers.reliability.figures import FIDELITY, POWER, RESOLUTION, ROBUSTNESS

LOGGERS = {"Uni": "uniform", "Pop": "popularity", "Pos": "positivity"}
TABLES = {
    RESOLUTION: """
| Full | Random@e | Exposed | Skew | Positivity | WTDH
Uni 0 | ~.045 | .045 | | .021 | .015 | .037
Uni 50 | .073 | .049 | | .029 | .025 | .043
Uni 85 | .236 | .067 | | | | .108
Uni 95 | .498 | .029 | .028 | .271 | .293 | .246
Pop 50 | .073 | .051 | .048 | .031 | .027 | .044
Pop 95 | .426 | .027 | .026 | .276 | .293 | .232
Pos 50 | .050 | .041 | | .020 | .017 | .038
Pos 90 | .099 | .012 | .011 | .033 | .029 | .048
Pos 95 | .165 | .0014 | .0012 | .066 | | .075""",
    FIDELITY: """
| Exposed | Random@e | Random | Skew | Popularity | Positivity | WTDH
Uni 0 | ~1 | .995 | .827 | .810 | .791 | .706 | .758
Uni 10 | .945 | .953 | .822 | .810 | | .710 | .763
Uni 50 | ~.83 | .834 | .793 | .786 | | .706 | .739
Uni 90 | .639 | .630 | .736 | .729 | | .715 | .687
Uni 95 | ~.57 | .573 | .741 | .734 | | ~.73 | .691
Pop 0 | 1 | 1 | ~.827 | .817 | .796 | .725 | .827
Pop 10 | ~.95 | .953 | ~.83 | .820 | .682 | .734 | .834
Pop 50 | .843 | .872 | .831 | .808 | .767 | .744 | .815
Pop 95 | .606 | .625 | .782 | .791 | | | .744
Pos 10 | .959 | .952 | ~.83 | .809 | .637 | .728 | .828
Pos 50 | .835 | .871 | .845 | .804 | .788 | .766 | .826
Pos 95 | .632 | .699 | .828 | | .816 | | .807""",
    ROBUSTNESS: """
| Full | Exposed | Random@e | Random | Skew | Popularity | Positivity | WTDH
Uni 10 | .929 | ~.91 | .912 | .867 | .839 | .831 | .782 | .903
Uni 50 | .763 | ~.75 | .741 | .748 | .734 | .722 | .639 | .827
Uni 95 | .401 | .340 | .330 | .390 | .380 | | .283 | .506
Pop 10 | .938 | .924 | .910 | .874 | .848 | .725 | .801 | .862
Pop 50 | .782 | .765 | .739 | | .748 | .706 | .660 | .727
Pop 95 | ~.49 | .354 | .411 | .492 | .430 | | .335 | .523
Pos 10 | .990 | .957 | .950 | .940 | .857 | .671 | .838 | .883
Pos 50 | .895 | .821 | .816 | .842 | | .768 | .754 | .809
Pos 95 | .668 | .480 | .561 | .675 | .604 | .592 | .532 | .702""",
    POWER: """
| Full | Exposed | Random@e | Random | Skew | Popularity | Positivity | WTDH
Uni 10 | .929 | .912 | .905 | .810 | .801 | | .691 | .753
Uni 50 | .763 | .748 | .734 | ~.72 | | | .592 | .715
Uni 85 | .549 | | .518 | ~.53 | .525 | | .406 | .592
Uni 95 | .401 | .340 | .330 | ~.37 | .366 | | .261 | .456
Pop 10 | .938 | .924 | .910 | ~.81 | | .701 | .720 | .803
Pop 50 | .782 | .758 | .739 | .717 | .725 | .708 | .639 | .694
Pop 95 | .492 | ~.355 | .411 | .475 | .425 | | .354 | .501
Pos 10 | .990 | .955 | .947 | ~.82 | .809 | .640 | .725 | .821
Pos 50 | .895 | .821 | .814 | .790 | .780 | | .747 | .766
Pos 95 | .668 | .480 | .561 | .651 | .589 | .604 | .580 | .678""",
}


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A value that was read off a figure."""

    question: str
    logger: str
    sparsity: float
    sampler: str
    value: float
    text: str


def published() -> Iterator[PublishedFigure]:
    """All values that could be read.

    >>> first = next(published())
    >>> first.logger, first.sparsity, first.sampler, first.value
    ('uniform', 0.0, 'Full', 0.045)
    """
    for question, table in TABLES.items():
        head, *rows = table.strip().splitlines()
        samplers = [each.strip() for each in head.split("|")[1:]]
        for row in rows:
            where, *texts = (each.strip() for each in row.split("|"))
            logger, sparsity = where.split()
            for sampler, text in zip(samplers, texts, strict=True):
                if text:
                    value = float(text.removeprefix("~"))
                    yield PublishedFigure(question, LOGGERS[logger], int(sparsity) / 100, sampler, value, text)
