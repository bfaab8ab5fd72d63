"""One meaning per option name in all commands, and help pages that load nothing heavy."""

from __future__ import annotations

import importlib
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import pytest
from calling import Run, every_command
from refusals import refused

import truerank.cli
from truerank import estimators, metrics
from truerank.cli.commands import cli
from truerank.core.log import Logged
from truerank.core.options import ListsAre
from truerank.core.ranking import Ties
from truerank.datasets.split import SplitBy
from truerank.estimators import RANKED
from truerank.estimators.impressions import Normaliser
from truerank.evaluation import presets
from truerank.exposure import interventions
from truerank.exposure.kinds import Unlisted
from truerank.ranking.candidates import Overlap
from truerank.reliability import grid
from truerank.report.charts import PictureFormat
from truerank.sampling.unequal import DrawBy
from truerank.simulation.feed import Broken

evaluate_command = importlib.import_module("truerank.cli.evaluate")
offpolicy_command = importlib.import_module("truerank.cli.offpolicy")


COMMANDS = dict(every_command())


def meaning(option: click.Option) -> tuple[Any, ...]:
    """What an option takes: a file, a count, a number, a text, one of some choices, or nothing."""
    kind = option.type
    chosen = tuple(kind.choices) if isinstance(kind, click.Choice) and option.name != "format" else ()
    shown = option.metavar or ("" if isinstance(kind, click.Choice) or option.is_flag else kind.name.upper())
    return kind.name, chosen, shown, option.multiple, option.is_flag, tuple(sorted((*option.opts, option.name or "")))


def sizes_of(command: click.Command) -> set[str]:
    """Names of what is counted, which a command that reads no file may give to counts: nothing else can be meant."""
    files = [each for each in command.params if isinstance(each.type, click.Path) and each.name != "out"]
    return set() if files else {"--rows", "--users", "--items"}


def test_an_option_means_the_same_in_every_command() -> None:
    meanings: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, command in COMMANDS.items():
        for option in (each for each in command.params if isinstance(each, click.Option)):
            for flag in {*option.opts} - sizes_of(command):
                meanings[flag][meaning(option)].append(" ".join(path))
    several = {flag: dict(found) for flag, found in meanings.items() if len(found) > 1}
    assert not several


def test_files_and_counts_have_names_of_their_own() -> None:
    """--users is a file and --n-users a count; nothing else stands for how many there are of what a file can name."""
    flags = {
        flag: option
        for command in COMMANDS.values()
        for option in command.params
        for flag in {*option.opts} - sizes_of(command)
    }
    for name in ("users", "items", "sessions", "candidates", "loggers"):
        assert flags[f"--n-{name}"].type is click.INT
        assert flags[f"--{name}"].type is not click.INT
    for gone in ("--metrics", "--resamples", "--rewards", "--estimators", "--clips"):
        assert gone not in flags


def test_every_option_is_explained() -> None:
    for path, command in COMMANDS.items():
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, (path, option.name)


# --------------------------------------------------------------------------------------------------------------- light


def test_listed_names_are_those_of_the_catalogues() -> None:
    ours = {name for name, cls in estimators.catalogue().items() if cls.__module__.startswith("truerank.")}
    assert sorted(evaluate_command.ESTIMATORS.split(", ")) == sorted(ours)  # packages beside it may bring more
    assert sorted(offpolicy_command.ESTIMATORS.split(", ")) == sorted(RANKED.catalogue())
    strategies = getattr(option_of("intervene", "--strategy"), "help", "")
    assert sorted(strategies.removesuffix(".").split(", ")) == sorted(interventions.STRATEGIES.catalogue())


@pytest.mark.parametrize(
    ("command", "flag", "kind"),
    [
        ("evaluate", "--ties", Ties), ("evaluate", "--unlisted", Unlisted), ("evaluate", "--overlap", Overlap),
        ("evaluate", "--lists", ListsAre), ("evaluate", "--like", presets.PRESETS), ("offpolicy", "--rows", Logged),
        ("offpolicy", "--normaliser", Normaliser), ("simulate feed", "--break", Broken), ("split", "--by", SplitBy),
        ("study reliability", "--preset", grid.Preset), ("study figures", "--format", PictureFormat),
        ("plan exposure", "--draw", DrawBy),
    ],
)  # fmt: skip
def test_listed_choices_are_those_of_the_values(command: str, flag: str, kind: Any) -> None:
    choices = option_of(command, flag).type
    assert isinstance(choices, click.Choice)
    assert list(choices.choices) == [str(choice) for choice in kind]


def option_of(command: str, flag: str) -> click.Parameter:
    return next(option for option in COMMANDS[tuple(command.split())].params if flag in option.opts)


def test_help_lists_at_most_sixteen_options_and_help_all_every_one() -> None:
    for path, command in COMMANDS.items():
        context = click.Context(command, info_name=" ".join(path))
        short = command.get_help(context)
        options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
        listed = [each for each in options if any(f"  {flag} " in f"{short} " or f", {flag} " in short or
                                                  f"  {flag}\n" in short for flag in each.opts)]  # fmt: skip
        assert len(listed) <= 16, path
        context.meta["truerank.help_all"] = True
        every = command.get_help(context)
        assert all(each.opts[-1] in every for each in options)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("hr@10", "HitRate@10"), ("hit@10", "HitRate@10"), ("Success@10", "HitRate@10"), ("P@10", "Precision@10"),
        ("ndcg_cut_10", "nDCG@10"), ("P_5", "Precision@5"), ("recall_20", "Recall@20"), ("map@10", "AP@10"),
        ("mrr", "RR"),
    ],
)  # fmt: skip
def test_names_of_other_tools_are_taken(text: str, metric: str) -> None:
    assert str(metrics.parse(text)) == metric


def test_a_mistyped_command_is_answered_with_what_may_be_meant(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["truerank", "evalute", "labels.csv"])
    with pytest.raises(SystemExit) as stop:
        truerank.cli.main()
    assert stop.value.code == 2
    assert "Did you mean evaluate?" in capfd.readouterr().err


def test_exposure_is_asked_for_where_nothing_decides_it(run: Run) -> None:
    """A column of propensities, qrels and other options decide it; the message names every kind."""

    def exposure(*words: str) -> str:
        cli.main(["evaluate", *words, "--scores", "a=a.npz", "--metric", "Precision@2", "--out", "r.json", "--quiet"],
                 standalone_mode=False)  # fmt: skip
        return str(json.loads(Path("r.json").read_text())["provenance"]["settings"]["exposure"])

    Path("l.qrels").write_text("1 0 10 1\n1 0 20 0\n2 0 20 1\n")
    labels = Path("labels.csv").read_text().splitlines()
    Path("p.csv").write_text("\n".join([f"{labels[0]},pscore", *(f"{line},0.5" for line in labels[1:])]) + "\n")
    assert (
        exposure("l.qrels") == exposure("labels.csv", "--like", "ranx") == exposure("l.qrels", "--exposure", "holdout")
    )
    assert exposure("p.csv").startswith("biased")
    assert exposure("sample.csv", "--rate", "0.5").startswith("random")
    with refused(r"holdout: .*random: .*designed: .*biased: .*full: "):
        exposure("labels.csv")
