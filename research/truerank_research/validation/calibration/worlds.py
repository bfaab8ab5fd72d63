"""The worlds of the study."""

from __future__ import annotations

from truerank_research.validation.calibration.judged_worlds import JudgedWorld
from truerank_research.validation.calibration.ranked_worlds import RankedWorld

World = JudgedWorld | RankedWorld

WEIGHED = ("ips", "snips", "doubly-robust")
FITTED = ("ips", "snips")
STRATA = ("post-stratified", "assisted")
URE = ("published",)
RANKED = ("ips", "snips", "doubly-robust")
OF_PAIRS = ("AP@20(denominator=cutoff)", "AUC")
ON_FULL_LABELS = ("Recall@20", "nDCG@20", "AP@20")


def worlds() -> tuple[World, ...]:
    """Few users and many, equal and unequal numbers of judged items, few users with anything relevant, and more."""
    return (
        *(JudgedWorld(f"users {n}", n) for n in (5, 10, 20, 50, 200, 1000)),
        *(JudgedWorld(f"judged 1 to 200, users {n}", n, judged=None) for n in (20, 50, 200, 1000)),
        *(
            JudgedWorld(f"active {share:.0%}, users {n}", n, active=share)
            for n, share in ((50, 0.1), (200, 0.01), (200, 0.03), (200, 0.1), (1000, 0.01), (1000, 0.03), (1000, 0.1))
        ),
        *(JudgedWorld(f"ties, users {n}", n, ties=True) for n in (20, 200)),
        *(JudgedWorld(f"exclusions, users {n}", n, excluded=120) for n in (20, 200)),
        *(JudgedWorld(f"design, users {n}", n, interval="design") for n in (10, 50, 200)),
        *(JudgedWorld(f"designed, users {n}", n, designed=True) for n in (20, 50, 200)),
        *(JudgedWorld(f"bootstrap, users {n}", n, interval="bootstrap") for n in (20, 200)),
        *(JudgedWorld(f"biased, users {n}", n, biased=True, estimators=WEIGHED) for n in (20, 50, 200, 1000)),
        *(
            JudgedWorld(f"rare items, users {n}", n, biased=True, rare=0.15, estimators=WEIGHED)
            for n in (50, 200, 1000)
        ),
        *(JudgedWorld(f"fitted, users {n}", n, biased=True, fitted=True, estimators=FITTED) for n in (50, 200)),
        *(JudgedWorld(f"strata, users {n}", n, estimators=STRATA) for n in (20, 50, 200, 1000)),
        JudgedWorld("strata, judged 1 to 200, users 200", 200, judged=None, estimators=STRATA),
        JudgedWorld("strata, active 3%, users 1000", 1000, active=0.03, estimators=STRATA),
        JudgedWorld("strata, design, users 50", 50, interval="design", estimators=STRATA),
        JudgedWorld("strata, biased, users 200", 200, biased=True, estimators=STRATA),
        *(JudgedWorld(f"pairs, users {n}", n, metrics=OF_PAIRS, estimators=("pairs",)) for n in (20, 200, 1000)),
        *(
            JudgedWorld(f"post-normalised, users {n}", n, metrics=("nDCG@20",), estimators=("post-normalised",))
            for n in (20, 200, 1000)
        ),
        *(
            JudgedWorld(f"corrected, users {n}", n, active=1.0, metrics=("Recall@20",), estimators=("corrected",))
            for n in (50, 200, 1000)
        ),
        JudgedWorld("corrected, 40% like nothing, users 200", 200, metrics=("Recall@20",), estimators=("corrected",)),
        *(JudgedWorld(f"published, users {n}", n, metrics=("Recall@20",), estimators=URE) for n in (20, 200, 1000)),
        *(
            JudgedWorld(f"full labels, users {n}", n, full=True, metrics=ON_FULL_LABELS, estimators=("full",))
            for n in (10, 50, 1000)
        ),
        *(RankedWorld(f"sessions, users {n}", n) for n in (20, 60, 200, 1000)),
        *(RankedWorld(f"whole lists, users {n}", n, estimators=RANKED) for n in (20, 60, 200)),
        *(RankedWorld(f"Pareto sessions, users {n}", n, pareto=1.2) for n in (20, 60, 200)),
        *(RankedWorld(f"lognormal rewards, users {n}", n, spread=2.0) for n in (60, 200)),
        *(RankedWorld(f"two strong users of {n}", n, strong=2) for n in (20, 200)),
    )
