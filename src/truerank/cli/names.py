"""What help pages list, read from the source of this package: so that none of it is imported to show a page.

Names come from where they are defined, as the catalogues find them; a test holds that both say the same.
"""

from __future__ import annotations

import ast
import re
import textwrap
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

    >>> defaults("simulation/dataset", "WorldSettings")["clusters"]
    8
    """
    lines = [line for line in _class(module, name).body if isinstance(line, ast.AnnAssign)]
    return {line.target.id: line.value.value for line in lines
            if isinstance(line.target, ast.Name) and isinstance(line.value, ast.Constant)}  # fmt: skip


def constant(module: str, name: str) -> Any:
    """A constant of a module.

    >>> constant("io/read", "VALUE_NAMES")
    ('label', 'reward', 'rating', 'value')
    """
    for line in _statements(module, name):
        if isinstance(line, ast.Assign):
            return ast.literal_eval(line.value)
    raise LookupError(f"{module} has no constant {name}")


def names(*packages: str, about: bool = False, ranked: bool = False) -> list[str]:
    """The names of the values that folders of modules define: `name`, or that in `about = About(name=...)`.

    Of estimators those of labels, or of `ranked` impressions.

    >>> names("estimators", about=True)[:3]
    ['assisted', 'judge-alone', 'doubly-robust']
    >>> names("exposure/propensities")
    ['column', 'logistic', 'naive-bayes', 'power']
    """
    modules = sorted(path.relative_to(ROOT).with_suffix("") for each in packages for path in (ROOT / each).glob("*.py"))
    field = "about" if about else "name"
    lines = [line for module in modules for line in _statements(str(module), field, indent=4)]
    return [name for line in lines for name in (_of_about(line, ranked=ranked) if about else _of_name(line))]


def _of_name(line: ast.stmt) -> Iterator[str]:
    if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Constant):
        yield str(line.value.value)


def _of_about(line: ast.stmt, *, ranked: bool) -> Iterator[str]:
    if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Call):
        fields = {field.arg: ast.unparse(field.value) for field in line.value.keywords}
        kinds = {"IMPRESSIONS": (True,), "LOGS": (True, False)}.get(fields.get("exposures", ""), (False,))
        if "name" in fields and ranked in kinds:
            yield ast.literal_eval(fields["name"])


def _class(module: str, name: str) -> ast.ClassDef:
    for line in _statements(module, f"class {name}"):
        if isinstance(line, ast.ClassDef):
            return line
    raise LookupError(f"{module} has no class {name}")


def _statements(module: str, begin: str, *, indent: int = 0) -> list[ast.stmt]:
    """The statements that begin so, with what is indented below them: to parse whole modules takes far longer."""
    margin = " " * indent
    below = rf"(?:(?:{margin}[ )\]}}].*)?\n)*"
    found = re.findall(rf"^{margin}{begin}\b.*\n{below}", _source(module), flags=re.M)
    return [line for text in found for line in ast.parse(textwrap.dedent(text)).body]


@cache
def _source(module: str) -> str:
    return (ROOT / f"{module}.py").read_text(encoding="utf-8")
