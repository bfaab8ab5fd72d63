"""truerank demo."""

from __future__ import annotations

import click

from truerank.cli import terminal
from truerank.cli.options import FORCE, OUT, QUIET, SEED, Sections, grouped
from truerank.cli.output import Output


@click.command(cls=Sections)
@SEED
@grouped(Output, OUT.here("The folder for the demo's files.", default="truerank-demo", show_default=True), FORCE, QUIET)
def demo(*, seed: int, output: Output) -> None:
    """Hide a world whose truth is known, evaluate five recommenders in every way, and see which way finds the truth.

    Leaves its files in a folder, so that you can run `truerank evaluate` on them, and then on your own.
    """
    from truerank.report.demo import story

    told = story(output.place, seed=seed, force=output.force, progress=output.progress(), width=terminal.width())
    terminal.write(told.encode())
