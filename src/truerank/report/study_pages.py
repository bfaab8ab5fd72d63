"""Pages of studies: first one picture and three sentences, then the tables; nothing on them is typed by hand."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.data.files import write_table
from truerank.data.folders import seal, unseal
from truerank.data.growing import working
from truerank.data.whole import whole_file, writing
from truerank.report import studied
from truerank.report.folding import folded
from truerank.report.reliability_charts import PictureFormat, altair, picture
from truerank.studies.own.result import StudyResult
from truerank.studies.pieces import KEPT

WHO = "a page of a study"
KIND = "run of a study"  # of the folder


@dataclass(frozen=True, slots=True)
class StudyPage:
    """What a page says: a chart, what it shows for those who do not see it, three sentences, and lines of the rest.

    Further pictures, for the rest or for a guide, have names of their own: `kuairec` of the study `mean-recall` is
    mean-recall-kuairec.svg.
    """

    title: str
    chart: Any
    alternative: str
    sentences: tuple[str, str, str]
    body: Sequence[str]
    pictures: Mapping[str, Any] = field(default_factory=dict)

    def text(self, result: StudyResult) -> str:
        beginning = (
            f"# {self.title}",
            f"![{self.alternative}]({result.study}.svg)",
            " ".join(self.sentences),
            f"*Every number comes from `{result.file_name}`; `{result.command}` measures it again.*",
        )
        return "\n\n".join(beginning) + "\n\n" + "\n".join(folded(self.body)) + "\n"


def check_drawing() -> None:
    """Refuse where what draws is missing: before long work, not after it."""
    altair(WHO)


def with_pages() -> list[str]:
    """The names of studies that have a page."""
    return sorted(each.name.replace("_", "-") for each in pkgutil.iter_modules(studied.__path__))


def page_of(result: StudyResult) -> StudyPage:
    """The page of a result, by the module of its study."""
    if result.study not in with_pages():
        raise InputError(f"{result.study}: there is no page of this study; expected one of {', '.join(with_pages())}.")
    make = import_module(f"{studied.__name__}.{result.study.replace('-', '_')}").page
    try:
        made: StudyPage = make(result)
    except KeyError as missing:
        raise InputError(
            f"{result.file_name}: it has no {missing}, so another version of the study left it. Run {result.command} "
            "again."
        ) from missing
    return made


def files_of(result: StudyResult) -> dict[str, bytes]:
    """The page and its pictures: what they hold by their names."""
    made = page_of(result)
    charts = {result.study: made.chart} | {f"{result.study}-{name}": chart for name, chart in made.pictures.items()}
    drawn = {f"{name}.svg": picture(chart, PictureFormat.SVG, who=WHO) for name, chart in charts.items()}
    return {f"{result.study}.md": made.text(result).encode()} | drawn


def pages(results: Mapping[str, StudyResult]) -> dict[str, bytes]:
    """The pages and pictures of all results: what they hold by their names."""
    return {name: content for result in results.values() for name, content in files_of(result).items()}


def write_pages(results: Mapping[str, StudyResult], out: Path, *, force: bool = False) -> list[Path]:
    """Write every page and its picture, each file whole; one that says something else is replaced only by `force`."""
    made = pages(results)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; expected the name of a folder to write.")
    other = [out / name for name, content in made.items() if (out / name).exists() and not _holds(out / name, content)]
    if other and not force:
        raise InputError(
            f"{other[0]}: is there already and says something else. Choose another folder, or replace it with "
            "{option:force|force=True}."
        )
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        with whole_file(out / name) as temporary:
            temporary.write_bytes(content)
    return [out / name for name in made if name.endswith(".md")]


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def write_run(
    results: Sequence[StudyResult],
    folder: Path,
    *,
    kind: str = KIND,
    tables: Mapping[str, pl.DataFrame] | None = None,
) -> list[Path]:
    """What a run leaves in its folder, beside what it was made of: tables, results, and their pages and pictures."""
    files = {name: content for each in results for name, content in _left(each).items()}
    held = tables or {}
    with working(folder):
        unseal(folder)
        for name, table in held.items():
            write_table(table, folder / name, advice=KEPT)
        for name, content in files.items():
            with whole_file(folder / name, advice=KEPT) as temporary:
                temporary.write_bytes(content)
        seal(folder, kind=kind, names=(*held, *files), advice=KEPT)
    return [folder / name for name in (*held, *files)]


def _left(result: StudyResult) -> dict[str, bytes]:
    return {result.file_name: result.encoded(), **files_of(result)}
