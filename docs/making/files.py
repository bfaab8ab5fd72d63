"""Which modules make files of the docs, and what these hold."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truerank.report.charts import PictureFormat, picture

HERE = Path(__file__).parent
DOCS = HERE.parent
WHO = "the pictures of the docs"


def finding(alt: Any, *lines: str) -> Any:
    """The title of a picture: what it shows, in lines that a phone holds."""
    return alt.TitleParams(list(lines), fontSize=15, fontWeight="bold", anchor="start", offset=10)


def names() -> list[str]:
    """Modules here that make files."""
    return sorted(path.stem for path in HERE.glob("*.py") if "\ndef made(" in path.read_text())


def files(name: str, form: PictureFormat = PictureFormat.SVG) -> Iterator[tuple[str, bytes]]:
    """Place in docs and content of each file that a module makes; charts drawn in a format, with its ending."""
    for place, content in importlib.import_module(f"docs.making.{name}").made().items():
        if isinstance(content, str):
            yield place, content.encode()
        elif isinstance(content, bytes):
            yield place, content
        else:
            yield str(Path(place).with_suffix(f".{form}")), picture(content, form, who=WHO)
