"""truerank reproduce."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click

from truerank.cli import terminal
from truerank.cli.groups import Inference
from truerank.cli.names import ROOT, choices, names
from truerank.cli.options import (
    FORCE,
    FORMAT,
    OUT,
    PATH,
    QUIET,
    SEED,
    THREADS,
    Sections,
    choice,
    grouped,
    shared,
)
from truerank.cli.output import Output
from truerank.core.errors import InputError

PAPERS = "studies/papers"
NAME = re.compile(r"E-[A-Z]\d+")  # of an experiment


@cache
def identifiers() -> list[str]:
    """The names of all experiments, read from the source; those of their pieces are none."""
    folders = sorted(each.name for each in (ROOT / PAPERS).iterdir() if (each / "__init__.py").is_file())
    return sorted(name for name in names(*(f"{PAPERS}/{each}" for each in folders)) if NAME.fullmatch(name))


class Experiments(click.Group):
    """A group in which every experiment is a command, in any case."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *identifiers()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = {each.lower(): each for each in identifiers()}.get(cmd_name.lower())
        return super().get_command(ctx, cmd_name) if own is None else _command(own)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            own = [(name, command.get_short_help_str(100)) for name, command in self.commands.items()]
            formatter.write_dl([*own, ("ID", f"Run an experiment: {', '.join(identifiers())}.")])


@click.group(cls=Experiments)
def reproduce() -> None:
    """Run the experiments of the papers again, and compare with what was published."""


@reproduce.command(name="list", cls=Sections)
@grouped(Output, FORMAT, OUT, QUIET)
def list_experiments(*, output: Output) -> None:
    """List every experiment: its paper, tables and figures, the data it needs, how long it takes."""
    from truerank.report.text import as_csv, as_json, as_lines, encoded
    from truerank.studies.papers.experiment import catalogued, paper_of

    output.check()
    rows = [
        {
            "experiment": cls.name,
            "paper": f"{paper_of(cls).title} ({paper_of(cls).authors}, {paper_of(cls).year})",
            "shows": "; ".join(
                f"{part}{'' if paper == paper_of(cls) else f' of {paper.title}'}"
                for paper, parts in cls.shows.items()
                for part in parts
            ),
            "about": cls.about,
            "data": ", ".join(cls.data) or "none",
            "minutes": None if cls.instead else cls.minutes,
            "not here": cls.instead,
        }
        for cls in catalogued()
    ]
    if output.chosen_form == "json":
        output.deliver(as_json({"experiments": rows}))
        return
    if output.chosen_form == "csv":
        output.deliver(as_csv(rows))
        return
    told = [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]
    output.deliver(encoded("\n".join(map(as_lines, told))))


@reproduce.command(cls=Sections)
@click.argument("folder", metavar="DIR", type=PATH)
@grouped(Output, OUT.here("The folder of the pages.", required=True), FORCE)
def pages(*, folder: Path, output: Output) -> None:
    """Make the pages of all results in a folder: one for each paper, and a front page.

    DIR holds the result files of experiments, E-D1.json and so on, as `truerank reproduce ID` leaves them.

    \b
    truerank reproduce pages docs/results/reproduced --out docs/results/papers --force
    """
    from truerank.data.folders import check_place
    from truerank.report.papers.pages import KIND, read_results, write_pages

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with results of experiments.")
    check_place(output.place, kind=KIND, force=output.force, inputs=sorted(folder.glob("*.json")))
    for path in write_pages(read_results(folder), output.place, force=output.force):
        terminal.show(str(path))


@click.command(cls=Sections)
@shared("--data", metavar="DIR|synthetic", help="The folder with the data, or a synthetic world of the same shape.")
@choice(
    "--size", choices(f"{PAPERS}/experiment", "ReproducedSize"), default="full", help="All of it, or little of all."
)
@grouped(Inference, SEED, THREADS)
@grouped(Output, OUT.here("The folder of the run.", required=True), QUIET)
@click.pass_context
def run(ctx: click.Context, /, *, data: str | None, size: str, inference: Inference, output: Output) -> None:
    """Run an experiment, and compare what it obtains with what was published.

    Stopped at any moment, the same command goes on where it was. In the end the folder holds the results (ID.json: all
    of them, settings and a verdict for each claim), obtained.csv (a row for each number: obtained, published),
    report.md and the pictures. `truerank reproduce list` says which data an experiment reads.

    \b
    truerank reproduce E-D2 --data data/movielens_1m --out E-D2
    truerank reproduce E-D2 --data synthetic --size quick --out E-D2-quick
    """
    from truerank.report.papers.graphs import check_drawing
    from truerank.report.papers.pages import SIGNS
    from truerank.report.papers.written import write
    from truerank.studies.papers.experiment import EXPERIMENTS, ReproducedSize, ReproducedSource
    from truerank.studies.papers.run import reproduce as run_experiment

    inference.check()
    experiment = EXPERIMENTS.named(str(ctx.info_name))()
    if experiment.data and data is None and not experiment.instead:
        wanted = " and ".join(experiment.data)
        raise InputError(f"{experiment.name} reads {wanted}: say --data DIR, or --data synthetic.")
    source = ReproducedSource() if data is None else ReproducedSource.of(data)
    check_drawing()
    try:
        with output.progress() as report:
            result, notes = run_experiment(
                experiment, source, output.place, size=ReproducedSize(size), seed=inference.seed,
                processes=inference.threads, progress=report,
            )  # fmt: skip
    except KeyboardInterrupt:
        output.say([f"{output.place}: what is done is kept; the same command goes on from there."])
        raise
    output.say(notes)
    paths = write(result, output.place)
    texts = {claim.key: claim.text for claim in experiment.claims}
    for finding in result.findings:
        terminal.show(f"{SIGNS[finding.verdict]}: {texts[finding.claim]} {finding.why}")
    for path in paths:
        terminal.show(str(path))


@cache
def _command(name: str) -> click.Command:
    """The command of one experiment: its name is what it runs."""
    return type(run)(name, callback=run.callback, params=run.params, help=run.help)
