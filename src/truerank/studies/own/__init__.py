"""Studies of our own, one module each: whether what truerank says can be trusted, where the truth is known.

A new study is one new module, and its page another in `report/studied`: `truerank study list`, `truerank study NAME`,
the pages and the tests find both by themselves.
"""

from __future__ import annotations

from typing import Any

from truerank.core.rooms import room


def _contents() -> tuple[Any, ...]:
    from truerank.studies.own.study import STUDIES

    return (STUDIES,)


__getattr__, __dir__ = room(__name__, _contents)
