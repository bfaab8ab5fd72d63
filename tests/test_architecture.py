"""The tree is the data flow: a layer imports only layers with a smaller number."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import truerank

ROOT = Path(truerank.__file__).parent
ORDER = [
    "core", "sampling", "io", "datasets", "exposure", "ranking", "metrics", "estimators", "inference", "engines",
    "evaluation", "models", "simulation", "reliability", "report", "cli", "__main__",
]  # fmt: skip
LAYERS = {"version": 0} | {name: number for number, name in enumerate(ORDER)}
MODULES = sorted(ROOT.rglob("*.py"))


def part_of(module: str) -> str:
    return module.split(".")[1]


def imports(path: Path, *, lazy: bool) -> set[str]:
    """Modules of this package that a file imports at its top level, or inside functions."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if lazy else iter(tree.body)
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("truerank"):
            found |= {node.module if "." in node.module else f"truerank.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("truerank.")}
    return found


def test_layers_import_downwards_only() -> None:
    upwards = []
    for path in MODULES:
        relative = path.relative_to(ROOT)
        layer = relative.parts[0].removesuffix(".py")
        if layer not in LAYERS:
            continue
        # Results shows itself through report/ and hands itself to engines/: the one look upwards, and it is lazy
        for module in imports(path, lazy=relative.parts != ("core", "results.py")):
            below = part_of(module)
            if not (below == layer or LAYERS[below] < LAYERS[layer] or LAYERS[below] == LAYERS[layer] == 0):
                upwards.append(f"{relative} imports {module}")
    assert not upwards


def test_no_module_is_imported_in_a_circle() -> None:
    """Whichever module is imported first, nothing is half there."""
    names = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        lines = [line for line in ast.parse(path.read_text()).body if isinstance(line, ast.ImportFrom)]
        of_module = {(str(line.module), f"{line.module}.{alias.name}") for line in lines for alias in line.names}
        graph[name] = {inner if inner in names else module for module, inner in of_module if module in names}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_nothing_outside_engines_imports_dask_or_spark() -> None:
    """And inside only where an engine is opened, so that neither is needed unless it is used."""
    others = {"dask", "distributed", "pyspark", "cloudpickle", "fsspec"}
    for path in MODULES:
        tree = ast.parse(path.read_text())
        within = path.parent.name == "engines"
        nodes = tree.body if within else list(ast.walk(tree))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {name.split(".")[0] for name in names} & others, path


def test_the_library_knows_nothing_of_research() -> None:
    """Research extends truerank by entry points alone."""
    pattern = re.compile(r"^ *(import|from) truerank_research\b", flags=re.M)
    assert not [path for path in MODULES if pattern.search(path.read_text())]


def test_modules_can_be_read_in_one_sitting() -> None:
    long = {str(path.relative_to(ROOT)): n for path in MODULES if (n := len(path.read_text().splitlines())) > 400}
    assert not long


def test_public_class_names_are_unique() -> None:
    """A name means one thing in the whole package, so that a reader never asks which one is meant."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert not {name: places for name, places in homes.items() if len(places) > 1}


def test_every_test_module_tests_the_project() -> None:
    """A test of numbers typed into it can never fail: each module imports truerank, or runs a command."""
    tests = Path(__file__).parent
    support = {path.stem: path for path in (tests / "support").glob("*.py")}

    def reaches(path: Path) -> bool:
        text = path.read_text()
        if re.search(r"^ *(import|from) truerank\b|\"-m\", \"truerank|[\"'(]truerank [a-z]", text, flags=re.M):
            return True
        names = {node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
        others = [support.get(name, tests.parent / f"{name.replace('.', '/')}.py") for name in names]
        return any(other.is_file() and reaches(other) for other in others)

    assert not [str(path.relative_to(tests)) for path in tests.rglob("test_*.py") if not reaches(path)]


def test_functions_of_distributions_come_from_one_place() -> None:
    """core/special.py loads them without the package around them; one other import would undo that."""
    found = [
        path
        for path in ROOT.rglob("*.py")
        if re.search(r"^ *(from|import) scipy\.special", path.read_text(), flags=re.M)
    ]
    assert not found


def test_the_top_level_is_small_and_all_of_it_is_there() -> None:
    """One list, that type checkers read as well."""
    lines = [line for line in ast.parse((ROOT / "__init__.pyi").read_text()).body if isinstance(line, ast.ImportFrom)]
    listed = {name.asname or name.name for line in lines for name in line.names}
    assert set(dir(truerank)) <= listed  # by task; others are there for those who know them
    for name in listed:
        assert getattr(truerank, name) is not None
    rooms = {name for name in listed if isinstance(getattr(truerank, name), ModuleType)}
    assert rooms == {
        "metrics",
        "estimators",
        "exposure",
        "positions",
        "models",
        "datasets",
        "scores",
        "simulation",
        "agreement",
    }
    assert len(listed - rooms - {"__version__"}) <= 28
    for name in ("Nonsense", "Recall"):
        with pytest.raises(AttributeError, match=name):
            getattr(truerank, name)
