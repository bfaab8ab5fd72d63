"""A chart that shows itself in a notebook and saves itself by the ending of a name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.escaping import chart_spec
from truerank.io.atomic_write import whole_file
from truerank.report.plots.panels import WHO
from truerank.report.reliability_charts import PictureFormat, picture

HTML = ".html"
FORMS = {f".{form.value}": form for form in PictureFormat}


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """A picture of results; `chart` is that of altair, to change or to combine."""

    chart: Any
    title: str

    @checked_arguments()
    def save(self, path: str | Path) -> None:
        """Write .svg, .png or .pdf, or .html: a page of its own that needs nothing else and no network."""
        place = Path(path)
        content = self._written(place)
        with whole_file(place) as temporary:
            temporary.write_bytes(content)

    def _written(self, place: Path) -> bytes:
        ending = place.suffix.lower()
        if ending in FORMS:
            return picture(self.chart, FORMS[ending], who=WHO)
        if ending == HTML:
            from truerank.report.page.render import one_chart

            return one_chart(self.chart, title=self.title)
        raise InputError(f"{place}: unknown ending {ending!r}; expected {', '.join((*FORMS, HTML))}.")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The specification, which notebooks draw without any network, and a drawing for those that cannot."""
        spec = chart_spec(self.chart)
        version = spec["$schema"].rpartition("/v")[2].partition(".")[0]
        return {
            f"application/vnd.vegalite.v{version}+json": spec,
            "image/svg+xml": picture(self.chart, PictureFormat.SVG, who=WHO).decode(),
            "text/plain": f"Plot({self.title!r})",
        }
