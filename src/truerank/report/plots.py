"""Charts of results that show themselves in a notebook and save themselves by the ending of a name."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truerank.core.errors import InputError
from truerank.core.escaping import chart_spec, html_text
from truerank.core.record import record
from truerank.core.validation import checked_arguments
from truerank.io.atomic_write import whole_file
from truerank.report import evidence_panels, panels
from truerank.report.charts import PictureFormat, PlotPanel, composed, picture
from truerank.report.questions import item_groups

if TYPE_CHECKING:
    from truerank.core.results import Results

HTML = ".html"
FORMS = {f".{form.value}": form for form in PictureFormat}
NO_VALUE = "there is no estimate with a value."


@record(eq=False)
class Plot:
    """A picture of results; `chart` is that of altair, to change or to combine."""

    chart: Any
    title: str

    @checked_arguments()
    def save(self, path: str | Path) -> None:
        """Write .svg, .png or .pdf, or .html: a page of its own that needs nothing else and no network."""
        place = Path(path)
        ending = place.suffix.lower()
        if ending in FORMS:
            content = picture(self.chart, FORMS[ending])
        elif ending == HTML:
            from truerank.report.page import one_chart

            content = one_chart(self.chart, title=self.title)
        else:
            raise InputError(f"{place}: unknown ending {ending!r}; expected {', '.join((*FORMS, HTML))}.")
        with whole_file(place) as temporary:
            temporary.write_bytes(content)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The specification, which notebooks draw without any network, and a drawing for those that cannot."""
        spec = chart_spec(self.chart)
        version = spec["$schema"].rpartition("/v")[2].partition(".")[0]
        return {
            f"application/vnd.vegalite.v{version}+json": spec,
            "image/svg+xml": picture(self.chart, PictureFormat.SVG).decode(),
            "text/plain": f"Plot({self.title!r})",
        }


@record(eq=False)
class Plots:
    """The pictures of results: each shows itself in a notebook, and saves itself as .svg, .png, .pdf or .html."""

    results: Results

    def intervals(self) -> Plot:
        """The value of each model with its interval, a panel for each question."""
        return _plot("Values with their intervals", panels.intervals(self.results), NO_VALUE)

    def differences(self) -> Plot:
        """Paired differences with their intervals and verdicts."""
        nothing = "there is no comparison. Evaluate two models or more."
        return _plot("Differences with their verdicts", panels.differences(self.results), nothing)

    def over_k(self) -> Plot:
        """The curve over cut-offs."""
        nothing = 'no metric has several cut-offs. Ask for some, as metrics=["Recall@{1,5,10}"].'
        return _plot("Values over the cut-off", panels.over_k(self.results), nothing)

    def units(self) -> Plot:
        """Who gains and who loses, by how much, and how the values of single units are spread."""
        self.results.units()  # reports why, where there are none
        return _plot("Single units", evidence_panels.units(self.results), "no unit has a value of its own.")

    def segments(self, within: Any = None) -> Plot:
        """The same within groups of units, as `Results.by` takes them; without `within` by the groups of items."""
        groups = item_groups(self.results) if within is None else self.results.by(within)
        nothing = "there are no groups of items. Say which groups of units are meant: segments(4), or a table."
        return _plot("Within groups", panels.segments(self.results, groups), nothing)

    def balance(self) -> Plot:
        """How much of each list the rows stand for."""
        nothing = "the balance of lists cannot be told here: rows were not drawn from lists, or every pair is labelled."
        return _plot("Balance of lists", evidence_panels.balance(self.results), nothing)

    def evidence(self) -> Plot:
        """All that tells how far the numbers can be trusted."""
        return _plot("Evidence", evidence_panels.evidence(self.results), "no evidence was recorded.")

    def clips(self) -> Plot:
        """Value, shift and error over clips."""
        nothing = "there are not several clips. Ask for some, as clips=[1, 8, inf]."
        return _plot("Values over clips", panels.clips(self.results), nothing)

    def weights(self) -> Plot:
        """Effective rows, weight lost to clips, and support, of an off-policy evaluation."""
        nothing = "only an off-policy evaluation records its weights."
        return _plot("Weights and support", evidence_panels.weights(self.results), nothing)

    def positions(self) -> Plot:
        """Fitted position models against the log."""
        return _plot("Position models", panels.positions(self.results), "no position model was fitted.")


def _plot(title: str, drawn: Sequence[PlotPanel], nothing: str) -> Plot:
    return Plot(composed(drawn, nothing=nothing), title)


def notebook_picture(results: Results) -> str:
    """The interval plot as an image in HTML; nothing where there is nothing to draw, or nothing to draw with."""
    try:
        drawn = panels.intervals(results)[:4]
        chart = composed(drawn, nothing=NO_VALUE)
    except InputError:
        return ""
    content = base64.b64encode(picture(chart, PictureFormat.SVG, who="a notebook")).decode()
    description = html_text(" ".join(panel.sentence for panel in drawn))
    return f'<img alt="{description}" src="data:image/svg+xml;base64,{content}">'
