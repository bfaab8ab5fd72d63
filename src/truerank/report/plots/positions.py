"""A fitted position model against the log it was fitted to: how many come to each position."""

from __future__ import annotations

from typing import Any

from truerank.core.results import Results
from truerank.report.plots.panels import BLUE, VERMILION, PlotPanel, Rows, inline, layered, library, tooltips

HEIGHT = 200
SMALL = 0.01
KINDS = {"log": (VERMILION, "circle"), "model": (BLUE, "square")}


def positions(results: Results) -> list[PlotPanel]:
    """A panel for each place that a position model was fitted to; nothing where none was fitted."""
    details = results.provenance.details
    fits = {each["place"]: each for each in details.get("fits", ())}
    found = []
    for place, fit in fits.items():
        own = [each for each in details.get("views", ()) if each["place"] == place]
        if own:
            title = "position model" if len(fits) == 1 else f"position model of {place}"
            found.append(PlotPanel(title, _sentence(fit), _chart(own)))
    return found


def _sentence(fit: dict[str, Any]) -> str:
    p = fit["p_of_fit"]
    about = f"{fit['parameter']} = {fit['value']:.4g}"
    if p is None:
        return f"The fitted model ({about}) beside the log; nothing is left to test it with."
    if p < SMALL:
        return f"The fitted model ({about}) differs from the log by more than chance (p = {p:.1g})."
    return f"The fitted model ({about}) describes the log (p = {p:.2g})."


def _chart(own: list[dict[str, Any]]) -> Any:
    alt = library()
    rows: Rows = [
        {"position": each["first"], "last": each["last"], "share": each[f"{what}_view"], "of": name}
        for each in own
        for name, what in (("log", "observed"), ("model", "expected"))
    ]
    colour = alt.Scale(domain=list(KINDS), range=[each[0] for each in KINDS.values()])
    shape = alt.Scale(domain=list(KINDS), range=[each[1] for each in KINDS.values()])
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("position:Q", title="position (log axis)", scale=alt.Scale(type="log", nice=False, padding=10)),
        y=alt.Y("share:Q", title="share that comes there", axis=alt.Axis(format="%"), scale=alt.Scale(zero=True)),
        color=alt.Color("of:N", scale=colour),
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        shape=alt.Shape("of:N", scale=shape),
        tooltip=tooltips(alt, of="of:N", position="position:Q", to="last:Q", share="share:Q"),
    )
    return layered(base.mark_line(strokeWidth=1.5), points).properties(height=HEIGHT)
