"""Results as one JSON document, both ways; `results.schema.json` beside this file says what it holds."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from truerank.core.errors import InputError, some
from truerank.core.messages import Message
from truerank.core.provenance import Provenance
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.units import UnitFile
from truerank.data.files import check_readable

Value = TypeVar("Value", Estimate, Comparison)

FORMAT = 1
INFINITE = {"inf": math.inf, "-inf": -math.inf}


# the fields that hold a number with decimals: float, or none in its place
NUMBERS = {
    kind: {name: hint for name, hint in get_type_hints(kind).items() if hint in (float, float | None)}
    for kind in (Estimate, Comparison)
}


def encode(results: Results, *, groups: Mapping[str, Results] | None = None) -> bytes:
    """One JSON object; NaN is null, and what is infinite the text inf or -inf.

    All messages stand in one list. Those of single estimates stand there once, with the places of these estimates,
    which have the sentences and codes of their own. Of `groups`, the same question within groups of units, there are
    estimates and comparisons.
    """
    places: dict[Message, list[int]] = {}
    for at, estimate in enumerate(results.estimates):
        for message in estimate.warnings:
            places.setdefault(message, []).append(at)
    content = {
        "format": FORMAT,
        **_numbers(results),
        "messages": [
            *(_message(message) for message in results.messages),
            *(_message(message) | {"estimates": of} for message, of in places.items()),
        ],
        "provenance": msgspec.to_builtins(results.provenance),
    }
    if groups:
        content["groups"] = {name: _numbers(within) for name, within in groups.items()}
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def decode(content: bytes, *, where: str) -> Results:
    """The results of a document; what is none is refused."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: cannot be read as JSON ({error}). Save the results again.") from None
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT:
        raise InputError(
            f"{where}: format {version!r}; expected results of truerank, format {FORMAT}. Make them again, or read "
            "them with the version that wrote them."
        )
    try:
        messages = [(_read_message(entry), entry["estimates"]) for entry in document["messages"]]
        own: list[list[Message]] = [[] for _ in document["estimates"]]
        for message, of in messages:
            for at in of or ():
                own[at].append(message)
        return Results(
            estimates=tuple(_read_estimate(*pair) for pair in zip(document["estimates"], own, strict=True)),
            comparisons=tuple(_read_comparison(entry) for entry in document["comparisons"]),
            messages=tuple(message for message, of in messages if of is None),
            provenance=msgspec.convert(document["provenance"], Provenance),
        )
    except (msgspec.ValidationError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{where}: is not what results of format {FORMAT} hold ({error}). Save the results again."
        ) from None


def schema() -> dict[str, Any]:
    """The JSON schema of the document."""
    text = resources.files("truerank.report").joinpath("results.schema.json").read_bytes()
    content: dict[str, Any] = msgspec.json.decode(text)
    return content


# ------------------------------------------------------------------------------------------------------------- writing


def _numbers(results: Results) -> dict[str, Any]:
    return {
        "estimates": [_estimate(estimate) for estimate in results.estimates],
        "comparisons": [_comparison(comparison) for comparison in results.comparisons],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return _fields(comparison) | {"reasons": [_said(message) for message in comparison.reasons]}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return _fields(estimate) | {
        "warnings": list(estimate.warning_texts),
        "warning_codes": [message.code for message in estimate.warnings],
    }


def _message(message: Message) -> dict[str, Any]:
    """A sentence that names options is said in Python's words, with the text it is made from beside it."""
    return _said(message) | {"estimates": None}


def _said(message: Message) -> dict[str, Any]:
    sentence = str(message)
    template = {} if sentence == message.text else {"template": message.text}
    entry: dict[str, Any] = msgspec.to_builtins(message)
    return entry | {"text": sentence} | template


def _fields(value: Estimate | Comparison) -> dict[str, Any]:
    numbers = NUMBERS[type(value)]
    contents = {field.name: getattr(value, field.name) for field in fields(value)}
    contents["evidence"] = msgspec.to_builtins(value.evidence)
    return {name: _number(content) if name in numbers else content for name, content in contents.items()}


def _number(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else "inf" if value > 0 else "-inf"


# ------------------------------------------------------------------------------------------------------------- reading


def _read_estimate(entry: Mapping[str, Any], own: Sequence[Message]) -> Estimate:
    """An estimate with its messages, in the order of its sentences."""
    waiting: dict[tuple[str, str], list[Message]] = {}
    for message in own:
        waiting.setdefault((message.code, str(message)), []).append(message)
    ordered = [waiting[said].pop(0) for said in zip(entry["warning_codes"], entry["warnings"], strict=True)]
    return _read(Estimate, {**entry, "warnings": [msgspec.to_builtins(message) for message in ordered]})


def _read_comparison(entry: Mapping[str, Any]) -> Comparison:
    reasons = [msgspec.to_builtins(_read_message(reason)) for reason in entry["reasons"]]
    return _read(Comparison, {**entry, "reasons": reasons})


def _read_message(entry: Mapping[str, Any]) -> Message:
    return msgspec.convert({**entry, "text": entry.get("template", entry["text"])}, Message)


def _read(kind: type[Value], entry: Mapping[str, Any]) -> Value:
    contents = dict(entry)
    for name, hint in NUMBERS[kind].items():
        number = contents[name]
        missing = math.nan if hint is float else None
        contents[name] = missing if number is None else INFINITE.get(number, number)
    return msgspec.convert(contents, kind)


RESULTS, UNITS = "results.json", "units.parquet"


def save(results: Results, path: Path) -> None:
    """Write the folder whole or not at all; one that holds earlier results is replaced, any other is refused."""
    with _whole_folder(path) as folder:
        (folder / RESULTS).write_bytes(encode(results))
        if results.unit_table is not None:
            results.unit_table.frame().write_parquet(folder / UNITS, compression="zstd")


def read(path: Path) -> Results:
    """The results of a folder, with units that are read when asked for, or of a JSON file."""
    file = path / RESULTS if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise InputError(f"{path}: has no {RESULTS}; expected a folder that Results.save has written, or its JSON.")
    check_readable(file)
    results = decode(file.read_bytes(), where=str(file))
    units = path / UNITS
    return replace(results, unit_table=UnitFile.of(units)) if path.is_dir() and units.exists() else results


@contextmanager
def _whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place if all goes well and vanishes if not."""
    path = path.resolve()
    _check_place(path)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o777 & ~mask)
        _check_place(path)
        _take_place(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_place(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path}: is a file; expected the name of a folder to write.")
    others = sorted({entry.name for entry in path.iterdir()} - {RESULTS, UNITS})
    if others:
        raise InputError(f"{path}: holds {some(others)}, which is no part of results. Choose another folder.")


def _take_place(temporary: Path, path: Path) -> None:
    """Rename; what was there is moved aside before and comes back if that fails."""
    if not path.exists():
        temporary.rename(path)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    try:
        path.rename(aside)  # onto an empty folder
        try:
            temporary.rename(path)
        except OSError:
            aside.rename(path)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
