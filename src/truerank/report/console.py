"""Consoles of rich that show data without what a terminal would obey."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from truerank.core.escaping import printable

WIDE = 10_000  # of text that no terminal cuts


def console_on(stream: io.StringIO, *, width: int | None, color: bool) -> Console:
    """A console for a terminal of `width` columns, or uncut."""
    system: Any = "auto" if color else None
    console = Console(file=stream, width=width or WIDE, force_terminal=color, color_system=system, highlight=False)
    console.push_render_hook(_Harmless())
    return console


class _Harmless(RenderHook):
    """Texts and cells are laid out first and then made printable, so that only styles of ours become sequences."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Written(each) for each in renderables]


@dataclass(frozen=True, slots=True)
class _Written:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            yield Segment(printable(text, lines=True), style, control)
