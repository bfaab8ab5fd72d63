"""What a reader sees: the verdict first, one table, few warnings; compared with stored text at two widths.

`python -m tests.report.test_summary` writes the stored text again, to be read before it is committed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.messages import Severity
from truerank.core.results import NOT_SHOWN
from truerank.report import text
from truerank.report.questions import decisive, questions_of
from truerank.report.summary import summarize

FOLDER = Path(__file__).parent / "shown"
QUALITY = {"ease": 1.6, "als": 1.5, "knn": 1.2, "bpr": 1.1, "popularity": 0.7, "random": 0.0}


def evaluated(n_models: int, **options: Any) -> tr.Results:
    """Like MovieLens: 400 users, 80 items, 20 random labels of each user."""
    rng = np.random.default_rng(7)
    taste = rng.normal(size=(400, 80)) + rng.normal(size=80)
    scores = {name: weight * taste + rng.normal(0, 1.5, taste.shape) for name, weight in QUALITY.items()}
    user, item = (part.ravel() for part in np.indices(taste.shape))
    labels = pl.DataFrame({"user": user, "item": item, "label": (taste > 1.2).ravel().astype(int)})
    sample = labels.filter(pl.Series(rng.random((400, 80)).argsort(axis=1).ravel() < 20))
    chosen = {name: scores[name] for name in list(QUALITY)[:n_models]} if n_models > 2 else {
        name: scores[name] for name in ("popularity", "ease")}  # fmt: skip
    return tr.evaluate(chosen, sample, exposure="random", **options)


def ranked() -> tr.Results:
    rng = np.random.default_rng(3)
    n = 600
    session, position = np.repeat(np.arange(n), 4), np.tile([1, 2, 3, 4], n)
    item = rng.permuted(np.tile(np.arange(4), (n, 1)), axis=1).ravel()
    click = rng.random(4 * n) < np.array([0.6, 0.4, 0.2, 0.1])[item] / position
    log = pl.DataFrame({"session": session, "item": item, "position": position, "click": click.astype(int)})
    target = log.select("session", "item", rank=pl.col("item") + 1)
    logged = log.select("session", "item", rank="position")
    return tr.off_policy(log, {"new": target, "log": logged}, position="exp:0.5", rewards=["click"], baseline="log")


@cache
def shown(case: str) -> tuple[tr.Results, dict[str, tr.Results] | None]:
    if case == "within":
        results = evaluated(2)
        groups = pl.DataFrame({"id": range(400), "group": ["new", "old"] * 200})
        return results, dict(results.by(groups))
    made: dict[str, Callable[[], tr.Results]] = {
        "two": lambda: evaluated(2), "three": lambda: evaluated(3), "six": lambda: evaluated(6),
        "six against a baseline": lambda: evaluated(6, baseline="popularity"), "off policy": ranked,
    }  # fmt: skip
    return made[case](), None


CASES = ["two", "three", "six", "six against a baseline", "off policy", "within"]
MOST_LINES = {"two": 14, "three": 24, "six": 30, "six against a baseline": 30, "off policy": 18, "within": 24}


def rendered(case: str, width: int) -> str:
    results, groups = shown(case)
    return text.render(summarize(results, groups=groups, for_cli=True), width=width)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("case", CASES)
def test_output_is_what_is_stored(case: str, width: int) -> None:
    found = rendered(case, width)
    assert found == (FOLDER / f"{case.replace(' ', '-')}-{width}.txt").read_text()
    assert max(map(len, found.splitlines())) <= width
    assert found.count("\n") <= MOST_LINES[case]
    assert sum(line.startswith("! ") for line in found.splitlines()) <= 5


def test_differences_are_winner_minus_loser_whatever_the_order_given() -> None:
    results, _ = shown("two")
    assert results.comparisons[0].difference != 0
    differences = [line.split()[3] for line in str(results).splitlines() if line.startswith(("Recall@", "DCG@"))]
    assert differences
    assert all(number.startswith("+") for number in differences)


def test_the_same_warning_is_written_once_with_its_models() -> None:
    results, _ = shown("six")
    message = results.messages[0]
    warned = [replace(message, code="some-warning", severity=Severity.WARNING, subjects=(name,)) for name in QUALITY]
    found = str(replace(results, messages=tuple(warned)))
    assert sum(line.startswith("! ") for line in found.splitlines()) == 1
    assert all(name in found[found.index("! ") :] for name in list(QUALITY)[1:])


def test_there_are_at_most_five_warnings() -> None:
    results, _ = shown("six")
    warned = [replace(results.messages[0], code=f"warning-{number}", severity=Severity.WARNING) for number in range(9)]
    lines = [line for line in str(replace(results, messages=tuple(warned))).splitlines() if line.startswith("! ")]
    assert len(lines) == 5
    assert "more warnings" in lines[-1]


def test_the_verdict_names_the_metric_of_a_difference_that_only_one_has() -> None:
    results, _ = shown("three")
    both = {"ease", "knn"}
    pairs = [
        replace(pair, verdict=NOT_SHOWN) if {pair.model, pair.baseline} == both and pair.metric != "Recall@50" else pair
        for pair in results.comparisons
    ]
    assert summarize(results).verdict.endswith("significantly above knn.")
    assert summarize(replace(results, comparisons=tuple(pairs))).verdict.endswith(
        "significantly above knn on Recall@50."
    )


def test_what_is_for_comparison_only_does_not_decide() -> None:
    """A judge alone sees a difference, the labels do not: the first line is that of the labels."""
    rng = np.random.default_rng(2)
    user, item = (part.ravel() for part in np.indices((60, 12)))
    grade = pl.DataFrame({"user": user, "item": item, "label": (rng.random(720) < 0.3).astype(int)})
    judge = grade.with_columns(label=(pl.col("item") < 6).cast(int))
    scores = {"low": -np.tile(np.arange(12.0), (60, 1)), "high": np.tile(np.arange(12.0), (60, 1))}
    sample = grade.filter(pl.Series(rng.random(720) < 0.4))
    results = tr.evaluate(scores, sample, exposure="random", metrics=["Precision@4"], judge=judge)
    verdicts = {comparison.estimator: comparison.verdict for comparison in results.comparisons}
    assert verdicts["judge-alone"] != verdicts["assisted"]
    (question,) = decisive(questions_of(results))
    assert question.estimator == "assisted"
    assert "beats" not in summarize(results).verdict


def test_qrels_are_about_queries_documents_and_systems(tmp_path: Path) -> None:
    """Names of systems stay as they are, whatever words they hold (C5)."""
    rng, names = np.random.default_rng(1), ("item-knn", "user")
    rows = [(f"q{query}", f"d{document}") for query in range(30) for document in range(20)]
    (tmp_path / "some.qrels").write_text(
        "".join(f"{query} 0 {item} {int(rng.random() < 0.4)}\n" for query, item in rows)
    )
    for name in names:
        lines = [f"{query} Q0 {item} 1 {rng.random()} {name}\n" for query, item in rows]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    results = tr.evaluate(
        {name: tmp_path / f"{name}.run" for name in names}, tmp_path / "some.qrels", exposure="holdout"
    )
    found = results.details()
    assert {"item-knn", "user"} <= set(re.findall(r"[\w-]+", found))
    assert not re.search(r"(?<!-)\b(users|items?|models?|training)\b(?!-)", found)
    assert {"30 queries", "documents", "systems"} <= set(re.findall(r"30 queries|documents|systems", found))


@pytest.mark.parametrize("name", ["good", "日本 é", "a\nb\tc", "<b> [bold]x[/]"])
def test_names_are_text_and_tables_stay_aligned(name: str) -> None:
    results, _ = shown("two")
    estimates = tuple(replace(entry, model=entry.model.replace("ease", name)) for entry in results.estimates)
    pairs = tuple(replace(entry, model=entry.model.replace("ease", name), baseline=entry.baseline.replace("ease", name))
                  for entry in results.comparisons)  # fmt: skip
    lines = str(replace(results, estimates=estimates, comparisons=pairs)).splitlines()
    rows = [line for line in lines if line.startswith(("Recall@", "Precision@"))]
    assert len({text.columns_of(line) for line in rows}) == 1


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each_case in CASES:
        for columns in (80, 120):
            (FOLDER / f"{each_case.replace(' ', '-')}-{columns}.txt").write_text(rendered(each_case, columns))
