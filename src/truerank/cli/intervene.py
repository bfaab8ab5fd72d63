"""truerank intervene."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.groups import Inference, Reading
from truerank.cli.options import PATH, Sections, choice, common, grouped, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError
from truerank.core.record import record

if TYPE_CHECKING:
    from truerank.exposure.interventions import Strategy

INCLUSION = "inclusion"


@record(kw_only=True)
class Intervening:
    """How rows are drawn: the preset of a strategy, with what was said otherwise."""

    strategy: str
    preset: str = "published"
    fraction: float = 0.5
    user_power: float | None = None
    item_power: float | None = None
    floor: float | None = None
    smoothing: float | None = None

    def chosen(self) -> Strategy:
        from truerank.exposure import interventions
        from truerank.exposure.counts import Floor, Smoothed

        if self.floor is not None and self.smoothing is not None:
            raise InputError("--floor and --smoothing are two rules for counts of 0; give one of them.")
        floor = None if self.floor is None else Floor(self.floor)
        zero = floor if self.smoothing is None else Smoothed(self.smoothing)
        preset: Any = getattr(interventions.STRATEGIES.named(self.strategy), self.preset)()
        options = {
            "user_power": ("--user-power", self.user_power),
            "item_power": ("--item-power", self.item_power),
            "zero": ("--floor" if self.smoothing is None else "--smoothing", zero),
        }
        changed = {key: value for key, (_, value) in options.items() if value is not None}
        for key in changed.keys() - {field.name for field in fields(preset)}:
            able = [
                name for name, cls in interventions.STRATEGIES.catalogue().items() if key in cls.__dataclass_fields__
            ]
            raise InputError(f"{options[key][0]} has no meaning for {self.strategy}; it goes with {', '.join(able)}.")
        strategy: Strategy = replace(preset, **changed)
        return strategy


@click.command(cls=Sections)
@click.argument("log", type=PATH)
@grouped(
    Intervening,
    shared(
        "--strategy", metavar="NAME", required=True,
        help="full, reg, popularity-stratified, equal-per-item, skew, wtd, wtd_h.",
    ),
    choice(
        "--preset", ["published", "released"], default="published", help="What the paper says, or what its code does."
    ),
    shared("--fraction", type=float, default=0.5, help="How much of LOG is drawn, in (0, 1]."),
    shared("--user-power", type=float, help="Power of the user's weight: 1."),
    shared(
        "--item-power", type=float, help="Power of the item's weight: 2 as published, 1 as released and for skew."
    ),
    shared("--floor", type=float, help="What a share of 0 becomes: 0.0001."),
    shared("--smoothing", type=float, metavar="A", help="Add A to every count instead of a floor."),
)  # fmt: skip
@shared(
    "--inclusion", is_flag=True,
    help="Draw nothing: write all rows with their probability to be drawn, in a column of that name.",
)  # fmt: skip
@common("train: The biased log whose users and items are counted, for weights.")
@common("random: Rows shown at random, for wtd.")
@grouped(Reading, "columns")
@grouped(Inference, "seed", "threads", "engine")
@grouped(Output, "out!: The file to write.", "quiet")
def intervene(
    *,
    log: Path,
    intervening: Intervening,
    inclusion: bool,
    train: Path | None,
    random: Path | None,
    reading: Reading,
    inference: Inference,
    output: Output,
) -> None:
    """Draw from a biased log a test set that looks more as if it had been shown at random.

    LOG is a held-out (or training) table of users and items, which need not fit into memory; its drawn rows are written
    with all their columns, under the names they have. Labels are not looked at. Evaluate models on the result with

    \b
    truerank intervene heldout.parquet --strategy skew --train train.parquet --out test.parquet
    truerank evaluate test.parquet --unlisted negative --exclude train.parquet --overlap keep --scores pop=pop.npz

    One drawn test set is noisy. With --inclusion every row keeps its probability instead, and
    `--estimator intervened` (or intervened-pooled) gives what all test sets that could be drawn give on average.
    """
    import polars as pl

    from truerank.evaluation.intervening import draw_table, margins_of
    from truerank.exposure import interventions
    from truerank.exposure.counts import Margins
    from truerank.io.files import SEPARATORS, write_table
    from truerank.io.read import as_fields
    from truerank.io.spill import scratch

    reading.mapping()  # names that are wrong are refused first
    inference.check()
    chosen, out, fraction, seed = intervening.chosen(), output.place, intervening.fraction, inference.seed
    output.check([log, train, random])
    text = out.suffix.lower() in SEPARATORS
    if not text and out.suffix.lower() != ".parquet":
        raise InputError(f"{out}: unknown ending {out.suffix!r}; expected .parquet, .csv or .tsv.")
    if inclusion and (inference.engine != "local"):
        raise InputError("--inclusion looks at the weights of all rows at once, on this machine; leave --engine out.")
    if not inclusion:
        beside = {
            role: None if path is None else margins_of(path, columns=reading.for_file(role).mapping(), name=role)
            for role, path in (("train", train), ("random", random))
        }
        with output.progress() as report, scratch() as space:
            drawn = draw_table(
                log, chosen, **beside, fraction=fraction, seed=seed, columns=reading.mapping(),
                engine=inference.engine, threads=inference.threads, progress=report,
            )  # fmt: skip
            drawn.write(out, text=text, space=space)
        output.say(drawn.notes(chosen, fraction=fraction))
        return
    table, pairs = as_fields(log, reading.mapping(), text=text)
    if INCLUSION in table.columns:
        raise InputError(f"{log}: has a column {INCLUSION!r} already; rename it, or leave --inclusion out.")
    fit, shown = reading.for_file("train").pairs(train), reading.for_file("random").pairs(random)
    result = interventions.with_inclusion(pairs, chosen, train=fit, random=shown, fraction=fraction, seed=seed)
    table = table.with_columns(pl.Series(INCLUSION, result.inclusion))
    write_table(table, out)
    output.say(
        [
            *interventions.unseen_notes(Margins.of(pairs), chosen, None if fit is None else Margins.of(fit)),
            f"{len(table):,} rows with their probability to be drawn, {table[INCLUSION].sum():,.1f} on average.",
        ]
    )
