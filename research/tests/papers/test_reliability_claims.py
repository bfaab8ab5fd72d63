"""Claims about a study, judged on hand-made tables for which each verdict is known."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from truerank_research.claims import Verdict
from truerank_research.papers.reliability.figures import (
    FIXED,
    SIZED,
    SamplerClaim,
    StudyFigures,
    WorldScale,
    excelling,
)
from truerank_research.papers.reliability.questions import verdict_of
from truerank_research.papers.reliability.sampler_claims import CLAIMS

SCALE = WorldScale("nDCG@20", "nDCG@10", cutoff=20, large=50, half=20, moderate=20)
SIZES = (1, 10, 20, 50)
LOGGERS = ("uniform(item_seed=42)", "popularity", "positivity(with_train=true)")
SPARSITIES = (0.0, 0.1, 0.5, 0.9, 0.95)
NAMED = {each.name: each for each in CLAIMS}

Value = Callable[[str, str, float, str, int | None], float | None]  # of question, logger, sparsity, sampler, size


def frame(value: Value, *, half: float = 0.01, shorter: Value | None = None) -> pl.DataFrame:
    """A table of results whose every value is told by a function; intervals have one half-width."""
    rows = []
    candidates = [(name, None) for name in FIXED] + [(f"{name}(x=1)", n) for name in SIZED for n in SIZES]
    metrics = {SCALE.metric: value} | ({} if shorter is None else {SCALE.shorter: shorter})
    for metric, of in metrics.items():
        for question in ("resolution", "resolution_rounded", "fidelity", "robustness", "predictive_power"):
            for logger in LOGGERS:
                for sparsity in SPARSITIES:
                    for sampler, size in candidates:
                        found = of(question, logger.split("(")[0], sparsity, sampler.split("(")[0], size)
                        rows.append((metric, question, logger, sparsity, sampler, size, found))
    names = ["metric", "question", "logger", "sparsity", "sampler", "size", "value"]
    table = pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
    low, high = pl.col("value") - half, pl.col("value") + half
    return table.with_columns(low=low, high=high)


def verdict(name: str, value: Value, *, half: float = 0.01, shorter: Value | None = None) -> Verdict:
    return judge(NAMED[name], StudyFigures.read(frame(value, half=half, shorter=shorter), scale=SCALE))


def judge(claim: SamplerClaim, figures: StudyFigures) -> Verdict:
    return verdict_of(*claim.support(figures), needed=claim.needed)


def only(**of: float) -> Value:
    """A value for each sampler (Random_e for Random@e), 0.5 for the others."""
    named = {name.replace("_e", "@e"): each for name, each in of.items()}
    return lambda question, logger, sparsity, sampler, size: named.get(sampler, 0.5)


def by_size(*values: float) -> Value:
    return lambda question, logger, sparsity, sampler, size: 0.5 if size is None else values[SIZES.index(size)]


def by_sparsity(*values: float) -> Value:
    return lambda question, logger, sparsity, sampler, size: values[SPARSITIES.index(sparsity)]


def gains(**of: float) -> Value:
    """0.2 at the smallest size, and at others what a sampler gains more."""
    return lambda question, logger, sparsity, sampler, size: 0.2 + (of.get(sampler, 0.0) if size != SIZES[0] else 0.0)


HOLDS, PART, NOT = Verdict.REPLICATES, Verdict.IN_PART, Verdict.FAILS
# each rule once; every other claim is judged again from the committed run (test_studies)
KNOWN: list[tuple[str, Value, Verdict]] = [
    ("Q1.1", by_size(0.3, 0.1, 0.05, 0.2), HOLDS),
    ("Q1.1", by_size(0.3, 0.2, 0.1, 0.05), NOT),
    ("Q1.1", by_size(0.3, 0.1, 0.095, 0.1), NOT),  # the rise at the end is within the noise
    ("Q1.2", by_size(0.3, 0.1, 0.2, 0.2), HOLDS),
    ("Q1.2", by_size(0.1, 0.3, 0.3, 0.3), NOT),
    ("Q1.3", by_size(0.3, 0.02, 0.1, 0.3), HOLDS),
    ("Q1.3", by_size(0.3, 0.03, 0.1, 0.0), NOT),
    ("Q1.4", by_sparsity(0.1, 0.2, 0.3, 0.4, 0.5), HOLDS),
    ("Q1.4", by_sparsity(0.1, 0.1, 0.1, 0.1, 0.5), NOT),
    ("Q1.6", only(Skew=0.1, Popularity=0.1, Positivity=0.1), HOLDS),
    ("Q1.6", only(Skew=0.1, Popularity=0.1), PART),
    ("Q1.6", only(Random=0.1), NOT),
    ("Q1.7", only(Full=0.8), HOLDS),
    ("Q1.7", only(Full=0.8, Skew=0.8), NOT),
    ("Q2.2", only(Random=0.8, WTD=0.8, WTDH=0.8), HOLDS),
    ("Q2.2", only(Random=0.8, WTD=0.8, WTDH=0.8, Positivity=0.9), NOT),
    ("Q2.3", by_size(0.1, 0.2, 0.91, 0.92), HOLDS),
    ("Q2.3", by_size(0.1, 0.2, 0.89, 0.92), NOT),
    ("Q2.5", only(Skew=0.46), HOLDS),
    ("Q2.5", only(Skew=0.4), NOT),
    ("Q3.1", lambda q, logger, sparsity, *_: 1.0 if q == "robustness" and sparsity == 0 else 0.5, HOLDS),
    ("Q3.1", only(), NOT),
    ("Q3.4", only(Popularity=0.4, Positivity=0.4), NOT),  # lower, but nobody gains anything
    ("Q3.4", gains(Random=0.3, Popularity=0.2, Positivity=0.2), HOLDS),
    ("Q3.4", gains(Random=0.3, Popularity=0.29, Positivity=0.29), NOT),  # less, but not clearly
    ("Q3.4", gains(Random=0.3, Popularity=0.2, Positivity=0.4), PART),
    ("Q3.5", only(Full=0.51), HOLDS),  # the highest, if not clearly
    ("Q3.5", only(Full=0.49), NOT),  # not clearly beaten, but not the highest
    ("Q3.5", only(), NOT),
    ("Q4.3", only(Full=0.4), HOLDS),
    ("Q4.3", only(Full=0.6), NOT),
    ("C.1", only(Random=0.4), HOLDS),
    ("C.1", only(), NOT),
    ("C.4", lambda q, logger, sparsity, sampler, n: 0.6 if sampler == "Random" and n == 20 else 0.5, HOLDS),
    ("C.4", only(), NOT),
    ("I.1", only(), HOLDS),
    ("I.1", lambda q, *_: 0.5 if q == "robustness" else 0.4, NOT),
    ("I.3", only(WTD=0.515), HOLDS),
    ("I.3", only(WTD=0.53), NOT),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "word"), KNOWN, ids=[f"{each[0]}-{each[2]}" for each in KNOWN])
def test_verdicts_on_tables_made_by_hand(name: str, value: Value, word: Verdict) -> None:
    assert verdict(name, value) is word


def wins(name: str, *questions: str) -> Value:
    """One sampler is clearly the best in some questions and clearly the worst in the others."""

    def value(question: str, logger: str, sparsity: float, sampler: str, size: int | None) -> float:
        sign = -1 if question.startswith("resolution") else 1
        return 0.5 if sampler != name else 0.5 + sign * (0.1 if question in questions else -0.1)

    return value


ALL = ("resolution", "fidelity", "robustness", "predictive_power")


def excel(value: Value) -> tuple[str, ...]:
    return excelling(StudyFigures.read(frame(value), scale=SCALE))


def test_who_excels() -> None:
    assert excel(wins("Skew", *ALL)) == ("Skew",)
    assert verdict("C.3", wins("Skew", *ALL)) is NOT
    for missing in ALL:
        rest = wins("Skew", *(each for each in ALL if each != missing))
        assert excel(rest) == ()
        assert verdict("C.3", rest) is HOLDS
