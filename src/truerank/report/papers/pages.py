"""Pages of reproduced experiments: one for each paper, and a front page of all; nothing on them is typed by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truerank.core.errors import InputError
from truerank.data.datasets import DATASETS
from truerank.data.folders import FolderKind, whole_folder
from truerank.report.folding import folded
from truerank.report.papers.graphs import drawn, drawn_tiles
from truerank.studies.papers.experiment import EXPERIMENTS, Experiment, catalogued, paper_of
from truerank.studies.papers.paper import Cell, ClaimFinding, ClaimVerdict, Paper, PaperClaim, PaperGraph
from truerank.studies.papers.reproduced import Reproduced
from truerank.studies.results import DIGITS

FOLDER = FolderKind("set of pages", ("*.md", "*.svg"))
FRONT = "README.md"
SIGNS = {
    ClaimVerdict.HOLDS: "✓ holds",
    ClaimVerdict.IN_PART: "◐ holds in part",
    ClaimVerdict.DOES_NOT: "✗ does not hold",
    ClaimVerdict.UNTESTED: "– cannot be tested here",
}
NOT_RUN = "not run yet"
WORDS = {  # of one claim and of several
    ClaimVerdict.HOLDS: ("holds", "hold"),
    ClaimVerdict.IN_PART: ("holds in part", "hold in part"),
    ClaimVerdict.DOES_NOT: ("does not hold", "do not hold"),
    ClaimVerdict.UNTESTED: ("cannot be tested here", "cannot be tested here"),
    None: ("is yet to be tested", "are yet to be tested"),
}
MILLION, THOUSAND = 1_000_000, 1_000
NUMBER = re.compile(r"(?<=[a-z])(?=\d)")  # where one begins in a name, as in MovieLens1M
FRONT_PICTURE = "claims.svg"
Results = Mapping[str, Reproduced]  # by the name of their files
Finding = tuple[PaperClaim, ClaimFinding | None]  # none where the experiment has not run


def read_results(folder: Path) -> dict[str, Reproduced]:
    """All result files of a folder, by name."""
    found = {path.name: Reproduced.read(path) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise InputError(f"{folder}: holds no result of an experiment (*.json).")
    for name, result in found.items():
        if name != result.file_name:
            raise InputError(f"{folder / name}: holds {result.file_name}. Give it that name.")
    return found


def write_pages(results: Results, out: Path, *, force: bool = False) -> list[Path]:
    """Write the front page, a page for each paper, and all pictures into a folder of their own."""
    made = pages(results)
    with whole_folder(out, kind=FOLDER, force=force) as folder:
        for name, content in made.items():
            (folder / name).write_bytes(content)
    return [out / name for name in made if name.endswith(".md")]


def pages(results: Results) -> dict[str, bytes]:
    """Every file of the pages: what it holds by its name."""
    texts = {FRONT: front(results)} | {f"{paper.key}.md": page(paper, results) for paper in papers()}
    pictures = {
        _image(result, graph): drawn(graph) for result in results.values() for graph in result.graphs
    }  # fmt: skip
    return {name: text.encode() for name, text in texts.items()} | pictures | {FRONT_PICTURE: front_picture(results)}


def papers() -> list[Paper]:
    """Every paper that an experiment shows something of, in the order of experiments."""
    return list(dict.fromkeys(paper for cls in catalogued() for paper in cls.shows))


def of_paper(paper: Paper) -> list[type[Experiment]]:
    return [cls for cls in catalogued() if paper in cls.shows]


def results_of(cls: type[Experiment], results: Results) -> list[Reproduced]:
    """What was found by an experiment: on real data first."""
    return sorted((each for each in results.values() if each.experiment == cls.name), key=lambda each: each.synthetic)


# ------------------------------------------------------------------------------------------------------------- verdicts


def findings_of(cls: type[Experiment], results: Results) -> list[Finding]:
    """Each claim of an experiment with its verdict: on real data where there is one, else in a synthetic world."""
    found: dict[str, ClaimFinding] = {}
    for result in results_of(cls, results):
        for finding in result.findings:
            known = found.get(finding.claim)
            if known is None or known.verdict is ClaimVerdict.UNTESTED:
                found[finding.claim] = finding
    if cls.instead:
        found = {claim.key: ClaimFinding(claim.key, ClaimVerdict.UNTESTED, cls.instead) for claim in cls.claims}
    return [(claim, found.get(claim.key)) for claim in cls.claims]


def counted(found: Sequence[Finding]) -> str:
    """How many claims have which verdict.

    >>> claim = PaperClaim("a", "It works.", "Table 1", "by rule")
    >>> counted([(claim, ClaimFinding("a", ClaimVerdict.HOLDS, "")), (claim, None)])
    '2 claims (holds: 1, not run yet: 1)'
    """
    counts = Counter(NOT_RUN if finding is None else finding.verdict.value for _, finding in found)
    named = [name for name in (*ClaimVerdict, NOT_RUN) if counts[name]]
    said = ", ".join(f"{name}: {counts[name]}" for name in named)
    return f"{len(found)} claim{'' if len(found) == 1 else 's'} ({said})"


# ---------------------------------------------------------------------------------------------------------------- pages


def front(results: Results) -> str:
    """What was claimed and what was found, at a glance."""
    every = [pair for paper in papers() for pair in own_findings(paper, results)]
    lines = [
        "# The papers, run again",
        "",
        f"![What became of every claim, paper by paper]({FRONT_PICTURE})",
        "",
        "Five papers say how recommenders are to be evaluated when data show only part of the truth. truerank runs "
        "their experiments again and puts what it obtains beside what they published. "
        f"A square is a claim: {counted(every)}.",
        "",
        "*Every number comes from the files in `docs/results/reproduced` (`truerank reproduce pages`).*",
        "",
        "## What the papers are remembered for",
        "",
        "| paper | what was claimed | verdict |",
        "|---|---|---|",
        *(line for paper in papers() for line in _claim_lines(paper, main_findings(paper, results))),
        "",
        "## Every claim",
    ]
    for paper in papers():
        own = own_findings(paper, results)
        if own:
            lines += [
                "",
                f"**{paper.short}**: {counted(own)}",
                "",
                "| paper | what was claimed | verdict |",
                "|---|---|---|",
            ]
            lines += _claim_lines(paper, own)
    lines += ["", "## Every table and figure", "", "| paper | table or figure | experiment |", "|---|---|---|"]
    for paper in papers():
        for part in paper.parts:
            showing = [cls.name for cls in of_paper(paper) if part in cls.shows[paper]]
            lines.append(f"| [{paper.short}]({paper.key}.md) | {part} | {', '.join(showing) or 'none'} |")
    return "\n".join(folded(lines)) + "\n"


def own_findings(paper: Paper, results: Results) -> list[Finding]:
    """The claims of the experiments that belong to a paper, not only show something of it; no questions of ours."""
    own = (pair for cls in of_paper(paper) if paper_of(cls) == paper for pair in findings_of(cls, results))
    return [(claim, finding) for claim, finding in own if not claim.ours]


def main_findings(paper: Paper, results: Results, *, borrowed: bool = False) -> list[Finding]:
    """What a paper is remembered for; `borrowed`: else what those are that its experiments belong to."""
    own = {
        (cls.name, claim.key): (claim, found) for cls in of_paper(paper) for claim, found in findings_of(cls, results)
    }
    homes = dict.fromkeys(paper_of(cls) for cls in of_paper(paper))
    places = paper.main or (place for home in homes if borrowed for place in home.main if place in own)
    return [own[place] for place in places]


def front_picture(results: Results) -> bytes:
    """A square for every claim, in the row of its paper and the colour of its verdict."""
    return drawn_tiles(
        [
            (paper.short, NOT_RUN if finding is None else finding.verdict.value)
            for paper in papers()
            for _, finding in own_findings(paper, results)
        ],
        order=(*(verdict.value for verdict in ClaimVerdict), NOT_RUN),
    )


def _claim_lines(paper: Paper, found: Sequence[Finding]) -> list[str]:
    return [
        f"| [{paper.short}]({paper.key}.md) | {_cell(claim.text)} | {_verdict(finding)} |" for claim, finding in found
    ]


def page(paper: Paper, results: Results) -> str:
    """The page of a paper: a picture, claims with their verdicts, then experiment by experiment."""
    experiments = of_paper(paper)
    lines = [f"# {paper.title}", "", *(part for each in _lead(paper, results) for part in (each, ""))]
    lines += [" ".join(sentences(paper, results)), "", "What it is remembered for:", ""]
    lines += [f"- {_verdict(each)}: {claim.text}" for claim, each in main_findings(paper, results, borrowed=True)]
    lines += ["", "Every claim:", ""]
    lines += ["| claim | where | verdict | why |", "|---|---|---|---|"]
    for cls in experiments:
        lines += [
            f"| {_cell(claim.text)} | {claim.where} ({cls.name}) | {_verdict(finding)} | {_why(finding)} |"
            for claim, finding in findings_of(cls, results)
        ]
    for cls in experiments:
        lines += ["", *_experiment(cls, paper, results)]
    return "\n".join(folded(lines)) + "\n"


def sentences(paper: Paper, results: Results) -> tuple[str, str, str]:
    """What a paper says, what was done here, and what was found, for those who have read neither."""
    experiments = of_paper(paper)
    ran = [cls for cls in experiments if results_of(cls, results)]
    closed = [cls for cls in experiments if cls.instead]
    waiting = len(experiments) - len(ran) - len(closed)
    others = [
        f"{len(closed)} more cannot be run here" if closed else "",
        f"{waiting} more {'is' if waiting == 1 else 'are'} yet to be run" if waiting else "",
    ]
    found = Counter(
        each and each.verdict for cls in experiments for claim, each in findings_of(cls, results) if not claim.ours
    )
    told = [f"{found[verdict]} {words[found[verdict] > 1]}" for verdict, words in WORDS.items() if found[verdict]]
    done = [
        f"Its claims were tested here in {len(ran)} experiment{'' if len(ran) == 1 else 's'}{_on(ran, results)}",
        *others,
    ]
    return (
        f"{paper.authors} ({paper.year}) say that {paper.says}.",
        f"{'; '.join(filter(None, done))}.",
        f"Of {found.total()} claims, each held to a written rule, {_joined(told)}.",
    )


def _on(ran: Sequence[type[Experiment]], results: Results) -> str:
    """What experiments were run on, in few words."""
    real = [cls for cls in ran if cls.data and not all(each.synthetic for each in results_of(cls, results))]
    named = [DATASETS.named(name) for name in dict.fromkeys(name for cls in real for name in cls.data)]
    data = [f"on {NUMBER.sub('-', each.__name__)} ({each.about.split(';')[0]})" for each in named]
    made = ["by calculation or simulation"] if len(real) < len(ran) else []
    return f", {_joined([*data, *made])}" if ran else ""


def _joined(parts: Sequence[str]) -> str:
    """
    >>> _joined(["a", "b", "c"]), _joined(["a"])
    ('a, b and c', 'a')
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _lead(paper: Paper, results: Results) -> list[str]:
    """The first picture of a paper."""
    found = [
        _picture(result, graph)
        for cls in of_paper(paper)
        for result in results_of(cls, results)
        for graph in result.graphs
    ]
    return found[:1]


def _experiment(cls: type[Experiment], paper: Paper, results: Results) -> Iterator[str]:
    shown = ", ".join(cls.shows[paper])
    yield f"## {cls.name}: {shown or cls.about.removesuffix('.')}"
    if shown:
        yield ""
        yield cls.about
    if paper_of(cls) != paper:
        home = paper_of(cls)
        yield ""
        yield f"Its numbers stand on the page of [{home.title}]({home.key}.md)."
        return
    if cls.instead:
        yield ""
        yield f"Cannot be run here: {cls.instead}"
    yield from _rules(cls.claims)
    for result in results_of(cls, results):
        yield from section(result)


def _rules(claims: Sequence[PaperClaim]) -> Iterator[str]:
    yield ""
    yield "How verdicts are reached:"
    yield ""
    yield from (f"- {claim.text} *{claim.rule}*" for claim in claims)


def section(result: Reproduced) -> Iterator[str]:
    """What was obtained by one run: settings, differences from the paper, pictures, tables."""
    needs = EXPERIMENTS.named(result.experiment).data
    where = "needs no data" if not needs else "a synthetic world" if result.synthetic else "real data"
    yield ""
    yield f"### {result.experiment}, {where}, {result.size} size, seed {result.seed}"
    if result.settings:
        yield ""
        yield f"Settings: {'; '.join(f'{name}: {_setting(value)}' for name, value in result.settings.items())}."
    if result.differs:
        yield ""
        yield "Not as in the paper:"
        yield ""
        yield from (f"- {sentence}" for sentence in result.differs)
    for graph in result.graphs:
        yield ""
        yield _picture(result, graph)
    for name in dict.fromkeys(cell.table for cell in result.cells):
        yield ""
        yield f"**{name}**"
        yield ""
        yield from pivot([cell for cell in result.cells if cell.table == name])


def pivot(cells: Sequence[Cell]) -> Iterator[str]:
    """A table: rows and columns in the order in which they come.

    >>> for line in pivot([Cell("t", "R", "DCG", 1.0, 1.0), Cell("t", "R'", "DCG", 1.25)]): print(line)
    | | DCG |
    |---|---|
    | R | 1 (published 1) |
    | R' | 1.25 |
    """
    rows, columns = (list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("row", "column"))
    by_place = {(cell.row, cell.column): cell for cell in cells}
    yield f"| | {' | '.join(map(_cell, columns))} |"
    yield f"|{'---|' * (len(columns) + 1)}"
    for row in rows:
        yield f"| {_cell(row)} | {' | '.join(_number(by_place.get((row, column))) for column in columns)} |"


def _number(cell: Cell | None) -> str:
    if cell is None:
        return ""
    said = "" if cell.obtained is None else _digits(cell.obtained)
    if cell.low is not None and cell.high is not None:
        said = f"{said} [{_digits(cell.low)}, {_digits(cell.high)}]"
    if cell.published is not None:
        said = f"{said} (published {_digits(cell.published)})".strip()
    return f"{said} beyond ±{cell.tolerance:g}" if cell.is_within is False else said


def _digits(value: float) -> str:
    """A number as people write it: four digits, all of a count below a million, those that are kept of a larger one.

    >>> _digits(10612.0), _digits(1411.0), _digits(4477220.0), _digits(0.123456), _digits(-1234.5), _digits(3.0)
    ('10,612', '1,411', '4.47722 million', '0.1235', '-1,234', '3')
    """
    if abs(value) >= MILLION:
        return f"{value / MILLION:.{DIGITS}g} million"
    return f"{value:,.0f}" if abs(value) >= THOUSAND else f"{value:.4g}"


def _setting(value: Any) -> str:
    """
    >>> _setting(1943.0), _setting([10, 0.5, "ALS"]), _setting({"a": 2000, "b": [1]}), _setting(True)
    ('1,943', '10, 0.5, ALS', 'a 2,000, b 1', 'True')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_setting(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_setting, value))
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,g}"
    return str(value) if isinstance(value, str | bool) or value is None else f"{value:,.0f}"


def _picture(result: Reproduced, graph: PaperGraph) -> str:
    return f"![{graph.sentence}]({_image(result, graph)})"


def _image(result: Reproduced, graph: PaperGraph) -> str:
    return f"{result.file_name.removesuffix('.json')}-{graph.name}.svg"


def _verdict(finding: ClaimFinding | None) -> str:
    return NOT_RUN if finding is None else SIGNS[finding.verdict]


def _why(finding: ClaimFinding | None) -> str:
    return "" if finding is None else _cell(finding.why)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
