"""Hooks of the documentation site (mkdocs.yml): what is shown beside docs/, where links to it lead, and what search lists first.

The README is the first page. A file outside docs that some page links to has a page of its own in project/. The reference has a page for the
top level of the package, for each room and for the commands, made from what the package itself lists. `make docs` calls all of it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
FIRST = ROOT / "README.md"
PROJECT = "project"  # pages of files outside docs
REFERENCE = "reference"
# what counts how much in search, by place: guides come before what lists everything, was measured or has changed. A heading counts
# a thousand times a word, and in the reference every name is one: with this weight they are still on the first screen
WEIGHTS = {REFERENCE: 0.005, "validation": 0.01, PROJECT: 0.01}
LEADING = ("README.md", "tr.md", "changelog.md")  # first in their folders
WIDTH = 96  # letters of a line of help
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
ALONE = "---\nhide:\n  - navigation\n---\n"  # the first page has no others beside it
EMPTY_HEADING = re.compile(r"<th[^>]*></th>")
DETAILS = re.compile(r"^<details>", re.MULTILINE)

# ---------------------------------------------------------------------------------------------------------------- links


def uri_of(path: Path) -> str:
    """Where a file of the project is on the site."""
    if path == FIRST:
        return "index.md"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    below = path.relative_to(ROOT)
    return f"{PROJECT}/{below.with_suffix('').as_posix().lower() if path.suffix == '.md' else below.as_posix()}.md"


def links(markdown: str, source: Path) -> Iterator[Path]:
    """Files of the project that a page links to."""
    for _, target, _ in LINK.findall(markdown):
        path = Path(os.path.normpath(source.parent / target))
        if path.is_file() and path.is_relative_to(ROOT):
            yield path


def moved(markdown: str, source: Path) -> str:
    """A page with its links as they are on the site, and with Markdown inside what is folded."""
    home = PurePosixPath(uri_of(source)).parent

    def rewritten(found: re.Match[str]) -> str:
        path = Path(os.path.normpath(source.parent / found[2]))
        if not path.is_file() or not path.is_relative_to(ROOT):
            return found[0]
        return f"{found[1]}{PurePosixPath(os.path.relpath(uri_of(path), home))}{found[3]}"

    return DETAILS.sub('<details markdown="1">', LINK.sub(rewritten, markdown))


def outside() -> list[Path]:
    """Every file outside docs that can be reached by links from the README and from docs."""
    found: dict[Path, None] = {}
    waiting = [FIRST, *sorted(DOCS.rglob("*.md"))]
    while waiting:
        path = waiting.pop()
        if not path.is_relative_to(DOCS):
            found[path] = None
        if path.suffix == ".md":
            waiting += [
                each for each in links(path.read_text(), path) if each not in found and not each.is_relative_to(DOCS)
            ]
    return sorted(found)


def page_of(path: Path) -> str:
    """A file outside docs as a page."""
    text = path.read_text()
    if path.suffix == ".md":
        return ALONE * (path == FIRST) + moved(text, path)
    return f"# {path.relative_to(ROOT)}\n\n````{path.suffix.lstrip('.') or 'text'}\n{text}````\n"


# ------------------------------------------------------------------------------------------------------------ reference


def public() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the top level of the package lists: rooms, and all else by name."""
    package = importlib.import_module("truerank")
    stub = ast.parse(Path(str(package.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    names = [name.asname or name.name for line in stub.body if isinstance(line, ast.ImportFrom) for name in line.names]
    things = {name: getattr(package, name) for name in sorted(names) if not name.startswith("_")}
    rooms = {name: thing for name, thing in things.items() if inspect.ismodule(thing)}
    return rooms, {name: thing for name, thing in things.items() if name not in rooms}


def of_room(room: Any) -> dict[str, Any]:
    """Classes and functions of a room that are its own."""
    things = {name: getattr(room, name) for name in sorted(dir(room)) if not name.startswith("_")}
    return {
        name: thing
        for name, thing in things.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith(room.__name__)
    }


def entries(title: str, info: str, things: dict[str, Any]) -> str:
    """A page of the reference: the documentation of each thing where it is written."""
    parts = [f"::: {thing.__module__}.{thing.__qualname__}" for thing in things.values()]
    return "\n\n".join([f"# {title}", info, *parts]) + "\n"


def commands() -> str:
    """The page of the commands, as their help tells it."""
    import click

    from truerank.cli.commands import cli

    def told(command: click.Command, context: click.Context) -> Iterator[str]:
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                own = command.get_command(context, name)
                if own is not None:
                    yield from told(own, click.Context(own, info_name=name, parent=context, terminal_width=WIDTH))

    parts = told(cli, click.Context(cli, info_name="truerank", terminal_width=WIDTH))
    return "\n\n".join(["# truerank on the command line", "What `--help` says of each command.", *parts]) + "\n"


WRITTEN = (
    "From the documentation in the source; how each is written as text stands in the [catalogue](../catalogue.md)."
)


def reference() -> dict[str, str]:
    """The pages of the reference by their place."""
    rooms, top = public()
    info = '`import truerank as tr`. What belongs to a kind is in its room, `tr.metrics.Recall(10)`, or simply `"Recall@10"`: the [catalogue](../catalogue.md) lists all texts.'
    pages = {f"{REFERENCE}/tr.md": entries("tr: the top level", info, top), f"{REFERENCE}/commands.md": commands()}
    for name, room in rooms.items():
        pages[f"{REFERENCE}/{name}.md"] = entries(f"tr.{name}", WRITTEN, of_room(room))
    return pages


# ---------------------------------------------------------------------------------------------------------------- hooks


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    from mkdocs.structure.files import File, InclusionLevel

    made = {uri_of(path): page_of(path) for path in outside()} | reference()
    for uri, content in made.items():
        file = File.generated(config, uri, content=content)
        if PurePosixPath(uri).suffixes != [".md"] or len(PurePosixPath(uri).parts) > 2:
            file.inclusion = InclusionLevel.NOT_IN_NAV  # source files, reached by links alone
        files.append(file)
    config.nav = expanded(
        config.nav,
        sorted(file.src_uri for file in files.documentation_pages() if file.inclusion is not InclusionLevel.NOT_IN_NAV),
    )
    return files


def expanded(nav: Any, uris: list[str]) -> Any:
    """The navigation, with all pages of a folder where it has a star: in the order in which its README lists them, or by name."""
    if isinstance(nav, list):
        return [expanded(each, uris) for each in nav]
    if isinstance(nav, dict):
        return {title: expanded(each, uris) for title, each in nav.items()}
    if not nav.endswith("/*"):
        return nav
    folder = nav.removesuffix("*")
    first = DOCS / folder / "README.md"
    told = first.read_text() if first.is_file() else ""
    below = [uri for uri in uris if uri.startswith(folder)]
    return sorted(
        below, key=lambda uri: (PurePosixPath(uri).name not in LEADING, told.find(PurePosixPath(uri).name), uri)
    )


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """What screen readers miss: a name of the search, which is a dialog; an empty corner of a table is no heading."""
    del page, config
    search = 'data-md-component="search" role="dialog"'
    return EMPTY_HEADING.sub("<td></td>", output.replace(search, f'{search} aria-label="Search"'))


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Links of a page of docs as they are on the site, and what it weighs in search."""
    del config, files
    page.meta["search"] = {"boost": WEIGHTS.get(PurePosixPath(page.file.src_uri).parts[0], 1.0)}
    source = DOCS / page.file.src_uri
    return moved(markdown, source) if source.is_file() else markdown
