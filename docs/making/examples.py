"""An extension of griffe, which reads docstrings for the site (mkdocs.yml): examples in them are shown as code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).+)*", re.MULTILINE)  # up to the next empty line


PARAMETERS = re.compile(r"(^Parameters\n-+\n(?:.+\n)+)\n(?!\w+\n---)", re.MULTILINE)  # with examples right behind them
ONE_LINE, DESCRIBED = re.compile(r"^(\w[\w, ]*) : (.+)$", re.MULTILINE), r"\1\n    \2"  # what it is, not its type


class Examples(Extension):
    """Examples of every docstring between fences, and under a title of their own behind parameters."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = PARAMETERS.sub(
                lambda found: f"{ONE_LINE.sub(DESCRIBED, found[1])}\nExamples\n--------\n", obj.docstring.value
            )
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
