"""One language of values: `Name@number(option=value,...)`, or `name:value:value@number` for short.

Every metric, estimator, exposure, propensity and position model, logger, sampler, intervention, recommender and dataset
is a value of a kind: a frozen dataclass with a `name`, in the kind's package. What can be written is read from its
fields (core.values), so that a new class adds nothing here:

    @           fills the field called k, n, p or cutoff
    :           fills the fields that the class lists as `positional`, in order; a last tuple takes all that follow
    (...)       fills any option by name; a value can have options of its own: doubly-robust(reward=item-rates(folds=3))
    aliases     other names of a class; one that ends with a colon stands for it only where `:` follows
    "..."       a text that holds a sign of the language

`parse` and `text_of` are inverse to each other. Python takes values or their text by `as_value` and `as_values`.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar

from truerank.core.errors import InputError
from truerank.core.plugins import INSTALL, RESEARCH, plugins
from truerank.core.record import record
from truerank.core.values import (
    Alternative,
    Option,
    at_of,
    first_that_fits,
    form_of,
    is_nested,
    name_of,
    options_of,
    pieces,
    positional_of,
    words_of,
)

OUTSIDE = re.compile(r'(?:[^"(]|"(?:[^"\\]|\\.)*")*', re.DOTALL)  # up to a bracket that is not in quotes
TREC = re.compile(r"^([A-Za-z]+)(?:_cut)?_([0-9]+)$")  # how trec_eval writes a cut-off
SEVERAL = re.compile(r"@\s*\{([^{}]*)\}")

T = TypeVar("T")


@record
class Kind(Generic[T]):
    """A kind of value: its word in messages, and where its classes are.

    These are the classes of a package's modules, or of a module, that have all members of `protocol`; those listed as
    `also`; and those of other packages, found by entry points of `group`. `otherwise` is what to say of a name that
    resembles no other, `experimental` are names that truerank-research has.
    """

    what: str
    package: str | None = None
    protocol: Any = None
    also: tuple[type[Any], ...] = ()
    otherwise: str = ""
    among: Callable[[type[Any]], bool] | None = None  # which of the classes, where not all
    group: str = ""
    experimental: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.protocol is not None:
            KINDS[self.protocol] = self

    def catalogue(self) -> dict[str, type[Any]]:
        """Every class of the kind by name."""
        return _catalogue(self)

    def named(self, name: str) -> type[Any]:
        """The class of a name or alias in any case; an unknown one is refused with what there is."""
        return self.class_of(name, name)

    def parse(self, text: str) -> T:
        """The value of a text form; `ndcg_cut_10` and `P_10` of trec_eval are `ndcg@10` and `P@10`."""
        value: T = _parsed(self, TREC.sub(r"\1@\2", text.strip()) if isinstance(text, str) else text)
        return value

    def parse_all(self, text: str) -> list[T]:
        """The values of a text form in which braces list several numbers: `Recall@{1,5}` is Recall@1 and Recall@5."""
        braces = SEVERAL.search(text) if isinstance(text, str) else None
        if braces is None:
            return [self.parse(text)]
        numbers = [number.strip() for number in braces[1].split(",")]
        return [self.parse(f"{text[: braces.start()]}@{number}{text[braces.end() :]}") for number in numbers]

    def forms(self) -> list[str]:
        """What to write for each class, for messages and help."""
        return sorted(map(form_of, self.catalogue().values()), key=str.casefold)

    def accepts(self, value: Any) -> bool:
        """Whether it is a value of this kind, of one's own class too."""
        if isinstance(value, type) or self.protocol is None:
            return isinstance(value, self.also)
        return isinstance(value, self.also) or all(hasattr(value, name) for name in _members(self.protocol))

    def class_of(self, name: str, text: str, *, colon: bool = False) -> type[Any]:
        """The class of a name in a text, where a colon follows it or not."""
        classes = _names(self)
        key = name.strip().lower()
        if colon and f"{key}:" in classes:
            return classes[f"{key}:"]
        if key not in classes and key in self.experimental:
            raise InputError(
                f"{key} is an experimental {self.what}, which the package {RESEARCH} adds: pip install {INSTALL}."
            )
        if key not in classes:
            close = difflib.get_close_matches(key, classes, n=1)
            rest = text[len(name) :] if text.startswith(name) else ""  # such as @10
            hint = (
                f"Did you mean {name_of(classes[close[0]])}{rest}?"
                if close
                else self.otherwise.format(name=key or "NAME")
            )
            there = ", ".join(self.forms())
            raise InputError(f"unknown {self.what} {text!r}; expected one of {there}. {hint}".strip())
        return classes[key]


KINDS: dict[Any, Kind[Any]] = {}  # every kind that has been loaded, by its protocol


@cache
def _catalogue(kind: Kind[Any]) -> dict[str, type[Any]]:
    members = [] if kind.package is None else classes(kind.package, kind.protocol)
    offered = plugins(kind.group).values() if kind.group else ()
    used = [cls for cls in (*members, *kind.also, *offered) if kind.among is None or kind.among(cls)]
    return {name_of(cls): cls for cls in used}


@cache
def _names(kind: Kind[Any]) -> dict[str, type[Any]]:
    """Classes by name and alias, in lower case."""
    classes = kind.catalogue().values()
    aliases = {alias.lower(): cls for cls in classes for alias in getattr(cls, "aliases", ())}
    return aliases | {name_of(cls).lower(): cls for cls in classes}


def classes(package: str, protocol: Any) -> list[type[Any]]:
    """The classes of a package's modules, or of one module, with all members of a protocol."""
    root = importlib.import_module(package)
    modules = [package]
    if hasattr(root, "__path__"):
        modules = sorted(entry.name for entry in pkgutil.iter_modules(root.__path__, f"{package}."))
    wanted = _members(protocol)
    members: list[type[Any]] = []
    for module in modules:
        contents = importlib.import_module(module)
        for value in vars(contents).values():
            local = isinstance(value, type) and value.__module__ == contents.__name__
            if local and not getattr(value, "_is_protocol", False) and all(hasattr(value, name) for name in wanted):
                members.append(value)
    return members


def _members(protocol: Any) -> set[str]:
    names: set[str] = set()
    for base in protocol.__mro__:
        if base.__name__ not in ("Protocol", "Generic", "object"):
            names |= {name for name in (*vars(base), *vars(base).get("__annotations__", {})) if name[0] != "_"}
    return names


# ------------------------------------------------------------------------------------------------------------- borders


def as_value(value: Any, kind: Kind[T] | type[StrEnum], *, what: str | None = None) -> Any:
    """The value that was given, itself or as text; anything else is refused. `what` is the name of the argument."""
    if isinstance(kind, Kind):
        if isinstance(value, str):
            return kind.parse(value)
        if kind.accepts(value):
            return value
        hint = f" Make a value of it: {value.__name__}(...)." if isinstance(value, type) else ""
        forms = ", ".join(kind.forms())
        raise InputError(f"{what or kind.what} {value!r}; expected a {kind.what} or its text, one of {forms}.{hint}")
    choices = {str(choice): choice for choice in kind}
    if isinstance(value, str) and value.strip().lower() in choices:
        return choices[value.strip().lower()]
    raise InputError(f"{what or words_of(kind)} {value!r}; expected {' or '.join(choices)}.")


def as_values(values: Any, kind: Kind[T], *, what: str | None = None) -> tuple[T, ...]:
    """The values that were given, one or several, each itself or as text; equal ones once, in their order."""
    several = [values] if isinstance(values, str) or kind.accepts(values) else values
    if not isinstance(several, Iterable):
        raise InputError(f"{what or kind.what} {values!r}; expected a list of values, or of their texts.")
    parsed: list[T] = []
    for value in several:
        parsed += kind.parse_all(value) if isinstance(value, str) else [as_value(value, kind, what=what)]
    if not parsed:
        raise InputError(f"no {what or kind.what} given; expected at least one, or none at all for the defaults.")
    return tuple(dict.fromkeys(parsed))


# -------------------------------------------------------------------------------------------------------------- parsing


def _form(text: str) -> tuple[str, list[str], list[str], list[str]]:
    """Name, what stands after colons, after @ (at most one) and in brackets; ValueError where brackets do not match."""
    outside = OUTSIDE.match(text)[0]  # type: ignore[index]
    inside = text[len(outside) :]
    if inside and not (inside[0] == "(" and inside[-1] == ")" and len(inside) > 1):
        raise ValueError
    head, *numbers = pieces(outside, "@")
    name, *parts = pieces(head, ":,")  # a comma serves too where no list of options is split at it
    return name, parts, numbers, pieces(inside[1:-1], ",") if inside else []


def changed(value: T, options: Mapping[str, str], *, word: str = "option") -> T:
    """The same value with some options, given as text."""
    cls: Any = type(value)
    values = {name: _read(_option(cls, name, where=cls.name, word=word), text, where=cls.name)
             for name, text in options.items()}  # fmt: skip
    changed_value: T = dataclasses.replace(value, **values)  # type: ignore[type-var]
    return changed_value


def _parsed(kind: Kind[Any], text: str) -> Any:
    if not isinstance(text, str):
        raise InputError(f"{kind.what} {text!r}; expected a text such as {kind.forms()[0]}.")
    where = f"{kind.what} {text.strip()!r}"
    try:
        head, parts, numbers, options = _form(text.strip())
    except ValueError:
        raise InputError(f"{where} is not understood; expected one of {', '.join(kind.forms())}.") from None
    cls = kind.class_of(head, text, colon=bool(parts))
    expected, at_field = form_of(cls), at_of(cls)
    if len(numbers) > (at_field is not None):
        raise InputError(f"{where}: {'@'.join(['', *numbers])} is not understood; expected {expected}.")
    texts = {**_by_place(cls, parts, where=where), **{str(at_field): number for number in numbers}}
    for part in options:
        name, sign, value = (side.strip() for side in part.partition("="))
        if not sign or name.lower() in texts:
            raise InputError(f"{where}: option {part!r} is not understood; expected NAME=VALUE, each once.")
        texts[name.lower()] = value
    read = {name: _read(_option(cls, name, where=where), value, where=where) for name, value in texts.items()}
    for field in dataclasses.fields(cls):
        if field.init and field.name not in read and field.default is field.default_factory is MISSING:
            if field.name not in options_of(cls):
                raise InputError(f"{where} holds data ({field.name}) that no text can say. Make the value in Python.")
            raise InputError(f"{where} lacks {field.name}; expected {expected}.")
    return cls(**read)


def _by_place(cls: type[Any], parts: list[str], *, where: str) -> dict[str, str]:
    """What stands after colons, by the field it fills."""
    names = positional_of(cls)
    if names and len(parts) >= len(names) and options_of(cls)[names[-1]].alternatives[0].member is not None:
        first = len(names) - 1
        parts = [*parts[:first], f"({','.join(parts[first:])})"]
    if len(parts) > len(names):
        raise InputError(f"{where}: {':'.join(['', *parts])} is not understood; expected {form_of(cls)}.")
    return dict(zip(names, parts, strict=False))


def _option(cls: type[Any], name: str, *, where: str, word: str = "option") -> Option:
    options = options_of(cls)
    if name in options:
        return options[name]
    names = [choice for choice in options if choice != at_of(cls)]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    expected = f"one of {', '.join(names)}" if names else f"none: {cls.name} has no {word}s"
    raise InputError(f"{where}: no {word} {name!r}; expected {expected}.{hint}")


def _read(option: Option, text: str, *, where: str) -> Any:
    """The value of an option; its class checks it once more."""
    text = text.strip()
    if option.optional and text.lower() == "none":
        return None
    nested = kind_held(option)
    if nested is not None:
        return nested.parse(text)
    return first_that_fits(option, Alternative.read, text, where=where, shown=text)


def kind_held(option: Option) -> Kind[Any] | None:
    """The kind of value that an option holds, where it is no plain one."""
    classes = tuple(alternative.type for alternative in option.alternatives if is_nested(alternative.type))
    protocols = [cls for cls in classes if not isinstance(getattr(cls, "name", None), str)]
    if not protocols:
        return Kind(option.name, also=classes) if classes else None
    (protocol,) = protocols
    return KINDS.get(protocol) or Kind(words_of(protocol), protocol.__module__, protocol)
