"""truerank demo."""

from __future__ import annotations

import click

from truerank.cli import terminal
from truerank.cli.options import Sections, common, grouped
from truerank.cli.output import Output


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
