"""Python callers read arguments, the command line its flags: no sentence of the library names the other's words."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import truerank as tr
from truerank.cli.commands import cli
from truerank.cli.outcome import told
from truerank.core.errors import InputError
from truerank.core.wording import columns_option, worded

PACKAGE = Path(tr.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OPTION = re.compile(r"\{option:([a-z_]+)")
PRINTS_COMMANDS = re.compile(r"simulation/demo/")  # what readers of the demo type into a terminal
WORDS = "core/wording.py"


def sentences(tree: ast.AST) -> Iterator[str]:
    """Texts that code can say: all but docstrings; what is filled in stands as filled."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring, or a text that is said to nobody
            inside |= {id(node.value)} if isinstance(node.value, ast.Constant) else set()
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "filled" for part in node.values)
    yield from (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    )


def said_by_the_library() -> list[tuple[str, str]]:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if "cli" not in path.relative_to(PACKAGE).parts]
    return [
        (str(path.relative_to(PACKAGE)), text)
        for path in files
        for text in sentences(ast.parse(path.read_text()))
        if path.relative_to(PACKAGE).as_posix() != WORDS and not PRINTS_COMMANDS.search(path.as_posix())
    ]


SAID = said_by_the_library()


def flags(group: Any = cli) -> set[str]:
    context, found = click.Context(group), set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found |= flags(command) if isinstance(command, click.Group) else set()
        found |= {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    return found


def arguments() -> set[str]:
    """What public functions take by name."""
    public = [getattr(tr, name) for name in dir(tr) if not name.startswith("_")]
    modules = [each for each in public if inspect.ismodule(each)]
    public += [getattr(module, name) for module in modules for name in dir(module) if not name.startswith("_")]
    called = [each for each in public if callable(each) and getattr(each, "__module__", "").startswith("truerank")]
    methods = [getattr(each, name) for each in called if inspect.isclass(each) for name in vars(each) if name[0] != "_"]
    return {
        name
        for each in (*called, *filter(callable, methods))
        for name in inspect.signature(each).parameters
    }  # fmt: skip


def test_no_sentence_for_python_names_a_flag() -> None:
    wrong = [(where, text) for where, text in SAID if FLAG.search(worded(text, for_cli=False))]
    assert not wrong


def test_every_option_that_is_named_is_one_of_some_command() -> None:
    known = flags()
    named = {(where, found) for where, text in SAID for found in FLAG.findall(worded(text, for_cli=True))}
    assert len(named) > 40
    assert {(where, flag) for where, flag in named if flag not in known and "filled" not in flag} == set()


def test_every_argument_that_is_named_is_one_of_some_function() -> None:
    known = arguments()
    wrong = []
    for where, text in SAID:
        if "{option:" not in text:
            continue
        for token in re.findall(r"\{option:(?:[^{}]|\{[^{}]*\})*\}", text):
            words = worded(token, for_cli=False)
            name = re.search(r"([a-z_]+)=", words)
            if "=" in words and "filled" not in words and (name is None or name[1] not in known):
                wrong.append((where, words))
    assert not wrong


def test_what_is_written_for_either_reader_is_understood() -> None:
    """A mistake in a placeholder would show it to the reader."""
    for where, text in SAID:
        if not re.search(r"\{(option|cli):", text):
            continue
        assert not re.search(r"\{(option|cli):", worded(text, for_cli=True) + worded(text, for_cli=False)), where


def test_the_walk_finds_what_it_looks_for() -> None:
    tree = ast.parse(
        '"""--doc"""\ndef f(n):\n    "--doc"\n    raise E(f"{n}: say --items " "or --n-items")\nx = "--y"\n'
    )
    assert sorted(sentences(tree)) == ["--y", "filled: say --items or --n-items"]
    assert {"--items", "--columns", "--like"} <= flags()
    assert {"items", "columns", "like", "exclude", "interval"} <= arguments()


def test_an_error_is_told_in_the_words_of_the_reader() -> None:
    error = InputError("no catalogue; give {option:items FILE} or {option:n_items N}.")
    assert str(error) == "no catalogue; give items= or n_items=."
    assert told(error)[0] == "no catalogue; give --items FILE or --n-items N."
    again = InputError(error)  # raised again, as where a folder is named as the user knows it
    assert told(again)[0] == told(error)[0]


@pytest.mark.parametrize("name", ["a{b", "x|y", "}"])
def test_names_of_columns_that_would_break_the_words_are_left_out(name: str) -> None:
    text = columns_option("user", name)
    assert worded(text, for_cli=True) == "--columns user=NAME"
    assert worded(text, for_cli=False) == 'truerank.read(..., columns={"user": "NAME"})'


def test_a_frame_without_columns_is_refused_in_words_of_python() -> None:
    import polars as pl

    odd = pl.DataFrame({"who": [1], "what": [2]})
    with pytest.raises(
        InputError, match=r'labels: no column .user.*truerank\.read\(\.\.\., columns=\{"user": "who"\}\)'
    ):
        tr.evaluate({"m": {1: [2]}}, odd, exposure="holdout")
    with pytest.raises(InputError, match=r'm: no column .user.*truerank\.scores\.lists\(\.\.\., columns=\{"user"'):
        tr.evaluate({"m": odd}, {1: [2]}, exposure="holdout")
