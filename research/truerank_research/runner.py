"""The one runner of reproductions and validation studies.

**A study** is a module in `papers/` or `validation/` with a function that measures, and a tuple `STUDIES` of `Study`
values (several where one function serves several rows of data):

    def measure(run: Run) -> Measured:
        tables = run.pieces(train_and_evaluate, [(run.source, seed) for seed in range(10)], about="training models")
        return Measured({"models": pl.concat(tables).to_dicts()}, settings={"models": 10})

    STUDIES = (Study("models", "Which model ...?", measure, data=("coat",), minutes=3),)

`run.source` is a folder with real data or a simulated dataset of the same shape (`run.source.is_synthetic`),
`run.full` asks for the full size (else a size of seconds), `run.seed` is the seed of everything random; all three are
`run.setting`, to be passed to pieces. `Measured` has
tables (a plain dict per row), settings, and sentences on how the run differs from the paper's. All that pages and
verdicts need must be in the tables.

**Pieces** keep long runs: `run.pieces(function, arguments)` calls a module-level function once per tuple of arguments,
in parallel processes, and stores each returned polars table in a file named after the function and its arguments. A
stopped run continues where it was. Arguments must be frozen values whose `repr` describes them, and a piece must depend
on its arguments alone.

**A reproduction** measures a table `cells` (`claims.Cell`: table, row, column, obtained, published, interval) and has
`claims`: the text of each claim, where the paper makes it, the rule of the verdict in words and as a function of the
cells (`claims.Claim`). The runner adds the table `claims` with a verdict per claim.

**A page** of a study is a template, `pages/studies/NAME.toml` (`pages.Page`): title, sentences as jinja2 text over
settings and tables, a `pages.Picture`, the table to fold. Papers have one page each (`pages/papers`, `pages.Paper`).

Results are stored in `research/results/papers` and `research/results/validation`; `pages` writes docs/validation.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import joblib
import msgspec
import polars as pl
from threadpoolctl import threadpool_limits

from truerank.core.errors import InputError
from truerank.version import __version__
from truerank_research import papers, validation
from truerank_research.claims import Claim, Verdict, judge
from truerank_research.pages import Page, read_page
from truerank_research.results import Measured, Result, Table, read_results, stored_settings

SYNTHETIC = "synthetic"
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True, slots=True)
class Source:
    """A folder with data, or a simulated dataset of the same shape (None)."""

    folder: Path | None = None

    @property
    def is_synthetic(self) -> bool:
        return self.folder is None

    def path(self, dataset: str) -> Path:
        """The folder of a dataset: one of its name below the given folder (`_` for `-` allowed), else that folder."""
        if self.folder is None:
            raise InputError(f"{dataset}: a simulated dataset has no folder.")
        return self._below(dataset) or self.folder

    def has(self, dataset: str) -> bool:
        """Whether there is a folder of that name."""
        return self._below(dataset) is not None

    def _below(self, dataset: str) -> Path | None:
        names = () if self.folder is None else (dataset, dataset.replace("-", "_"))
        return next((path for name in names if (path := Path(str(self.folder), name)).is_dir()), None)


@dataclass(frozen=True, slots=True)
class Setting:
    """What decides the result of a study, as an argument of its pieces: source of data, size and seed."""

    source: Source = Source()
    full: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Run(Setting):
    """One run of a study: its setting, where pieces are stored (None: not), and the number of processes."""

    folder: Path | None = None
    processes: int = 1

    @property
    def setting(self) -> Setting:
        return Setting(self.source, self.full, self.seed)

    def pieces(
        self,
        function: Callable[..., pl.DataFrame],
        arguments: Sequence[tuple[Any, ...]],
        *,
        about: str = "",
        **shared: Any,
    ) -> list[pl.DataFrame]:
        """The tables of `function(*arguments[0])`, `function(*arguments[1])`, ..., each computed once.

        `shared` keywords go to every call and not into the names of files: they must follow from the setting.
        """
        paths = [self._path(function, given) for given in arguments]
        missing = [at for at, path in enumerate(paths) if path is None or not path.exists()]
        jobs = (joblib.delayed(_compute)(function, arguments[at], shared, paths[at]) for at in missing)
        computed = {}
        parallel = joblib.Parallel(n_jobs=min(self.processes, len(missing) or 1), return_as="generator")
        for at, table in zip(missing, parallel(jobs), strict=True):
            computed[at] = table
            if self.folder is not None:
                click.echo(f"{about or function.__name__}: {len(computed)} of {len(missing)}", err=True)
        return [computed[at] if at in computed else pl.read_parquet(str(path)) for at, path in enumerate(paths)]

    def _path(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Path | None:
        if self.folder is None:
            return None
        key = hashlib.sha256(repr((function.__module__, arguments)).encode()).hexdigest()[:16]
        return self.folder / "pieces" / f"{function.__name__}-{key}.parquet"


def _compute(
    function: Callable[..., pl.DataFrame], arguments: tuple[Any, ...], shared: dict[str, Any], path: Path | None
) -> pl.DataFrame:
    with threadpool_limits(1):  # so that results do not depend on the number of threads
        table = function(*arguments, **shared)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        table.write_parquet(temporary)
        temporary.replace(path)
    return table


@dataclass(frozen=True, slots=True)
class Study:
    """A reproduction or a validation study.

    `data` names the datasets it reads, `optional` those that it reads where they are given; `minutes` is the time of
    the full size on two cores; `shows` maps keys of papers to the tables and figures that it reproduces, its own paper
    first; `unavailable` says why it cannot be run and what to run in its place.
    """

    name: str
    question: str
    measure: Callable[[Run], Measured] | None = None
    data: tuple[str, ...] = ()
    minutes: float = 0.0
    claims: tuple[Claim, ...] = ()
    shows: Mapping[str, tuple[str, ...]] | None = None
    unavailable: str = ""
    optional: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """The key of the paper it belongs to, empty for a validation study."""
        return next(iter(self.shows or ()), "")

    @property
    def page(self) -> Page | None:
        return read_page(self.name)


@cache
def studies() -> Mapping[str, Study]:
    """All studies by name, found by their place."""
    modules = [
        import_module(module.name)
        for package in (papers, validation)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    listed = [study for module in modules for study in vars(module).get("STUDIES", ())]
    return {study.name: study for study in sorted(listed, key=lambda study: (study.paper, study.name))}


def committed(name: str) -> Result:
    """The stored result of a study, on real data where it has any."""
    found = [result for result in read_results(RESULTS) if result.study == name]
    return min(found, key=lambda result: result.synthetic)


def run_study(study: Study, run: Run) -> Result:
    """Run a study, or continue it, and give its result with a verdict for each claim.

    A folder belongs to one study, size, seed, data and version; for another it is refused.
    """
    if study.measure is None:
        raise InputError(f"{study.name} cannot be run: {study.unavailable}")
    result = Result(
        study=study.name,
        size="full" if run.full else "quick",
        seed=run.seed,
        synthetic=run.source.is_synthetic and bool(study.data),
        truerank=__version__,
        data=_hashes(study, run.source),
        settings={},
        differences=(),
        tables={},
    )
    if run.folder is not None:
        _claim_folder(run.folder, result)
    measured = study.measure(run)
    tables = {name: Table.from_rows(rows) for name, rows in measured.tables.items()}
    settings = stored_settings(measured.settings)
    return judged(study, replace(result, settings=settings, differences=tuple(measured.differences), tables=tables))


def judged(study: Study, result: Result) -> Result:
    """The result with the verdicts that its numbers give."""
    if not study.claims:
        return result
    verdicts = [
        {"claim": claim.key, "verdict": str(finding.verdict), "why": finding.why}
        for claim, finding in judge(study.claims, result)
    ]
    return replace(result, tables={**result.tables, "claims": Table.from_rows(verdicts)})


def verdicts(study: Study, results: Sequence[Result]) -> list[tuple[Claim, Verdict, str]]:
    """Each claim of a study with its verdict and why: from real data where they give one, else from simulated data."""
    stored: dict[str, tuple[Verdict, str]] = {}
    own = sorted((result for result in results if result.study == study.name), key=lambda result: result.synthetic)
    for row in (row for result in own for row in result.rows("claims")):
        if stored.get(row["claim"], (Verdict.UNTESTABLE,))[0] is Verdict.UNTESTABLE:
            stored[row["claim"]] = (Verdict(row["verdict"]), row["why"])
    missing = (Verdict.UNTESTABLE, study.unavailable or "The experiment was not run.")
    return [(claim, *stored.get(claim.key, missing)) for claim in study.claims]


def _claim_folder(folder: Path, result: Result) -> None:
    """Refuse a folder of another run."""
    path, text = folder / "run.json", msgspec.json.encode(result)
    if path.exists() and path.read_bytes() != text:
        raise InputError(f"{folder}: holds another run. Choose another folder with --out, or delete it.")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def _hashes(study: Study, source: Source) -> dict[str, str]:
    """The SHA-256 of every file of the datasets of a study."""
    if source.is_synthetic:
        return {}
    hashes = {}
    for dataset in (*study.data, *filter(source.has, study.optional)):
        for path in sorted(path for path in source.path(dataset).iterdir() if path.is_file() and path.name[0] != "."):
            with path.open("rb") as file:
                hashes[f"{dataset}/{path.name}"] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes
