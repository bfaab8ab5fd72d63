"""docs/catalogue.md: everything that has a name in the language of values, read from the catalogues."""

from __future__ import annotations

import inspect
import re
from typing import Any

from truerank import datasets, estimators, metrics, models
from truerank.core.language import Kind
from truerank.core.values import at_of, form_of, options_of, positional_of, text_of
from truerank.estimators import RANKED
from truerank.exposure import interventions, kinds, positions, propensities
from truerank.exposure.logging_policies import LOGGERS
from truerank.ranking import samplers

# title, the kind, where its classes are, where it is asked for
SECTIONS: tuple[tuple[str, Kind[Any], str, str], ...] = (
    ("Metrics", metrics.METRICS, "tr.metrics", "`evaluate --metric`, `metrics=`"),
    ("Estimators for judged rows", estimators.ESTIMATORS, "tr.estimators", "`evaluate --estimator`, `estimators=`"),
    ("Estimators for ranked logs", RANKED, "tr.estimators", "`offpolicy --estimator`, `estimators=`"),
    ("Exposures", kinds.EXPOSURES, "tr.exposure", "`evaluate --exposure`, `exposure=`"),
    ("Propensity models", propensities.PROPENSITIES, "tr.exposure", "`evaluate --propensity`, `fit_propensities`"),
    ("Position models", positions.POSITIONS, "tr.positions", "`offpolicy --position`, `position=`"),
    ("Loggers", LOGGERS, "tr.exposure", "`study reliability --loggers`, `expose`"),
    ("Intervention strategies", interventions.STRATEGIES, "tr.exposure", "`intervene --strategy`, `intervene`"),
    ("Candidate samplers", samplers.SAMPLERS, "truerank.ranking.samplers", "`study reliability --samplers`, `sample_candidates`"),
    ("Recommenders", models.RECOMMENDERS, "tr.models", "`train NAME`, `models.parse`"),
    ("Datasets", datasets.DATASETS, "tr.datasets", "`data list`, `datasets.named`"),
)  # fmt: skip
HEAD = """# Catalogue

Everything that has a name: what to write on the command line or as text in Python, its class, what it is, and the options that stand in brackets, with their
defaults: `Precision@10(denominator=list)`. `import truerank as tr`. Made by `python -m docs.making catalogue` from the classes themselves; a new class is listed by
itself.
"""


def made() -> dict[str, str]:
    return {"catalogue.md": page()}


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, kind, home, where in SECTIONS:
        rows = "\n".join(row(cls, home) for cls in kind.catalogue().values())
        parts.append(f"\n## {title}\n\n{where}\n\n| text | class | what it is | options |\n|---|---|---|---|\n{rows}\n")
    return "".join(parts)


def row(cls: type[Any], home: str) -> str:
    """The cells of one class."""
    cells = (f"`{form_of(cls)}`", f"`{home}.{cls.__name__}`", sentence(cls), options(cls))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def sentence(cls: type[Any]) -> str:
    """What a class says of itself in a sentence: its `summary`, or the first of its documentation."""
    summary = getattr(cls, "summary", None)
    if isinstance(summary, str):
        return summary
    first = " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z`])", first)[0].replace("*", r"\*")


def options(cls: type[Any]) -> str:
    """Its options that are not part of the text form, with defaults."""
    found = []
    for name, option in options_of(cls).items():
        if name == at_of(cls) or (option.needed and name in positional_of(cls)):
            continue
        default = option.default if not option.needed else "..."
        text = text_of(default) if hasattr(default, "name") and not isinstance(default, str) else str(default)
        found.append(f"`{name}={text.lower() if isinstance(default, bool) or default is None else text}`")
    return " ".join(found)
