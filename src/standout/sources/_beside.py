"""Facts beside the rows of a dataset, such as weights: arrays with one entry per row, cut as the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Rows
from standout._checks import check_known
from standout._messages import InvalidValueError
from standout._xp import to_host
from standout.sources._base import Batch, InMemory, Source, Words


def beside(source: Source, **facts: npt.NDArray[Any] | None) -> Source:
    """Give a dataset whose batches also have these facts of each row.

    Parameters
    ----------
    source : Source
    **facts : ndarray of shape (n_rows,) or None
        Fields of `Batch`, such as `weights`. None adds nothing.

    Returns
    -------
    Source
        Of the same rows. In memory if the dataset is.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import beside, open_dataset
    >>> rows = open_dataset(iter([np.ones((1, 2)), np.ones((2, 2))]), "the target")
    >>> [batch.weights.tolist() for batch in beside(rows, weights=np.array([1.0, 2.0, 3.0])).batches()]
    [[1.0], [2.0, 3.0]]
    """
    given = {name: fact for name, fact in facts.items() if fact is not None}
    if not given:
        return source
    if isinstance(source, InMemory):
        (whole,) = source.batches()
        _check_lengths(given, whole.n_rows, source.name)
        return source.with_batch(_with(whole, given))
    if source.again:
        _check_lengths(given, source.count_rows(), source.name)
    return Beside(source, given)


def column_beside(source: Source, name: str, parameter: str) -> Words:
    """Give the words of a column that a user names, which has to be kept beside the rows."""
    check_known(
        name,
        parameter,
        source.beside_columns,
        f"kept beside {source.name}",
        "column",
        advice="Open files with standout.scan(..., beside={value!r}), give a frame with this column, or give the "
        "values themselves.",
    )
    return source.column(name)


def own_weights(source: Source) -> npt.NDArray[np.float64] | None:
    """Give the weights that the rows of a dataset have been given, on the host; None for equal ones."""
    if isinstance(source, InMemory):
        weights = source.batch().weights
        return None if weights is None else np.asarray(to_host(weights), dtype=np.float64)
    if isinstance(source, Beside) and "weights" in source.facts:
        return np.asarray(source.facts["weights"], dtype=np.float64)
    return own_weights(source.host) if isinstance(source, Around) else None


class Around(Source):
    """A source whose batches go through a function: facts are put beside their rows, or the rows are changed.

    Each batch is changed where it is worked on: in the threads of a scan, on the workers of Dask.

    Attributes
    ----------
    host : Source
        The dataset as it is.
    change : Change
        What is done to each batch. It can be sent to other processes.
    """

    def __init__(self, host: Source, change: Change) -> None:
        self.host, self.change = host, change
        self.name, self.min_rows, self.n_rows = host.name, host.min_rows, host.n_rows
        self.again, self.specimen, self.lazy = host.again, host.specimen, host.lazy
        self.beside_columns, self.subjects = host.beside_columns, host.subjects
        self._learn_columns()

    def _learn_columns(self) -> None:
        """Take over what an iterator tells of its columns with its first batch."""
        self.columns, self.keys, self.width = self.host.columns, self.host.keys, self.host.width

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = super().called(name, min_rows)
        named.host = self.host.called(name, min_rows)
        return named

    def expect(self, width: int, reference: str) -> None:
        """Hold the batches to the number of columns of a reference."""
        self.host.expect(width, reference)

    def require_finite(self) -> None:
        """Refuse NaN and infinity now, if the dataset can tell."""
        self.host.require_finite()

    def first(self, count: int) -> Rows:
        """Give the first rows."""
        found = self.change.rows(self.host.first(count))
        self._learn_columns()
        return found

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, changed."""
        for batch in self.host.batches():
            yield self.change.batch(batch)
        self._learn_columns()

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each changed batch."""
        needs_start = self.change.needs_start or bool(getattr(part, "needs_start", False))
        needs_words = bool(getattr(part, "needs_words", True))
        found = self.host.summed(_ChangedPart(self.change, part, needs_start, needs_words))
        self._learn_columns()
        return found

    def column(self, name: str) -> Words:
        """Give the words of a column that is kept beside the rows."""
        return self.host.column(name)

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Take a state through the changed rows, one batch after the other."""
        return self.host.folded(partial(_then_fold, self.change, function), state)

    def mapped(self, function: Callable[[Rows], Array], n_columns: int) -> Any:
        """Give what a function makes of every changed row, in the way of the host."""
        return self.host.mapped(partial(_then_map, self.change, function), n_columns)

    def count_rows(self) -> int:
        """Count the rows."""
        return self.host.count_rows()

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows, or all if there are fewer, and change only these."""
        return self.change.rows(self.host.sample(count, rng))

    def sample_batch(self, count: int, rng: np.random.Generator) -> Batch:
        """Draw rows as `sample` does, with the weights that follow from the rows."""
        if self.change.needs_start:
            return super().sample_batch(count, rng)
        return self.change.batch(self.host.sample_batch(count, rng))

    def look_ahead(self, count: int, rng: np.random.Generator) -> Rows:
        """Give rows to learn from before all are read."""
        return self.change.rows(self.host.look_ahead(count, rng))


class Change(Protocol):
    """What is done to each batch of a source. The number of rows stays."""

    @property
    def needs_start(self) -> bool:
        """Whether the numbers of the rows must be known."""

    def batch(self, batch: Batch) -> Batch:
        """Give the batch that takes the place of another."""

    def rows(self, rows: Rows) -> Rows:
        """Give the rows that take the place of others."""


@dataclass(frozen=True, eq=False)
class _ChangedPart:
    """A function of changed batches as one of batches as they are. It can be sent to other processes."""

    change: Change
    function: Callable[[Batch], Any]
    needs_start: bool = field(default=False, compare=False)
    needs_words: bool = field(default=True, compare=False)

    def __call__(self, batch: Batch) -> Any:
        return self.function(self.change.batch(batch))


def _then_map(change: Change, function: Callable[[Rows], Any], rows: Rows) -> Any:
    return function(change.rows(rows))


def _then_fold(change: Change, function: Callable[[Any, Rows], Any], state: Any, rows: Rows) -> Any:
    return function(state, change.rows(rows))


class Beside(Around):
    """A source that is read in parts, with facts beside its rows.

    Attributes
    ----------
    host : Source
        The dataset without them.
    facts : dict of ndarray
        One entry per row of the dataset.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Batch, Beside, open_dataset
    >>> host = open_dataset(iter([np.ones((2, 3))]), "the target")
    >>> Beside(host, {"weights": np.array([1.0, 3.0])}).summed(lambda batch: batch.weights.sum())
    np.float64(4.0)
    """

    def __init__(self, host: Source, facts: dict[str, npt.NDArray[Any]]) -> None:
        super().__init__(host, _WithFacts(facts, host.name))
        self.facts = facts

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, with its facts."""
        n_rows = 0
        for batch in super().batches():
            n_rows += batch.n_rows
            yield batch
        _check_lengths(self.facts, n_rows, self.name)

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each batch with its facts."""
        # The number of rows of an iterator can be checked only as they pass.
        return super().summed(part) if self.again else Source.summed(self, part)


class Chosen(Source):
    """Some rows of a dataset that is read in parts, such as those with one label.

    Attributes
    ----------
    host : Source
        The whole dataset, which can be read again.
    chosen : ndarray of bool
        A truth value for each of its rows.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from standout.sources import Chosen, open_dataset
    >>> whole = open_dataset(da.arange(8, chunks=2).reshape(4, 2), "the data")
    >>> Chosen(whole, np.array([True, False, False, True])).rows()
    array([[0, 1],
           [6, 7]])
    """

    def __init__(self, host: Source, chosen: npt.NDArray[np.bool_]) -> None:
        self.host, self.chosen = host, chosen
        self.name, self.min_rows, self.n_rows = host.name, host.min_rows, int(chosen.sum())
        self.columns, self.keys, self.width, self.specimen = host.columns, host.keys, host.width, host.specimen

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = super().called(name, min_rows)
        named.host = self.host.called(name, min_rows)
        return named

    def batches(self) -> Iterator[Batch]:
        """Give the chosen rows of one batch after the other."""
        takes = _OfChosen.of(self.chosen)
        yield from map(takes.batch, self.host.batches())

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of the chosen rows of each batch, where the batch is."""
        return self.host.summed(replace(_OfChosen.of(self.chosen), function=part))


@dataclass(frozen=True, eq=False)
class _OfChosen:
    """A function of chosen rows as one of batches of all rows. It can be sent to other processes."""

    chosen: npt.NDArray[np.bool_]
    # How many rows are chosen before each row.
    before: npt.NDArray[np.intp]
    function: Callable[[Batch], Any] | None = None
    needs_start: ClassVar[bool] = True

    @classmethod
    def of(cls, chosen: npt.NDArray[np.bool_]) -> _OfChosen:
        return cls(chosen, np.cumsum(chosen) - chosen)

    def __call__(self, batch: Batch) -> Any:
        assert self.function is not None
        some = self.batch(batch)
        return self.function(some) if some.n_rows else None

    def batch(self, batch: Batch) -> Batch:
        """Give the chosen rows of a batch."""
        numbers = np.flatnonzero(self.chosen[batch.start : batch.start + batch.n_rows])
        return batch.taken(numbers, int(self.before[batch.start]) if batch.n_rows else 0)


@dataclass(frozen=True, eq=False)
class _WithFacts:
    """The change that adds facts to batches."""

    facts: dict[str, npt.NDArray[Any]]
    name: str = field(compare=False)
    # Facts are found by the numbers of the rows.
    needs_start: ClassVar[bool] = True

    def batch(self, batch: Batch) -> Batch:
        """Give a batch with its facts."""
        end = batch.start + batch.n_rows
        if any(len(fact) < end for fact in self.facts.values()):
            _check_lengths(self.facts, end, self.name)
        return _with(batch, {name: fact[batch.start : end] for name, fact in self.facts.items()})

    def rows(self, rows: Rows) -> Rows:
        """Give the rows as they are."""
        return rows


def _with(batch: Batch, facts: dict[str, Any]) -> Batch:
    return replace(batch, **facts)


def _check_lengths(facts: dict[str, npt.NDArray[Any]], n_rows: int, name: str) -> None:
    """Refuse facts that are not one per row."""
    for what, fact in facts.items():
        if len(fact) != n_rows:
            raise InvalidValueError(
                "the {what} of {name} are {given}, but there are {limit} rows",
                what=what,
                name=name,
                given=len(fact),
                limit=n_rows,
                advice="Give one per row.",
            )
