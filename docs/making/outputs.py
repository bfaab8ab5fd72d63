"""The pages with what their commands and their Python print: every block is run as a reader would, from the top.

A page is run in a folder of its own that has the files of `truerank demo`. Below each block stands what it wrote to
standard output; a block that writes nothing has nothing below it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.making.files import DOCS
from docs.making.steps import BLOCK, steps, steps_of

README = DOCS.parent / "README.md"
DEMO = "truerank demo"
LONGEST = 120  # characters of a line of output


def pages() -> list[Path]:
    """The pages that have something to run."""
    return [path for path in (README, *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("tutorials/*.md")))
            if steps(path.read_text()) and path.stem not in {"extending", "catalogue"}]  # fmt: skip


def with_outputs(page: str, folder: Path) -> str:
    """A page with the output of each of its blocks, run one after the other in a folder."""
    parts, end = [], 0
    for block in BLOCK.finditer(page):
        parts.append(page[end : block.start()])
        end = block.end()
        code = f"```{block[1]}\n{block[2]}```"
        printed = []
        for step in steps_of(block[1], block[2]):
            done = step.run(folder)
            if done.returncode:
                raise SystemExit(f"{step.text}\n{done.stderr}")
            if done.stdout:
                printed.append(done.stdout)
        parts.append(code + "".join(f"\n\n{output(text)}" for text in ["\n".join(printed)] if printed))
    return "".join([*parts, page[end:]])


def output(text: str) -> str:
    """What was printed as it stands on a page: a long sentence as a quotation, anything else as it is."""
    return f"> {text.strip()}" if text.count("\n") == 1 and len(text) > LONGEST else f"```text\n{text}```"


def made() -> dict[str, str]:
    with TemporaryDirectory() as scratch:
        demo = Path(scratch) / "demo"
        demo.mkdir()
        command = steps(f"```console\n$ {DEMO} --quiet\n```")[0]
        command.run(demo).check_returncode()
        made: dict[str, str] = {}
        for path in pages():
            folder = Path(scratch) / str(len(made))
            shutil.copytree(demo, folder)
            made[f"../{path.relative_to(DOCS.parent)}"] = with_outputs(path.read_text(), folder)
    return made
