"""What a run of an experiment leaves in its folder, beside the pieces that it was made of."""

from __future__ import annotations

from pathlib import Path

from truerank.data.folders import seal, unseal
from truerank.data.growing import working
from truerank.data.whole import whole_file
from truerank.report.folding import folded
from truerank.report.papers.graphs import drawn
from truerank.report.papers.pages import SIGNS, section
from truerank.studies.papers.experiment import EXPERIMENTS
from truerank.studies.papers.reproduced import Reproduced
from truerank.studies.pieces import KEPT

KIND = "run of an experiment"
TABLE, PAGE = "obtained.csv", "report.md"


def write(result: Reproduced, folder: Path) -> list[Path]:
    """The results as one file, obtained against published as a tidy table, a page, and the pictures."""
    pictures = {f"{result.file_name.removesuffix('.json')}-{graph.name}.svg": drawn(graph) for graph in result.graphs}
    files = {
        result.file_name: result.encoded(),
        TABLE: result.table().write_csv().encode(),
        PAGE: _page(result).encode(),
        **pictures,
    }
    with working(folder):
        unseal(folder)
        for name, content in files.items():
            with whole_file(folder / name, advice=KEPT) as temporary:
                temporary.write_bytes(content)
        seal(folder, kind=KIND, names=files, advice=KEPT)
    return [folder / name for name in files]


def _page(result: Reproduced) -> str:
    cls = EXPERIMENTS.named(result.experiment)
    lines = [f"# {result.experiment}: {cls.about}", "", "| claim | verdict | why |", "|---|---|---|"]
    texts = {claim.key: claim.text for claim in cls.claims}
    lines += [f"| {texts[each.claim]} | {SIGNS[each.verdict]} | {each.why} |" for each in result.findings]
    return "\n".join(folded([*lines, *section(result)])) + "\n"
