"""How every page in docs/results is written: first one picture and three sentences, from the page's own tables; long tables folded.

python scripts/result_pages.py          the beginning of every page, again (make result-pictures)

Nothing is measured here: a picture holds numbers of the tables below it, so that it can be drawn again without a long run.
"""

from __future__ import annotations

from pathlib import Path

from result_heads import HEADS
from result_parts import Head, tables
from truerank.data.whole import whole_file
from truerank.report.folding import folded
from truerank.report.reliability_charts import PictureFormat, picture

FOLDER = Path(__file__).parents[1] / "docs" / "results"
DRAWN = "*Picture and sentences are made from the tables below (`make result-pictures`).*"


def write_page(path: Path, name: str, text: str) -> None:
    """Write the page of these results, and its picture beside it."""
    plain = bare(text)
    head = HEADS[name](tables(plain))
    image = path.with_suffix(".svg")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(image) as temporary:
        temporary.write_bytes(picture(head.chart, PictureFormat.SVG, who="a page of results"))
    with whole_file(path) as temporary:
        temporary.write_text(begun(plain, head, image=image.name))


def begun(plain: str, head: Head, *, image: str) -> str:
    """A page with its beginning."""
    title, _, rest = plain.partition("\n")
    beginning = (title, f"![{head.alternative}]({image})", " ".join(head.sentences), DRAWN)
    return "\n\n".join(beginning) + "\n\n" + "\n".join(folded(rest.lstrip("\n").splitlines())) + "\n"


def bare(text: str) -> str:
    """A page without the beginning that it may have."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{rest.partition(DRAWN)[2].lstrip()}" if DRAWN in rest else text


def main() -> None:
    for name in HEADS:
        path = FOLDER / f"{name}.md"
        write_page(path, name, path.read_text())


if __name__ == "__main__":
    main()
