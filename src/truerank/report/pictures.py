"""Charts as pictures: SVG, PNG or PDF, drawn by vl-convert without a browser or the internet (extra `report`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from truerank.models.extras import load

INSTALL = "'truerank[report]'"
PIXELS = 2  # of a PNG for each of a chart: sharp on paper
TYPEFACE = "Liberation Sans, Arial, Helvetica, sans-serif"  # the first comes with vl-convert: the same on every machine


class PictureFormat(StrEnum):
    """How a picture is written."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def altair(who: str) -> Any:
    """The library that describes charts; where it is missing, what to install."""
    load("vl_convert", install=INSTALL, who=who)
    return load("altair", install=INSTALL, who=who)


def picture(chart: Any, form: PictureFormat, *, who: str) -> bytes:
    """A chart as the content of a file: the same bytes for the same chart, but for PDF, whose parts have no order."""
    library = altair(who)
    convert = load("vl_convert", install=INSTALL, who=who)
    version = "_".join(library.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    spec = chart.to_dict(validate=False)  # checking a chart takes longer than drawing it
    if form is PictureFormat.PNG:
        return bytes(convert.vegalite_to_png(spec, vl_version=version, scale=PIXELS, allowed_base_urls=[]))
    if form is PictureFormat.PDF:
        return bytes(convert.vegalite_to_pdf(spec, vl_version=version, allowed_base_urls=[]))
    text: str = convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[])
    return text.encode()
