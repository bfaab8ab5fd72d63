"""Results as one JSON document, both ways, and its JSON schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_type_hints

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.core.escaping import json_bytes
from truerank.core.messages import Message
from truerank.core.provenance import Provenance, plain
from truerank.core.record import record
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.units import COLUMNS
from truerank.io.atomic_write import FolderKind, check_folder, real, whole_file, whole_folder
from truerank.io.files import check_readable, read_table, write_table
from truerank.io.paths import FileVersion

FORMAT: Final = 2
RESULTS, UNITS = "results.json", "units.parquet"
FOLDER = FolderKind("set of results", (RESULTS, UNITS))
INFINITE = {"inf": math.inf, "-inf": -math.inf}
# of each field that holds a number with decimals: what stands in JSON for those that JSON lacks
NUMBERS: dict[type[Any], dict[str, dict[Any, float]]] = {
    kind: {name: INFINITE | ({None: math.nan} if hint is float else {})
           for name, hint in get_type_hints(kind).items() if hint in (float, float | None)}
    for kind in (Estimate, Comparison)
}  # fmt: skip
NOT_RESULTS = (
    msgspec.ValidationError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError,
)  # fmt: skip


@record(kw_only=True)
class Numbers:
    """Estimates and comparisons of one group of units."""

    estimates: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...]


@record(kw_only=True)
class Document:
    """All that the JSON holds, in its order; `groups` answer the same question within groups of units."""

    format: Literal[2] = FORMAT
    estimates: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...]
    messages: tuple[Message, ...]
    provenance: Provenance
    groups: Mapping[str, Numbers] = field(default_factory=dict)


def encode(results: Results) -> bytes:
    """One JSON object; NaN is null, and what is infinite the text inf or -inf."""
    return json_bytes(plain(document_of(results)))


def document_of(results: Results, *, groups: Mapping[str, Results] | None = None) -> Document:
    parts = {name: Numbers(estimates=part.estimates, comparisons=part.comparisons)
             for name, part in (groups or {}).items()}  # fmt: skip
    return Document(
        estimates=results.estimates, comparisons=results.comparisons, messages=results.messages,
        provenance=results.provenance, groups=parts,
    )  # fmt: skip


def decode(content: bytes, *, where: str) -> Results:
    """The results of a document; what is none is refused."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: cannot be read as JSON ({error}). Save the results again.") from None
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT:
        raise InputError(
            f"{where}: format {version!r}; expected results of truerank, format {FORMAT}. Make them again, or read "
            "them with the version that wrote them."
        )
    try:
        for part, numbers in (("estimates", NUMBERS[Estimate]), ("comparisons", NUMBERS[Comparison])):
            document[part] = [
                entry | {name: special.get(entry[name], entry[name]) for name, special in numbers.items()}
                for entry in document[part]
            ]
        decoded = msgspec.convert(document | {"groups": {}}, Document)
    except NOT_RESULTS as error:
        raise InputError(
            f"{where}: is not what results of format {FORMAT} hold ({error}). Save the results again."
        ) from None
    return Results(decoded.estimates, decoded.comparisons, decoded.messages, decoded.provenance)


def schema() -> dict[str, Any]:
    """The JSON schema of the document, made from the types it holds; every field is written, none other is.

    A number with decimals is null where it is undefined, and text where it is infinite, which JSON has no number for.
    """
    (content,), parts = msgspec.json.schema_components([Document])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Results of truerank, format {FORMAT}",
        **content,
        "$defs": {name: _closed(_with_undefined(part)) for name, part in parts.items()},
    }


def _with_undefined(part: Any) -> Any:
    """A schema in which every number may be undefined or infinite, and in which no default is NaN."""
    if isinstance(part, list):
        return [_with_undefined(entry) for entry in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "number":
        return {"anyOf": [{"type": ["number", "null"]}, {"enum": list(INFINITE)}]}
    return {name: _with_undefined(entry) for name, entry in part.items() if name != "default"}


def _closed(part: dict[str, Any]) -> dict[str, Any]:
    """An object with all of its properties and no other."""
    return part | {"required": [*part["properties"]], "additionalProperties": False} if "properties" in part else part


def save(results: Results, path: Path, *, force: bool = False) -> None:
    """Write the folder whole or not at all; one that holds earlier results is replaced with `force`, others never."""
    if not real(path).parent.is_dir():
        raise InputError(f"{path}: cannot be written, its folder is missing. Choose another place.")
    with whole_folder(path, kind=FOLDER, force=force) as folder:
        with whole_file(folder / RESULTS) as temporary:
            temporary.write_bytes(encode(results))
        if results.unit_table is not None:
            write_table(results.unit_table.frame(), folder / UNITS)


def read(path: Path) -> Results:
    """The results of a folder, with units that are read when asked for, or of a JSON file."""
    if not path.is_dir():
        check_readable(path)
        return decode(path.read_bytes(), where=str(path))
    if not (path / RESULTS).is_file():
        raise InputError(f"{path}: has no {RESULTS}; expected a folder that Results.save has written, or its JSON.")
    marker = check_folder(path, kind=FOLDER.name, expected=f"a folder that Results.save has written, or its {RESULTS}")
    results = decode((path / RESULTS).read_bytes(), where=str(path / RESULTS))
    return replace(results, unit_table=UnitFile(FileVersion.of(path / UNITS))) if UNITS in marker.files else results


@record(eq=False)
class UnitFile:
    """Units in a Parquet file, read when they are asked for; a file that has changed since is refused."""

    version: FileVersion

    def frame(self) -> pl.DataFrame:
        frame = read_table(self.version.path)
        self.version.check()
        if tuple(frame.columns) != COLUMNS:
            raise InputError(f"{self.version.path}: has other columns than {', '.join(COLUMNS)}. Save it again.")
        return frame
