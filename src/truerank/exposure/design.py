"""A design of exposure: which items to show to whom, with the chance of each; and what came back of it.

A folder with `shown.parquet` (user, item, batch, propensity) and `design.json` (how it was made). The propensity of a
row is its chance to be drawn in its batch, given what was drawn in the batches before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
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
from truerank.core.record import record
from truerank.core.wording import either
from truerank.io.atomic_write import FolderKind, check_folder, whole_file, whole_folder
from truerank.io.files import read_table, write_table

SHOWN, SETTINGS = "shown.parquet", "design.json"
FOLDER = FolderKind("exposure design", (SHOWN, SETTINGS))
A_DESIGN = f"a folder of what {either('truerank plan exposure --allocate', 'truerank.design_exposure')} chose"
COLUMNS = ("user", "item", "batch", "propensity")


@record(eq=False)
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
        user, item, batch, chance = (frozen(column[order]) for column in (user, item, batch, chance))
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

    def joined(self, log: Log) -> tuple[Log, Returned]:
        """The rows of a log that the design has, with what each represents as 1 / propensity; and how much came back.

        Rows that are not in the design have no known chance: they are left out, and counted. Rows that did not come
        back count as missing by chance: those of the same user and batch that did represent them. A row of batch s
        represents 1 / π in the estimate of its own batch, and itself in those of later ones; batches of which
        something came back count the same, whatever came back of them.

        >>> table = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "batch": [1, 1], "propensity": [0.5, 0.25]})
        >>> back = Log(Ids.of([7]), Ids.of([2, 9]), np.zeros(2, np.int64), np.arange(2), {"label": np.ones(2)})
        >>> rows, returned = ExposureDesign.of(table).joined(back)
        >>> rows.propensity.tolist(), returned.unasked, returned.partial  # one of two came back
        ([0.125], 1, 1)
        """
        users = self.users.locate(log.users, where=f"{log.source}, column 'user', against the users of {self.source}")
        row = self._rows(log, users)
        designed = np.flatnonzero(row >= 0)
        rows, row, n_batches = log.select(designed), row[designed], self.n_batches

        def by_batch(user: Ints, batch: Ints, n_users: int) -> Floats:
            count = np.bincount(user * n_batches + batch - 1, minlength=n_users * n_batches)
            return count.reshape(n_users, n_batches).astype(np.float64)

        drawn = by_batch(self.user, self.batch, len(self.users))[users] * (users >= 0)[:, None]
        back = by_batch(rows.user, self.batch[row], len(users))
        came = back > 0
        missing = np.divide(drawn, back, out=np.ones_like(back), where=came)  # how many each row represents
        later: Ints = np.cumsum(came[:, ::-1], axis=1)[:, ::-1] - came
        of_row = (rows.user, self.batch[row] - 1)
        share = 1.0 / np.maximum(came.sum(axis=1), 1)[rows.user]
        represented = share * missing[of_row] * (1.0 / self.chance[row] + later[of_row])
        n_drawn, n_back = drawn.sum(axis=1), back.sum(axis=1)
        returned = Returned(
            drawn=int(n_drawn.sum()),
            back=len(rows),
            unasked=len(log) - len(rows),
            partial=int(np.count_nonzero((n_back > 0) & (n_back < n_drawn))),
            silent=int(np.count_nonzero(n_back == 0)),
        )
        return replace(rows, propensity=frozen(1.0 / represented)), returned

    def _rows(self, log: Log, users: Ints) -> Ints:
        """The row of the design of each row of a log, -1 where it has none; `users` are places of the log's users."""
        items = self.items.locate(log.items, where=f"{log.source}, column 'item', against {self.source}")
        user, item, width = users[log.user], items[log.item], max(len(self.items), 1)
        cell, designed = np.where((user >= 0) & (item >= 0), user * width + item, -1), self.user * width + self.item
        place = np.minimum(np.searchsorted(designed, cell), max(len(designed) - 1, 0))
        return np.where((cell >= 0) & (designed[place] == cell), place, -1) if len(designed) else np.full(len(log), -1)

    def users_unheard(self, users: Ids) -> int:
        """How many users of the design are not among these."""
        return int(np.count_nonzero(users.locate(self.users) < 0))
