"""Texts of pictures: letters that fonts set badly (N-bar, K-bar, N-plus) in words."""

from __future__ import annotations

import re
from dataclasses import replace

from truerank.studies.papers.paper import PaperGraph

BAR, PLUS = "\u0304", "\u207a"
WORDS = (
    (rf"K{BAR} N / N{BAR}", "k N / n"),
    (rf"N{BAR} = (\d+)", r"\1 judged"),
    (rf"Recall@(\w+?){BAR}", r"sampled Recall@\1"),
    (rf"K{BAR} = (\d+)", r"sampled at \1"),
    (rf"K{BAR}", "k"),
    (rf"N{BAR}", "n"),
    (rf"N{PLUS}", "positives"),
)


def plain_text(text: str) -> str:
    """The same in plain letters.

    >>> plain_text("Recall@5" + BAR + ", N" + BAR + " = 80")
    'sampled Recall@5, 80 judged'
    """
    for found, word in WORDS:
        text = re.sub(found, word, text)
    return text.replace("sampled Recall@K", "sampled Recall@k")


def plainly(graph: PaperGraph) -> PaperGraph:
    """A graph all of whose texts are in plain letters."""
    points = tuple(
        replace(
            point,
            x=plain_text(point.x) if isinstance(point.x, str) else point.x,
            group=plain_text(point.group),
            panel=plain_text(point.panel),
        )
        for point in graph.points
    )
    title, sentence, x, y = map(plain_text, (graph.title, graph.sentence, graph.x, graph.y))
    return replace(graph, title=title, sentence=sentence, x=x, y=y, points=points)
