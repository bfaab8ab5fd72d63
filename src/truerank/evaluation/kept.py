"""A run whose chunks are kept as they are done: it can be stopped at any moment, and the same call goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truerank.core.messages import note
from truerank.core.provenance import versions
from truerank.core.results import Results
from truerank.data.identity import described
from truerank.engines.engine import Engine, Workers
from truerank.engines.keeping import keeping
from truerank.version import __version__

FORMAT = 1  # of what is kept


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """The workers of a run, and what is to be said of what they kept."""

    workers: Workers
    notes: Callable[[], Iterator[str]] = lambda: iter(())

    def said(self, results: Results) -> Results:
        """The results with what is to be said."""
        found = tuple(note("kept", sentence) for sentence in self.notes())
        return replace(results, messages=(*results.messages, *found)) if found else results


@contextmanager
def opened_run(
    engine: Engine, keep: str | os.PathLike[str] | None, asked: Callable[[], Mapping[str, Any]]
) -> Iterator[OpenedRun]:
    """The workers of an engine; with a folder to keep in, they keep. `asked` tells the run from all others."""
    if keep is None:
        with engine.open() as workers:
            yield OpenedRun(workers)
        return
    with keeping(engine, Path(keep), asked(), what="run") as kept:
        yield OpenedRun(kept, kept.notes)


def question_of(command: str, *, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that results depend on: what is asked, of which inputs, by which version. Files are told by their bytes."""
    given = {name: Path(each) if isinstance(each, str) else each for name, each in inputs.items()}
    return {
        "command": command,
        "format": FORMAT,
        "truerank": __version__,
        "versions": versions(),
        **{name: described(each, what=name) for name, each in settings.items()},
        **{name: described(each, what=name) for name, each in given.items()},
    }
