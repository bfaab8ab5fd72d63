"""truerank study figures."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.options import listed, numbers
from truerank.core.errors import InputError
from truerank.report.pictures import PictureFormat
from truerank.report.reliability_figures import draw
from truerank.report.reliability_frames import Tau


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--metric", help="A metric of the study.  [default: nDCG@100, or else the last]")
@click.option(
    "--undefined",
    type=click.Choice([Tau.LEFT_OUT.value, Tau.ZERO.value]),
    help="Users whose tau is undefined, because all models tie.  [default: left-out]",
)
@click.option("--of-means", is_flag=True, help="Tau of the models' means over users, not the mean of users' own tau.")
@click.option("--loggers", metavar="NAME,...", help="Only these.  [default: all of the study]")
@click.option("--sparsities", metavar="NUMBER,...", help="Only these.  [default: all of the study]")
@click.option("--samplers", metavar="NAME,...", help="Only these.  [default: all of the study]")
@click.option(
    "--format",
    "form",
    type=click.Choice([each.value for each in PictureFormat]),
    default=PictureFormat.SVG.value,
    show_default=True,
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The folder to write to.  [default: DIR/figures]")
def figures(  # noqa: PLR0917
    folder: Path,
    metric: str | None,
    undefined: str | None,
    of_means: bool,  # noqa: FBT001
    loggers: str | None,
    sparsities: str | None,
    samplers: str | None,
    form: str,
    out: Path | None,
) -> None:
    """Draw the results of a finished reliability study.

    DIR is the folder of `truerank study reliability`. Four pictures are written: resolution, fidelity, robustness and
    predictive power against the number of sampled negatives, a line with its interval for each sampler, a panel for
    each logger and sparsity.

    \b
    truerank study figures study --format png --loggers popularity --sparsities 0,0.5,0.9
    """
    if of_means and undefined is not None:
        raise InputError(f"--undefined {undefined} with --of-means: means have no users to leave out; choose one.")
    paths = draw(
        folder,
        out,
        form=PictureFormat(form),
        metric=metric,
        tau=Tau.OF_MEANS if of_means else Tau(undefined or Tau.LEFT_OUT),
        loggers=None if loggers is None else listed(loggers),
        sparsities=None if sparsities is None else numbers(sparsities, "--sparsities", kind=float),
        samplers=None if samplers is None else listed(samplers),
    )
    for question, path in paths.items():
        click.echo(f"{question.value:16} {path}")
