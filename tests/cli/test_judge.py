"""A judge, or scores, that assist: files on the command line, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import Run
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError

N_USERS, N_ITEMS = 120, 20


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels of half of the items, the scores of two models, and a judge who calls a third of the rest relevant."""
    place, rng = tmp_path_factory.mktemp("judge"), np.random.default_rng(4)
    user, item = (each.ravel() for each in np.indices((N_USERS, N_ITEMS)))
    label = (rng.random(len(user)) < np.where(item < 6, 0.6, 0.2)).astype(int)
    said = np.where(rng.random(len(user)) < 0.9, label, rng.random(len(user)) < 0.9).astype(float)
    pairs = pl.DataFrame({"user": user, "item": item})
    pairs.with_columns(label=label).filter(pl.Series(rng.random(len(user)) < 0.5)).write_csv(place / "labels.csv")
    pairs.with_columns(probability=said).write_csv(place / "judge.csv")
    pairs.write_csv(place / "bare.csv")
    for name, sign in (("a", -1.0), ("b", 1.0)):
        scores = tr.scores.dense(np.tile(sign * np.arange(N_ITEMS), (N_USERS, 1)), users=np.arange(N_USERS))
        tr.scores.write_scores(scores, place / f"{name}.npz")
    return place


def asked(files: Path, *more: str) -> list[str]:
    return [
        "evaluate", str(files / "labels.csv"), "--exposure", "random", "--scores", f"a={files / 'a.npz'}",
        "--scores", f"b={files / 'b.npz'}", "--metric", "Precision@5", "--metric", "Recall@5", "--format", "json",
        *more,
    ]  # fmt: skip


def found(run: Any, files: Path, *more: str) -> tuple[dict[tuple[str, str, str], float], dict[str, str]]:
    done = run(*asked(files, *more)).fine()
    results = json.loads(done.out)
    values = {(each["model"], each["metric"], each["estimator"]): each["value"] for each in results["estimates"]}
    return values, {each["code"]: each["severity"] for each in results["messages"]}


def test_a_judge_assists_and_is_shown_alone(files: Path, run: Any) -> None:
    values, codes = found(run, files, "--judge", str(files / "judge.csv"))
    assert {estimator for _, _, estimator in values} == {"assisted", "judge-alone"}
    assert codes["judge-off"] == "caution"  # it calls nearly one in ten of the others relevant
    judge = pl.read_csv(files / "judge.csv")
    alone = judge.filter(pl.col("item") < 5)["probability"].mean()
    assert values["a", "Precision@5", "judge-alone"] == pytest.approx(alone)
    assert values["a", "Precision@5", "assisted"] < values["a", "Precision@5", "judge-alone"]


def test_scores_assist_and_so_does_the_log(files: Path, run: Any) -> None:
    by_scores, codes = found(run, files, "--assist", str(files / "a.npz"), "--estimator", "assisted(by=scores)")
    by_log, _ = found(run, files, "--estimator", "assisted")
    assert "judge-off" not in codes
    assert by_scores != by_log
    for key, value in by_scores.items():
        assert value == pytest.approx(by_log[key], abs=0.05)


def test_what_is_missing_or_useless_is_said(files: Path) -> None:
    labels, scores = pl.read_csv(files / "labels.csv"), {"a": tr.scores.read_scores(files / "a.npz")}
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Precision@5"]}
    with refused("what a judge says of pairs is needed", RefusedError):
        tr.evaluate(scores, labels, estimators=["assisted(by=judge)"], **how)
    with refused("what a judge says of pairs is needed", RefusedError):
        tr.evaluate(scores, labels, estimators=["judge-alone"], **how)
    with refused("scores that assist are needed", RefusedError):
        tr.evaluate(scores, labels, estimators=["assisted(by=scores)"], **how)
    twice = pl.DataFrame({"user": [1, 1], "item": [2, 2], "label": [0, 1]})
    with refused("user 1, item 2; expected one value per pair"):
        tr.evaluate(scores, labels, judge=twice, **how)
    with refused("no value column"):
        tr.evaluate(scores, labels, judge=files / "bare.csv", **how)
    with refused("nothing is left to predict", RefusedError):
        tr.evaluate(scores, labels, judge=files / "judge.csv", exposure="holdout", metrics=["Precision@5"])


def test_a_judge_of_other_pairs_is_said() -> None:
    """Ids that match nobody: a warning, not hajek in silence; of a part of the pairs how large it is."""
    rng = np.random.default_rng(3)
    label = (rng.random((80, 20)) < 0.3).astype(int)
    rows = [(u, int(i), int(label[u, i])) for u in range(80) for i in rng.choice(20, 8, replace=False)]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    user, item = (each.ravel() for each in np.indices((80, 20)))
    judge = pl.DataFrame({"user": user, "item": item, "label": label.ravel().astype(float)})
    scores = {"m": rng.normal(size=(80, 20))}

    def messages(said: pl.DataFrame, metric: str = "Precision@5") -> dict[str, str]:
        results = tr.evaluate(scores, labels, exposure="random", metrics=[metric], judge=said)
        return {each.code: each.severity for each in results.messages}

    for metric in ("Precision@5", "Recall@5"):
        assert messages(judge.with_columns(user=pl.col("user") + 1000), metric)["nothing-foreseen"] == "warning"
    assert "partly-foreseen" in messages(judge.filter(pl.col("user") < 40))
    assert messages(judge.with_columns(label=pl.lit(0.5)))["not-assisted"] == "note"
    every = messages(judge)
    assert not {"nothing-foreseen", "partly-foreseen", "not-assisted"} & set(every)


def test_a_difference_that_predictions_make_less_sure_is_said() -> None:
    """Two lists of 20 share 18 places, where the judge is right; of the two others it says anything."""
    rng = np.random.default_rng(5)
    users, items = 300, 40
    shared = np.arange(items) < 18
    label = rng.random((users, items)) < np.where(shared, 0.5, 0.05)
    right = rng.random((users, items)) < 0.95
    said = np.where(shared, label == right, rng.random((users, items)) < 0.5)
    rows = [(u, int(i), int(label[u, i])) for u in range(users) for i in rng.choice(items, 16, replace=False)]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    user, item = (each.ravel() for each in np.indices((users, items)))
    first = np.tile(-np.arange(items, dtype=float), (users, 1))
    second = first.copy()
    second[:, [20, 21]], second[:, [18, 19]] = first[:, [18, 19]], first[:, [20, 21]]
    scores = {"a": first, "b": second}

    def evaluated(judge: np.ndarray) -> Any:
        frame = pl.DataFrame({"user": user, "item": item, "label": judge.ravel().astype(float)})
        estimators = ["assisted(by=judge)", "hajek"]
        return tr.evaluate(
            scores, labels, exposure="random", metrics=["Precision@20"], judge=frame, estimators=estimators
        )

    results = evaluated(said)
    (message,) = [each for each in results.messages if each.code == "assistance-costs"]
    assert "Compare them with hajek." in str(message)
    stderr = {each.estimator.split("(")[0]: each.stderr for each in results.comparisons}
    (share,) = message.numbers.values()
    assert share > 1.5
    assert share == pytest.approx((stderr["assisted"] / stderr["hajek"]) ** 2, rel=0.02)
    helpful = evaluated(label == right)
    assert not [each for each in helpful.messages if each.code == "assistance-costs"]


def test_search_files_work_at_once(run: Run) -> None:
    """TREC runs that score every member of each candidate set, an LLM's qrels, columns called query and document."""
    rng = np.random.default_rng(1)
    pairs = [(f"q{q}", f"d{d}") for q in range(30) for d in rng.choice(50, 20, replace=False)]
    relevant = {pair: rng.random() < 0.3 for pair in pairs}
    Path("pairs.csv").write_text("query,document\n" + "".join(f"{q},{d}\n" for q, d in pairs))
    for name, share in (("labels", 0.4), ("llm", 1.0)):
        rows = [f"{q} 0 {d} {int(relevant[q, d])}\n" for q, d in pairs if rng.random() < share]
        Path(f"{name}.qrels").write_text("".join(rows))
    for name, gain in (("bm25", 0.2), ("dense", 1.0)):
        rows = [f"{q} Q0 {d} 1 {gain * relevant[q, d] + rng.random():.4f} {name}\n" for q, d in pairs]
        Path(f"{name}.run").write_text("".join(rows))
    words = "evaluate labels.qrels --exposure random --scores bm25.run --scores dense.run --candidates pairs.csv"
    found = run(f"{words} --judge llm.qrels --metric Precision@5").fine()
    assert found.out.startswith("dense beats bm25 on Precision@5, assisted.")


def test_grades_of_a_judge_become_labels_by_the_rule_of_the_labels(files: Path, run: Any) -> None:
    judge, graded = pl.read_csv(files / "judge.csv"), files / "grades.csv"
    judge.select("user", "item", grade=3 * pl.col("probability")).write_csv(graded)
    expected, _ = found(run, files, "--judge", str(files / "judge.csv"))
    assert found(run, files, "--judge", str(graded), "--positive", ">=1")[0] == expected
    refused = run(*asked(files, "--judge", str(graded)))
    assert refused.code == 2
    assert "grades.csv: values from 0 to 3" in refused.message
    assert "--positive" in refused.message


def test_runs_within_a_pool_are_ranked_as_deep_as_they_list_it(tmp_path: Path, run: Any) -> None:
    """Top lists that lack members of a candidate set: the first places are known, later ones are refused (C5)."""
    rng = np.random.default_rng(8)
    queries, documents = [f"q{number}" for number in range(40)], [f"d{number}" for number in range(12)]
    pool = [(query, document) for query in queries for document in documents]
    grade = dict(zip(pool, rng.integers(0, 4, len(pool)).tolist(), strict=True))
    (tmp_path / "pairs.csv").write_text("query,doc\n" + "".join(f"{query},{document}\n" for query, document in pool))
    for name, share in (("judge", 1.0), ("people", 0.5)):
        rows = [f"{query} 0 {document} {grade[query, document]}\n" for query, document in pool if rng.random() < share]
        (tmp_path / f"{name}.qrels").write_text("".join(rows))
    for name in ("a", "b"):  # nine of the twelve, and one that is not in the pool
        lists = {query: ["other", *rng.permutation(documents)[:9]] for query in queries}
        lines = [
            f"{query} Q0 {item} {rank} {-rank} {name}\n"
            for query in queries
            for rank, item in enumerate(lists[query], 1)
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    call = [
        "evaluate", str(tmp_path / "people.qrels"), "--exposure", "random", "--positive", ">=2", "--candidates",
        str(tmp_path / "pairs.csv"), "--judge", str(tmp_path / "judge.qrels"), "--format", "json",
        *(part for name in ("a", "b") for part in ("--scores", f"{name}={tmp_path / f'{name}.run'}")),
    ]  # fmt: skip
    done = run(*call, "--metric", "Precision@5", "--metric", "Recall@9")
    assert done.code == 0, done.err
    results = json.loads(done.out)
    values = {
        (each["model"], each["metric"]): each["value"]
        for each in results["estimates"]
        if each["estimator"] == "judge-alone"
    }
    listed = {query: [item for item in _run(tmp_path / "a.run")[query] if item != "other"] for query in queries}
    expected = np.mean([np.mean([grade[query, item] >= 2 for item in listed[query][:5]]) for query in queries])
    assert values["a", "Precision@5"] == pytest.approx(expected)
    assert "no-exclusions.lists" not in {each["code"] for each in results["messages"]}
    refused = run(*call, "--metric", "Precision@10")
    assert refused.code == 2
    assert "only 9 candidates" in refused.message


def _run(path: Path) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        query, _, item, *_ = line.split()
        lists.setdefault(query, []).append(item)
    return lists
