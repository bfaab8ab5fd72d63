"""truerank reproduce."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click

from truerank.cli import terminal
from truerank.cli.catalogued import DATA, SIZE, Catalogued, deliver_list, source_of
from truerank.cli.groups import Inference
from truerank.cli.names import ROOT, names
from truerank.cli.options import (
    FORCE,
    FORMAT,
    OUT,
    PATH,
    QUIET,
    SEED,
    THREADS,
    Sections,
    grouped,
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


@click.group(cls=Catalogued)
def reproduce() -> None:
    """Run the experiments of the papers again, and compare with what was published."""


@reproduce.command(name="list", cls=Sections)
@grouped(Output, FORMAT, OUT, QUIET)
def list_experiments(*, output: Output) -> None:
    """List every experiment: its paper, tables and figures, the data it needs, how long it takes."""
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
    deliver_list(rows, output, what="experiments")


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
    from truerank.report.papers.pages import FOLDER, read_results, write_pages

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with results of experiments.")
    check_place(output.place, kind=FOLDER, force=output.force, inputs=sorted(folder.glob("*.json")))
    for path in write_pages(read_results(folder), output.place, force=output.force):
        terminal.show(str(path))


@click.command(cls=Sections)
@DATA
@SIZE
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
    from truerank.studies.papers.experiment import EXPERIMENTS
    from truerank.studies.papers.run import reproduce as run_experiment
    from truerank.studies.work import StudySize

    inference.check()
    experiment = EXPERIMENTS.named(str(ctx.info_name))()
    source = source_of(experiment.name, () if experiment.instead else experiment.data, data)
    check_drawing()
    with output.resumable(output.place) as report:
        result, notes = run_experiment(
            experiment, source, output.place, size=StudySize(size), seed=inference.seed,
            processes=inference.threads, progress=report,
        )  # fmt: skip
    output.say(notes)
    paths = write(result, output.place)
    texts = {claim.key: claim.text for claim in experiment.claims}
    for finding in result.findings:
        terminal.show(f"{SIGNS[finding.verdict]}: {texts[finding.claim]} {finding.why}")
    for path in paths:
        terminal.show(str(path))


reproduce.add_each(run, identifiers, word="ID", does="Run an experiment")
