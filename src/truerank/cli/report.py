"""truerank report."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.options import PATH, Sections, common, grouped, only
from truerank.cli.output import Output


@click.command(cls=Sections)
@click.argument("path", type=PATH)
@common("metric: Of a study, the metric that is drawn.  [default: nDCG@100, or else the last]")
@grouped(Output, "out!: The page to write, as report.html.")
def report(*, path: Path, metrics: tuple[str, ...], output: Output) -> None:
    """Make one HTML page of results, or of a finished reliability study.

    PATH is a folder that --save has written, results as JSON, or the folder of `truerank study reliability`. The page
    opens offline: the answer in words with its verdict, then all it rests on, in charts and tables.

    \b
    truerank evaluate random.parquet --scores als=als.npz --exposure random --save results
    truerank report results --out report.html
    """
    from truerank.report.page.of_results import check_name, report_of

    output.check([path])
    check_name(output.place, what="--out ")
    output.deliver(report_of(path, metric=only(metrics, "--metric")))
