"""truerank agree."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.groups import Inference
from truerank.cli.options import FORMAT, LEVEL, OUT, PATH, QUIET, Sections, grouped, listed, shared
from truerank.cli.output import Output

if TYPE_CHECKING:
    from truerank.inference.agreement import Agreement


@click.command(cls=Sections)
@click.argument("offline", type=PATH)
@click.argument("online", type=PATH)
@shared("--on", metavar="NAME,...", help="Columns that match rows.  [default: all that both have, as day and reward]")
@shared(
    "--of", metavar="NAME,...",
    help="Columns of OFFLINE that tell what is compared by itself.  [default: texts that it alone has, as estimator]",
)  # fmt: skip
@shared(
    "--differences", is_flag=True, help="Values are differences from a baseline: signs and what is found count too."
)
@grouped(Inference, LEVEL)
@grouped(Output, FORMAT, OUT, QUIET)
def agree(
    *,
    offline: Path,
    online: Path,
    on: str | None,
    of: str | None,
    differences: bool,
    inference: Inference,
    output: Output,
) -> None:
    """Say how far offline estimates agree with what was measured online.

    OFFLINE and ONLINE are tables (.parquet .csv .tsv) with a column value, a row for each day, policy or reward;
    OFFLINE may have several estimators. Told are Pearson's r and Kendall's tau, with p and interval, and how many pairs
    of rows are in opposite orders; with --differences, where a column is called difference, also how many signs are
    right, and how many true improvements a 99 % interval finds (from a column stderr).

    \b
    truerank agree offline.csv online.csv --on day,reward --of estimator
    """
    from truerank.inference.agreement import agree as compare
    from truerank.report.text import as_csv, as_json, encoded

    output.check([offline, online])
    found = compare(
        offline, online, on=None if on is None else listed(on), of=None if of is None else listed(of),
        differences=differences, level=inference.level,
    )  # fmt: skip
    left = sum(each.left_out for each in found)
    if left:
        output.say([f"{left:,} rows have no counterpart and are left out."])
    rows = [_row(each) for each in found]
    if output.chosen_form == "json":
        output.deliver(as_json({"level": inference.level, "agreement": rows}))
    elif output.chosen_form == "csv":
        output.deliver(as_csv(rows))
    else:
        output.deliver(encoded(_told(found)))


def _row(found: Agreement) -> dict[str, Any]:
    """The numbers of one group, flat."""
    row: dict[str, Any] = {**dict(found.of), "n": found.n, "left_out": found.left_out}
    row |= {"pearson": found.pearson.r, "pearson_low": found.pearson.low, "pearson_high": found.pearson.high,
            "pearson_p": found.pearson.p, "kendall": found.kendall.tau, "kendall_low": found.kendall.low,
            "kendall_high": found.kendall.high, "kendall_p": found.kendall.p, "disagreement": found.disagreement,
            "sign_agreement": found.sign_agreement}  # fmt: skip
    known = found.found
    row |= {"found": math.nan if known is None else known.true_positive_rate,
            "mean_p": math.nan if known is None else known.mean_p}  # fmt: skip
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _told(found: tuple[Agreement, ...]) -> str:
    """A few lines for each group."""
    from truerank.report.text import as_lines

    parts = []
    for each in found:
        r, tau = each.pearson, each.kendall
        lines: dict[str, Any] = {**dict(each.of), "rows compared": f"{each.n:,}"}
        lines["Pearson's r"] = _number(r.r, r.low, r.high, r.p)
        lines["Kendall's tau"] = _number(tau.tau, tau.low, tau.high, tau.p)
        lines["pairs in opposite orders"] = _share(each.disagreement)
        if not math.isnan(each.sign_agreement):
            lines["right signs"] = _share(each.sign_agreement)
        if each.found is not None:
            lines["improvements found"] = (
                f"{_share(each.found.true_positive_rate)} of {each.found.n}, mean p {each.found.mean_p:.3f}"
            )
        parts.append(as_lines(lines, width=max(map(len, lines))))
    return "\n".join(parts)


def _number(value: float, low: float, high: float, p: float) -> str:
    if math.isnan(value):
        return "undefined: a series does not vary"
    interval = "no interval" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
    chance = "no p" if math.isnan(p) else f"p {p:.4f}" if p >= 1e-4 else "p <0.0001"
    return f"{value:.3f} ({interval}), {chance}"


def _share(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.1%}"
