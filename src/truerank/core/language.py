"""Find every class of a kind in a package, so that adding one touches no list."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from truerank.core.errors import InputError


def classes(package: str, kind: Any, *, deep: bool = False) -> list[type[Any]]:
    """The classes of a package's modules (and, if `deep`, its subpackages') that have all members of `kind`."""
    root = importlib.import_module(package)
    wanted = _members(kind)
    modules = (pkgutil.walk_packages if deep else pkgutil.iter_modules)(root.__path__, f"{package}.")
    found = []
    for module in sorted(entry.name for entry in modules):
        contents = importlib.import_module(module)
        found += [
            value
            for value in vars(contents).values()
            if isinstance(value, type)
            and value.__module__ == contents.__name__
            and not getattr(value, "_is_protocol", False)
            and all(hasattr(value, name) for name in wanted)
        ]
    return found


def members(package: str, kind: Any, *, deep: bool = False) -> dict[str, type[Any]]:
    """The same classes by their `name`."""
    return {cls.name: cls for cls in classes(package, kind, deep=deep)}


def find(known: Mapping[str, type[Any]], name: str, *, what: str) -> type[Any]:
    """The class of a name; an unknown one is refused with what there is."""
    if name not in known:
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(f"unknown {what} {name!r}; expected one of {', '.join(known)}.{hint}")
    return known[name]


def _members(kind: Any) -> set[str]:
    names: set[str] = set()
    for base in kind.__mro__:
        if base.__name__ not in ("Protocol", "Generic", "object"):
            names |= {name for name in (*vars(base), *vars(base).get("__annotations__", {})) if name[0] != "_"}
    return names
