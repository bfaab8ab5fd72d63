"""What recommenders say, in every shape they say it in. Each shape gives a block of score rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints, as_doubles, check_unmasked, frozen
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError
from truerank.core.ids import Ids, as_ids
from truerank.core.ranking import Scores
from truerank.core.sizes import check_size
from truerank.io.fingerprint import FileVersion
from truerank.io.frames import is_sparse
from truerank.ranking.scores.precision import single_keeps_bits


@dataclass(frozen=True, slots=True)
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

    def block(self, rows: Ints) -> Matrix:
        found = self.left[rows] @ self.right
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray())

    def user_side(self, rows: Ints) -> Any:
        return self.left[rows]

    def with_users(self, users: Ids, side: Any) -> Product:
        return replace(self, left=side, users=users)


@checked_arguments()
def product(left: Any, right: Any, *, users: Any = None, items: Any = None, name: str = "scores") -> Product:
    """Scores left · right; ids name the rows of `left` and the columns of `right`, else they are numbered from 0."""
    from scipy.sparse import csr_array  # loads slowly, and no other shape needs it

    left, right = (each if is_sparse(each) else np.asarray(each) for each in (left, right))
    if any(np.dtype(each.dtype).kind not in "fiub" for each in (left, right)):
        raise InputError(f"{name}: {left.dtype} times {right.dtype}; expected two matrices of numbers.")
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise InputError(f"{name}: {left.shape} times {right.shape}; expected [users x d] and [d x items].")
    user_ids, row = population(users, left.shape[0], where=f"{name}, users")
    item_ids, column = population(items, right.shape[1], where=f"{name}, items")
    dense = isinstance(right, np.ndarray)
    return Product(csr_array(left)[row], right[:, column] if dense else csr_array(right)[:, column], user_ids, item_ids)


# BLAS gives an element the same bits wherever it lies in a tile only while the tile's shape is fixed
TILE_USERS = 384
TILE_ITEMS = 768

Matrix = npt.NDArray[np.floating]
Entries = npt.NDArray[np.integer]
ListSide = tuple[Ints, Entries, Entries, Entries]  # where lists start; items, how many are above, how many tied


@runtime_checkable
class ByUser(Protocol):
    """Scores of which some belongs to each user and the rest to all: one user's can be had without the others'.

    `with_users(users, user_side(rows))` says the same of these users, whose rows are in the order of their ids.

    >>> whole = factors(np.array([[1.0], [2.0], [3.0]]), np.array([[10.0], [20.0]]), users=["a", "b", "c"])
    >>> rows = np.array([0, 2])
    >>> whole.with_users(Ids.of(["a", "c"]), whole.user_side(rows)).block(np.array([1])).tolist()
    [[30.0, 60.0]]
    """

    def user_side(self, rows: Ints) -> Any: ...
    def with_users(self, users: Ids, side: Any) -> Scores: ...


@dataclass(frozen=True, slots=True)
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

    def block(self, rows: Ints) -> Matrix:
        found = self.user_side(rows)
        return found if self.column is None else found[:, self.column]

    def user_side(self, rows: Ints) -> Matrix:
        found = np.asarray(self.matrix[self.row[rows]])
        if self.file is not None:
            self.file.check()
        return found

    def with_users(self, users: Ids, side: Matrix) -> Dense:
        return replace(self, matrix=side, users=users, row=np.arange(len(users)), file=None)


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
    user_ids, row = population(users, scores.shape[0], where=f"{name}, users")
    item_ids, column = population(items, scores.shape[1], where=f"{name}, items")
    same_order = bool((column == np.arange(len(column))).all())
    return Dense(scores, user_ids, item_ids, row, None if same_order else column)


@dataclass(frozen=True, slots=True)
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

    @property
    def sides(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        return self.user, self.item

    def user_side(self, rows: Ints) -> Matrix:
        return self.user[rows]

    def with_users(self, users: Ids, side: Matrix) -> Factors:
        return replace(self, user=side, users=users)

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
    p, q = (_unmasked(side, where=name) for side in (user_factors, item_factors))
    if p.ndim != 2 or q.ndim != 2 or p.shape[1] != q.shape[1]:
        raise InputError(
            f"{name}: user_factors {p.shape} and item_factors {q.shape}; expected [users x d] and [items x d]."
        )
    b_user = _bias(user_bias, len(p), name=f"{name}, user_bias")
    b_item = _bias(item_bias, len(q), name=f"{name}, item_bias")
    if b_item is not None:
        p, q = np.column_stack([p, np.ones(len(p), dtype=p.dtype)]), np.column_stack([q, b_item])
    user_ids, row = population(users, len(p), where=f"{name}, users")
    item_ids, column = population(items, len(q), where=f"{name}, items")
    for what, values in (("user factors", p), ("item factors or bias", q), ("user bias", b_user)):
        if values is not None and (values.dtype.kind not in "fiu" or not np.isfinite(values).all()):
            raise InputError(f"{name}: {what} hold values that are not finite numbers; expected finite numbers.")
    # double precision only where single would round or lose the same bits: it takes twice the time
    kind = np.float32 if all(_is_single(side) for side in (p, q)) and single_keeps_bits() else np.float64
    user, item = (side.astype(kind) if kind == np.float32 else as_doubles(side, where=name) for side in (p, q))
    return Factors(np.ascontiguousarray(user[row]), np.ascontiguousarray(item[column]), user_ids, item_ids)


def _is_single(values: npt.NDArray[Any]) -> bool:
    """Whether single precision holds these numbers exactly."""
    if values.dtype.kind in "iub":
        return values.size == 0 or max(int(values.max()), -int(values.min())) <= 2**24
    with np.errstate(over="ignore"):
        return values.dtype in (np.float32, np.float16) or bool((values.astype(np.float32) == values).all())


def _unmasked(values: Any, *, where: str) -> npt.NDArray[Any]:
    check_unmasked(values, where=where)
    return np.asarray(values)


@dataclass(frozen=True, slots=True)
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

    def block(self, rows: Ints) -> Matrix:
        result = np.full((len(rows), len(self.items)), -np.inf, dtype=np.float64)
        for at, row in enumerate(rows):
            listed = slice(self.start[row], self.start[row + 1])
            result[at, self.item[listed]] = -self.above[listed]
        return result

    def user_side(self, rows: Ints) -> ListSide:
        length = np.diff(self.start)[rows]
        start = np.concatenate([[0], np.cumsum(length)])
        entry = np.arange(start[-1]) + np.repeat(self.start[rows] - start[:-1], length)
        return start, self.item[entry], self.above[entry], self.tied[entry]

    def with_users(self, users: Ids, side: ListSide) -> Lists:
        start, item, above, tied = side
        return replace(self, users=users, start=start, item=item, above=above, tied=tied)


@dataclass(frozen=True, slots=True)
class Function:
    """Scores from a callable `positions of users -> [users x items]`, asked for one fixed number of users at a time.

    The last tile is filled up with its last user, so that the callable always sees the same shape.
    """

    call: Callable[[Ints], Any]
    users: Ids
    items: Ids
    name: str
    depth: None = None

    def block(self, rows: Ints) -> Matrix:
        parts = []
        for start in range(0, len(rows), TILE_USERS):
            part = rows[start : start + TILE_USERS]
            tile = np.concatenate([part, np.full(TILE_USERS - len(part), part[-1])])
            found = np.asarray(self.call(tile))
            if found.shape != (TILE_USERS, len(self.items)):
                raise InputError(
                    f"{self.name}: the callable gave shape {found.shape} for {TILE_USERS} users; "
                    f"expected ({TILE_USERS}, {len(self.items)})."
                )
            found = found[: len(part)]
            parts.append(found if found.dtype in (np.float32, np.float64) else as_doubles(found, where=self.name))
        return np.concatenate(parts)


@checked_arguments()
def function(call: Callable[[Ints], Any], *, users: Any, items: Any, name: str = "scores") -> Function:
    """Scores from a callable over the given users and items, in the order given."""
    (user_ids, row), (item_ids, column) = _declared(users, items, name=name)
    return Function(lambda rows: np.asarray(call(row[rows]))[:, column], user_ids, item_ids, name)


@dataclass(frozen=True, slots=True)
class PerUser:
    """Scores from a callable `position of a user -> [items]`, asked for one user at a time."""

    call: Callable[[int], Any]
    users: Ids
    items: Ids
    name: str
    depth: None = None

    def block(self, rows: Ints) -> Matrix:
        result = np.empty((len(rows), len(self.items)))
        for at, row in enumerate(rows):
            found = np.asarray(self.call(int(row)))
            if found.shape != (len(self.items),):
                raise InputError(
                    f"{self.name}: scores of shape {found.shape} for one user; expected ({len(self.items)},)."
                )
            result[at] = as_doubles(found, where=self.name)
        return result


@checked_arguments()
def per_user(call: Callable[[int], Any], *, users: Any, items: Any, name: str = "scores") -> PerUser:
    """Scores from a callable of one user's position over the given users and items, in the order given."""
    (user_ids, row), (item_ids, column) = _declared(users, items, name=name)

    def in_order(position: int) -> Any:
        found = np.asarray(call(int(row[position])))
        return found[column] if found.shape == column.shape else found

    return PerUser(in_order, user_ids, item_ids, name)


def _declared(users: Any, items: Any, *, name: str) -> list[tuple[Ids, Ints]]:
    """Users and items that a callable knows, with their places in the order given."""
    found = []
    for kind, ids in (("users", users), ("items", items)):
        where = f"{name}, {kind}"
        given = ids if isinstance(ids, Ids) else as_ids(ids, where=where)
        found.append(population(given, len(given), where=where))
    return found


def population(ids: Any, size: int, *, where: str) -> tuple[Ids, Ints]:
    """The ids in sorted order, and where each stands in the array it describes."""
    if ids is None:
        check_size(f"{where}: {size:,} ids", memory=16.0 * size, instead="Check the shape of the file or array.")
        return Ids.places(size), np.arange(size)
    given = ids.values if isinstance(ids, Ids) else as_ids(ids, where=where)
    known = ids if isinstance(ids, Ids) else Ids.of(given, where=where)
    if len(known) != len(given):
        raise InputError(f"{where}: {len(given) - len(known):,} ids are repeated; expected each id once.")
    if len(given) != size:
        raise InputError(f"{where}: {len(given):,} ids for {size:,} rows or columns; expected one each.")
    at = known.locate(given, where=where)
    place = np.empty(size, dtype=np.int64)
    place[at] = np.arange(size)
    return known, place


def _bias(bias: Any, size: int, *, name: str) -> npt.NDArray[Any] | None:
    if bias is None:
        return None
    values = _unmasked(bias, where=name)
    if values.shape != (size,):
        raise InputError(f"{name}: shape {values.shape}; expected ({size},).")
    return values
