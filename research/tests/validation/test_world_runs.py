"""Runs of measured environments: resumable; rates and comparisons by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from truerank_research.validation import world_runs
from truerank_research.validation.environments import Environment
from truerank_research.validation.world_rates import compare, compare_text, summary, summary_text, world_rates


def estimate(truth: Any, low: Any, high: Any, warnings: Any, estimator: str = "hajek") -> Any:
    n = len(low)
    return {"model": "m0", "metric": "DCG@5", "estimator": estimator, "truth": truth,
            "value": [0.0] * n, "low": low, "high": high, "warnings": warnings}  # fmt: skip


def comparison(
    truth: Any, verdicts: Any, *, model: str = "m1", low: Any = None, high: Any = None, estimator: str = "hajek"
) -> Any:
    n = len(verdicts)
    return {"model": model, "baseline": "m0", "metric": "DCG@5", "estimator": estimator, "truth": truth,
            "difference": [0.0] * n, "low": low or [None] * n, "high": high or [None] * n,
            "verdict": list(verdicts), "reasons": [0] * n}  # fmt: skip


def line(estimates: Any = (), comparisons: Any = (), name: str = "world 0", refused: Any = None) -> Any:
    return {"name": name, "parameters": {"exposure": "random", "n_users": 7}, "refused": refused or {},
            "codes": [[], ["caution:few-hits"]],
            "estimates": list(estimates), "comparisons": list(comparisons)}  # fmt: skip


def test_coverage_counts_intervals_and_warnings() -> None:
    rates = world_rates(line([
        estimate(0.5, [0.4, 0.6, None, None], [0.6, 0.7, None, None], [0, 1, 1, None]),
        estimate(0.5, [0.0], [0.1], [0], estimator="judge-alone"),
        estimate(None, [0.0], [0.1], [0]),
    ]))  # fmt: skip
    assert rates["coverage"] == 1 / 2
    assert rates["coverage without a warning"] == 1
    assert rates["estimates with a warning"] == 2 / 3


def test_type_one_error_is_of_families_and_power_of_different_models() -> None:
    rates = world_rates(line(comparisons=[
        comparison(0.0, "bnwn"),
        comparison(0.0, "wnnn", model="m2"),
        comparison(-0.2, "wwbi", model="m3"),
    ]))  # fmt: skip
    assert rates["type I error"] == 2 / 4
    assert rates["right verdicts"] == 2 / 4
    assert rates["opposite verdicts"] == 1 / 4
    assert rates["insufficient evidence"] == 1 / 12


def test_intervals_that_contradict_verdicts_are_counted() -> None:
    pair = comparison(0.1, "nbni", low=[0.1, -0.1, -0.1, 0.1], high=[0.2, 0.1, 0.1, 0.2])
    assert world_rates(line(comparisons=[pair]))["counts"]["contradictions"] == 2


def test_summary_prints_criteria_and_environments_above_the_limit() -> None:
    lines = [
        line(comparisons=[comparison(0.0, "n" * 19 + "b")], name="world 0"),
        line(comparisons=[comparison(0.0, "nnb")], name="world 1", refused={"InputError: no": 2}),
        line([estimate(1.0, [0.0] * 4, [2.0] * 4, [0, 0, 0, 1])], name="world 2"),
    ]
    figures = summary(lines)
    assert figures["environments"] == 3
    assert figures["environments with equal models"] == 2
    assert figures["draws refused"] == 2
    assert figures["type I error"] == pytest.approx((1 / 20 + 1 / 3) / 2)
    assert figures["estimates with a warning"] == 1 / 4
    text = summary_text(figures)
    assert "type I error: 19.2% (at most 6%: NOT MET)" in text
    assert "coverage: 100.0% (at least 93%: met)" in text
    assert "world 1: 33.3% | {'exposure': 'random', 'n_users': 7}" in text
    assert "InputError: no (2)" in text


def test_two_versions_are_compared_where_the_first_was_right() -> None:
    before = [
        line(comparisons=[comparison(0.1, "bbbn")], name="world 0"),
        line(comparisons=[comparison(0.0, "bnnn"), comparison(0.1, "bbbb", model="m2")], name="world 1"),
        line(comparisons=[comparison(0.1, "nnnn"), comparison(0.1, "bbbb", estimator="dropped")], name="world 2"),
    ]
    after = [
        line(comparisons=[comparison(0.1, ["b", "n", "n", None])], name="world 0"),
        line(comparisons=[comparison(0.0, "nnnn"), comparison(0.1, "nnnn", model="m2")], name="world 1"),
        line(comparisons=[comparison(0.1, "bnnn")], name="world 2"),
    ]
    figures = compare(before, after)
    assert figures["environments where the first was right"] == 2
    assert figures["right verdicts before"] == pytest.approx((3 / 4 + 0) / 2)
    assert figures["right verdicts after"] == pytest.approx(1 / 4)
    assert figures["environments with at least 5% right verdicts before"] == 1
    assert figures["mean change in those"] == pytest.approx(-1 / 2)
    assert figures["largest losses"][0] == "world 0: 75.0% -> 25.0%"
    assert "NOT MET" in compare_text(figures)


def one_draw(verdict: str = "better") -> Any:
    value = SimpleNamespace(model="m0", metric="DCG@5", estimator="hajek", value=1.0, low=0.5, high=1.5, warnings=())
    pair = SimpleNamespace(model="m1", baseline="m0", metric="DCG@5", estimator="hajek", difference=0.1, low=0.05,
                           high=0.15, verdict=verdict, reasons=())  # fmt: skip
    return SimpleNamespace(estimates=[value], comparisons=[pair], messages=())


def an_environment(index: int, evaluate: Any) -> Any:
    truth = {("m0", "DCG@5", "users"): 1.0, ("m1", "DCG@5", "users"): 1.1}
    return Environment(f"world {index}", (index,), {"exposure": "random"}, truth, evaluate)


def test_refusals_are_recorded_and_unknown_verdicts_are_errors() -> None:
    def refuse_odd_draws(rng: np.random.Generator) -> Any:
        if rng.random() < 0.5:
            raise ValueError("refused here")
        return one_draw()

    measured = world_runs.measure(an_environment(0, refuse_odd_draws), 20)
    n_refused = measured["refused"]["ValueError: refused here"]
    assert 0 < n_refused < 20
    assert measured["comparisons"][0]["verdict"].count("b") == 20 - n_refused
    with pytest.raises(KeyError):
        world_runs.measure(an_environment(0, lambda _: one_draw("splendid")), 1)


def test_a_stopped_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []

    def make(index: int) -> Any:
        def evaluate(rng: np.random.Generator) -> Any:
            evaluated.append(index)
            return one_draw()

        return an_environment(index, evaluate)

    monkeypatch.setattr(world_runs, "random_environment", make)
    monkeypatch.setattr(world_runs, "load_compiled_kernel", lambda: None)
    out = tmp_path / "results.jsonl"
    world_runs.run([0, 1], out, n_draws=2)
    complete = out.read_bytes()
    out.write_bytes(complete[:-10])  # stopped while it wrote the second line
    evaluated.clear()
    world_runs.run([0, 1, 2], out, n_draws=2)
    assert evaluated == [1, 1, 2, 2]
    lines = list(world_runs.read_lines(out))
    assert [measured["name"] for measured in lines] == ["world 0", "world 1", "world 2"]
    assert np.allclose([measured["comparisons"][0]["truth"] for measured in lines], 0.1)
