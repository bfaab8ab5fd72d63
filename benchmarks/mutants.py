"""How many small mistakes in estimators, intervals and ranking would the fast tests notice?

    pip install --group mutants
    python -m benchmarks.mutants cover build/mutants            once: which fast test runs which line
    python -m benchmarks.mutants run build/mutants --count 200  goes on where it was stopped
    python -m benchmarks.mutants list build/mutants             what survived, to be looked at

A mutant is one change of one place: < for <=, + for -, `and` for `or`, another number, `max` for `min`. Places are drawn
by the seed from all lines that a fast test runs. A mutant lives in a copy of the package; the tests that run its line are
tried, quick ones first, until one fails: a few of them, then all. Each is tried in a fork of a process that has loaded
what truerank needs, and nothing of truerank.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "truerank"
FOLDERS = ("estimators", "inference", "ranking")
COMPILED = "fast*.py"  # compiled code is seen by no tracer; its plain twins are mutated instead
LOADED = (
    "numpy",
    "scipy.stats",
    "scipy.sparse",
    "polars",
    "numba",
    "pytest",
    "hypothesis",
    "rich",
    "jinja2",
    "pyarrow",
)
FIRST = 25  # tests that are tried before all the others: most mutants are killed by these, without collecting more
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any",
         "floor": "ceil", "ceil": "floor", "sqrt": "abs"}  # fmt: skip
NO_CODE = (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)  # the words of errors are nobody's mistake


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the text from a first to a last place of a file (lines from 1, columns in bytes) becomes another."""

    file: str
    first: tuple[int, int]
    last: tuple[int, int]
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.first[0]}: {self.before} -> {self.after}"


# ------------------------------------------------------------------------------------------------------------- mutants


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All changes that one operator, number or name allows."""
    source = file.read_bytes()
    lines, place = source.splitlines(keepends=True), str(file.relative_to(PACKAGE))
    for node in code_nodes(ast.parse(source)):
        after = changed(node)
        if after is None or node.end_lineno is None or node.end_col_offset is None:
            continue
        first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        text = [*lines[first[0] - 1 : last[0] - 1], lines[last[0] - 1][: last[1]]]
        yield Mutant(place, first, last, b"".join(text)[first[1] :].decode(), f"({ast.unparse(after)})")


def code_nodes(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that compute: no annotations, decorators, docstrings, defaults of types, nor words of errors."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (*NO_CODE, ast.JoinedStr)):
                continue
            if isinstance(node, ast.expr):
                yield node
            yield from code_nodes(node)


def changed(node: ast.expr) -> ast.expr | None:  # noqa: PLR0911 - one line per kind
    """The expression with its operator, number or name exchanged; None if it has none."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            return ast.Compare(node.left, [COMPARISONS[type(operator)]()], node.comparators)
        case ast.BinOp() if type(node.op) in OPERATORS:
            return ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.BoolOp():
            return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            return node.operand
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            return ast.Constant(value * 1.1 + 0.1 * (value == 0))
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            return ast.Call(ast.Name(NAMES[name]), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(value=room, attr=name)) if name in NAMES:
            return ast.Call(ast.Attribute(room, NAMES[name]), node.args, node.keywords)
    return None


def mutated(mutant: Mutant, source: bytes) -> bytes:
    """The file with the change."""
    lines = source.splitlines(keepends=True)
    (first, start), (last, end) = mutant.first, mutant.last
    lines[first - 1 : last] = [lines[first - 1][:start] + mutant.after.encode() + lines[last - 1][end:]]
    return b"".join(lines)


def drawn(seed: int, covered: dict[str, dict[str, list[str]]]) -> list[Mutant]:
    """All mutants of lines that a test runs, in an order that the seed decides."""
    files = [
        path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py")) if not path.match(COMPILED)
    ]
    every = [mutant for path in files for mutant in mutants_of(path)]
    every = [mutant for mutant in every if str(mutant.first[0]) in covered.get(mutant.file, {})]
    return random.Random(seed).sample(every, len(every))


# ------------------------------------------------------------------------------------------------- which test runs what

PLUGIN = """
import json, os, time
import coverage, pytest

measured = coverage.Coverage(source=[os.environ["MUTANTS_SOURCE"]], data_file=None)
seconds, failed = {}, set()

def pytest_configure(config):
    measured.start()

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    measured.switch_context(item.nodeid)
    begin = time.perf_counter()
    result = yield
    seconds[item.nodeid] = time.perf_counter() - begin
    measured.switch_context("")
    return result

def pytest_runtest_logreport(report):
    if report.failed:
        failed.add(report.nodeid)

def pytest_sessionfinish(session):
    measured.stop()
    data = measured.get_data()
    lines = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
    with open(os.environ["MUTANTS_OUT"], "w") as out:
        json.dump({"seconds": seconds, "lines": lines, "failed": sorted(failed)}, out)
"""


def cover(out: Path, tests: list[str]) -> None:
    """Run the fast tests once under coverage, and write down which of them runs which line of the folders."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "which_test.py").write_text(PLUGIN)
    raw = out / "raw.json"
    path = os.pathsep.join([str(out.resolve()), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    surroundings = {"MUTANTS_SOURCE": str(PACKAGE), "MUTANTS_OUT": str(raw.resolve()), "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "which_test", *tests]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **surroundings}, check=False)
    measured = json.loads(raw.read_text())
    failed = {"", *measured["failed"]}  # a test that fails without any mutant kills none
    names: dict[str, int] = {}
    lines: dict[str, dict[str, list[int]]] = {}
    for file, by_line in measured["lines"].items():
        place = str(Path(file).relative_to(PACKAGE))
        if Path(place).parts[0] in FOLDERS:
            lines[place] = {
                line: [names.setdefault(test, len(names)) for test in tests if test not in failed]
                for line, tests in by_line.items()
                if not failed.issuperset(tests)
            }
    seconds = {test: round(measured["seconds"][test], 3) for test in names}
    (out / "covered.json").write_text(json.dumps({"tests": list(names), "seconds": seconds, "lines": lines}))
    raw.unlink()
    print(
        f"{len(names)} tests run {sum(map(len, lines.values())):,} lines of {', '.join(FOLDERS)}; failed: {len(failed) - 1}"
    )


def read_covered(out: Path) -> tuple[dict[str, dict[str, list[str]]], dict[str, float]]:
    """The tests of every line, and the seconds of every test. First the quickest of each file, then the second: tests of
    one file often miss the same."""
    stored = json.loads((out / "covered.json").read_text())
    tests, seconds = stored["tests"], stored["seconds"]

    def ordered(chosen: list[str]) -> list[str]:
        number: Counter[str] = Counter()
        ranks = {}
        for test in sorted(chosen, key=seconds.__getitem__):
            number[test.partition("::")[0]] += 1
            ranks[test] = number[test.partition("::")[0]], seconds[test]
        return sorted(ranks, key=ranks.__getitem__)

    lines = {
        file: {line: ordered([tests[at] for at in places]) for line, places in by_line.items()}
        for file, by_line in stored["lines"].items()
    }
    return lines, seconds


# ----------------------------------------------------------------------------------------------------------------- runs


def run(out: Path, *, seed: int, count: int, most: float) -> None:
    """Try mutants until `count` of them are written down in `mutants.jsonl`; those that are there are not tried again."""
    covered, seconds = read_covered(out)
    written = out / "mutants.jsonl"
    finished = {json.loads(line)["mutant"] for line in written.read_text().splitlines()} if written.exists() else set()
    copy = out.resolve() / "copy"  # again: a run that was ended may have left its mutant there
    shutil.copytree(
        ROOT / "src", copy, dirs_exist_ok=True
    )  # times of files are kept, so that compiled code stays valid
    load(copy)
    for mutant in drawn(seed, covered)[:count]:
        if str(mutant) in finished:
            continue
        begin = time.perf_counter()
        every = covered[mutant.file][str(mutant.first[0])]
        spent = itertools.accumulate(seconds[test] for test in every)
        tests = [test for test, until in zip(every, spent, strict=True) if until <= most]
        outcome, by = tried(mutant, tests, seconds, copy)
        line = {"mutant": str(mutant), "outcome": outcome, "by": by, "tests": len(tests), **asdict(mutant)}
        with written.open("a") as file:
            file.write(json.dumps({**line, "seconds": round(time.perf_counter() - begin, 1)}) + "\n")
        print(f"{outcome:8} {mutant}", flush=True)
    listed(out, survivors=False)


def load(copy: Path) -> None:
    """Make this process one whose forks test the code of the copy: they begin with what it needs of others."""
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(copy)]
    for name in LOADED:
        importlib.import_module(name)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "truerank"]
    if loaded:
        raise RuntimeError(f"{loaded[0]} is there already")


def tried(mutant: Mutant, tests: list[str], seconds: dict[str, float], copy: Path) -> tuple[str, str]:
    """Whether a test fails with the mutant, and which."""
    file = copy / "truerank" / mutant.file
    file.write_bytes(mutated(mutant, (PACKAGE / mutant.file).read_bytes()))
    try:
        for stage in filter(None, (tests[:FIRST], tests[FIRST:])):
            if by := killer(stage, 120 + 10 * sum(seconds[test] for test in stage)):
                return "killed", by
    finally:
        shutil.copy2(PACKAGE / mutant.file, file)
    return "survived", ""


def killer(tests: list[str], longest: float) -> str:
    """The first of these tests that fails in a fork of this process, if one does; one that hangs fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgrp()  # in the session and with the priority of this process
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        try:
            os.write(writing, in_process(tests).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as answer:
        ended: list[Any] = []
        try:
            ended = select.select([answer], [], [], longest)[0]
        finally:  # also where this process is interrupted
            if not ended:
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if ended and status:
            raise RuntimeError(f"a fork ended with {status}")
        return answer.read() if ended else "it did not end"


def in_process(tests: list[str]) -> str:
    """The first of these tests that fails in this process, or what else went wrong; nothing if all pass."""
    import pytest

    order = {test: place for place, test in enumerate(tests)}
    failed: list[str] = []

    class Watch:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            failed.extend([report.nodeid] * report.failed)

    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was loaded before the fork
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    for file in files:  # examples in docstrings: those of the copy, before pytest loads the package that they stand in
        if file.startswith("src/"):
            try:
                importlib.import_module(".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__"))
            except Exception as error:
                return f"{file} cannot be loaded: {error}"
    code = pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:randomly", *quiet, *files], [Watch()])
    if Path(importlib.import_module("truerank").__file__ or "").is_relative_to(PACKAGE):
        raise RuntimeError("these tests ran the package without the mutant")
    passed = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return failed[0] if failed else "" if passed else f"pytest ended with {code}"


def listed(out: Path, *, survivors: bool) -> None:
    rows = [json.loads(line) for line in (out / "mutants.jsonl").read_text().splitlines()]
    outcomes = Counter(row["outcome"] for row in rows)
    if survivors:
        for row in rows:
            if row["outcome"] == "survived":
                print(f"{row['mutant']} ({row['tests']} tests)")
    print(f"{outcomes['killed']} of {len(rows)} mutants killed ({outcomes['killed'] / max(len(rows), 1):.0%})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("step", choices=["cover", "run", "list"])
    parser.add_argument("out", type=Path, help="a folder for what was measured; build/ is under no version control")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument(
        "--most", type=float, default=float("inf"), help="for run: at most so many seconds of tests each"
    )
    parser.add_argument("--tests", nargs="+", default=[], help="for cover: files or folders instead of all fast tests")
    chosen = parser.parse_args()
    if chosen.step == "cover":
        cover(chosen.out, chosen.tests)
    elif chosen.step == "run":
        run(chosen.out, seed=chosen.seed, count=chosen.count, most=chosen.most)
    else:
        listed(chosen.out, survivors=True)


if __name__ == "__main__":
    main()
