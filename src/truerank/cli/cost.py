"""truerank plan cost."""

from __future__ import annotations

from dataclasses import dataclass

import click

from truerank.cli.options import ENGINE, FORMAT, OUT, QUIET, Sections, choice, count, grouped, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError

COMMANDS = ("evaluate", "offpolicy")
PER_USER = 10.0  # rows of a user, where nobody says how many users there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a run is: numbers of what it is about, as 10e9 or 1e6."""

    rows: float
    users: float | None = None
    items: float = 0.0
    dim: int = 0
    models: int = 2
    n_workers: int = 16

    def check(self) -> None:
        given = {"rows": self.rows, "models": self.models, "n-workers": self.n_workers}
        given |= {} if self.users is None else {"users": self.users}
        for name, value in given.items():
            if not 1 <= value < 1e18:
                raise InputError(f"--{name} {value:g}; expected a number from 1, such as 1e6.")
        for name, value in (("items", self.items), ("dim", self.dim)):
            if not 0 <= value < 1e18:
                raise InputError(f"--{name} {value:g}; expected a number from 0, such as 1e6.")


@click.command(cls=Sections)
@grouped(
    Size,
    shared("--rows", type=float, metavar="NUMBER", help="Judged rows or impressions.").here(required=True),
    shared("--users", type=float, metavar="NUMBER", help=f"Users.  [default: a user for {PER_USER:g} rows]"),
    shared("--items", type=float, metavar="NUMBER", help="Items that compete, of evaluate.").here(default=0.0),
    shared("--dim", type=int, metavar="N", help="Dimensions of the factors that scores are made of.").here(default=0),
    shared("--models", type=int, metavar="N", help="Models or targets.").here(default=2, show_default=True),
    count("--n-workers", default=16, help="Cores of the cluster, or of this machine."),
)
@choice("--command", COMMANDS, help="Only this command.  [default: both]")
@ENGINE.here("Only this engine.  [default: all]", default=None, show_default=False)
@grouped(Output, FORMAT, OUT, QUIET)
def cost(*, size: Size, command: str | None, engine: str | None, output: Output) -> None:
    """What a run would take: hours, memory and disk, reckoned from times that were measured.

    Time grows linearly with rows, and for evaluate with users x items x dimensions. One machine looks through the rows
    and partitions them by user; workers share the rest. See docs/scale.md for what was measured, and on what.

    \b
    truerank plan cost --rows 10e9 --items 1e6 --dim 64 --models 5
    truerank plan cost --rows 10e9 --users 1e9 --models 5 --command offpolicy --engine dask --n-workers 200
    """
    from dataclasses import asdict

    from truerank.engines.costs import ENGINES, Sized
    from truerank.engines.costs import cost as reckoned
    from truerank.engines.named import as_engine
    from truerank.report.costs import costs_text
    from truerank.report.text import as_csv, as_json, encoded

    size.check()
    output.check([], results=False)
    form = output.chosen_form
    if engine is not None:
        as_engine(engine)
    sized = Sized(
        rows=size.rows,
        users=max(size.rows / PER_USER, 1.0) if size.users is None else size.users,
        items=size.items,
        dim=size.dim,
        models=size.models,
        workers=size.n_workers,
    )
    names = COMMANDS if command is None else (command,)
    found = [reckoned(name, each, sized) for name in names for each in ((engine,) if engine else ENGINES)]
    rows = [asdict(each) | {"bottleneck": each.bottleneck} for each in found]
    if form == "json":
        output.deliver(as_json({"size": asdict(sized), "costs": rows}))
    elif form == "csv":
        output.deliver(as_csv(rows))
    else:
        output.deliver(encoded(costs_text(found, sized)))
