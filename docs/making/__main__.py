"""Make files of the docs again: python -m docs.making NAME ..., in the folder of the project."""

from __future__ import annotations

import argparse

from docs.making.files import DOCS, files, names
from truerank.io.atomic_write import whole_file
from truerank.report.charts import PictureFormat

PICTURES = DOCS.parent / "build" / "pictures"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.making", description=__doc__)
    parser.add_argument("names", nargs="+", choices=names(), metavar="NAME", help=f"one of {', '.join(names())}")
    parser.add_argument(
        "--png", action="store_true", help="to look at, as PNG into build/pictures; docs stay as they are"
    )
    chosen = parser.parse_args()
    folder, form = (PICTURES, PictureFormat.PNG) if chosen.png else (DOCS, PictureFormat.SVG)
    for name in chosen.names:
        for place, content in files(name, form):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as temporary:
                temporary.write_bytes(content)


if __name__ == "__main__":
    main()
