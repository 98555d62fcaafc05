"""The class Source: a dataset that is read in batches, with arrays such as weights that have one entry per row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from standout._arrays import BLOCK_BYTES, Array, Float, Rows, copied, in_order, row_blocks, row_slice, stacked
from standout._messages import InvalidValueError, MixedArraysError, listed
from standout._xp import place, take
from standout.sources._form import Keys, as_rows, column_names, keys_of

Words: TypeAlias = npt.NDArray[np.object_]
"""Strings as Python objects."""
T = TypeVar("T")

# Attributes of a source that have one entry per row.
BESIDE = ("weights", "subjects", "covariates", "ids", "labels")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive rows of a dataset.

    Attributes
    ----------
    rows : array or CSR array of shape (n_rows, n_features)
    start : int
        Position of the first row in the whole dataset, counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Batch
    >>> Batch(np.ones((4, 2)), start=8).n_rows
    4
    """

    rows: Rows
    start: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])


class Source:
    """A dataset that is read in batches: an array, files, an iterator, blocks on other machines.

    Attributes
    ----------
    name : str
        The name of the dataset in messages.
    keys : list or None
        Names of the columns of a frame, of any type.
    columns : tuple of str or None
        Names of the columns, if all are strings.
    width : int or None
        Number of columns.
    n_rows : int or None
        Number of rows; None until it is known.
    rows : array, CSR array or None
        All rows, if they are in memory.
    weights : ndarray of shape (n_rows,) or None
        The weight of each row.
    subjects : ndarray of shape (n_rows,) or None
        The subject of each row, as a position in `subject_names`. All datasets of a fit have the same `subject_names`.
    covariates : ndarray of shape (n_rows, q) or None
    ids, labels : ndarray of str or None
        The name and the label of each row.
    missing : {"error", "keep", "drop-rows"}
        The treatment of missing values when rows are read.
    again : bool
        Whether the rows can be read more than once.
    place : tuple of str
        Library and device of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import open_dataset
    >>> source = open_dataset(iter([np.ones((3, 2)), np.ones((3, 2))]), "the target")
    >>> source.map_reduce(lambda batch: batch.rows.sum(axis=0)), source.n_rows
    (array([6., 6.]), 6)
    """

    name: str = "the data"
    keys: Keys = None
    columns: tuple[str, ...] | None = None
    width: int | None = None
    n_rows: int | None = None
    rows: Rows | None = None
    weights: Float | None = None
    subjects: npt.NDArray[np.intp] | None = None
    subject_names: npt.NDArray[np.str_] | None = None
    covariates: Float | None = None
    ids: Words | None = None
    labels: Words | None = None
    missing: str = "error"
    again: bool = True
    place: tuple[str, str] = ("numpy", "cpu")

    def _read(self) -> Iterator[Rows]:
        """Return an iterator over the rows of each batch; defined in subclasses."""
        raise NotImplementedError

    def batches(self) -> Iterator[Batch]:
        """Yield the batches in order, and check that weights, labels and so on have one entry per row."""
        n_rows = 0
        for rows in self._read():
            if rows.shape[0]:
                start, n_rows = n_rows, n_rows + int(rows.shape[0])
                self._check_beside(n_rows, least=True)
                yield Batch(rows, start)
        self._check_beside(n_rows)
        if not n_rows:
            again = "" if self.again else " An iterator can be read only once: pass a fresh one."
            raise InvalidValueError(f"{self.name} has no rows", advice=f"Give at least 1 row.{again}")
        self.n_rows = n_rows

    def _check_beside(self, n_rows: int, least: bool = False) -> None:
        for what in BESIDE:
            # `getattr` would read ids and labels from files. They need no check, because a file has one id and one
            # label per row.
            fact = vars(self).get(what)
            if fact is not None and (len(fact) < n_rows if least else len(fact) != n_rows):
                more = "at least " if least else ""
                problem = f"the {what} of {self.name} have {len(fact)} entries, but there are {more}{n_rows} rows"
                raise InvalidValueError(problem, advice="Give one per row.")

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Sum the results of a function over the batches, in the order of the rows."""
        if self.rows is not None:
            return function(Batch(self.rows))
        return reduce(add, map(function, regrouped(self.batches())))

    def count_rows(self) -> int:
        """Return the number of rows. If it is unknown, read the rows."""
        return sum(batch.n_rows for batch in self.batches()) if self.n_rows is None else self.n_rows

    def loaded(self) -> Source:
        """Return the same dataset with all rows in memory."""
        if self.rows is not None:
            return self
        # Copy the batches of an iterator, because it may reuse its buffer for the next batch.
        rows = stacked([batch.rows if self.again else copied(batch.rows) for batch in self.batches()])
        return InMemory(rows, self.name, self.keys)._beside(self)

    def _beside(self, other: Source, chosen: Any = None) -> Self:
        """Copy weights, subjects, labels and so on from another source.

        `chosen` selects the entries of the rows that remain; None copies all entries.
        """
        self.subject_names = other.subject_names
        for what in BESIDE:
            fact = getattr(other, what)
            setattr(self, what, fact if fact is None or chosen is None else fact[chosen])
        return self

    def without(self, names: Sequence[str]) -> Source:
        """Return the same rows without some of the columns."""
        return self.select([place for place, key in enumerate(self.keys or ()) if key not in names])

    def words(self, names: Sequence[str]) -> dict[str, Words]:
        """Return columns by name, as arrays of objects. For files, columns that are not features can be named, too."""
        rows: Any = {name: self.select([(self.keys or []).index(name)]).loaded().rows for name in names}
        return {name: np.ravel(column).astype(object) for name, column in rows.items()}

    def named(self, name: str) -> Self:
        """Return the same dataset under another name for messages."""
        other = copy(self)
        other.name = name
        return other

    def take(self, numbers: npt.ArrayLike) -> Rows:
        """Return some rows by number, in the order of the numbers. With Dask, workers send only these rows."""
        numbers = np.asarray(numbers, dtype=np.intp)
        if self.rows is not None:
            return take(self.rows, numbers)
        order = np.argsort(numbers, kind="stable")
        found = self.map_reduce(partial(_taken, numbers[order]))
        return take(stacked(found), np.argsort(order, kind="stable"))

    def select(self, places: Sequence[int]) -> Source:
        """Return the same rows with some of the columns, by their positions."""
        keys = self.keys and [self.keys[place] for place in places]
        chosen = np.asarray(places, dtype=np.intp)
        return Mapped(self, partial(take, chosen=chosen, axis=1), keys, len(chosen)).at_once()

    def first_row(self) -> Rows:
        """Return the first row, without removing it from an iterator."""
        return row_slice(next(iter(self.batches())).rows, 0, 1)

    def __repr__(self) -> str:
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        return f"{type(self).__name__}({self.name}: {rows} rows x {self.width} columns)"


class InMemory(Source):
    """A dataset whose rows are all in memory, or in a memory map."""

    def __init__(self, rows: Rows, name: str = "the data", keys: Keys = None) -> None:
        self.rows, self.name, self.keys = rows, name, keys
        self.n_rows, self.width = rows.shape
        self.columns = None if keys is None else column_names(keys, name)
        if type(rows) is not np.ndarray:
            self.place = place(rows)

    def _read(self) -> Iterator[Rows]:
        # Rows that are not float32 or float64 are converted later. Reading blocks keeps the converted copies small.
        rows: Any = self.rows
        return iter([rows]) if getattr(rows.dtype, "char", "d") in "fd" else row_blocks(rows)


class Stream(Source):
    """Batches of an iterator, which can be read once."""

    again = False

    def __init__(self, given: Iterator[Any], name: str) -> None:
        first = next(given, None)
        if first is None:
            advice = "An iterator can be read only once: pass a fresh one."
            raise InvalidValueError(f"{name} gave no batch, but a minimum of 1 is required", advice=advice)
        self.name, self.keys = name, keys_of(first)
        self.columns = column_names(self.keys, name)
        # The first batch shows the columns. It is kept, because it cannot be read again.
        self._head = as_rows(first, f"batch 1 of {name}", keys=self.keys, min_rows=0)
        self.width, self.place = int(self._head.shape[1]), place(self._head)
        self._given = chain([first], given)

    def first_row(self) -> Rows:
        """Return the first row, without removing it from the iterator."""
        return row_slice(self._head, 0, 1)

    def _read(self) -> Iterator[Rows]:
        for number, data in enumerate(self._given, start=1):
            name = f"batch {number} of {self.name}"
            rows = checked_part(data, name, self.keys, self.width or 0, "the first batch")
            check_place(place(rows), name, self.place, f"batch 1 of {self.name}")
            yield rows


class Mapped(Source):
    """A source whose batches are changed by a function when they are read."""

    def __init__(self, host: Source, function: Callable[[Rows], Rows], keys: Keys, width: int | None = None) -> None:
        self.host, self.keys = host, keys
        self.name, self.n_rows, self.again, self.place = host.name, host.n_rows, host.again, host.place
        self.columns = column_names(keys, host.name)
        self.width = len(keys) if keys is not None else width or int(function(host.first_row()).shape[1])
        self._change: Callable[[Batch], Batch] = lambda batch: Batch(function(batch.rows), batch.start)
        self._beside(host)

    def _read(self) -> Iterator[Rows]:
        return (self._change(batch).rows for batch in self.host.batches())

    def at_once(self) -> Source:
        """Return the changed rows in memory if the underlying source is in memory, otherwise this source."""
        return self if self.host.rows is None else self.loaded()

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Sum the results of a function over the changed batches, with `map_reduce` of the underlying source."""
        change, join = self._change, partial(add_known, add)
        size = max(3 * BLOCK_BYTES // (8 * max(self.width or 1, 1)), 1)

        def of_changed(batch: Batch) -> Any:
            # Change a few rows at a time, because changed rows may have many more columns.
            total = None
            for start in range(0, max(batch.n_rows, 1), size):
                changed = change(Batch(row_slice(batch.rows, start, start + size), batch.start + start))
                total = join(total, function(changed) if changed.n_rows else None)
            return total

        found: T = self.host.map_reduce(of_changed, join)
        self.n_rows = self.host.n_rows if self.n_rows is None else self.n_rows
        return found


class Chosen(Mapped):
    """Some rows of a source, such as the rows with one label."""

    def __init__(self, host: Source, chosen: npt.NDArray[np.bool_], name: str) -> None:
        super().__init__(host, copied, host.keys, host.width)
        self.name, self.n_rows = name, int(chosen.sum())
        self._beside(host, chosen)

        def picked(batch: Batch) -> Batch:
            numbers = np.flatnonzero(chosen[batch.start : batch.start + batch.n_rows])
            return Batch(take(batch.rows, numbers), int(np.count_nonzero(chosen[: batch.start])))

        self._change = picked


def _taken(numbers: npt.NDArray[np.intp], batch: Batch) -> list[Rows]:
    """Return the rows of a batch whose numbers are in a sorted list."""
    first, last = np.searchsorted(numbers, (batch.start, batch.start + batch.n_rows))
    return [take(batch.rows, numbers[first:last] - batch.start)]


def add_known(add: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    """Add two sums; None stands for a batch without rows."""
    return second if first is None else first if second is None else add(first, second)


def checked_part(data: Any, name: str, keys: Keys, width: int, reference: str) -> Rows:
    """Check a batch of a dataset, and put its columns into the order of `keys`.

    Error messages name the `reference`, the data that have this order.
    """
    own = keys_of(data)
    rows = as_rows(data, name, keys=own, min_rows=0)
    places = matched(own, rows.shape[1], name, keys, width, reference)
    return rows if places is None else take(rows, places, axis=1)


def regrouped(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Join small batches into larger blocks, because matrix products of few rows are slow."""
    held: list[Batch] = []
    n_held = 0
    for batch in batches:
        n_held += batch.n_rows
        width = max(batch.rows.shape[1], 1)
        if n_held < max(width, BLOCK_BYTES // (8 * width)):
            # Copy the rows, because an iterator may reuse its buffer for the next batch.
            held.append(Batch(copied(batch.rows), batch.start))
            continue
        yield Batch(stacked([*(part.rows for part in held), batch.rows]), held[0].start if held else batch.start)
        held, n_held = [], 0
    if held:
        yield Batch(stacked([part.rows for part in held]), held[0].start)


def each_dataset(function: Callable[[int], T], datasets: Sequence[Source]) -> list[T]:
    """Apply a function to the position of each dataset; to several at the same time if all are in memory."""
    return list((in_order if all(one.rows is not None for one in datasets) else map)(function, range(len(datasets))))


# --- columns and places of several datasets ---------------------------------------------------------------------------


def matched(keys: Keys, width: int, name: str, expected: Keys, limit: int, reference: str) -> Array | None:
    """Return the positions of the expected columns in the data, found by name.

    Return None if the columns are already in the expected order, or have no names.
    """
    problems = [f"{name} has {width} features, but {reference} has {limit}"] if width != limit else []
    found, needed = set(keys or ()), set(expected or ())
    # pandas names columns 0, 1, 2 ... if they have no names. Such numbers are not compared with names.
    unnamed = list(range(limit)) in (keys, expected) and found != needed
    ordered = keys is None or expected is None or keys == expected or unnamed
    if not ordered and keys is not None and expected is not None:
        missing, extra = [key for key in expected if key not in found], [key for key in keys if key not in needed]
        problems += [f"{name} lacks {listed('column', missing)}"] if missing else []
        problems += [f"{name} has {listed('column', extra)}, which {reference} has not"] if extra else []
        if not problems and len(found) < len(keys):
            problems = [f"{name} has columns of the same name, in another order than {reference}"]
    if problems:
        raise InvalidValueError("; ".join(problems), advice="Give every dataset the same columns.")
    places = {key: position for position, key in enumerate(keys or ())}
    return None if ordered else np.array([places[key] for key in expected or ()], dtype=np.intp)


def check_place(at: tuple[str, str], name: str, expected: tuple[str, str], reference: str) -> None:
    """Refuse rows if their library or device differs from the expected one, which the `reference` has."""
    if at != expected:
        problem = f"{reference} is of {' on '.join(expected)}, but {name} is of {' on '.join(at)}"
        raise MixedArraysError(problem, advice="Give all datasets as arrays of one library, on one device.")
