"""A design of exposure: which items to show to whom, with the chance of each; and what came back of it.

A folder with `shown.parquet` (user, item, batch, propensity) and `design.json` (how it was made). The propensity of a
row is its chance to be drawn in its batch, given what was drawn in the batches before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import polars as pl

from truerank.core.arrays import LEAST_CHANCE, Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Returned
from truerank.core.wording import either
from truerank.io.atomic_write import FolderKind, check_folder, whole_file, whole_folder
from truerank.io.files import read_table, write_table

SHOWN, SETTINGS = "shown.parquet", "design.json"
FOLDER = FolderKind("exposure design", (SHOWN, SETTINGS))
A_DESIGN = f"a folder of what {either('truerank plan exposure --allocate', 'truerank.design_exposure')} chose"
COLUMNS = ("user", "item", "batch", "propensity")


@dataclass(frozen=True, slots=True, eq=False)
class ExposureDesign:
    """Pairs to be shown, sorted by user and item: `user` and `item` are places in `users` and `items`.

    Row i was drawn in batch `batch[i]`, from 1, with chance `chance[i]`, given the batches before. `settings` say how.
    """

    users: Ids
    items: Ids
    user: Ints
    item: Ints
    batch: Ints
    chance: Floats
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = "the design"

    def __len__(self) -> int:
        return len(self.user)

    @classmethod
    def of(cls, shown: pl.DataFrame, *, source: str = "the design", settings: Mapping[str, Any] | None = None) -> Self:
        """From a table of users, items, batches and chances.

        >>> table = pl.DataFrame({"user": [7, 7], "item": [2, 1], "batch": [1, 1], "propensity": [0.5, 0.25]})
        >>> ExposureDesign.of(table).chance.tolist()
        [0.25, 0.5]
        """
        missing = [name for name in COLUMNS if name not in shown.columns]
        if missing:
            raise InputError(
                f"{source}: no column {missing[0]!r}; expected {', '.join(COLUMNS)}. Make the design again."
            )
        if not shown.height:
            raise InputError(f"{source}: has no rows; expected pairs to be shown. Make the design again.")
        users, user = Ids.factorise(shown["user"], where=f"{source}, column 'user'")
        items, item = Ids.factorise(shown["item"], where=f"{source}, column 'item'")
        batch, chance = shown["batch"].to_numpy().astype(np.int64), shown["propensity"].to_numpy().astype(np.float64)
        bad = np.flatnonzero(~((chance >= LEAST_CHANCE) & (chance <= 1) & (batch >= 1)))
        if len(bad):
            raise InputError(
                f"{source}: row {bad[0] + 1:,} has propensity {chance[bad[0]]:g} and batch {batch[bad[0]]}; expected a "
                "probability in (0, 1] and a batch from 1. Make the design again."
            )
        cell = user * max(len(items), 1) + item
        order = np.argsort(cell, kind="stable")
        if (np.diff(cell[order]) == 0).any():
            raise InputError(f"{source}: a pair is to be shown twice; expected each once. Make the design again.")
        user, item, batch, chance = (frozen(each[order]) for each in (user, item, batch, chance))
        return cls(users, items, user, item, batch, chance, settings or {}, source)

    @classmethod
    def read(cls, source: Any) -> Self:
        """From the folder that `write` made, or from a table."""
        if isinstance(source, pl.DataFrame):
            return cls.of(source)
        if not isinstance(source, str | Path):
            raise InputError(
                f"design is a {type(source).__name__}; expected the folder of a design, or what design_exposure gave."
            )
        folder = Path(source)
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; expected {A_DESIGN}.")
        check_folder(folder, kind=FOLDER.name, expected=A_DESIGN)
        settings = msgspec.json.decode((folder / SETTINGS).read_bytes())
        return cls.of(read_table(folder / SHOWN), source=str(folder), settings=settings)

    def table(self) -> pl.DataFrame:
        """A row for each pair to be shown, sorted by user, batch and item."""
        columns = (self.users.values[self.user], self.items.values[self.item], self.batch, self.chance)
        return pl.DataFrame(dict(zip(COLUMNS, columns, strict=True))).sort("user", "batch", "item")

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """A folder with the table and the settings, whole or not at all."""
        with whole_folder(Path(path), kind=FOLDER, force=force) as part:
            write_table(self.table(), part / SHOWN)
            with whole_file(part / SETTINGS) as temporary:
                temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self.settings)) + b"\n")

    @property
    def n_batches(self) -> int:
        return int(self.batch.max(initial=1))

    # ---- what came back

    def joined(self, log: Log) -> tuple[Log, Returned]:
        """The rows of a log that were asked for, with what each stands for as 1 / propensity; and how much came back.

        Rows that are not in the design have no known chance: they are left out, and counted. Rows that did not come
        back count as missing by chance: those of the same user and batch that did stand for them. A row of batch s
        stands for 1 / π in the estimate of its own batch, and for itself in those of later ones; batches of which
        something came back count the same, whatever came back of them.

        >>> table = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "batch": [1, 1], "propensity": [0.5, 0.25]})
        >>> back = Log(Ids.of([7]), Ids.of([2, 9]), np.zeros(2, np.int64), np.arange(2), {"label": np.ones(2)})
        >>> rows, returned = ExposureDesign.of(table).joined(back)
        >>> rows.propensity.tolist(), returned.unasked, returned.partial  # one of two came back
        ([0.125], 1, 1)
        """
        at = self._rows(log)
        asked = np.flatnonzero(at >= 0)
        rows, at = log.select(asked), at[asked]
        n_batches = self.n_batches
        own = self.users.locate(log.users, where=f"{log.source}, column 'user', against the users of {self.source}")
        drawn = self._by_batch(self.user, self.batch)[own] * (own >= 0)[:, None]
        back = np.bincount(rows.user * n_batches + self.batch[at] - 1, minlength=len(own) * n_batches)
        back = back.reshape(len(own), n_batches).astype(np.float64)
        came = back > 0
        missing = np.divide(drawn, back, out=np.ones_like(back), where=came)  # for how many each row stands
        later: Ints = np.cumsum(came[:, ::-1], axis=1)[:, ::-1] - came
        of_row = (rows.user, self.batch[at] - 1)
        share = 1.0 / np.maximum(came.sum(axis=1), 1)[rows.user]
        stands_for = share * missing[of_row] * (1.0 / self.chance[at] + later[of_row])
        n_drawn, n_back = drawn.sum(axis=1), back.sum(axis=1)
        returned = Returned(
            drawn=int(n_drawn.sum()),
            back=len(rows),
            unasked=len(log) - len(rows),
            partial=int(np.count_nonzero((n_back > 0) & (n_back < n_drawn))),
            silent=int(np.count_nonzero(n_back == 0)),
        )
        return replace(rows, propensity=frozen(1.0 / stands_for)), returned

    def _by_batch(self, user: Ints, batch: Ints) -> Floats:
        """How many pairs each user was to be shown, [users x batches]."""
        n = self.n_batches
        count = np.bincount(user * n + batch - 1, minlength=len(self.users) * n)
        return count.reshape(len(self.users), n).astype(np.float64)

    def _rows(self, log: Log) -> Ints:
        """The row of the design that each row of a log is of, -1 where it was not asked for."""
        user = self.users.locate(log.users, where=f"{log.source}, column 'user', against {self.source}")[log.user]
        item = self.items.locate(log.items, where=f"{log.source}, column 'item', against {self.source}")[log.item]
        width = max(len(self.items), 1)
        cell, known = np.where((user >= 0) & (item >= 0), user * width + item, -1), self.user * width + self.item
        at = np.minimum(np.searchsorted(known, cell), max(len(known) - 1, 0))
        return np.where((cell >= 0) & (known[at] == cell), at, -1) if len(known) else np.full(len(log), -1)

    def users_unheard(self, users: Ids) -> int:
        """How many users of the design are not among these."""
        return int(np.count_nonzero(users.locate(self.users) < 0))
