"""Results as one JSON document, both ways, and its JSON schema."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from truerank.core.errors import InputError
from truerank.core.escaping import json_bytes
from truerank.core.messages import Message
from truerank.core.provenance import Provenance
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.units import UnitFile
from truerank.io.atomic_write import FolderKind, check_folder, real, whole_file, whole_folder
from truerank.io.files import check_readable, write_table

Value = TypeVar("Value", Estimate, Comparison)

FORMAT = 1
RESULTS, UNITS = "results.json", "units.parquet"
FOLDER = FolderKind("set of results", (RESULTS, UNITS))
INFINITE = {"inf": math.inf, "-inf": -math.inf}
# the fields that hold a number with decimals: float, or none in its place
NUMBERS = {
    kind: {name: hint for name, hint in get_type_hints(kind).items() if hint in (float, float | None)}
    for kind in (Estimate, Comparison)
}
NOT_RESULTS = (
    msgspec.ValidationError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError,
)  # fmt: skip


def encode(results: Results, *, groups: Mapping[str, Results] | None = None) -> bytes:
    """One JSON object; NaN is null, and what is infinite the text inf or -inf.

    All messages stand in one list. Those of single estimates stand there once, with the places of these estimates,
    which have the sentences and codes of their own. Of `groups`, the same question within groups of units, there are
    estimates and comparisons.
    """
    places: dict[Message, list[int]] = {}
    for place, estimate in enumerate(results.estimates):
        for message in estimate.warnings:
            places.setdefault(message, []).append(place)
    entries = [*((message, None) for message in results.messages), *places.items()]
    content = {
        "format": FORMAT,
        **_numbers(results),
        "messages": [msgspec.to_builtins(message) | {"estimates": where} for message, where in entries],
        "provenance": msgspec.to_builtins(results.provenance),
    }
    if groups:
        content["groups"] = {name: _numbers(within) for name, within in groups.items()}
    return json_bytes(content)


def _numbers(results: Results) -> dict[str, Any]:
    return {
        "estimates": [
            _fields(estimate)
            | {"warnings": estimate.warning_texts, "warning_codes": [message.code for message in estimate.warnings]}
            for estimate in results.estimates
        ],
        "comparisons": [
            _fields(comparison) | {"reasons": msgspec.to_builtins(comparison.reasons)}
            for comparison in results.comparisons
        ],
    }


def _fields(value: Estimate | Comparison) -> dict[str, Any]:
    contents = {field.name: getattr(value, field.name) for field in fields(value)}
    contents["evidence"] = msgspec.to_builtins(value.evidence)
    return contents | {name: _number(contents[name]) for name in NUMBERS[type(value)]}


def _number(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))


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
        messages = [(msgspec.convert(entry, Message), entry["estimates"]) for entry in document["messages"]]
        by_estimate: list[list[Message]] = [[] for _ in document["estimates"]]
        for message, places in messages:
            for place in places or ():
                by_estimate[place].append(message)
        return Results(
            estimates=tuple(
                _read(Estimate, {**entry, "warnings": _ordered(entry, warnings)})
                for entry, warnings in zip(document["estimates"], by_estimate, strict=True)
            ),
            comparisons=tuple(_read(Comparison, entry) for entry in document["comparisons"]),
            messages=tuple(message for message, places in messages if places is None),
            provenance=msgspec.convert(document["provenance"], Provenance),
        )
    except NOT_RESULTS as error:
        raise InputError(
            f"{where}: is not what results of format {FORMAT} hold ({error}). Save the results again."
        ) from None


def _ordered(entry: Mapping[str, Any], messages: Sequence[Message]) -> list[Any]:
    """The messages of an estimate in the order of its sentences."""
    waiting: dict[tuple[str, str], list[Message]] = {}
    for message in messages:
        waiting.setdefault((message.code, str(message)), []).append(message)
    sentences = zip(entry["warning_codes"], entry["warnings"], strict=True)
    return [msgspec.to_builtins(waiting[sentence].pop(0)) for sentence in sentences]


def _read(kind: type[Value], entry: Mapping[str, Any]) -> Value:
    contents = dict(entry)
    for name, hint in NUMBERS[kind].items():
        missing = math.nan if hint is float else None
        contents[name] = missing if entry[name] is None else INFINITE.get(entry[name], entry[name])
    return msgspec.convert(contents, kind)


def schema() -> dict[str, Any]:
    """The JSON schema of the document, made from the types it holds; every field is written, none other is.

    A number with decimals is null where it is undefined, and text where it is infinite, which JSON has no number for.
    """
    _, parts = msgspec.json.schema_components([Estimate, Comparison, Message, Provenance])
    parts = _with_undefined(parts)
    parts["Reason"] = copy.deepcopy(parts["Message"])
    parts["Comparison"]["properties"]["reasons"]["items"] = {"$ref": "#/$defs/Reason"}
    texts = {"type": "array", "items": {"type": "string"}}
    parts["Estimate"]["properties"] |= {"warnings": texts, "warning_codes": texts}
    places = {"type": ["array", "null"], "items": {"type": "integer", "minimum": 0}}
    parts["Message"]["properties"]["estimates"] = places
    for name, part in parts.items():
        parts[name] = part | _closed(part["properties"]) if "properties" in part else part

    def list_of(name: str) -> dict[str, Any]:
        return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}

    numbers = {"estimates": list_of("Estimate"), "comparisons": list_of("Comparison")}
    content = _closed({"format": {"const": FORMAT}, **numbers, "messages": list_of("Message"),
                       "provenance": {"$ref": "#/$defs/Provenance"}})  # fmt: skip
    content["properties"]["groups"] = {"type": "object", "additionalProperties": _closed(numbers)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Results of truerank, format {FORMAT}",
        **content,
        "$defs": parts,
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


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with all of these properties and no other."""
    required = list(properties)
    return {"type": "object", "required": required, "additionalProperties": False, "properties": dict(properties)}


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
    return replace(results, unit_table=UnitFile.stamped(path / UNITS)) if UNITS in marker.files else results
