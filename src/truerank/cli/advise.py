"""truerank advise."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from truerank import metrics as metric_catalogue
from truerank.cli.options import check_out, columns_of, common, deliver, id_column, messages
from truerank.core.errors import InputError
from truerank.data.read import read
from truerank.report.advice import advice_csv, advice_plain, advice_text
from truerank.studies.reliability.advice import advise as ask
from truerank.studies.reliability.folder import FILES
from truerank.studies.reliability.studied import Studied


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--study", type=click.Path(path_type=Path), help="The folder of a finished `truerank study reliability`.")
@click.option("--metric", help="One that was studied; by default nDCG@100, or else the study's last.")
@click.option("--positive", metavar="RULE", help='Which values are positive, as ">3"; not needed for 0/1.')
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the file, as user=user_id,item=video_id.")
@click.option("--items", type=click.Path(path_type=Path), help="All items that could have been shown.")
@click.option("--n-items", type=int, help="How many items could have been shown; by default those in LOG.")
@click.option("--logger", metavar="NAME", help="The study's logger to take, instead of the nearest.")
@click.option("--sparsity", type=float, help="Share of pairs not shown to give figures for, instead of LOG's.")
@click.option("--users", type=int, help="How many users with a positive the evaluation has, instead of those of LOG.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many choices to show.")
@common
def advise(  # noqa: PLR0917
    log: Path,
    study: Path | None,
    metric: str | None,
    positive: str | None,
    columns: str | None,
    items: Path | None,
    n_items: int | None,
    logger: str | None,
    sparsity: float | None,
    users: int | None,
    top: int,
    form: str | None,
    out: Path | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Say which sampled candidates keep the true order of models best, on a log like yours.

    LOG is what was shown, with labels: positives and negatives. Its sparsity and the bias of its exposure are compared
    with those of the study's logs; the study then says how well each sampler and size keeps the order of models there,
    for as many users as LOG has. Positives alone need --logger and --sparsity.

    \b
    truerank advise log.parquet --study study --n-items 10728
    """
    check_out(out, inputs=(log, items, *(() if study is None else (study / each for each in FILES))))
    if study is None:
        raise InputError(
            "advise needs a study to go by: --study DIR, the folder of a finished `truerank study reliability`."
        )
    if items is not None and n_items is not None:
        raise InputError("--items and --n-items both say what could have been shown; give one of them.")
    mapping = columns_of(columns)
    studied = Studied.read(study)
    asked = None if metric is None else str(metric_catalogue.parse(metric))
    known = read(log, columns=mapping, positive=positive, items=id_column(items, "item", mapping))
    found = ask(known, studied, metric=asked, n_items=n_items, logger=logger, sparsity=sparsity, users=users)
    if items is None and n_items is None and found.log is not None:
        taken = f"the catalogue is taken to be the {found.log.items:,} items in {log}"
        messages([f"{taken}; --n-items or --items say otherwise."], quiet=quiet)
    form = form or (out.suffix[1:] if out is not None and out.suffix in (".json", ".csv") else "table")
    if form == "json":
        content = msgspec.json.format(msgspec.json.encode(advice_plain(found, top=top)), indent=2) + b"\n"
    else:
        content = (advice_csv(found, top=top) if form == "csv" else advice_text(found, top=top)).encode()
    deliver(content, out)
