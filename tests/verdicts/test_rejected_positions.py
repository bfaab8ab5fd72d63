"""A fitted position model that the log rejects carries no verdict that the table of observed views does not share."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.cli import main
from truerank.exposure.policies.targets import RankColumn
from truerank.inference.clipping import AutoClip

LOGGED = {"log": RankColumn("position")}
N_ITEMS = 10
PATIENCE = {"home": 0.6, "search": 0.95}  # probability to go on to the next rank
CODE = "position-model-rejected"


def scrolled(
    seed: int, *, n: int = 2000, patience: dict[str, float] = PATIENCE, better: bool = False, places: int = N_ITEMS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A log with all optional columns, and a target: as good as the log, or better.

    Lists of `places` items are shown in random order; sessions of each surface go on with its probability.
    """
    rng = np.random.default_rng([seed, n])
    surface = rng.choice(list(patience), size=n)
    depth = np.minimum(rng.geometric(1 - np.array([patience[name] for name in surface])), places)
    quality = np.linspace(0.05, 0.4, places) if better else np.full(places, 0.2)
    rank = np.argsort(np.argsort(rng.random((n, places)), axis=1), axis=1) + 1
    score = rng.random((n, places)) + (2 * quality if better else 0)
    session, item = np.nonzero(rank <= depth[:, None])
    log = pl.DataFrame(
        {
            "session": session,
            "item": item,
            "position": rank[session, item],
            "reward": (rng.random(len(session)) < quality[item]).astype(int),
            "surface": surface[session],
            "candidates": places,
        }
    )
    target = pl.DataFrame(
        {
            "session": np.repeat(np.arange(n), places),
            "item": np.tile(np.arange(places), n),
            "rank": (np.argsort(np.argsort(-score, axis=1), axis=1) + 1).ravel(),
        }
    )
    return log, target


def compared(log: pl.DataFrame, target: Any, position: str, **options: Any) -> tr.Results:
    settings: dict[str, Any] = {"baseline": "log", "estimators": ["ips"], "threads": 1} | options
    return tr.off_policy(log, {"new": target, **LOGGED}, position=position, **settings)


def verdict(results: tr.Results) -> str:
    return results.comparisons[0].verdict


def codes(results: tr.Results) -> set[str]:
    return {message.code for message in results.messages}


# ------------------------------------------------------------------------------------------------------------ verdicts


@pytest.mark.parametrize("family", ["exp", "yule"])
def test_a_mixture_of_surfaces_without_a_column_makes_no_wrong_verdict(family: str) -> None:
    """Equal rankers, five logs: before, the new one was called better in all five."""
    reasons: list[Any] = []
    for seed in range(5):
        log, target = scrolled(seed)
        results = compared(log.drop("surface", "candidates"), target, f"fit:{family}")
        (comparison,) = results.comparisons
        assert comparison.verdict in ("not shown", "insufficient"), seed
        assert "position-misfit" in codes(results)
        assert {reason.code for reason in comparison.reasons} <= {CODE}
        reasons += comparison.reasons
    assert reasons or family == "yule"  # whose verdict is mostly that of the table here
    for reason in reasons:
        assert reason.numbers["p"] < 0.01
        assert all(name in reason.text for name in ("fit:table", "surface", "candidates", "viewed"))


def test_the_reason_names_only_columns_that_the_log_lacks() -> None:
    log, target = scrolled(1, n=6000)
    missing = {("surface",): log.drop("surface"), (): log.with_columns(surface=pl.lit("all"))}
    for columns, given in missing.items():
        (comparison,) = compared(given, target, "fit:exp").comparisons
        (reason,) = comparison.reasons
        assert reason.code == CODE
        assert {name for name in ("surface", "candidates", "viewed") if f"{name} (" in reason.text} == set(columns)


@pytest.mark.parametrize("position", ["fit:exp", "fit:yule", "fit:table"])
def test_a_verdict_that_the_table_shares_stands(position: str) -> None:
    for seed in range(3):
        log, target = scrolled(seed, better=True)
        assert verdict(compared(log.drop("surface", "candidates"), target, position)) == "better"


def test_a_right_model_is_never_vetoed() -> None:
    seen = Counter[str]()
    for seed in range(10):
        log, target = scrolled(seed, n=1000, patience={"home": 0.8}, better=seed % 2 == 1)
        results = compared(log, target, "fit:exp")
        seen[verdict(results)] += 1
        assert CODE not in {reason.code for reason in results.comparisons[0].reasons}
    assert seen["better"] == 5


def test_the_verdict_is_that_of_the_whole_family() -> None:
    """Several rankers, an adjustment over everything: a rejected model gives no verdict."""
    log, target = scrolled(1, n=6000)
    log = log.drop("surface", "candidates")
    both = {"new": target, "other": target.with_columns(rank=N_ITEMS + 1 - pl.col("rank")), **LOGGED}
    for options in ({}, {"adjust": "all"}, {"clips": AutoClip()}):
        results = tr.off_policy(log, both, position="fit:exp", baseline="log", threads=1, **options)
        tested = [each for each in results.comparisons if each.p_adjusted == each.p_adjusted]
        assert {each.verdict for each in tested} <= {"not shown", "insufficient"}
        assert CODE in {reason.code for each in tested for reason in each.reasons}


def test_a_value_that_the_table_contradicts_carries_a_caution() -> None:
    log, target = scrolled(1, n=6000)
    results = compared(log.drop("surface", "candidates"), target, "fit:exp")
    cautions = {each.model: {message.code for message in each.warnings} for each in results.estimates}
    assert CODE in cautions["new"]
    assert CODE not in cautions["log"]  # what was logged is weighted by 1, whatever the model


def test_clicks_that_the_model_does_not_describe_carry_no_verdict() -> None:
    """Good items are seen at every rank, bad ones at the first alone: ranks do not act on all items alike."""
    rng = np.random.default_rng(1)
    n, places = 3000, 6
    rank = np.argsort(np.argsort(rng.random((n, places)), axis=1), axis=1) + 1
    good = np.arange(places) % 2 == 0
    click = rng.random((n, places)) < np.where(good, 0.5, 0.5 * 0.3 ** (rank - 1.0))
    session, item = np.divmod(np.arange(n * places), places)
    log = pl.DataFrame(
        {"session": session, "item": item, "position": rank.ravel(), "click": click.ravel().astype(int)}
    ).with_columns(new=places + 1 - pl.col("position"))
    results = compared(log, RankColumn("new"), "fit:clicks", rewards=["click"], logged="displayed")
    (comparison,) = results.comparisons
    assert comparison.verdict == "insufficient"
    (reason,) = comparison.reasons
    assert reason.code == CODE
    assert "viewed" in reason.text


# ------------------------------------------------------------------------------------------------- surfaces, list ends


@pytest.mark.parametrize("position", ["fit:exp", "fit:table"])
def test_every_surface_has_a_fit_of_its_own(position: str) -> None:
    log, target = scrolled(2)
    results = compared(log, target, position)
    second = {  # P(V | 2), which is γ
        fit["place"]: fit["value"]
        for fit in results.provenance.details["fits"]
        if fit["parameter"] in ("gamma", "P(V|2)")
    }
    assert second == pytest.approx(PATIENCE, abs=0.03)
    assert "position-misfit" not in codes(results)
    by_name = compared(log, target, ",".join(f"{name}={position}" for name in PATIENCE))
    assert results.estimates == by_name.estimates
    together = compared(log, target, f"{position}(per_surface=false)").provenance.details["fits"]
    assert {fit["place"] for fit in together} == {"*"}


def test_a_surface_that_allows_no_fit_has_that_of_all() -> None:
    """A banner has one place, so nobody scrolls there; its target and log are both at rank 1."""
    log, target = scrolled(3)
    banner = pl.DataFrame(
        {"session": [9001, 9002], "item": [0, 0], "position": [1, 1], "reward": [1, 0], "surface": ["banner", "banner"]}
    )
    log = pl.concat([log.drop("candidates"), banner.select(log.drop("candidates").columns)])
    target = pl.concat([target, pl.DataFrame({"session": [9001, 9002], "item": [0, 0], "rank": [1, 1]})])
    results = compared(log, target, "fit:exp")
    assert {fit["place"] for fit in results.provenance.details["fits"]} == {*PATIENCE, "banner"}
    assert all(each.low < each.value < each.high for each in results.estimates)


def test_lists_that_end_are_not_people_who_stopped() -> None:
    """Equal rankers, lists of five: before, the new one was called better in each of five logs."""
    for seed in range(5):
        log, target = scrolled(seed, patience={"home": 0.85}, places=5)
        stated = compared(log, target, "fit:exp")
        recognised = compared(log.drop("candidates"), target, "fit:exp")
        assert verdict(recognised) == "not shown", seed
        assert recognised.estimates == stated.estimates
        assert "list-end" in codes(recognised) - codes(stated)


def test_people_who_stopped_are_no_end_of_lists() -> None:
    """The deepest of many lists is no end: nothing but chance keeps others from going further."""
    rng = np.random.default_rng(1)
    for patience in (0.5, 0.8, 0.95):
        for _ in range(8):
            depth = rng.geometric(1 - patience, size=300)
            session = np.repeat(np.arange(300), depth)
            position = np.concatenate([np.arange(1, last + 1) for last in depth])
            log = pl.DataFrame({"session": session, "item": position, "position": position, "reward": position % 2})
            assert "list-end" not in codes(tr.off_policy(log, LOGGED, position="fit:exp", estimators=["ips"]))


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.chdir(tmp_path)
    log, target = scrolled(1, n=6000)
    log.drop("surface", "candidates").write_parquet("log.parquet")
    target.write_parquet("new.parquet")
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("form", ["table", "json"])
def test_quiet_hides_no_reason(form: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    call = "offpolicy log.parquet --target new=new.parquet --target log=@position --baseline log --estimator ips"
    monkeypatch.setattr(sys, "argv", ["truerank", *call.split(), "--position", "fit:exp", "--quiet", "--format", form])
    main()
    out, err = capfd.readouterr()
    assert "fit:table" in out + err
    if form == "json":
        (comparison,) = json.loads(out)["comparisons"]
        assert [reason["code"] for reason in comparison["reasons"]] == [CODE]


@pytest.mark.usefixtures("files")
def test_a_requirement_is_insufficient(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    call = "offpolicy log.parquet --target new=new.parquet --target log=@position --baseline log --estimator ips"
    ship = ["--position", "fit:exp", "--quiet", "--require", "new > log"]
    monkeypatch.setattr(sys, "argv", ["truerank", *call.split(), *ship])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 4
    assert "fit:table" in capfd.readouterr().err


# --------------------------------------------------------------------------------------------------------------- rates


@pytest.mark.slow
@pytest.mark.parametrize("n", [2000, 50_000])
def test_rates_of_wrong_verdicts(n: int) -> None:
    """Statistics 11.6: at most 7 % wrong verdicts of equal rankers, at least 85 % right ones of a better ranker."""
    n_logs = 100 if n == 2000 else 20
    worlds: dict[str, dict[str, Any]] = {
        "fit:exp": {"patience": PATIENCE},
        "fit:yule": {"patience": PATIENCE},
        "fit:table": {"patience": PATIENCE},
        "fit:exp@10": {"patience": {"home": 0.85}},
        "fit:yule@10": {"patience": {"home": 0.85}},
    }
    for position, world in worlds.items():
        wrong = right = 0
        for seed in range(n_logs):
            log, target = scrolled(1000 + seed, n=n, **world)
            wrong += verdict(compared(log.drop("surface", "candidates"), target, position)) in ("better", "worse")
            log, target = scrolled(1000 + seed, n=n, better=True, **world)
            right += verdict(compared(log.drop("surface", "candidates"), target, position)) == "better"
        assert wrong <= 0.07 * n_logs + 1, (position, wrong)
        assert right >= 0.85 * n_logs, (position, right)
