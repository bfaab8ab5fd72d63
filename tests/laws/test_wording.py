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
from tests.laws.test_messages import sample
from truerank.cli.commands import cli
from truerank.cli.outcome import told
from truerank.core.errors import InputError
from truerank.core.lazy_imports import export_stub
from truerank.core.messages import message
from truerank.core.wording import columns_option, either, option, positive_option, worded

PACKAGE = Path(tr.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
PRINTS_COMMANDS = re.compile(r"simulation/demo")  # what readers of the demo type into a terminal
WORDS = "core/wording.py"


MARKS: dict[str, Any] = {
    "option": option,
    "either": either,
    "columns_option": columns_option,
    "positive_option": positive_option,
}


def sentences(tree: ast.AST) -> Iterator[str]:
    """Texts that code can say: all but docstrings; what is filled in stands as filled, options as they are marked."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring, or a text that is said to nobody
            inside |= {id(node.value)} if isinstance(node.value, ast.Constant) else set()
        elif isinstance(node, ast.Call) and _is_mark(node):
            inside |= {id(part) for part in ast.walk(node)}
            yield _text(node)
        elif isinstance(node, ast.JoinedStr):
            yield _text(node)
    yield from (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    )


def _is_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.FormattedValue):
        return _text(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
        named = {word.arg: _text(word.value) for word in node.keywords if word.arg}
        return str(MARKS[node.func.id](*map(_text, node.args), **named))
    return "filled"


def said_by_the_library() -> list[tuple[str, str]]:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if "cli" not in path.relative_to(PACKAGE).parts]
    return [
        (str(path.relative_to(PACKAGE)), text)
        for path in files
        for text in sentences(ast.parse(path.read_text()))
        if path.relative_to(PACKAGE).as_posix() != WORDS and not PRINTS_COMMANDS.search(path.as_posix())
    ]


def table_of_messages() -> list[tuple[str, str]]:
    return [(f"core/sentences.py, {key}", sample(key).marked) for key in message.sentences]


SAID = [*said_by_the_library(), *table_of_messages()]


def flags(group: Any = cli) -> set[str]:
    context, found = click.Context(group), set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found |= flags(command) if isinstance(command, click.Group) else set()
        found |= {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    return found


def arguments() -> set[str]:
    """What public functions take by name."""
    _, names = export_stub("truerank", tr.__file__)
    public = [getattr(tr, name) for name in names() if not name.startswith("_")]
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


def test_an_error_is_told_in_the_words_of_the_reader() -> None:
    error = InputError(f"no catalogue; give {option('items FILE')} or {option('n_items N')}.")
    assert str(error) == "no catalogue; give items= or n_items=."
    assert told(error)[0] == "no catalogue; give --items FILE or --n-items N."
    again = InputError(error)  # raised again, as where a folder is named as the user knows it
    assert told(again)[0] == told(error)[0]


@pytest.mark.parametrize("name", ["{option:force}", "{cli:a|b}", "{0}", "%s", "a{b", "x|y", "\\1"])
def test_names_are_never_templates(name: str) -> None:
    assert worded(f"{name}: {columns_option('user', name)}", for_cli=True) == f"{name}: --columns user={name}"
    error = InputError(f"{name}: wrong")
    assert str(error) == told(error)[0] == f"{name}: wrong"
