"""What recommenders say, in every shape they say it in. Each shape gives a block of score rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints, as_doubles, check_unmasked, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids, as_ids
from truerank.core.record import record
from truerank.core.sizes import check_size
from truerank.core.validation import checked_arguments
from truerank.io.frames import is_sparse, named
from truerank.io.paths import FileVersion


@record
class Product:
    """Scores x_u · W: `left` has a sparse row x_u for each user, `right` is W [columns of left x items].

    A row is added up in the order of its stored entries, so it has the same bits in any block.

    >>> from scipy.sparse import csr_array
    >>> liked = csr_array(np.array([[1.0, 0.0, 1.0]]))
    >>> weights = np.array([[0.0, 0.5], [0.5, 0.0], [0.25, 2.0]])
    >>> Product(liked, weights, Ids.of(["u"]), Ids.of(["a", "b"])).block(np.array([0])).tolist()
    [[0.25, 2.5]]
    """

    left: Any  # scipy.sparse.csr_array [users x d]
    right: Any  # csr_array or numpy array [d x items]
    users: Ids
    items: Ids
    depth: None = None
    own: ClassVar[tuple[str, ...]] = ("left", "users")

    def block(self, rows: Ints) -> Matrix:
        scores = self.left[rows] @ self.right
        return np.asarray(scores if isinstance(scores, np.ndarray) else scores.toarray())

    def of_users(self, rows: Ints) -> Product:
        return replace(self, left=self.left[rows], users=Ids(self.users.values[rows]))


@checked_arguments()
def product(left: Any, right: Any, *, users: Any = None, items: Any = None, name: str = "scores") -> Product:
    """Scores left · right; ids name the rows of `left` and the columns of `right`, else they are numbered from 0."""
    from scipy.sparse import csr_array  # loads slowly, and no other shape needs it

    left, right = (side if is_sparse(side) else np.asarray(side) for side in (left, right))
    if any(np.dtype(side.dtype).kind not in "fiub" for side in (left, right)):
        raise InputError(f"{name}: {left.dtype} times {right.dtype}; expected two matrices of numbers.")
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise InputError(f"{name}: {left.shape} times {right.shape}; expected [users x d] and [d x items].")
    user_ids, row = population(users, name, "users", left.shape[0])
    item_ids, column = population(items, name, "items", right.shape[1])
    dense = isinstance(right, np.ndarray)
    return Product(csr_array(left)[row], right[:, column] if dense else csr_array(right)[:, column], user_ids, item_ids)


# BLAS gives an element the same bits wherever it lies in a tile only while the tile's shape is fixed
TILE_USERS = 384
TILE_ITEMS = 768

Matrix = npt.NDArray[np.floating]


@runtime_checkable
class ByUser(Protocol):
    """Scores of which some belongs to each user and the rest to all: one user's can be had without the others'.

    `of_users(rows)` says the same of these users alone, whose rows are in the order of their ids; `own` are the fields
    that belong to users.

    >>> whole = factors(np.array([[1.0], [2.0], [3.0]]), np.array([[10.0], [20.0]]), users=["a", "b", "c"])
    >>> whole.of_users(np.array([0, 2])).block(np.array([1])).tolist()
    [[30.0, 60.0]]
    """

    @property
    def own(self) -> tuple[str, ...]: ...
    def of_users(self, rows: Ints) -> Any: ...


@record
class Dense:
    """A matrix of scores [users x items], held or memory-mapped.

    Keeps its own precision: rounding float64 to float32 would invent ties.

    >>> dense(np.array([[1.0, 2.0]]), users=["u"], items=["b", "a"]).block(np.array([0])).tolist()
    [[2.0, 1.0]]
    """

    matrix: Matrix
    users: Ids
    items: Ids
    row: Ints
    column: Ints | None
    depth: None = None
    file: FileVersion | None = None  # that the matrix is mapped from, and that must not change
    own: ClassVar[tuple[str, ...]] = ("matrix", "users", "row", "file")

    def block(self, rows: Ints) -> Matrix:
        scores = self._rows(rows)
        return scores if self.column is None else scores[:, self.column]

    def of_users(self, rows: Ints) -> Dense:
        users = Ids(self.users.values[rows])
        return replace(self, matrix=self._rows(rows), users=users, row=np.arange(len(rows)), file=None)

    def _rows(self, rows: Ints) -> Matrix:
        scores = np.asarray(self.matrix[self.row[rows]])
        if self.file is not None:
            self.file.check()
        return scores


@checked_arguments()
def dense(matrix: Any, *, users: Any = None, items: Any = None, name: str = "scores") -> Dense:
    """Dense scores; without ids, users and items are numbered from 0."""
    scores = np.asarray(matrix) if isinstance(matrix, np.matrix) else np.asanyarray(matrix)
    check_unmasked(scores, where=name)
    if scores.ndim != 2 or scores.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: scores are {scores.dtype} of shape {scores.shape}; expected numbers [users x items]."
        )
    if scores.dtype not in (np.float32, np.float64):
        scores = as_doubles(scores, where=name)
    elif scores.flags.writeable:
        scores = frozen(scores.copy())  # what the caller writes there later is not part of these scores
    user_ids, row = population(users, name, "users", scores.shape[0])
    item_ids, column = population(items, name, "items", scores.shape[1])
    same_order = bool((column == np.arange(len(column))).all())
    return Dense(scores, user_ids, item_ids, row, None if same_order else column)


@record
class Factors:
    """Scores p_u · q_i + b_i from factors; computed in tiles of one fixed shape, never stored.

    Both sides are of one precision: single where that holds every number exactly and products keep their bits, which
    is twice as fast, else double.

    >>> p, q = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])
    >>> factors(p, q).block(np.array([0])).tolist()
    [[11.0, 2.0]]
    """

    user: Matrix
    item: Matrix
    users: Ids
    items: Ids
    depth: None = None
    own: ClassVar[tuple[str, ...]] = ("user", "users")

    def of_users(self, rows: Ints) -> Factors:
        return replace(self, user=self.user[rows], users=Ids(self.users.values[rows]))

    def block(self, rows: Ints) -> Matrix:
        n, width = len(rows), len(self.items)
        result = np.empty((n, width), dtype=self.user.dtype)
        tile = np.zeros((TILE_USERS, self.user.shape[1]), dtype=self.user.dtype)
        for start in range(0, n, TILE_USERS):
            part = rows[start : start + TILE_USERS]
            tile[: len(part)] = self.user[part]
            for left, product in self.products(tile, self.item):
                here = result[start : start + len(part), left : left + TILE_ITEMS]
                here[:] = product[: len(part), : here.shape[1]]
        return result

    def products(self, users: Matrix, item: Matrix) -> Iterator[tuple[int, Matrix]]:
        """(first item, scores [users x items]) of one whole tile of users with all the given items, tile by tile.

        The same array is filled again for each tile; beyond the last item it holds zeros.
        """
        result = np.empty((len(users), TILE_ITEMS), dtype=self.user.dtype)
        for left in range(0, len(item), TILE_ITEMS):
            part = item[left : left + TILE_ITEMS]
            if len(part) < TILE_ITEMS:
                part = np.concatenate([part, np.zeros((TILE_ITEMS - len(part), item.shape[1]), dtype=item.dtype)])
            with np.errstate(over="ignore", invalid="ignore"):  # infinite scores are refused where they are used
                np.matmul(users, part.T, out=result)
            yield left, result


@checked_arguments()
def factors(
    user_factors: Any,
    item_factors: Any,
    *,
    user_bias: Any = None,
    item_bias: Any = None,
    users: Any = None,
    items: Any = None,
    name: str = "scores",
) -> Factors:
    """Factor scores; the item bias becomes one more column, so that one product gives the score.

    A user's bias is the same for all items: it changes no rank, and in the sum it would only cost precision.
    """
    arrays = {
        "user_factors": user_factors,
        "item_factors": item_factors,
        "user_bias": user_bias,
        "item_bias": item_bias,
    }
    for kind, values in arrays.items():
        check_unmasked(values, where=f"{name}, {kind}")
    p, q = np.asarray(user_factors), np.asarray(item_factors)
    if p.ndim != 2 or q.ndim != 2 or p.shape[1] != q.shape[1]:
        raise InputError(
            f"{name}: user_factors {p.shape} and item_factors {q.shape}; expected [users x d] and [items x d]."
        )
    for kind, bias, size in (("user_bias", user_bias, len(p)), ("item_bias", item_bias, len(q))):
        if bias is not None and np.shape(bias) != (size,):
            raise InputError(f"{name}, {kind}: shape {np.shape(bias)}; expected ({size},).")
    if item_bias is not None:
        p, q = np.column_stack([p, np.ones(len(p), dtype=p.dtype)]), np.column_stack([q, item_bias])
    user_ids, row = population(users, name, "users", len(p))
    item_ids, column = population(items, name, "items", len(q))
    of_user = np.zeros(0) if user_bias is None else np.asarray(user_bias)
    for what, numbers in (("user factors", p), ("item factors or bias", q), ("user bias", of_user)):
        if numbers.dtype.kind not in "fiu" or not np.isfinite(numbers).all():
            raise InputError(f"{name}: {what} hold values that are not finite numbers; expected finite numbers.")
    # double precision only where single would round or lose the same bits: it takes twice the time
    single = all(_is_single(side) for side in (p, q)) and single_keeps_bits()
    user, item = (side.astype(np.float32) if single else as_doubles(side, where=name) for side in (p, q))
    return Factors(np.ascontiguousarray(user[row]), np.ascontiguousarray(item[column]), user_ids, item_ids)


def _is_single(values: npt.NDArray[Any]) -> bool:
    """Whether single precision holds these numbers exactly."""
    if values.dtype.kind in "iub":
        return values.size == 0 or max(int(values.max()), -int(values.min())) <= 2**24
    with np.errstate(over="ignore"):
        return values.dtype in (np.float32, np.float16) or bool((values.astype(np.float32) == values).all())


def gathered_places(start: Ints, block: Ints) -> tuple[Ints, Ints]:
    """The places start[u] ... start[u + 1] - 1 of all units of a block in a row, and where each unit's begin there."""
    count = start[block + 1] - start[block]
    first = np.concatenate([[0], np.cumsum(count)])
    return np.arange(first[-1]) + np.repeat(start[block] - first[:-1], count), first


@record
class Lists:
    """Lists of items, best first: all pairs or top lists. What is not listed is never recommended.

    User u lists item[start[u]:start[u + 1]]; `above` listed items of the same user score higher than it, `tied` others
    as high. `every_pair` says that each user lists each of the items: whether these are the whole catalogue is for the
    evaluation to see.
    """

    users: Ids
    items: Ids
    start: Ints
    item: npt.NDArray[np.integer]
    above: npt.NDArray[np.integer]
    tied: npt.NDArray[np.integer]
    distinct: bool  # no two items of a list have the same score
    depth: int | None
    every_pair: bool
    closed: bool = False  # `items` is the whole catalogue, also those that nobody lists
    notes: tuple[str, ...] = ()  # what to say of how they were read
    own: ClassVar[tuple[str, ...]] = ("users", "start", "item", "above", "tied")

    def block(self, rows: Ints) -> Matrix:
        result = np.full((len(rows), len(self.items)), -np.inf, dtype=np.float64)
        for u, row in enumerate(rows):
            listed = slice(self.start[row], self.start[row + 1])
            result[u, self.item[listed]] = -self.above[listed]
        return result

    def of_users(self, rows: Ints) -> Lists:
        entry, start = gathered_places(self.start, rows)
        users, item = Ids(self.users.values[rows]), self.item[entry]
        return replace(self, users=users, start=start, item=item, above=self.above[entry], tied=self.tied[entry])


@record
class Function:
    """Scores from a callable `positions of users -> [users x items]`, called with `tile` users at a time.

    The last tile is filled up with its last user, so that the callable always sees the same shape.
    """

    call: Callable[[Ints], Any]
    users: Ids
    items: Ids
    name: str
    tile: int = TILE_USERS
    depth: None = None

    def block(self, rows: Ints) -> Matrix:
        parts = []
        for start in range(0, len(rows), self.tile):
            part = rows[start : start + self.tile]
            scores = np.asarray(self.call(np.concatenate([part, np.full(self.tile - len(part), part[-1])])))
            if scores.shape != (self.tile, len(self.items)):
                raise InputError(
                    f"{self.name}: the callable gave shape {scores.shape} for {self.tile} users; "
                    f"expected ({self.tile}, {len(self.items)})."
                )
            scores = scores[: len(part)]
            parts.append(scores if scores.dtype in (np.float32, np.float64) else as_doubles(scores, where=self.name))
        return np.concatenate(parts) if parts else np.empty((0, len(self.items)))


@checked_arguments()
def function(call: Callable[[Ints], Any], *, users: Any, items: Any, name: str = "scores") -> Function:
    """Scores from a callable over these users and items, in their order here."""
    (user_ids, row), (item_ids, column) = population(users, name, "users"), population(items, name, "items")
    return Function(lambda rows: np.asarray(call(row[rows]))[:, column], user_ids, item_ids, name)


@checked_arguments()
def per_user(call: Callable[[int], Any], *, users: Any, items: Any, name: str = "scores") -> Function:
    """Scores from a callable `position of a user -> [items]` over these users and items, in their order here."""
    (user_ids, row), (item_ids, column) = population(users, name, "users"), population(items, name, "items")

    def of_user(rows: Ints) -> Matrix:
        scores = np.asarray(call(int(row[rows[0]])))
        if scores.shape != column.shape:
            raise InputError(f"{name}: scores of shape {scores.shape} for one user; expected ({len(column)},).")
        return as_doubles(scores[column], where=name)[None, :]

    return Function(of_user, user_ids, item_ids, name, tile=1)


def population(ids: Any, name: str, kind: str, size: int | None = None) -> tuple[Ids, Ints]:
    """The ids in sorted order, and the position of each in the array of that size that it describes."""
    where = f"{name}, {kind}"
    if ids is None and size is not None:
        check_size(f"{where}: {size:,} ids", memory=16.0 * size, instead="Check the shape of the file or array.")
        return Ids.places(size), np.arange(size)
    values = ids.values if isinstance(ids, Ids) else as_ids(ids, where=where)
    named(values, len(values) if size is None else size, where=where)
    unique = ids if isinstance(ids, Ids) else Ids.of(values, where=where)
    position = np.empty(len(values), dtype=np.int64)
    position[unique.locate(values, where=where)] = np.arange(len(values))
    return unique, position


@cache
def single_keeps_bits() -> bool:
    """Whether single precision products have the same bits wherever their rows lie in a tile, on this machine.

    Some kernels of OpenBLAS (for processors with AVX2 and without AVX-512) sum in another order in every second group
    of six rows. Equal rows show it: their products must all be equal.
    """
    rng = np.random.default_rng(0)
    for dimensions in (8, 33, 64):
        for p, q in zip(*rng.standard_normal((2, 16, dimensions), dtype=np.float32), strict=True):
            product = np.tile(p, (24, 1)) @ np.tile(q, (48, 1)).T
            if (product != product[0, 0]).any():
                return False
    return True
