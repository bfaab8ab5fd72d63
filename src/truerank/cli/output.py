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
from truerank.cli.groups import InputFile, Reading, input_files
from truerank.core.errors import InputError
from truerank.core.progress import Progress, watching
from truerank.core.record import record

if TYPE_CHECKING:
    from truerank.core.messages import Message
    from truerank.core.provenance import Input
    from truerank.core.requirements import Requirement
    from truerank.core.results import Results
    from truerank.report.view import Answer

RESULTS_FORMS = ["table", "json", "csv", "markdown", "latex"]
ENDINGS = {"": "table", ".txt": "table", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex",
           ".svg": "svg", ".png": "png", ".pdf": "pdf"}  # fmt: skip
ANSWER_FORMS, PICTURES = ("table", "json", "csv"), ("svg", "png", "pdf")
LONGEST_NAME = 200  # leaves room for the temporary name beside it
# notes that a table does not replace: what was guessed, or is missing
NOTED = (
    "columns", "numbered", "dropped", "like", "no-exclusions", "no-ranking", "propensity-unused", "partly-foreseen",
    "returned",
)  # fmt: skip
HASHED = 2**28  # bytes of an input up to which its hash is taken without being asked for


@record(kw_only=True)
class Output:
    """What results look like, where they go, and what is printed on the way."""

    format: str | None = None
    out: Path | None = None
    within: str | None = None
    units: Path | None = None
    save: Path | None = None
    report: Path | None = None
    hash: bool = False
    verbose: bool = False
    force: bool = False
    quiet: bool = False

    def form(self, forms: Sequence[str] = ANSWER_FORMS) -> str:
        """One of these forms: that of --format, else what the ending of --out says, else a table."""
        if self.format is not None:
            return self.format
        ending = "" if self.out is None else self.out.suffix.lower()
        if ENDINGS.get(ending) not in forms:
            endings = [text for text, form in ENDINGS.items() if text and form in forms]
            raise InputError(
                f"--out {self.out}: unknown ending {ending!r}; expected {', '.join(endings)} or none. Choose one of "
                "them, or say what to write: --format."
            )
        return ENDINGS[ending]

    @property
    def place(self) -> Path:
        """Where to write, for commands that need to be told."""
        if self.out is None:
            raise InputError("--out is missing: say where to write.")
        return self.out

    def files(self) -> list[InputFile]:
        """The table of groups, which is read."""
        return input_files(groups=None if self.within is None or _is_count(self.within) else Path(self.within))

    def check(
        self, inputs: Iterable[InputFile | Path | None] = (), *, forms: Sequence[str] = tuple(ENDINGS.values())
    ) -> None:
        """Refuse what cannot be written, or would replace an input, before any work is done; `forms` are possible."""
        paths = (source.path if isinstance(source, InputFile) else source for source in inputs)
        read = [path for path in paths if path is not None]
        for flag, path in (("--out", self.out), ("--units", self.units), ("--report", self.report)):
            check_out(path, inputs=read, flag=flag)
        self._check_apart()
        if set(forms) != set(ENDINGS.values()):
            self.form(forms)
        if self.units is not None and self.units.suffix.lower() != ".parquet":
            raise InputError(f"--units {self.units}: expected a name that ends in .parquet.")
        if self.report is not None:
            from truerank.report.page.of_results import check_name

            check_name(self.report, what="--report ")
        if self.save is not None:
            if not _real(self.save).parent.is_dir() or self.save.is_file():
                raise InputError(f"--save {self.save}: cannot be made there. Choose the name of a new folder.")
            from truerank.io.atomic_write import check_place
            from truerank.io.paths import files_of
            from truerank.report.document import FOLDER

            parts = [part for path in read for part in files_of(path)]
            check_place(self.save, kind=FOLDER, force=self.force, inputs=parts)

    def _check_apart(self) -> None:
        """Refuse two outputs of which one would replace or hold the other."""
        named = {"--save": self.save, "--units": self.units, "--report": self.report, "--out": self.out}
        places = [(flag, _real(path)) for flag, path in named.items() if path is not None]
        for number, (flag, path) in enumerate(places):
            for before, earlier in places[:number]:
                if path.is_relative_to(earlier):
                    raise InputError(f"{flag} {path}: is what {before} writes. Choose another name for one of them.")

    def say(self, lines: Iterable[str]) -> None:
        for line in () if self.quiet else lines:
            terminal.say(line)

    def say_notes(self, messages: Iterable[Message], *, everything: bool = False) -> None:
        """What was guessed or is missing; or every message, where results do not show them."""
        self.say(message.said(for_cli=True) for message in messages
                 if everything or (message.code in NOTED and message.severity == "note"))  # fmt: skip

    def progress(self) -> AbstractContextManager[Progress | None]:
        return watching(not self.quiet)

    @contextmanager
    def resumable(self, folder: Path) -> Iterator[Progress | None]:
        """Progress of long work that is kept in a folder: who stops it reads how to go on."""
        try:
            with self.progress() as report:
                yield report
        except KeyboardInterrupt:
            if folder.is_dir():  # something may be there
                self.say([f"{folder}: what is done is kept; the same command goes on from there."])
            raise

    def show(self, *answers: Answer) -> None:
        """Deliver answers as text, the last one as rows, document, picture or page."""
        from truerank.core.escaping import json_bytes

        *_, answer = answers
        if self.report is not None:
            from truerank.report.page.render import answer_page, render

            self._write(render(answer_page(answer)), self.report, flag="--report")
        form = self.form((*ANSWER_FORMS, *PICTURES))
        if form in PICTURES:
            from truerank.report.charts import PictureFormat, composed, picture

            chart = composed(answer.panels(), nothing="this answer has no chart.")
            self.deliver(picture(chart, PictureFormat(form)))
        elif form == "json":
            self.deliver(json_bytes(answer.document))
        elif form == "csv":
            import polars as pl

            from truerank.core.escaping import csv_table

            self.deliver(csv_table(pl.DataFrame(answer.rows, infer_schema_length=None)))
        else:
            from truerank.report.text import summary_text

            texts = [summary_text(answer.summary, verbose=self.verbose, **self._terminal()) for answer in answers]
            self.deliver("\n".join(texts).encode())
        if form in PICTURES or form == "csv":  # which have no place for the verdict and its warnings
            self.say([answer.summary.verdict, *answer.summary.warnings])

    def _terminal(self) -> dict[str, Any]:
        """Columns and colours of the terminal, if results go to one."""
        width = terminal.width() if self.out is None else None
        return {"width": width, "color": width is not None and not os.environ.get("NO_COLOR")}

    def deliver(self, content: bytes) -> None:
        """Content to a file, whole or not at all, or to standard output."""
        if self.out is None:
            terminal.write(content)
        else:
            self._write(content, self.out, flag="--out")

    def _write(self, content: bytes, path: Path, *, flag: str) -> None:
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

    def results(
        self,
        results: Results,
        files: Sequence[InputFile],
        *,
        reading: Reading,
        required: Sequence[Requirement] = (),
    ) -> None:
        """Print messages, and write results with what they were made of; exit with what was required."""
        form = self.form(RESULTS_FORMS)
        self.say_notes(results.messages, everything=form != "table")
        results = recorded(results, files, most=None if self.hash else HASHED)
        groups: Mapping[str, Results] = {}
        if self.within is not None:
            groups = results.by(_segment(self.within, reading, unit=results.provenance.unit))
        if self.units is not None:
            from truerank.io.files import write_table

            write_table(results.units(), self.units)
        if self.save is not None:
            results.save(self.save, force=self.force)
        if self.report is not None:
            from truerank.report.page.of_results import write

            write(results, self.report, groups=groups or None)
        self.deliver(self._rendered(results, groups, form))
        if form in ("markdown", "latex"):  # they hold no reasons, which are printed also when quiet
            from truerank.report.details import remarks

            for sentence in remarks(replace(results, estimates=(), messages=()), for_cli=True):
                terminal.say(sentence)
        outcomes = [rule.outcome(results) for rule in required]
        for _, sentence in outcomes:
            terminal.say(sentence)  # also when quiet: it explains the exit code
        code = max((int(outcome) for outcome, _ in outcomes), default=0)
        if code:
            raise click.exceptions.Exit(code)

    def _rendered(self, results: Results, groups: Mapping[str, Results], form: str) -> bytes:
        from truerank.report import document, frames, markup, text

        if form == "json":
            return document.encode(results, groups=groups)
        if form == "csv":
            return frames.csv(results, groups=groups)
        if form in ("markdown", "latex"):
            return getattr(markup, form)(results, groups=groups).encode()  # type: ignore[no-any-return]
        return text.render(
            results, groups=groups, for_cli=True, verbose=self.verbose, **self._terminal()
        ).encode()  # fmt: skip


def check_out(out: Path | None, *, inputs: Iterable[Path] = (), flag: str = "--out") -> None:
    """Refuse an output that cannot be written, or that would replace an input."""
    if out is None:
        return
    if len(out.name.encode()) > LONGEST_NAME:
        raise InputError(f"{out}: cannot be written, the name is too long. Choose a shorter one.")
    if out.is_dir():
        raise InputError(f"{out}: is a folder; expected the name of a file to write.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"{out}: cannot be written, its folder is missing or closed. Choose another place.")
    if not out.exists():
        return
    from truerank.io.paths import files_of

    for path in inputs:
        if _real(out) in {_real(part) for part in files_of(path)}:
            raise InputError(f"{flag} {out}: is read as {path}, and would be replaced. Choose another name.")


def recorded(results: Results, files: Sequence[InputFile], *, most: int | None) -> Results:
    """Results with the command that makes them again and the files they were made of; no hash above `most` bytes."""
    from truerank.core.provenance import shell_call

    measured = {(part.role, part.name): part for part in results.provenance.inputs}
    inputs = tuple(_input(file, measured.get((file.role, file.name)), most=most) for file in files)
    provenance = replace(results.provenance, call=shell_call(sys.argv[1:]), inputs=inputs)
    return replace(results, provenance=provenance)


def _input(file: InputFile, measured: Input | None, *, most: int | None) -> Input:
    from truerank.io.paths import input_of

    counts: dict[str, Any] = {}
    if measured is not None:
        counts = {name: getattr(measured, name) for name in ("rows", "users", "items", "positives")}
    with file.unchanged():
        return input_of(file.path, role=file.role, name=file.name, most=most, **counts)


def _real(path: Path) -> Path:
    from truerank.io.atomic_write import real

    return real(path)


def _is_count(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _segment(text: str, reading: Reading, *, unit: str) -> Any:
    """Groups of units: so many quantiles of activity, or a table of users (or sessions) and their groups."""
    return int(text) if _is_count(text) else reading.for_file("within").groups(Path(text), unit)
