"""truerank study NAME, list, pages and pack: studies of our own, and those that come with the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import click

from truerank.cli import terminal
from truerank.cli.catalogued import DATA, SIZE, deliver_list, source_of
from truerank.cli.groups import Inference
from truerank.cli.names import ROOT, names
from truerank.cli.options import FORCE, FORMAT, OUT, PATH, QUIET, SEED, THREADS, Sections, grouped
from truerank.cli.output import Output
from truerank.core.errors import InputError

OWN = "studies/own"


@cache
def study_names() -> list[str]:
    """The names of all studies, read from the source."""
    below = [each.relative_to(ROOT).parent.as_posix() for each in (ROOT / OWN).rglob("__init__.py")]
    return sorted(names(*below))


@click.command(name="list", cls=Sections)
@grouped(Output, FORMAT, OUT, QUIET)
def list_studies(*, output: Output) -> None:
    """List every study of our own: what it asks, the data it needs, how long it takes."""
    from truerank.studies.calibration import found as calibration
    from truerank.studies.own.study import STUDIES
    from truerank.studies.truth import found as truth

    output.check()
    rows = [
        {"study": name, "about": cls.about, "data": ", ".join(cls.data) or "none", "minutes": cls.minutes}
        for name, cls in STUDIES.catalogue().items()
    ]
    of_draws = [
        {"study": "calibration", "about": calibration.ABOUT, "data": "none", "minutes": calibration.MINUTES},
        {
            "study": "truth",
            "about": truth.ABOUT,
            "data": f"{', '.join(truth.REAL)}, if given",
            "minutes": truth.MINUTES,
        },
    ]  # commands of their own, whose number of draws is chosen
    deliver_list(sorted([*rows, *of_draws], key=lambda row: str(row["study"])), output, what="studies")


@click.command(cls=Sections)
@click.argument("folder", metavar="DIR", type=PATH)
@grouped(Output, OUT.here("The folder of the pages.", required=True), FORCE.here("Replace pages that are there."))
def pages(*, folder: Path, output: Output) -> None:
    """Make the pages of all results in a folder, each with its picture.

    DIR holds the result files of studies, watch.json and so on, as `truerank study NAME` leaves them.

    \b
    truerank study pages docs/results/studied --out docs/results --force
    """
    from truerank.report.study_pages import write_pages
    from truerank.studies.own.result import read_results

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with results of studies.")
    for path in write_pages(read_results(folder), output.place, force=output.force):
        terminal.show(str(path))


@click.command(cls=Sections)
@DATA
@SIZE
@grouped(Inference, THREADS)
@grouped(Output, OUT.here("The folder of the work and of the packed studies.", required=True), QUIET)
def pack(*, data: str | None, size: str, inference: Inference, output: Output) -> None:
    """Make the reliability studies that come with the package, by which `truerank advise` goes without --study.

    Stopped at any moment, the same command goes on where it was. In the end the folder holds a packed study for each
    world, kuairec and jester: tables of scenarios in three digits, and the terms of the data.

    \b
    truerank study pack --data data --out packed
    truerank study pack --data synthetic --size quick --out packed-quick
    """
    from truerank.studies.papers.reliability.packed import DATASETS, pack_studies
    from truerank.studies.work import StudySize

    source = source_of("pack", DATASETS, data)
    with output.resumable(output.place) as report:
        made, notes = pack_studies(
            source, output.place, size=StudySize(size), processes=inference.threads, progress=report
        )
    output.say(notes)
    for path in made:
        terminal.show(str(path))


@click.command(cls=Sections)
@DATA
@SIZE
@grouped(Inference, SEED, THREADS)
@grouped(Output, OUT.here("The folder of the study.", required=True), QUIET)
@click.pass_context
def run(ctx: click.Context, /, *, data: str | None, size: str, inference: Inference, output: Output) -> None:
    """Run a study of our own, and write its page.

    Stopped at any moment, the same command goes on where it was. In the end the folder holds the results (NAME.json:
    tables and settings), the page that they make (NAME.md) and its picture. `truerank study list` says which data a
    study reads.

    \b
    truerank study watch --out watch
    truerank study watch --size quick --out watch-quick
    """
    from truerank.report.study_pages import check_drawing, write_run
    from truerank.studies.own.run import run_study
    from truerank.studies.own.study import STUDIES
    from truerank.studies.work import StudySize

    inference.check()
    study = STUDIES.named(str(ctx.info_name))()
    source = source_of(study.name, study.data, data)
    check_drawing()
    with output.resumable(output.place) as report:
        result, notes = run_study(
            study, source, output.place, size=StudySize(size), seed=inference.seed,
            processes=inference.threads, progress=report,
        )  # fmt: skip
    output.say(notes)
    for path in write_run([result], output.place):
        terminal.show(str(path))
