"""truerank report and truerank demo."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli import terminal
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

    output.check([path] if path.is_file() else [])
    check_name(output.place, what="--out ")
    output.deliver(report_of(path, metric=only(metrics, "--metric")))


@click.command(cls=Sections)
@common("seed")
@grouped(Output, common("out: The folder for the demo's files.", default="truerank-demo"), "force", "quiet")
def demo(*, seed: int, output: Output) -> None:
    """Evaluate recommenders on a simulated dataset whose truth is known: one question, one picture, one lesson.

    Leaves its files in a folder, so that you can run `truerank evaluate` on them, and then on your own.
    """
    from truerank.report.demo import run_demo

    text = run_demo(output.place, seed=seed, force=output.force, progress=output.progress(), width=terminal.width())
    terminal.write(text.encode())
