"""Where results go: to standard output or whole into files, messages to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli import terminal
from truerank.cli.groups import InputFile, Reading, input_files
from truerank.cli.options import PATH, SharedOption, common, shared
from truerank.core.errors import InputError
from truerank.core.progress import Progress, watching

if TYPE_CHECKING:
    from truerank.core.provenance import Input
    from truerank.core.requirements import Requirement
    from truerank.core.results import Results

# by the ending of --out: of every command, and of those that evaluate
PLAIN_FORMS = {"": "table", ".txt": "table", ".json": "json", ".csv": "csv"}
FORMS = {**PLAIN_FORMS, ".md": "markdown", ".tex": "latex"}
RESULTS_FORMS = ["table", "json", "csv", "markdown", "latex"]
PICTURES = (".svg", ".png", ".pdf", ".html")
LONGEST_NAME = 200  # leaves room for the temporary name beside it
# notes that a table does not replace: what was guessed, or is missing
NOTED = (
    "columns",
    "numbered",
    "dropped",
    "like",
    "no-exclusions",
    "no-ranking",
    "propensity-unused",
    "partly-foreseen",
    "returned",
)
HASHED = 2**28  # bytes of an input up to which its hash is taken without being asked for


def remembered(unit: str) -> tuple[SharedOption, ...]:
    """Options of what results remember of single units."""
    return (
        shared(
            "--within", metavar="FILE|N",
            help=f"Also the same within groups: a table {unit},group, or N groups by how many rows {unit}s have.",
        ),
        shared("--units", type=PATH, metavar="FILE", help=f"Write what every {unit} contributed to a Parquet file."),
        shared("--save", type=PATH, metavar="DIR", help="Write a folder that Results.read reads back."),
        shared("--report", type=PATH, metavar="FILE", help="Write a report: one HTML page that opens offline."),
        shared("--verbose", is_flag=True, help="All estimates, assumptions and messages below the answer."),
        common("force: Replace the folder of --save, if truerank made all that it holds."),
        shared("--hash", is_flag=True, help="Hash every input; else those up to 256 MB are, to name them for good."),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What results look like, where they go, and what is said on the way."""

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

    @property
    def chosen_form(self) -> str:
        """The form asked for; by default a table, or what the ending of the file says."""
        return self._form(PLAIN_FORMS)

    @property
    def results_form(self) -> str:
        """The same of estimates and comparisons, which also go into papers and READMEs."""
        return self._form(FORMS)

    def _form(self, forms: Mapping[str, str]) -> str:
        if self.format is not None:
            return self.format
        ending = "" if self.out is None else self.out.suffix.lower()
        if ending not in forms:
            raise InputError(
                f"--out {self.out}: unknown ending {ending!r}; expected {', '.join(filter(None, forms))} or none. "
                "Choose one of them, or say what to write: --format."
            )
        return forms[ending]

    @property
    def place(self) -> Path:
        """Where to write, for commands that need to be told."""
        if self.out is None:
            raise InputError("--out is missing: say where to write.")
        return self.out

    def files(self) -> list[InputFile]:
        """The table of groups, which is read."""
        return input_files(groups=None if self.within is None or _is_count(self.within) else Path(self.within))

    def check(self, inputs: Iterable[InputFile | Path | None] = (), *, shows: str = "") -> None:
        """Refuse what cannot be written, or would replace an input, before any work is done.

        `shows` says what the ending of --out decides: the form of "results", of a "table", or of one with a "picture".
        """
        paths = (source.path if isinstance(source, InputFile) else source for source in inputs)
        read = [path for path in paths if path is not None]
        for flag, path in (("--out", self.out), ("--units", self.units), ("--report", self.report)):
            check_out(path, inputs=read, flag=flag)
        self._check_apart()
        if shows == "results":
            self.results_form  # noqa: B018
        elif shows == "table" or (shows == "picture" and self.picture is None):
            self.chosen_form  # noqa: B018
        if self.units is not None and self.units.suffix.lower() != ".parquet":
            raise InputError(f"--units {self.units}: expected a name that ends in .parquet.")
        if self.report is not None:
            from truerank.report.page.of_results import check_name

            check_name(self.report, what="--report ")
        if self.save is not None and (not _real(self.save).parent.is_dir() or self.save.is_file()):
            raise InputError(f"--save {self.save}: cannot be made there. Choose the name of a new folder.")
        if self.save is not None:
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

    def progress(self) -> AbstractContextManager[Progress | None]:
        return watching(not self.quiet)

    @contextmanager
    def resumable(self, folder: Path | None) -> Iterator[Progress | None]:
        """Progress of long work that is kept in a folder, where there is one: who stops it is told how to go on."""
        try:
            with self.progress() as report:
                yield report
        except KeyboardInterrupt:
            if folder is not None and folder.is_dir():  # something may be there
                self.say([f"{folder}: what is done is kept; the same command goes on from there."])
            raise

    @property
    def picture(self) -> str | None:
        """The form of a picture, where --out names one."""
        ending = "" if self.out is None or self.format is not None else self.out.suffix.lower()
        return ending.removeprefix(".") if ending in PICTURES else None

    def show(
        self,
        text: Callable[[], str],
        *,
        rows: Callable[[], Sequence[Mapping[str, Any]]],
        document: Callable[[], Mapping[str, Any]],
        picture: Callable[[str], bytes] | None = None,
    ) -> None:
        """Deliver a result in the form that was chosen: text, CSV of rows, a JSON document or a picture."""
        from truerank.core.escaping import json_bytes
        from truerank.report.text import as_csv, encoded

        if picture is not None and self.picture is not None:
            self.deliver(picture(self.picture))
        elif self.chosen_form == "json":
            self.deliver(json_bytes(document()))
        elif self.chosen_form == "csv":
            self.deliver(as_csv(rows()))
        else:
            self.deliver(encoded(text()))

    def deliver(self, content: bytes) -> None:
        """Content to a file, whole or not at all, or to standard output."""
        if self.out is None:
            terminal.write(content)
            return
        from truerank.io.atomic_write import whole_file

        try:
            with whole_file(self.out) as temporary:
                temporary.write_bytes(content)
        except BrokenPipeError:
            pass  # --out is a pipe whose reader has left
        except OSError as error:
            raise InputError(
                f"--out {self.out}: cannot be written ({error.strerror}). Make room, or choose another place."
            ) from None

    def results(
        self,
        results: Results,
        files: Sequence[InputFile],
        *,
        reading: Reading,
        required: Sequence[Requirement] = (),
    ) -> None:
        """Say what there is to say, and write results with what they were made of; leave with what was required."""
        table = self.results_form == "table"  # which shows warnings itself
        shown = NOTED if table else None
        self.say(message.said(for_cli=True) for message in results.messages
                 if shown is None or (message.code in shown and message.severity == "note"))  # fmt: skip
        results = recorded(results, files, most=None if self.hash else HASHED)
        groups = (
            {}
            if self.within is None
            else dict(results.by(_segment(self.within, reading, unit=results.provenance.unit)))
        )
        if self.units is not None:
            from truerank.io.files import write_table

            write_table(results.units(), self.units)
        if self.save is not None:
            results.save(self.save, force=self.force)
        if self.report is not None:
            from truerank.report.page.of_results import write

            write(results, self.report, groups=groups or None)
        self.deliver(self._rendered(results, groups))
        if self.results_form in ("markdown", "latex"):  # they hold no reasons, which are printed also when quiet
            from truerank.report.details import remarks

            for sentence in remarks(replace(results, estimates=(), messages=()), for_cli=True):
                terminal.say(sentence)
        outcomes = [rule.outcome(results) for rule in required]
        for _, sentence in outcomes:
            terminal.say(sentence)  # also when quiet: it explains the exit code
        code = max((int(outcome) for outcome, _ in outcomes), default=0)
        if code:
            raise click.exceptions.Exit(code)

    def _rendered(self, results: Results, groups: Mapping[str, Results]) -> bytes:
        if self.results_form in ("markdown", "latex"):
            from truerank.core.escaping import latex_text, markdown_text
            from truerank.report import markup

            forms = {"markdown": (markup.markdown, markdown_text), "latex": (markup.latex, latex_text)}
            write, escape = forms[self.results_form]
            parts = [write(results), *(f"{escape(name)}\n\n{write(within)}" for name, within in groups.items())]
            return "\n".join(parts).encode()
        if self.results_form == "json":
            from truerank.report import document

            return document.encode(results, groups=groups)
        if self.results_form == "csv":
            from truerank.report import frames

            return frames.csv(results, groups=groups)
        from truerank.report import text

        width = terminal.width() if self.out is None else None
        color = width is not None and not os.environ.get("NO_COLOR")
        return text.render(
            results, groups=groups, width=width, color=color, for_cli=True, verbose=self.verbose
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
    from truerank.io.fingerprint import input_of

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
