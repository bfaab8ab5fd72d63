"""The command line: thin, and each command loads only when it is called."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import warnings
from types import FrameType
from typing import Any

import click

from truerank.core.errors import InputError, TruerankError
from truerank.version import __version__

# command: (module, name in it, one line for the help page)
COMMANDS = {
    "evaluate": (
        "truerank.cli.evaluate",
        "evaluate",
        "Which recommender is better, by how much, and how sure is that.",
    ),
    "offpolicy": (
        "truerank.cli.offpolicy",
        "offpolicy",
        "Would the new ranker win: from a log of the old one.",
    ),
    "intervene": (
        "truerank.cli.intervene",
        "intervene",
        "Draw a less biased test set from a biased log.",
    ),
    "models": ("truerank.cli.learning", "models", "The recommenders that can be trained, and their settings."),
    "train": ("truerank.cli.learning", "train", "Train a recommender on a log and write its scores."),
    "tune": ("truerank.cli.learning", "tune", "Search for good settings of a recommender, resumably."),
    "study": ("truerank.cli.study", "study", "Measure how far a way to evaluate can be trusted."),
    "advise": ("truerank.cli.advise", "advise", "Which candidates to sample on a log like yours, by a study."),
    "simulate": ("truerank.cli.simulate", "simulate", "Make data whose truth is known."),
    "data": ("truerank.cli.data", "data", "Look at data files, and at public datasets."),
    "demo": ("truerank.cli.demo", "demo", "A small world with known truth, end to end."),
}


class LazyGroup(click.Group):
    """A group that imports a command only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="truerank")
def cli() -> None:
    """Tell which recommender is truly better, from data that shows only part of the truth.

    Start with `truerank demo`: it makes a small world, hides it, evaluates recommenders in every way, and leaves the
    files for you to play with.
    """


def main() -> None:
    """Run a command: 0 done, 1 internal error, 2 wrong input or call, 3 interrupted; 4 and 5 see `--require`."""
    signal.signal(signal.SIGTERM, _stop)
    warnings.formatwarning = _as_line
    try:
        code = cli.main(standalone_mode=False)  # click gives the code of an Exit back
        if isinstance(code, int) and code:
            _leave(code)
    except click.exceptions.Exit as stop:
        _leave(stop.exit_code)
    except click.ClickException as error:
        error.show(sys.stderr)
        _leave(2)
    except InputError as error:
        _say(str(error))
        _leave(2)
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted.")
        _leave(3)
    except BrokenPipeError:
        # the reader of standard output has left; what it read was whole as far as it went
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _leave(0)
    except MemoryError as error:
        from truerank.core.sizes import out_of_memory

        _say(out_of_memory(error))
        _leave(2)
    except TruerankError as error:
        _say(str(error))
        _leave(1)
    except Exception as error:
        if os.environ.get("TRUERANK_DEBUG"):
            raise
        _say(f"internal error, {type(error).__name__}: {error}. Set TRUERANK_DEBUG=1 to see where, and report it.")
        _leave(1)


def _stop(signum: int, frame: FrameType | None) -> Any:
    raise KeyboardInterrupt


def _as_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning of a library as one line: what it says, without the place in a source that says nothing to a user."""
    return f"truerank: {' '.join(str(message).split())}\n"


def _say(message: str) -> None:
    click.echo(f"truerank: {message}", err=True)


def _leave(code: int) -> None:
    sys.exit(code)
