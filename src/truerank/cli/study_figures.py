"""truerank study figures."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.names import choices
from truerank.cli.options import METRIC, OUT, PATH, Sections, choice, formatted, grouped, listed, numbers, only, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError

ALL = "Only these.  [default: all of the study]"


@click.command(cls=Sections)
@click.argument("folder", metavar="DIR", type=PATH)
@METRIC.here("A metric of the study.  [default: nDCG@100, or else the last]")
@choice(
    "--undefined", ["left-out", "zero"],
    help="Users whose tau is undefined, because all models tie.  [default: left-out]",
)  # fmt: skip
@shared("--of-means", is_flag=True, help="Tau of the models' means over users, not the mean of users' own tau.")
@shared("--loggers", metavar="NAME,...", help=ALL)
@shared("--sparsities", metavar="NUMBER,...", help=ALL)
@shared("--samplers", metavar="NAME,...", help=ALL)
@grouped(
    Output,
    formatted(choices("report/pictures", "PictureFormat"), default="svg"),
    OUT.here("The folder to write to.  [default: DIR/figures]"),
)
def figures(
    *,
    folder: Path,
    metrics: tuple[str, ...],
    undefined: str | None,
    of_means: bool,
    loggers: str | None,
    sparsities: str | None,
    samplers: str | None,
    output: Output,
) -> None:
    """Draw the results of a finished reliability study.

    DIR is the folder of `truerank study reliability`. Four pictures are written: resolution, fidelity, robustness and
    predictive power against the number of sampled negatives, a line with its interval for each sampler, a panel for
    each logger and sparsity.

    \b
    truerank study figures study --format png --loggers popularity --sparsities 0,0.5,0.9
    """
    from truerank.report.reliability_charts import PictureFormat
    from truerank.report.reliability_figures import draw
    from truerank.report.reliability_frames import Tau

    if of_means and undefined is not None:
        raise InputError(f"--undefined {undefined} with --of-means: means have no users to leave out; choose one.")
    paths = draw(
        folder,
        output.out,
        form=PictureFormat(output.chosen_form),
        metric=only(metrics, "--metric"),
        tau=Tau.OF_MEANS if of_means else Tau(undefined or Tau.LEFT_OUT),
        loggers=None if loggers is None else listed(loggers),
        sparsities=None if sparsities is None else numbers(sparsities, "--sparsities", kind=float),
        samplers=None if samplers is None else listed(samplers),
    )
    for question, path in paths.items():
        click.echo(f"{question.value:16} {path}")
