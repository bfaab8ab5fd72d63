"""The table of messages: every sentence can be filled for either reader, and every call of the table fills it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import truerank as tr
from truerank.core import messages
from truerank.core.messages import Message, message

PACKAGE = Path(tr.__file__).parent
SENTENCES = message.sentences


def fields(key: str) -> set[str]:
    """The figures and names that the sentence of a key needs."""
    return {name for _, name, _, _ in Formatter().parse(SENTENCES[key][1]) if name} - {"option"}


def sample(key: str) -> Message:
    """A message of a key, with 1 for every figure and a name that looks like a field for every name."""
    formats = {name: spec for _, name, spec, _ in Formatter().parse(SENTENCES[key][1]) if name}
    values = {name: 1 if spec else "{name}" for name, spec in formats.items() if name != "option"}
    return message(key, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", SENTENCES)
def test_every_sentence_can_be_filled_for_either_reader(key: str) -> None:
    made = sample(key)
    assert (made.code, made.severity) == (key.partition(".")[0], SENTENCES[key][0])
    for for_cli in (True, False):
        text = made.said(for_cli=for_cli)
        assert text
        assert not re.search(r"[{}|]", text.replace("{name}", ""))
    assert str(made) == made.said(for_cli=False)


@pytest.mark.parametrize("key", [key for key in SENTENCES if fields(key)])
def test_a_sentence_without_its_figures_reaches_nobody(key: str) -> None:
    with pytest.raises(KeyError):
        message(key)


def calls() -> Iterator[tuple[str, ast.Call, ast.AST]]:
    """Every call of the table in the library, with the function (or module) it stands in."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree, seen = ast.parse(path.read_text()), set[int]()
        for scope in [*(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), tree]:
            for node in ast.walk(scope):
                made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "message"
                if isinstance(node, ast.Call) and made and id(node) not in seen:
                    seen.add(id(node))
                    yield str(path.relative_to(PACKAGE)), node, scope


def keys(node: ast.expr, scope: ast.AST) -> set[str]:
    """The keys that the first argument of a call can be."""
    if isinstance(node, ast.Name) and not hasattr(messages, node.id):
        values = [each.value for each in ast.walk(scope) if isinstance(each, ast.Assign) and node.id in _names(each)]
        return {key for value in values for key in keys(value, scope)}
    if isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else ".*" for part in node.values]
        return {key for key in SENTENCES if re.fullmatch("".join(parts), key)}
    if isinstance(node, ast.IfExp):
        return keys(node.body, scope) | keys(node.orelse, scope)
    return {eval(ast.unparse(node), vars(messages))}  # a text, or a code that has a name


def _names(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def test_every_message_that_is_made_fills_its_sentence() -> None:
    used: set[str] = set()
    for where, call, scope in calls():
        made = keys(call.args[0], scope)
        assert made <= set(SENTENCES), f"{where}: {made - set(SENTENCES)}"
        used |= made
        filled = {word.arg for word in call.keywords}
        if None not in filled:
            lacking = {key: fields(key) - filled for key in made if fields(key) - filled}
            assert not lacking, f"{where}, line {call.lineno}: {lacking}"
    assert used == set(SENTENCES)


def test_names_are_never_templates() -> None:
    made = message("scored-outside", model="{items} {option:force}", items=3, subjects=("a",))
    assert str(made).startswith("{items} {option:force}: 3 scored items")
    assert (made.numbers, made.subjects) == ({"items": 3}, ("a",))
