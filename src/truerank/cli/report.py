"""truerank report and truerank demo."""

from __future__ import annotations

from truerank.cli import terminal
from truerank.cli.options import Call, command, common, only
from truerank.cli.output import check_call, deliver, progress_of


@command(
    "path",
    Options=("metric: Of a study, the metric that is drawn.  [default: nDCG@100, or else the last]",),
    Output=("out!: The page to write, as report.html.",),
)
def report(call: Call) -> None:
    """Write an HTML report of results, or of a finished reliability study.

    PATH is a folder that --save has written, results as JSON, or the folder of `truerank study reliability`. The page
    opens offline: the verdict first, then charts, tables, assumptions and warnings.

    \b
    truerank evaluate random.parquet --scores als=als.npz --exposure random --save results
    truerank report results --out report.html
    """
    from truerank.report.results_page import check_name, report_of

    check_call(call, inputs=[call.path] if call.path.is_file() else [])
    check_name(call.out, what="--out ")
    deliver(call, report_of(call.path, metric=only(call.metric, "--metric")))


@command(
    Options=("seed",),
    Output=(common("out", default="truerank-demo", help="The folder for the demo's files."), "force", "quiet"),
)
def demo(call: Call) -> None:
    """Evaluate recommenders on a simulated dataset with known true values: one question, one picture, one lesson.

    Leaves its files in a folder, for `truerank evaluate`.
    """
    from truerank.report.demo import run_demo

    progress = progress_of(call)
    text = run_demo(call.out, **call.given("seed", "force"), progress=progress, width=terminal.width())
    terminal.write(text.encode())
