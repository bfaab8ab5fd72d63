"""Find every class of a kind in a package, so that adding one touches no list."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def members(package: str, kind: Any) -> dict[str, type[Any]]:
    """The classes of a package's modules that have all members of the Protocol `kind`, by their `name`."""
    root = importlib.import_module(package)
    found: dict[str, type[Any]] = {}
    wanted = _members(kind)
    for module in sorted(entry.name for entry in pkgutil.iter_modules(root.__path__)):
        contents = importlib.import_module(f"{package}.{module}")
        for value in vars(contents).values():
            own = isinstance(value, type) and value.__module__ == contents.__name__
            if own and all(hasattr(value, name) for name in wanted):
                found[value.name] = value
    return found


def _members(kind: Any) -> set[str]:
    names: set[str] = set()
    for base in kind.__mro__:
        if base.__name__ not in ("Protocol", "Generic", "object"):
            names |= {name for name in (*vars(base), *vars(base).get("__annotations__", {})) if name[0] != "_"}
    return names
