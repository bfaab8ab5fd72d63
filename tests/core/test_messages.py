"""What is said beside numbers: codes for programs, sentences in the words of whoever reads them."""

from __future__ import annotations

import math

import pytest
from refusals import refused

from truerank.core.messages import Message, Severity
from truerank.core.wording import option, worded


@pytest.mark.parametrize(
    ("text", "for_cli", "for_python"),
    [
        ("plain text stays as it is.", "plain text stays as it is.", "plain text stays as it is."),
        (f"give {option('exclude')}.", "give --exclude.", "give exclude=."),
        (f"{option('n_items')} or {option('items')}", "--n-items or --items", "n_items= or items="),
        (f"use {option('overlap drop')}", "use --overlap drop", 'use overlap="drop"'),
        (f"use {option('rate 0.5')}", "use --rate 0.5", "use rate=0.5"),
        (f"use {option('clip -1')}", "use --clip -1", "use clip=-1"),
        (f"{option('bootstrap 1000', 'interval=Bootstrap(1000)')}", "--bootstrap 1000", "interval=Bootstrap(1000)"),
        (f"{option('exposure biased', 'exposure=BiasedExposure()')}", "--exposure biased", "exposure=BiasedExposure()"),
        # all else is text: braces, line breaks, percent signs
        ("{x} {option:items} 5% {{}} \\1", *["{x} {option:items} 5% {{}} \\1"] * 2),
        (f"a\nb {option('seed')}", "a\nb --seed", "a\nb seed="),
    ],
)
def test_options_are_spelled_for_the_reader(text: str, for_cli: str, for_python: str) -> None:
    assert (worded(text, for_cli=True), worded(text, for_cli=False)) == (for_cli, for_python)
    message = Message("code", Severity.NOTE, text)
    assert (message.said(for_cli=True), message.said(for_cli=False)) == (for_cli, for_python)
    assert str(message) == for_python


@pytest.mark.parametrize("code", ["", "Few", "few_users", "-few", "few-", "few--users", "few users", "3-users"])
def test_codes_are_in_kebab_case(code: str) -> None:
    with refused("expected small letters with hyphens"):
        Message(code, Severity.NOTE, "text")


def test_numbers_are_plain_and_no_longer_those_of_the_caller() -> None:
    given: dict[str, float | int | str | None] = {"a": math.nan, "b": math.inf, "c": 1, "d": "text"}
    message = Message("code", Severity.NOTE, "text", numbers=given)
    given["a"] = 2
    assert message.numbers == {"a": None, "b": "inf", "c": 1, "d": "text"}
