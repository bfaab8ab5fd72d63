"""The commands: thin, and each loads only when it is called."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from truerank.cli.terminal import drop_output
from truerank.version import __version__

# a line for the help page of each command
COMMANDS = {
    "evaluate": "Which recommender is better, by how much, and how sure is that.",
    "offpolicy": "Would the new ranker win: from a log of the old one.",
    "watch": "Monitor a comparison while data arrive, and stop when it is decided.",
    "plan": "How much data a difference needs, and which items to expose.",
    "report": "Write an HTML report of results or of a study.",
    "intervene": "Draw a less biased test set from a biased log.",
    "split": "Split a log into training and test files.",
    "train": "Train a recommender on a log and write its scores.",
    "study": "Measure how reliable sampled and biased evaluation is.",
    "advise": "What kind of data you have, and which command to run next.",
    "simulate": "Simulate data with known true values.",
    "demo": "A simulated example with known true values, and its files.",
}
MODULES = {"watch": "evaluate", "intervene": "data", "split": "data", "simulate": "data", "demo": "report"}


@contextmanager
def _readers_may_leave() -> Iterator[None]:
    """A pipe that nobody reads any more is no error, which it is to click."""
    try:
        yield
    except BrokenPipeError:
        drop_output()
        raise click.exceptions.Exit(0) from None


class LazyGroup(click.Group):
    """A group that imports a command only to run it or to show its own help."""

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with _readers_may_leave():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with _readers_may_leave():
            return super().invoke(ctx)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """A mistyped command is refused with what may have been meant."""
        close = difflib.get_close_matches(args[0], COMMANDS, n=1) if args[0] not in COMMANDS else []
        if close:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"truerank.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="truerank")
def cli() -> None:
    """Estimate which recommender or ranker is better when labels are partial.

    Start with `truerank demo`: it simulates a dataset with known true values, compares two ways to evaluate with
    them, and leaves the files. For your own data, start with `truerank advise`.
    """
