"""Packages that show what is in them under its own name, loaded when it is first asked for (PEP 562).

A package shows the classes of its kinds, `tr.metrics.Recall`: a new module adds one without any list. A stub names what
else a package shows: type checkers read it, and so does the package itself, so that there is one list.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DUNDER = re.compile("__.*__").fullmatch
Names = tuple[Callable[[str], Any], Callable[[], list[str]]]  # __getattr__ and __dir__ of a module


def export_stub(package: str, file: str) -> Names:
    """What the `__init__.pyi` beside a package's file imports, each name from its own module.

    >>> get, names = export_stub("truerank.ranking.scores", importlib.import_module("truerank.ranking.scores").__file__)
    >>> get("dense").__module__, "lists" in names()
    ('truerank.ranking.scores.scores', True)
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        import ast

        tree = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
        lines = [line for line in tree.body if isinstance(line, ast.ImportFrom)]
        return {name.asname or name.name: (str(line.module), name.name) for line in lines for name in line.names}

    def load(name: str) -> Any:
        module, own = homes()[name]
        home = None if module == package else importlib.import_module(module)
        return getattr(home, own) if hasattr(home, own) else importlib.import_module(f"{module}.{own}")

    return _names(package, homes, load)


def export_classes(package: str, contents: Callable[[], Iterable[Any]]) -> Names:
    """The classes of kinds and of what their options can be, under their own names; and other classes and functions.

    `contents` gives the kinds and the others; it is called when a name is first asked for.

    >>> metrics = importlib.import_module("truerank.metrics")
    >>> get, names = export_classes("truerank.metrics", lambda: (metrics.METRICS, len))
    >>> str(get("Recall")(5)), get("Gain").__name__, get("len")([7])
    ('Recall@5', 'Gain', 1)
    """

    @cache
    def shown() -> dict[str, Any]:
        from truerank.core.language import Kind

        result: dict[str, Any] = {}
        for thing in contents():
            things = _classes(thing) if isinstance(thing, Kind) else [thing]
            result |= {entry.__name__: entry for entry in things}
        return result

    def load(name: str) -> Any:
        return shown()[name]

    get, names = _names(package, shown, load)

    def get_unless_module(name: str) -> Any:
        # `from package import module` asks here first, maybe while the package is imported: nothing is loaded then
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            raise AttributeError(f"{package}.{name} is a module that is not imported yet")
        return get(name)

    return get_unless_module, names


def _classes(kind: Any) -> list[Any]:
    """The classes of a kind, and of the choices and kinds that their options hold."""
    from truerank.core.language import kind_held
    from truerank.core.values import options_of

    result: list[Any] = []
    for cls in kind.catalogue().values():
        result.append(cls)
        for option in options_of(cls).values():
            held = kind_held(option)
            choices = {type(choice) for alternative in option.alternatives for choice in alternative.choices}
            result += [*(choices - {str}), *(_classes(held) if held is not None else ())]
    return result


def _names(package: str, names: Callable[[], Iterable[str]], load: Callable[[str], Any]) -> Names:
    def get(name: str) -> Any:
        if name.startswith("_") or name not in names():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = load(name)
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    def listed() -> list[str]:
        contents = vars(sys.modules[package])
        own = {name for name, value in contents.items() if getattr(value, "__module__", "") == package}
        return sorted({*own, *filter(DUNDER, contents), *names()})

    return get, listed
