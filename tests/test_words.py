"""What people read speaks the language of the field; docs/glossary.md has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from truerank.cli.commands import cli
from truerank.core.messages import message

ROOT = Path(__file__).parents[1]
HOUSE = (
    r"judged", r"unjudged", r"st(?:and|ands|ood) for", r"not shown", r"beyond chance", r"turns? round", r"can be had",
    r"no promise", r"keeps? (?:its|their) word", r"holds the truth", r"told again", r"made again", r"unlisted",
    r"worths?", r"earns?", r"chances", r"competes?", r"loggers?",
)  # fmt: skip
WORDS = re.compile(rf"\b(?:{'|'.join(HOUSE)})\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`]*`|--[\w-]+|^    .*$", re.DOTALL | re.MULTILINE)  # names of options and values stay


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    yield command.name or "", command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, info_name=name, parent=context))


def test_no_house_words_on_pages_in_help_and_in_messages() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    texts = {path.name: CODE.sub("", path.read_text()) for path in pages if path.stem != "catalogue"}
    texts |= {name: CODE.sub("", text) for name, text in commands(cli, click.Context(cli, info_name="truerank"))}
    texts |= {code: re.sub(r"\{[^}]*\}", "", text) for code, (_, text) in message.sentences.items()}
    found = [f"{name}: {match[0]}" for name, text in sorted(texts.items()) for match in WORDS.finditer(text)]
    assert not found, "\n".join(found)
