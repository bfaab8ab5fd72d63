"""Where results go: to standard output or whole into files, messages to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli import terminal
from truerank.cli.inputs import InputFile, check_threads, check_users, input_files, is_count, read_groups
from truerank.cli.options import Call
from truerank.core.errors import InputError
from truerank.core.progress import Progress, watching

if TYPE_CHECKING:
    from truerank.core.messages import Message
    from truerank.core.requirements import Requirement
    from truerank.core.results import Results
    from truerank.report.view import Answer

PICTURES = ("svg", "png", "pdf")
ENDINGS = {"": "table", ".txt": "table", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex",
           ".svg": "svg", ".png": "png", ".pdf": "pdf"}  # fmt: skip
RESULTS = (
    "format", "out", "within", "units", "save", "report", "verbose",
    "force: Replace the folder of --save, if truerank made all that it holds.", "hash", "quiet",
)  # fmt: skip
LONGEST_NAME = 200  # leaves room for the temporary name beside it
# notes that a table does not replace: what was guessed, or is missing
NOTED = (
    "columns", "numbered", "dropped", "like", "no-exclusions", "no-ranking", "propensity-unused", "partly-foreseen",
    "returned",
)  # fmt: skip
HASHED = 2**28  # bytes of an input up to which its hash is taken without being asked for


def form_of(call: Call) -> str:
    """That of --format, else what the ending of --out says, else a table."""
    if call.format is not None:
        return str(call.format)
    ending = "" if call.out is None else call.out.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"--out {call.out}: unknown ending {ending!r}; expected {', '.join(filter(None, ENDINGS))} or none. Choose "
            "one of them, or say what to write: --format."
        )
    return ENDINGS[ending]


def check_call(call: Call, *, inputs: Iterable[Path] = ()) -> list[InputFile]:
    """The files that are read; a call that cannot end well is refused before any work is done.

    Outputs can be written and replace no input, which are the files and further `inputs`.
    """
    files = input_files(call)
    check_users(call)
    if "threads" in call.values:
        check_threads(call)
    read = [*(file.path for file in files), *inputs]
    for flag, path in (("--out", call.out), ("--units", call.units), ("--report", call.report)):
        if path is not None:
            _check_file(path, read, flag)
    _check_apart(call)
    if "format" in call.values:
        form_of(call)
    if call.units is not None and call.units.suffix.lower() != ".parquet":
        raise InputError(f"--units {call.units}: expected a name that ends in .parquet.")
    if call.report is not None:
        from truerank.report.results_page import check_name

        check_name(call.report, what="--report ")
    if call.save is not None:
        from truerank.io.atomic_write import check_place, real
        from truerank.io.paths import files_of
        from truerank.report.document import FOLDER

        if not real(call.save).parent.is_dir() or call.save.is_file():
            raise InputError(f"--save {call.save}: cannot be made there. Choose the name of a new folder.")
        parts = [part for path in read for part in files_of(path)]
        check_place(call.save, kind=FOLDER, force=call.force, inputs=parts)
    return files


def _check_file(out: Path, inputs: Iterable[Path], flag: str) -> None:
    """Refuse an output that cannot be written, or that would replace an input."""
    if len(out.name.encode()) > LONGEST_NAME:
        raise InputError(f"{out}: cannot be written, the name is too long. Choose a shorter one.")
    if out.is_dir():
        raise InputError(f"{out}: is a folder; expected the name of a file to write.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"{out}: cannot be written, its folder is missing or closed. Choose another place.")
    if not out.exists():
        return
    from truerank.io.atomic_write import real
    from truerank.io.paths import files_of

    for path in inputs:
        if real(out) in map(real, files_of(path)):
            raise InputError(f"{flag} {out}: is read as {path}, and would be replaced. Choose another name.")


def _check_apart(call: Call) -> None:
    """Refuse two outputs of which one would replace or hold the other."""
    places: dict[str, Path] = {}
    for name in ("save", "units", "report", "out"):
        if (place := getattr(call, name)) is not None:
            from truerank.io.atomic_write import real

            path = real(place)
            for before, earlier in places.items():
                if path.is_relative_to(earlier):
                    raise InputError(f"--{name} {path}: is what {before} writes. Choose another name for one of them.")
            places[f"--{name}"] = path


def place(call: Call) -> Path:
    """Where to write, for calls that need to be told."""
    if call.out is None:
        raise InputError("--out is missing: say where to write.")
    return Path(call.out)


def say(call: Call, lines: Iterable[str]) -> None:
    for line in () if call.quiet else lines:
        terminal.say(line)


def say_notes(call: Call, messages: Iterable[Message], *, everything: bool = False) -> None:
    """What was guessed or is missing; or every message, where results do not show them."""
    say(call, (message.said(for_cli=True) for message in messages
               if everything or (message.code in NOTED and message.severity == "note")))  # fmt: skip


def show_paths(paths: Mapping[Any, Path], width: int = 8) -> None:
    for name, path in paths.items():
        terminal.show(f"{name:{width}} {path}")


def progress_of(call: Call) -> AbstractContextManager[Progress | None]:
    return watching(not call.quiet)


@contextmanager
def resumable(call: Call) -> Iterator[Progress | None]:
    """Progress of long work that is kept in a folder: who stops it reads how to go on."""
    try:
        with progress_of(call) as report:
            yield report
    except KeyboardInterrupt:
        if call.out.is_dir():  # something may be there
            say(call, [f"{call.out}: what is done is kept; the same command goes on from there."])
        raise


# ------------------------------------------------------------------------------------------------------------- answers


def show(call: Call, *answers: Answer) -> None:
    """Deliver answers as text, the last one in every other form and as a page."""
    from truerank.report.text import render

    *_, answer = answers
    if call.report is not None:
        from truerank.report import page as pages

        page = pages.answer_page(answer) if answer.page is None else answer.page()
        _write(pages.render(page), call.report, flag="--report")
    form = form_of(call)
    if form == "table":
        width = terminal.width() if call.out is None else None
        look: dict[str, Any] = {"width": width, "color": width is not None and not os.environ.get("NO_COLOR")}
        texts = [render(answer.summary, parts=answer.parts, verbose=call.verbose, **look) for answer in answers]
        deliver(call, "\n".join(texts).encode())
    else:
        deliver(call, _written(answer, form))
    if form not in ("table", "json"):  # which have no place for the verdict and its warnings
        say(call, [answer.summary.verdict, *answer.summary.warnings])


def _written(answer: Answer, form: str) -> bytes:
    from truerank.core.escaping import csv_table, json_bytes
    from truerank.core.provenance import plain
    from truerank.report import markup
    from truerank.report.charts import PictureFormat, composed, picture

    if form == "json":
        return json_bytes(plain(answer.document))
    if form == "csv":
        return csv_table(answer.frame())
    if form in PICTURES:
        return picture(composed(answer.panels(), nothing="this answer has no chart."), PictureFormat(form))
    text: str = getattr(markup, form)(answer.summary, parts=answer.parts)
    return text.encode()


def deliver(call: Call, content: bytes) -> None:
    """Content to a file, whole or not at all, or to standard output."""
    if call.out is None:
        terminal.write(content)
    else:
        _write(content, call.out, flag="--out")


def _write(content: bytes, path: Path, *, flag: str) -> None:
    from truerank.io.atomic_write import whole_file

    try:
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
    except BrokenPipeError:
        pass  # a pipe whose reader has left
    except OSError as error:
        raise InputError(
            f"{flag} {path}: cannot be written ({error.strerror}). Make room, or choose another place."
        ) from None


def end(code: int) -> None:
    """Exit with what was required."""
    if code:
        raise click.exceptions.Exit(code)


# ------------------------------------------------------------------------------------------------------------- results


def deliver_results(call: Call, results: Results, files: Sequence[InputFile], rules: Sequence[Requirement]) -> None:
    """Print messages, and write results with what they were made of; exit with what was required."""
    from truerank.report.results_page import results_answer

    form = form_of(call)
    say_notes(call, results.messages, everything=form != "table")
    results = _recorded(results, files, most=None if call.hash else HASHED)
    groups: Mapping[str, Results] = {}
    if call.within is not None:
        count = is_count(call.within)
        groups = results.by(int(call.within) if count else read_groups(call, "within", results.provenance.unit))
    if call.units is not None:
        from truerank.io.files import write_table

        write_table(results.units(), call.units)
    if call.save is not None:
        results.save(call.save, force=call.force)
    show(call, results_answer(results, groups=groups))
    outcomes = [rule.outcome(results) for rule in rules]
    for _, sentence in outcomes:
        terminal.say(sentence)  # also when quiet: it explains the exit code
    end(max((int(outcome) for outcome, _ in outcomes), default=0))


def _recorded(results: Results, files: Sequence[InputFile], *, most: int | None) -> Results:
    """Results with the command that makes them again and the files they were made of; no hash above `most` bytes."""
    from truerank.core.provenance import shell_call
    from truerank.io.paths import input_of

    measured = {(part.role, part.name): part for part in results.provenance.inputs}
    inputs = []
    for file in files:
        part = measured.get((file.role, file.name))
        names = () if part is None else ("rows", "users", "items", "positives")
        counts = {name: getattr(part, name) for name in names}
        inputs.append(input_of(file.path, role=file.role, name=file.name, most=most, **counts))
        file.check_unchanged()
    provenance = replace(results.provenance, call=shell_call(sys.argv[1:]), inputs=tuple(inputs))
    return replace(results, provenance=provenance)
