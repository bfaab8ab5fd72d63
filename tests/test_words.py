"""What people read speaks the language of the field; docs/glossary.md has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from truerank.cli.commands import COMMANDS, cli
from truerank.core.messages import message

ROOT = Path(__file__).parents[1]
HOUSE = (
    r"judged", r"unjudged", r"st(?:and|ands|ood) for", r"not shown", r"beyond chance", r"turns? round", r"can be had",
    r"no promise", r"keeps? (?:its|their) word", r"holds the truth", r"told again", r"made again", r"unlisted",
    r"worths?", r"earns?", r"chances", r"competes?", r"loggers?",
)  # fmt: skip
WORDS = re.compile(rf"\b(?:{'|'.join(HOUSE)})\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`]*`|--[\w-]+|^    .*$", re.DOTALL | re.MULTILINE)  # names of options and values stay


def commands(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """What the help of a command and of its options says; examples are code."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    yield name, f"{command.help}\n" + "\n".join(f"{option.opts[0]}: {option.help}" for option in options)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


def test_no_house_words_on_pages_in_help_and_in_messages() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    texts = {path.name: CODE.sub("", path.read_text()) for path in pages if path.stem != "catalogue"}
    helped = dict(commands(cli, "truerank"))
    assert len(helped) > 15
    texts |= {name: CODE.sub("", text) for name, text in helped.items()} | COMMANDS
    texts |= {code: re.sub(r"\{[^}]*\}", "", text) for code, (_, text) in message.sentences.items()}
    drawings = {path.name: path.read_text() for path in (ROOT / "docs" / "figures").rglob("*.svg")}
    texts |= {name: "; ".join(re.findall(r">([^<>]+)</text>", drawing)) for name, drawing in drawings.items()}
    found = [f"{name}: {match[0]}" for name, text in sorted(texts.items()) for match in WORDS.finditer(text)]
    assert not found, "\n".join(found)


def test_no_link_is_called_after_a_file() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]:
        assert not re.findall(r"\[`?[\w/-]+\.(?:md|py|json)`?\]\(", page.read_text()), page.name


def test_no_two_pages_have_one_title() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    titles = [path.read_text().splitlines()[0] for path in pages if path.stem != "README"]
    assert len(set(titles)) == len(titles)
