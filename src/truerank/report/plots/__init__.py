"""Pictures of results: one module per picture, each a function of results that gives panels.

results --intervals, differences, over_k, ...--> panels --composed--> one chart, or --page--> a report
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truerank.core.errors import InputError
from truerank.core.escaping import html_text
from truerank.report.plots.panels import PlotPanel, composed
from truerank.report.plots.plot import Plot

if TYPE_CHECKING:
    from truerank.core.results import Results


@dataclass(frozen=True, slots=True, eq=False)
class Plots:
    """The pictures of results: each shows itself in a notebook, and saves itself as .svg, .png, .pdf or .html."""

    results: Results

    def intervals(self) -> Plot:
        """The value of each model with its interval, a panel for each question."""
        from truerank.report.plots.intervals import intervals

        return _plot("Values with their intervals", intervals(self.results), "there is no estimate with a value.")

    def differences(self) -> Plot:
        """Paired differences with their intervals and verdicts."""
        from truerank.report.plots.differences import differences

        nothing = "there is no comparison. Evaluate two models or more."
        return _plot("Differences with their verdicts", differences(self.results), nothing)

    def over_k(self) -> Plot:
        """The curve over cut-offs."""
        from truerank.report.plots.over_k import over_k

        nothing = 'no metric has several cut-offs. Ask for some, as metrics=["Recall@{1,5,10}"].'
        return _plot("Values over the cut-off", over_k(self.results), nothing)

    def units(self) -> Plot:
        """Who gains and who loses, by how much, and how the values of single units are spread."""
        from truerank.report.plots.units import units

        self.results.units()  # says why, where there are none
        return _plot("Single units", units(self.results), "no unit has a value of its own.")

    def segments(self, within: Any = None) -> Plot:
        """The same within groups of units, as `Results.by` takes them; without `within` by the groups of items."""
        from truerank.report.plots.segments import segments
        from truerank.report.questions import item_groups

        groups: Mapping[str, Results] = item_groups(self.results) if within is None else self.results.by(within)
        nothing = "there are no groups of items. Say which groups of units are meant: segments(4), or a table."
        return _plot("Within groups", segments(self.results, groups), nothing)

    def balance(self) -> Plot:
        """How much of each list the rows stand for."""
        from truerank.report.plots.evidence import balance

        nothing = "the balance of lists cannot be told here: rows were not drawn from lists, or every pair is labelled."
        return _plot("Balance of lists", balance(self.results), nothing)

    def evidence(self) -> Plot:
        """All that tells how far the numbers can be trusted."""
        from truerank.report.plots.evidence import evidence

        return _plot("Evidence", evidence(self.results), "no evidence was recorded.")

    def clips(self) -> Plot:
        """Value, shift and error over clips."""
        from truerank.report.plots.clips import clips

        nothing = "there are not several clips. Ask for some, as clips=[1, 8, inf]."
        return _plot("Values over clips", clips(self.results), nothing)

    def weights(self) -> Plot:
        """Effective rows, weight lost to clips, and support, of an off-policy evaluation."""
        from truerank.report.plots.weights import weights

        return _plot("Weights and support", weights(self.results), "only an off-policy evaluation records its weights.")

    def positions(self) -> Plot:
        """Fitted position models against the log."""
        from truerank.report.plots.positions import positions

        return _plot("Position models", positions(self.results), "no position model was fitted.")


def _plot(title: str, panels: Sequence[PlotPanel], nothing: str) -> Plot:
    return Plot(composed(panels, nothing=nothing), title)


def notebook_picture(results: Results) -> str:
    """The interval plot as an image in HTML; nothing where there is nothing to draw, or nothing to draw with."""
    import base64

    from truerank.report.plots.intervals import intervals
    from truerank.report.reliability_charts import PictureFormat, picture

    try:
        panels = intervals(results)[:4]
        chart = composed(panels, nothing="there is no estimate with a value.")
    except InputError:
        return ""
    content = base64.b64encode(picture(chart, PictureFormat.SVG, who="a notebook")).decode()
    said = html_text(" ".join(panel.sentence for panel in panels))
    return f'<img alt="{said}" src="data:image/svg+xml;base64,{content}">'
