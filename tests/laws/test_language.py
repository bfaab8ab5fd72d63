"""One language of values: whatever is in a catalogue is a frozen value whose text parses back to it."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import truerank
from docs.making.catalogue import SECTIONS
from truerank import estimators
from truerank.core.errors import InputError
from truerank.core.language import KINDS, Kind, as_value, as_values, kind_held
from truerank.core.options import Denominator, Drawn
from truerank.core.ranking import Ties
from truerank.core.values import Alternative, Count, Option, check, options_of, text_of
from truerank.exposure import positions, propensities
from truerank.exposure.kinds import EXPOSURES
from truerank.exposure.positions import as_positions, parse_position
from truerank.exposure.propensities import GivenPropensity
from truerank.exposure.propensities.counted import NaiveBayes
from truerank.metrics import METRICS
from truerank.metrics.additive import DCG, Recall
from truerank.ranking.samplers.draw import SAMPLERS

ALL: list[Kind[Any]] = [kind for _, kind, _, _ in SECTIONS]
DATA = {"given"}  # values that hold data have no text
NUMBERS = {int: (1, 2, 7, 0, 10**12), float: (0.5, 1.0, 2.5, 1 / 3, 1e-7, 1e22, 100.0, float("inf"))}
TEXTS = ("other", "a b", 'a"b', "x:y@3(z=1,{2})", "none", "None", "\\", "é", "")


def samples(option: Option) -> Iterator[Any]:
    """Values that a field may have, allowed or not."""
    held = kind_held(option)
    if held is not None:
        yield from (value for name, cls in held.catalogue().items() if name not in DATA for value in instances(cls))
    for each in option.alternatives if held is None else ():
        yield from _samples(each)
    if option.optional:
        yield None


def _samples(each: Alternative) -> Iterator[Any]:
    if each.choices:
        yield from each.choices
    elif each.member is not None:
        yield from ((1.0,), (1.0, 0.5, 1 / 3), (1.0, 1.0), ())
    elif each.type in NUMBERS:
        yield from NUMBERS[each.type]
    else:
        yield from (True, False) if each.type is bool else TEXTS


def made(cls: Any, **fields: Any) -> Any:
    """A value, None where its class refuses it."""
    try:
        return cls(**fields)
    except InputError:
        return None


def instances(cls: Any) -> list[Any]:
    """Values of a class: those with defaults, and with each option changed; none that are refused."""
    options = options_of(cls)
    needed = {name: list(samples(option)) for name, option in options.items() if option.needed}
    bases = [dict(zip(needed, values, strict=True)) for values in product(*needed.values())]
    found = [value for base in bases if (value := made(cls, **base)) is not None]
    assert found, cls
    plain = {name: getattr(found[0], name) for name in needed}
    for name, option in options.items():
        found += [each for value in samples(option) if (each := made(cls, **{**plain, name: value})) is not None]
    changed = {name: next((v for v in samples(o) if made(cls, **{**plain, name: v}) and v != o.default), o.default)
               for name, o in options.items() if not o.needed}  # fmt: skip
    everything = made(cls, **plain, **changed)
    return found if everything is None else [*found, everything]


CLASSES = [pytest.param(kind, cls, id=f"{kind.what} {name}") for kind in ALL for name, cls in kind.catalogue().items()]


def law(kind: Kind[Any], value: Any) -> None:
    """The text of a value parses back to it, to the same hash, and is stable."""
    text = text_of(value)
    again = kind.parse(text)
    assert again == value, text
    assert hash(again) == hash(value)
    assert text_of(again) == text
    assert kind.parse(f"  {text} ") == value


@pytest.mark.parametrize(("kind", "cls"), CLASSES)
def test_text_parses_back_to_an_equal_frozen_value(kind: Kind[Any], cls: Any) -> None:
    found = instances(cls)
    for value in found:
        law(kind, value)
        assert kind.accepts(value)
        assert as_value(text_of(value), kind) == as_value(value, kind) == value
    assert len({text_of(value) for value in found}) == len(set(found))
    assert cls.__dataclass_params__.frozen
    for field in dataclasses.fields(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(found[0], field.name, None)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.what)
def test_names_and_aliases_are_read_in_any_case(kind: Kind[Any]) -> None:
    for name, cls in kind.catalogue().items():
        assert kind.named(name) is kind.named(name.upper()) is kind.named(f" {name.lower()} ") is cls
        for alias in getattr(cls, "aliases", ()):
            assert alias.endswith(":") or kind.named(alias.lower()) is cls


def test_no_kind_is_left_out() -> None:
    """Every kind that a module declares is listed above, or is held by values of one that is."""
    for entry in pkgutil.walk_packages(truerank.__path__, "truerank."):
        if not entry.name.endswith("__main__") and ".learners" not in entry.name:
            importlib.import_module(entry.name)
    nested = {each.type for kind in ALL for cls in kind.catalogue().values() for option in options_of(cls).values()
              for each in option.alternatives}  # fmt: skip
    assert {protocol for protocol in KINDS if protocol not in nested} <= {kind.protocol for kind in ALL}


def test_the_law_tells_a_value_that_forgets_from_one_that_does_not() -> None:
    """Negative control: a value whose text leaves out what matters."""

    @dataclass(frozen=True)
    class Forgetful:
        k: Count = 1
        depth: Any = 0  # data: no text says it
        name: ClassVar[str] = "Forgetful"

    kind: Kind[Any] = Kind("toy", also=(Forgetful,))
    law(kind, Forgetful(5))
    with pytest.raises(AssertionError):
        law(kind, Forgetful(5, depth=3))


# ------------------------------------------------------------------------------------------------------------ the fuzz

WORDS = st.sampled_from(
    [name for kind in ALL for name in kind.catalogue()]
    + [name for kind in ALL for cls in kind.catalogue().values() for name in options_of(cls)]
    + [
        "@",
        ":",
        "(",
        ")",
        ",",
        "=",
        '"',
        "\\",
        "{",
        "}",
        " ",
        "1",
        "0.5",
        "-3",
        "nan",
        "inf",
        "none",
        "true",
        "1" * 5000,
    ]
)
FORMS = st.lists(WORDS | st.text(max_size=3), max_size=12).map("".join) | st.text(max_size=30)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.what)
@examples(150)
@given(text=FORMS)
def test_any_text_is_read_or_refused(kind: Kind[Any], text: str) -> None:
    for read in (kind.parse, kind.parse_all, kind.named):
        try:
            found = read(text)
        except InputError:
            continue
        if read == kind.parse:
            law(kind, found)


@examples(150)
@given(text=FORMS.filter(lambda text: "." not in text))
def test_any_text_is_a_position_or_refused(text: str) -> None:
    try:
        found = parse_position(text)
    except InputError:
        return
    assert parse_position(str(found)) == found


@examples(200)
@given(st.text(min_size=1))
def test_texts_of_any_signs_parse_back(name: str) -> None:
    law(propensities.PROPENSITIES, GivenPropensity(name))
    law(propensities.PROPENSITIES, NaiveBayes(name, Drawn.UNSEEN))


# ------------------------------------------------------------------------------------------------------- forms, borders


def test_values_hold_values() -> None:
    found: Any = estimators.parse("doubly-robust(reward=item-rates(folds=3, strength=5), clip=8)")
    assert (found.reward.folds, found.reward.strength, found.clip) == (3, 5.0, 8.0)
    assert text_of(found) == "doubly-robust(reward=item-rates(folds=3),clip=8)"
    with refused(r"reward model 'given' holds data \(scores\)"):
        estimators.parse("doubly-robust(reward=given)")
    with refused(r"unknown reward model 'item-rats'.*Did you mean item-rates"):
        estimators.parse("doubly-robust(reward=item-rats)")


def test_braces_ask_for_several_numbers() -> None:
    assert METRICS.parse_all("Recall@{1, 2,5}(denominator=smaller)") == [
        Recall(k, Denominator.SMALLER) for k in (1, 2, 5)
    ]
    assert [str(each) for each in SAMPLERS.parse_all("Skew@{10,100}")] == ["Skew@10", "Skew@100"]
    for text in ("Recall@{}", "Recall@{1,x}", "Recall@{1", "AUC@{1,2}", "Recall{1,2}"):
        with pytest.raises(InputError):
            METRICS.parse_all(text)


def test_borders_take_values_or_their_text() -> None:
    both = (Recall(10), DCG(5))
    assert as_values(["Recall@10", DCG(5), "Recall@10"], METRICS, what="metrics") == both
    assert as_values("Recall@{10,20}", METRICS) == (Recall(10), Recall(20))
    assert as_values(Recall(10), METRICS) == both[:1]
    assert as_value("Random", Ties) is as_value(Ties.RANDOM, Ties) is Ties.RANDOM
    assert as_positions("exp:0.5") == as_positions(positions.parse_position("exp:0.5"))
    assert as_positions("a=log,b=log") == as_positions(parse_position("a=log,b=log"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_values(5, METRICS, what="metrics"), "metrics 5; expected a list"),
        (lambda: as_values([5], METRICS, what="metrics"), "metrics 5; expected a metric or its text, one of AP@K"),
        (lambda: as_value(Recall, METRICS), r"Make a value of it: Recall\(\.\.\.\)"),
        (lambda: as_value("lucky", Ties, what="ties"), "ties 'lucky'; expected expected or random"),
        (lambda: as_value(None, Ties, what="ties"), "ties None; expected"),
        (lambda: as_value(Recall(5), EXPOSURES, what="exposure"), "exposure Recall.*expected a exposure or"),
        (lambda: as_positions(3), "position 3; expected"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_is_refused_in_one_sentence(call: Any, message: str) -> None:
    with refused(message):
        call()


def test_a_class_checks_itself_in_python_as_in_text() -> None:
    @dataclass(frozen=True)
    class Toy:
        size: Count = 1
        name: ClassVar[str] = "toy"

        def __post_init__(self) -> None:
            check(self)

    for wrong in (0, True, 1.5, "1", None, 2**63):
        with refused(r"toy: size=.*; expected a whole number from 1"):
            Toy(wrong)  # type: ignore[arg-type]
    assert Toy(2.0) == Toy(2)  # type: ignore[arg-type]
