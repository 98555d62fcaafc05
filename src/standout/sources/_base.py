"""What every dataset offers, whether it is in memory, in files, or arrives in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import BLOCK_BYTES, Array, Rows, copied, row_slice, stacked
from standout._checks import (
    as_rows,
    check_one_place,
    check_same_columns,
    check_same_keys,
    column_keys,
    column_names,
    reject_no_table,
    require_finite_rows,
)
from standout._messages import InvalidValueError, reject_too_few
from standout._xp import concat, is_foreign, take

if TYPE_CHECKING:
    from standout.sources._subjects import Subjects

Words: TypeAlias = npt.NDArray[np.object_]
"""Strings as Python objects: an array of fixed width would take the length of the longest for each."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive rows of a dataset, and what is known of each.

    Attributes
    ----------
    rows : array or sparse matrix of shape (n_rows, n_features)
    start : int
        Number of the first row, counted from 0 over the whole dataset.
    ids, labels, groups : ndarray of str or None
        One word per row, if the dataset has them.
    weights : array of float or None
        How much each row counts, if rows do not count equally.
    learned : array of float or None
        The factor of the weights that follows from the rows themselves, such as robust weights. It goes with a row that
        a permutation moves. The rest of the weight was given by the user, and stays at its place. None if all of it was
        given.
    beside : ndarray of str of shape (n_rows, k) or None
        The words of further columns, which go into no fit: see `Source.beside_columns`.
    origin : array of shape (n_features,) or None
        A point near the centre of all rows, the same for all batches. Sums of fourth powers are taken about it.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Batch
    >>> Batch(np.ones((4, 2)), start=8).n_rows
    4
    """

    rows: Rows
    start: int = 0
    ids: Words | None = None
    labels: Words | None = None
    groups: Words | None = None
    weights: Array | None = None
    learned: Array | None = None
    beside: Words | None = None
    origin: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    def with_rows(self, rows: Rows) -> Batch:
        """Give the same batch with other numbers in its rows."""
        return replace(self, rows=rows)

    def taken(self, chosen: Any, start: int) -> Batch:
        """Give some of the rows, by their numbers or by a truth value each."""
        facts = {name: None if (f := getattr(self, name)) is None else f[chosen] for name in FACTS}
        return Batch(self.rows[chosen], start, **facts, origin=self.origin)

    def sliced(self, first: int, last: int) -> Batch:
        """Give the rows from one number to another, without a copy."""
        last = min(last, self.n_rows)
        facts = {name: None if (f := getattr(self, name)) is None else f[first:last] for name in FACTS}
        return Batch(row_slice(self.rows, first, last), self.start + first, **facts, origin=self.origin)


# What is known of each row of a batch, beside its numbers.
FACTS = ("ids", "labels", "groups", "weights", "learned", "beside")


def joined(batches: Sequence[Batch]) -> Batch:
    """Put consecutive batches under one another."""
    if len(batches) == 1:
        return batches[0]
    facts = {
        name: None if getattr(batches[0], name) is None else concat([getattr(part, name) for part in batches])
        for name in FACTS
    }
    return Batch(stacked([part.rows for part in batches]), batches[0].start, **facts, origin=batches[0].origin)


class Source:
    """A dataset that is read in batches: an array, files, an iterator, blocks on other machines.

    A subclass gives `batches`; the rest follows from them. What is wanted of a dataset is a sum over its batches: a
    function makes something of each batch that has a ``+``. The function must be one that can be sent to another
    process.

    Attributes
    ----------
    name : str
        What messages call the dataset.
    columns : list of str or None
        Column names, if there are any; for an iterator, once its first batch has been read.
    keys : list or None
        Column names that are no strings, if there are any.
    width : int or None
        Number of columns; for an iterator, once its first batch has been read.
    n_rows : int or None
        Number of rows, if it is known without reading them all.
    again : bool
        Whether it can be read more than once.
    in_memory : bool
        Whether all rows are in memory.
    min_rows : int
        Fewer rows than this in all are refused.
    lazy : bool
        Whether what is made of its rows is computed when it is asked for.
    specimen : array or None
        An array of the library and on the device of the rows, if these are known before anything is read.
    subjects : Subjects or None
        Which rows belong together, if that was said.
    beside_columns : tuple of str
        Names of columns that are kept beside the rows, such as subjects and covariates.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Batch, Source
    >>> class Halves(Source):
    ...     name, min_rows = "the target", 2
    ...     def batches(self):
    ...         return iter([Batch(np.ones((3, 2))), Batch(np.ones((3, 2)), start=3)])
    >>> Halves().count_rows(), Halves().summed(lambda batch: batch.rows.sum(axis=0))
    (6, array([6., 6.]))
    """

    name: str = "the data"
    columns: list[str] | None = None
    keys: list[Any] | None = None
    width: int | None = None
    n_rows: int | None = None
    again: bool = True
    in_memory: bool = False
    lazy: bool = False
    min_rows: int = 1
    specimen: Any = None
    subjects: Subjects | None = None
    beside_columns: tuple[str, ...] = ()

    @property
    def on_device(self) -> bool:
        """Whether the rows are known to be of another library than NumPy; files are read as NumPy's arrays."""
        return self.specimen is not None and is_foreign(self.specimen)

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, each checked: finite numbers in the same columns."""
        raise NotImplementedError

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = copy(self)
        # A later caller that asks for fewer rows does not lower the least number.
        named.name, named.min_rows = name, max(min_rows, self.min_rows)
        return named

    def expect(self, width: int, reference: str) -> None:
        """Hold the batches to the number of columns of a reference, if theirs is known only when they come."""

    def require_finite(self) -> None:
        """Refuse NaN and infinity now; what is read in batches is checked as it is read."""

    def parts(self) -> Iterator[Rows]:
        """Give the rows of one batch after the other."""
        return (batch.rows for batch in self.batches())

    def first(self, count: int) -> Rows:
        """Give the first rows, at most `count`; they stay to be read."""
        found = next((rows for rows in self.parts() if rows.shape[0]), None)
        return reject_too_few(self.name, 0, self.min_rows) if found is None else row_slice(found, 0, count)

    def batch(self) -> Batch:
        """Give all rows as one batch, brought together in memory."""
        found = [part.with_rows(copied(part.rows)) for part in self.batches() if part.n_rows]
        self._require_rows(sum(part.n_rows for part in found))
        return joined(found)

    def rows(self) -> Rows:
        """Give all rows, brought together in memory."""
        return self.batch().rows

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each batch."""
        total, n_rows = None, 0
        for batch in regrouped(self.batches()):
            total, n_rows = added(total, part(batch)), n_rows + batch.n_rows
        self._require_rows(n_rows)
        return total

    def column(self, name: str) -> Words:
        """Give the words of a column that is kept beside the rows."""
        place = self.beside_columns.index(name)
        found = [batch.beside[:, place] for batch in self.batches() if batch.beside is not None]
        return np.concatenate(found) if found else np.zeros(0, dtype=object)

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Take a state through the rows of the batches, one after the other: the function gives the next state."""
        return reduce(function, _without_small_end(batch.rows for batch in regrouped(self.batches())), state)

    def mapped(self, function: Callable[[Rows], Array], n_columns: int) -> Any:
        """Give what a function makes of every row, `n_columns` numbers each, in the order of the rows."""
        return stacked(list(map(function, self.parts())) or [np.zeros((0, n_columns))])

    def count_rows(self) -> int:
        """Count the rows, by reading them all if their number is not known."""
        return sum(rows.shape[0] for rows in self.parts()) if self.n_rows is None else self.n_rows

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows at random, or all if there are fewer, in the order in which they come.

        The same generator draws the same rows, however the dataset is cut into batches.
        """
        kept: list[Rows] = []
        keys: list[Array] = []
        for rows in self.parts():
            kept, keys = [*kept, copied(rows)], [*keys, rng.random(rows.shape[0])]
            if sum(map(len, keys)) > 2 * count:
                kept, keys = _smallest(kept, keys, count)
        self._require_rows(sum(map(len, keys)), least=1)
        return _smallest(kept, keys, count)[0][0]

    def sample_batch(self, count: int, rng: np.random.Generator) -> Batch:
        """Draw rows as `sample` does, with their weights as far as these are known."""
        return Batch(self.sample(count, rng))

    def look_ahead(self, count: int, rng: np.random.Generator) -> Rows:
        """Give rows to learn from before all are read: a random sample, or the first rows of an iterator."""
        return self.sample(count, rng)

    def _require_rows(self, n_rows: int, least: int | None = None) -> None:
        """Refuse a dataset that turned out to have too few rows."""
        limit = max(self.min_rows, 1) if least is None else least
        if n_rows < limit:
            reject_too_few(self.name, n_rows, limit)


class InMemory(Source):
    """A dataset whose rows are all in memory: one batch.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import InMemory
    >>> dataset = InMemory(np.ones((4, 2)), "the target")
    >>> dataset.n_rows, dataset.width, dataset.rows().shape
    (4, 2, (4, 2))
    """

    in_memory = True

    def __init__(
        self, rows: Rows, name: str = "the data", columns: list[str] | None = None, words: Batch | None = None
    ) -> None:
        self.name, self.columns = name, columns
        self.n_rows, self.width = int(rows.shape[0]), int(rows.shape[1])
        self.specimen = rows
        self._batch = Batch(rows) if words is None else words.with_rows(rows)

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        if self._batch.n_rows < min_rows:
            reject_too_few(name, self._batch.n_rows, min_rows)
        return super().called(name, min_rows)

    def with_batch(self, batch: Batch) -> Self:
        """Give the same dataset with something else known of its rows."""
        changed = copy(self)
        changed._batch = batch
        return changed

    def batches(self) -> Iterator[Batch]:
        """Give the rows as one batch."""
        return iter([self._batch])

    def require_finite(self) -> None:
        """Refuse NaN and infinity."""
        require_finite_rows(self._batch.rows, self.name)

    def first(self, count: int) -> Rows:
        """Give the first rows, at most `count`."""
        return row_slice(self._batch.rows, 0, count)

    def batch(self) -> Batch:
        """Give the rows as they are, without a copy."""
        return self._batch

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Give what a function makes of all rows at once."""
        return part(self._batch)

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Give the state that a function makes of all rows at once."""
        return function(state, self._batch.rows)

    def mapped(self, function: Callable[[Rows], Array], n_columns: int) -> Any:
        """Give what a function makes of all rows at once."""
        return function(self._batch.rows)

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows at random, or all if there are fewer, in their order."""
        rows = self._batch.rows
        # The generator is used even if all rows are taken, as it is for every other source.
        chosen = drawn(rows.shape[0], count, rng)
        return rows if rows.shape[0] <= count else take(rows, chosen)

    def sample_batch(self, count: int, rng: np.random.Generator) -> Batch:
        """Draw rows as `sample` does, with their weights."""
        whole = self._batch
        weights = None if whole.weights is None else whole.weights[drawn(whole.n_rows, count, deepcopy(rng))]
        return Batch(self.sample(count, rng), weights=weights)


# Compared by identity: == between records of arrays has no single truth value.
@dataclass(frozen=True, eq=False)
class Table:
    """What did a file hold? Rows of numbers, and what is known of rows and columns.

    Whatever takes a dataset takes a table.

    Attributes
    ----------
    values : ndarray or CSR array of shape (n_rows, n_columns)
        The numbers: float32 if all columns were, else float64. A missing value is NaN.
    columns : list of str
        Names of the columns.
    ids, labels, groups : ndarray of str or None
        Names of the rows, labels for colours, and the group that each row belongs to. A missing one is ``""``.
    source : str
        Where the table came from, for messages.
    has_names : bool
        Whether the file named its columns; if not, they are called ``x0``, ``x1`` ...
    beside : ndarray of str of shape (n_rows, k) or None
        Words of columns that do not go into a fit, such as subjects and covariates.
    beside_columns : tuple of str
        Names of these.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table
    >>> Table(np.ones((3, 2)), ["weight", "length"], source="mice.csv")
    Table('mice.csv': 3 rows x 2 columns, float64)
    """

    values: Rows
    columns: list[str]
    ids: Words | None = None
    labels: Words | None = None
    groups: Words | None = None
    source: str = "table"
    has_names: bool = True
    beside: Words | None = None
    beside_columns: tuple[str, ...] = ()

    def __repr__(self) -> str:
        known = [name for name in ("ids", "labels", "groups") if getattr(self, name) is not None]
        also = f", with {', '.join(known)}" if known else ""
        sparse = "" if isinstance(self.values, np.ndarray) else "sparse "
        n_rows, n_columns = self.values.shape
        return f"Table({self.source!r}: {n_rows} rows x {n_columns} columns, {sparse}{self.values.dtype}{also})"


class Shaped(Protocol):
    """A frame, a sparse matrix, a Dask array or frame, or an array of another library."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """Number of rows, as far as it is known, and number of columns."""


Dataset: TypeAlias = npt.ArrayLike | Shaped | Table | Source | Iterator[Any]
"""What users can give as a dataset.

A table of real numbers in memory (array or nested list, frame, sparse matrix, array of another library, `Table`), a
source that is read in batches (`standout.scan`, Dask, `standout.io.on_device`), or an iterator of batches.
"""
Backgrounds: TypeAlias = Dataset | Sequence[Dataset] | None
"""One dataset, a list or tuple of several, or None for no background."""


class Batches(Source):
    """One dataset that arrives as an iterator of batches, each checked as it passes.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Batches
    >>> batches = Batches(iter([np.ones((2, 3)), np.ones((4, 3))]), "the target", min_rows=2)
    >>> sum(rows.shape[0] for rows in batches.parts()), batches.width
    (6, 3)
    """

    again = False

    def __init__(self, given: Iterator[Any], name: str, min_rows: int) -> None:
        self._given = given
        self.min_rows = min_rows
        self.name = name
        self._reference = "the first batch"

    def expect(self, width: int, reference: str) -> None:
        """Hold every batch to the number of columns of a reference."""
        self.width, self._reference = width, reference

    def first(self, count: int) -> Rows:
        """Give the first rows; the batch that they are in stays to be read."""
        seen: list[Any] = []
        rows: Rows | None = None
        for batch in self._given:
            seen.append(batch)
            rows = as_rows(batch, f"batch {len(seen)} of {self.name}", min_rows=0, finite=True)
            if len(seen) == 1:
                self.columns, self.keys = column_names(batch), column_keys(batch)
            if rows.shape[0]:
                break
        self._given = chain(seen, self._given)
        if rows is None or not rows.shape[0]:
            self._reject_few(0)
        return row_slice(rows, 0, count)

    def look_ahead(self, count: int, rng: np.random.Generator) -> Rows:
        """Give the first `count` rows, or all if there are fewer; they stay to be read."""
        seen: list[Any] = []
        found: list[Rows] = []
        while sum(rows.shape[0] for rows in found) < count:
            batch = next(self._given, None)
            if batch is None:
                break
            # A producer may fill the same buffer again for the next batch.
            seen.append(copied(batch) if isinstance(batch, np.ndarray) else batch)
            found.append(as_rows(seen[-1], f"batch {len(seen)} of {self.name}", min_rows=0, finite=True))
        if seen:
            self.columns, self.keys = column_names(seen[0]), column_keys(seen[0])
        self._given = chain(seen, self._given)
        self._require_rows(sum(rows.shape[0] for rows in found), least=1)
        return row_slice(stacked([rows for rows in found if rows.shape[0]]), 0, count)

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other."""
        n_rows = 0
        first: Rows | None = None
        for number, batch in enumerate(self._given, start=1):
            name = f"batch {number} of {self.name}"
            rows = as_rows(batch, name, min_rows=0, finite=True)
            columns = column_names(batch)
            if number == 1:
                self.columns, self.keys = columns, column_keys(batch)
            check_same_keys(column_keys(batch), name, self.keys, self._reference)
            if self.width is None:
                self.width = rows.shape[1]
            check_same_columns(rows.shape[1], columns, name, self.width, self.columns, self._reference)
            first = rows[:1, :] if first is None else first
            check_one_place([first, rows], [f"batch 1 of {self.name}", name])
            yield Batch(rows, n_rows)
            n_rows += rows.shape[0]
        if n_rows < self.min_rows:
            self._reject_few(n_rows)

    def _reject_few(self, n_rows: int) -> None:
        problem = "{name} gave {n_rows} sample(s) in batches, but the least is {limit}"
        advice = "An iterator can be read only once: pass a fresh one."
        raise InvalidValueError(problem, name=self.name, n_rows=n_rows, limit=self.min_rows, advice=advice)


def as_source(data: Any, name: str, *, min_rows: int = 2) -> Source:
    """Give an array, a frame, a sparse matrix, a table or an iterator of batches as a source, checked."""
    if isinstance(data, Batches):
        return data
    if isinstance(data, Source):
        return data.called(name, min_rows)
    if isinstance(data, Iterator):
        reject_no_table(data, name)
        return Batches(data, name, min_rows)
    if isinstance(data, Table):
        words = Batch(data.values, 0, data.ids, data.labels, data.groups, beside=data.beside)
        rows = as_rows(data.values, name, min_rows=min_rows)
        table = InMemory(rows, name, data.columns if data.has_names else None, words)
        table.beside_columns = data.beside_columns
        return table
    dataset = InMemory(as_rows(data, name, min_rows=min_rows), name, column_names(data))
    dataset.keys = column_keys(data)
    return dataset


def added(first: Any, second: Any) -> Any:
    """Add two sums, of which either may be missing: None stands for a sum over no rows."""
    return second if first is None else first if second is None else first + second


def regrouped(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Hold small batches back until there are enough rows for a product to be worth its merge."""
    held: list[Batch] = []
    n_held = 0
    for batch in batches:
        if not batch.n_rows:
            continue
        n_held += batch.n_rows
        if n_held < max(batch.rows.shape[1], BLOCK_BYTES // (8 * max(batch.rows.shape[1], 1))):
            # A producer may fill the same buffer again for the next batch.
            held.append(batch.with_rows(copied(batch.rows)))
            continue
        yield joined([*held, batch])
        held, n_held = [], 0
    if held:
        yield joined(held)


def drawn(n_rows: int, count: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw `count` row numbers, in order: those with the smallest of random keys, as `Source.sample` does."""
    keys = rng.random(n_rows)
    return np.sort(np.argpartition(keys, count - 1)[:count]) if 0 < count < n_rows else np.arange(n_rows)[:count]


def _without_small_end(parts: Iterator[Rows]) -> Iterator[Rows]:
    """Join a last part with fewer rows than columns to the one before it: `IncrementalPCA` refuses so few rows."""
    held: Rows | None = None
    for rows in parts:
        if held is None:
            held = copied(rows)
        elif rows.shape[0] < rows.shape[1]:
            held = stacked([held, rows])
        else:
            yield held
            held = copied(rows)
    if held is not None:
        yield held


def _smallest(kept: list[Rows], keys: list[Array], count: int) -> tuple[list[Rows], list[Array]]:
    """Keep the `count` rows with the smallest keys, in the order in which they came."""
    rows, values = stacked(kept), np.concatenate(keys)
    chosen = np.sort(np.argsort(values, kind="stable")[:count])
    return [take(rows, chosen)], [values[chosen]]
