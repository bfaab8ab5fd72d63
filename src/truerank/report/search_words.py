"""A summary in the words of search: queries, documents and systems, where the labels are TREC qrels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from truerank.core.results import Results
from truerank.io.text import are_qrels
from truerank.report.view import AnswerSummary, Cell, Detail, ResultTable

WORDS = {
    "user": "query", "users": "queries", "item": "document", "items": "documents", "model": "system",
    "models": "systems", "user-item": "query-document",
}  # fmt: skip


def is_search(results: Results) -> bool:
    """Whether the labels are TREC qrels."""
    labels = (entry.source for entry in results.provenance.inputs if entry.role == "labels")
    return any(map(are_qrels, labels))


def in_words_of_search(summary: AnswerSummary, names: Iterable[str]) -> AnswerSummary:
    """The same answer about queries, documents and systems; names of systems and options stay as they are.

    >>> in_words_of_search(AnswerSummary("user knn beats item-knn for 5 users (--items FILE)."), ["item-knn"]).verdict
    'query knn beats item-knn for 5 queries (--items FILE).'
    """
    word = _translator(names)

    def table(of_users: ResultTable) -> ResultTable:
        head = [word(text) for text in of_users.head]
        rows = [[Cell(word(first.text), *first[1:]), *rest] for first, *rest in of_users.rows]
        return of_users._replace(head=head, rows=rows)

    def detail(of_users: Detail) -> Detail:
        tables = [
            replace(part, caption=word(part.caption), frame=part.frame.rename(word, strict=False))
            for part in of_users.tables
        ]
        return Detail(word(of_users.title), word(of_users.estimand), tables)

    return replace(
        summary,
        verdict=word(summary.verdict),
        table=None if summary.table is None else table(summary.table),
        notes=tuple(map(word, summary.notes)),
        groups=tuple((word(head), table(part)) for head, part in summary.groups),
        warnings=tuple(map(word, summary.warnings)),
        estimands=word(summary.estimands),
        details=lambda: map(detail, summary.details()),
        remarks=tuple(map(word, summary.remarks)),
        next_step=word(summary.next_step),
    )


def _translator(names: Iterable[str]) -> Callable[[str], str]:
    """Longer words first, whole words alone."""
    kept = {*filter(None, names)}
    parts = [re.escape(part) for part in sorted({*kept, *WORDS}, key=len, reverse=True)]
    pattern = re.compile(rf"--[\w-]+(?: [A-Z]+)?|(?<!\w)(?:{'|'.join(parts)})(?!\w)")
    words = {word: field for word, field in WORDS.items() if word not in kept}
    return lambda text: pattern.sub(lambda match: words.get(match[0], match[0]), text)
