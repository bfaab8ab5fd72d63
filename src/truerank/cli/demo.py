"""truerank demo."""

from __future__ import annotations

import click

from truerank.cli import terminal
from truerank.cli.names import names
from truerank.cli.options import FORCE, OUT, QUIET, SEED, Sections, grouped, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError

TOPICS = names("studies/demo/topics")


@click.command(cls=Sections)
@shared("--all", "every", is_flag=True, help="Tell every topic.")
@shared("--topic", type=click.Choice(TOPICS), help="Tell one topic instead of the one question.")
@SEED
@grouped(Output, OUT.here("The folder for the demo's files.", default="truerank-demo", show_default=True), FORCE, QUIET)
def demo(*, every: bool, topic: str | None, seed: int, output: Output) -> None:
    """Hide a world whose truth is known, evaluate recommenders, and see which way to do so finds the truth.

    One question, one picture, one lesson; the rest with --all or --topic. Leaves its files in a folder, so that you can
    run `truerank evaluate` on them, and then on your own.
    """
    if every and topic is not None:
        raise InputError("--all tells every topic, --topic one; give one of them.")
    from truerank.report.demo import story

    told = story(
        output.place, TOPICS if every else [] if topic is None else [topic], seed=seed, force=output.force,
        progress=output.progress(), width=terminal.width(),
    )  # fmt: skip
    terminal.write(told.encode())
