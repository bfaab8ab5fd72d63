"""What help pages list, read from the source of this package: so that none of it is imported to show a page.

Names come from where they are defined, as the catalogues find them; a test holds that both say the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def choices(module: str, name: str) -> list[str]:
    """The values of a StrEnum.

    >>> choices("core/options", "Drawn")
    ['all', 'unseen']
    """
    body = _class(module, name).body
    return [ast.literal_eval(line.value) for line in body if isinstance(line, ast.Assign)]


def defaults(module: str, name: str) -> dict[str, Any]:
    """The defaults of a frozen dataclass that are plain.

    >>> defaults("studies/world", "WorldSettings")["clusters"]
    8
    """
    lines = [line for line in _class(module, name).body if isinstance(line, ast.AnnAssign)]
    return {line.target.id: line.value.value for line in lines
            if isinstance(line.target, ast.Name) and isinstance(line.value, ast.Constant)}  # fmt: skip


def constant(module: str, name: str) -> Any:
    """A constant of a module.

    >>> constant("data/read", "VALUE_NAMES")
    ('label', 'reward', 'rating', 'value')
    """
    for line in _parsed(module).body:
        if isinstance(line, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in line.targets):
            return ast.literal_eval(line.value)
    raise LookupError(f"{module} has no constant {name}")


def names(*packages: str, about: bool = False) -> list[str]:
    """The names of the values that folders of modules define: `name`, or that in `about = About(name=...)`.

    >>> names("estimators/judged", about=True)
    ['full', 'traditional', 'hajek', 'holdout', 'horvitz-thompson', 'pooled', 'published']
    >>> names("exposure/loggers")
    ['duration', 'popularity', 'positivity', 'uniform']
    """
    modules = sorted(path.relative_to(ROOT).with_suffix("") for each in packages for path in (ROOT / each).glob("*.py"))
    return [name for module in modules for name in _named(_parsed(str(module)), about=about)]


def _named(tree: ast.Module, *, about: bool) -> Iterator[str]:
    for kind in tree.body:
        for line in kind.body if isinstance(kind, ast.ClassDef) else ():
            field = line.target.id if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) else ""
            value = line.value if isinstance(line, ast.AnnAssign) else None
            if field == "about" and about and isinstance(value, ast.Call):
                yield from (ast.literal_eval(said.value) for said in value.keywords if said.arg == "name")
            if field == "name" and not about and isinstance(value, ast.Constant):
                yield str(value.value)


def _class(module: str, name: str) -> ast.ClassDef:
    for line in _parsed(module).body:
        if isinstance(line, ast.ClassDef) and line.name == name:
            return line
    raise LookupError(f"{module} has no class {name}")


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse((ROOT / f"{module}.py").read_bytes())
