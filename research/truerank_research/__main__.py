"""python -m truerank_research list | run NAME --data DIR --out DIR [--quick] | pages."""

from __future__ import annotations

import os
from pathlib import Path

import click

from truerank.core.errors import TruerankError
from truerank_research.results import read_results
from truerank_research.runner import RESULTS, SYNTHETIC, Run, Source, run_study, studies, verdicts

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def main() -> None:
    """Reproductions of papers and validation studies."""


@main.command(name="list")
def list_studies() -> None:
    """List every study: what it asks, the data it reads, the minutes of its full size on two cores."""
    for study in studies().values():
        cost = f"{study.minutes:g} min; {', '.join(study.data) or 'no data'}" if study.measure else study.unavailable
        click.echo(f"{study.name}: {study.question} ({cost})")


@main.command()
@click.argument("name")
@click.option("--data", metavar=f"DIR|{SYNTHETIC}", help="Folder with the data, or a simulated dataset like them.")
@click.option("--out", type=FOLDER, required=True, help="Folder of the run; the same command continues a stopped run.")
@click.option("--quick", is_flag=True, help="A size of seconds, to see that everything works.")
@click.option("--seed", default=0, show_default=True)
@click.option("--processes", default=os.cpu_count() or 1, show_default="all cores")
def run(name: str, data: str | None, out: Path, seed: int, processes: int, *, quick: bool) -> None:
    """Run a study and write its result, NAME.json, into the folder."""
    if name not in studies():
        raise click.BadParameter(f"{name} is no study; see: python -m truerank_research list", param_hint="NAME")
    study = studies()[name]
    if study.data and data is None:
        raise click.UsageError(f"{name} reads {' and '.join(study.data)}: add --data DIR or --data {SYNTHETIC}.")
    folder = None if data in (None, SYNTHETIC) else Path(str(data))
    if folder is not None and not folder.is_dir():
        raise click.BadParameter(f"{folder} does not exist", param_hint="--data")
    try:
        result = run_study(study, Run(Source(folder), not quick, seed, out, processes))
    except TruerankError as error:
        raise click.ClickException(str(error)) from None
    (out / result.file_name).write_bytes(result.encode())
    for claim, verdict, why in verdicts(study, [result]):
        click.echo(f"{verdict}: {claim.text} {why}")
    click.echo(out / result.file_name)


@main.command()
@click.option("--results", type=FOLDER, default=RESULTS, help="Folder with the results of all studies.")
@click.option("--out", type=FOLDER, default=RESULTS.parents[1] / "docs" / "validation")
def pages(results: Path, out: Path) -> None:
    """Write the pages and pictures of all results."""
    from truerank_research.pages.site import site

    out.mkdir(parents=True, exist_ok=True)
    for name, content in site(read_results(results)).items():
        (out / name).write_bytes(content)
        click.echo(out / name)


if __name__ == "__main__":
    main()
