"""What validation must know of datasets that are read in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np

from standout._arrays import Array, Rows


class Source(ABC):
    """A dataset that is never there as a whole: batches, files, blocks on other machines.

    Whatever is wanted of it is a sum over its parts: a function makes something of each part that has a ``+``. The
    function must be one that can be sent to another process.

    Attributes
    ----------
    name : str
        What messages call the dataset.
    columns : list of str or None
        Column names, where there are any; of an iterator, once its first batch has been read.
    width : int or None
        Number of columns; of an iterator, once its first batch has been read.
    n_rows : int or None
        Number of rows, where it is known without reading them all.
    again : bool
        Whether it can be read more than once.
    min_rows : int
        Fewer rows than this in all are refused.
    specimen : array or None
        An array of the library and on the device of the parts, where these are known before anything is read.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Source, open_dataset
    >>> isinstance(open_dataset(iter([np.ones((4, 2))]), "the target"), Source)
    True
    """

    name: str = "the data"
    columns: list[str] | None = None
    width: int | None = None
    n_rows: int | None = None
    again: bool = True
    min_rows: int = 1
    specimen: Any = None

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = copy(self)
        # Whoever asks for fewer rows later on does not take back what was asked for first.
        named.name, named.min_rows = name, max(min_rows, self.min_rows)
        return named

    def expect(self, width: int, reference: str) -> None:  # noqa: B027
        """Hold the parts to a number of columns, that of a reference, where theirs is known only when they come."""

    @abstractmethod
    def parts(self) -> Iterator[Rows]:
        """Give one part after the other, each checked: finite numbers in the same columns."""

    @abstractmethod
    def first(self, count: int) -> Rows:
        """Give the first rows, at most `count`; they stay to be read."""

    @abstractmethod
    def summed(self, part: Callable[[Rows], Any]) -> Any:
        """Add up what a function makes of each part."""

    @abstractmethod
    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Take a state through the parts, one after the other: the function gives the next state for each."""

    @abstractmethod
    def mapped(self, function: Callable[[Rows], Array], n_columns: int) -> Any:
        """Give what a function makes of every row, `n_columns` numbers each, in the order of the rows."""

    @abstractmethod
    def count_rows(self) -> int:
        """Count the rows, by reading them all where nothing else tells."""

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows, or all where there are fewer, in the order in which they come."""


def specimen(dataset: Any) -> Any:
    """Give an array of the library and on the device of a dataset; None where these are not known before reading."""
    return dataset.specimen if isinstance(dataset, Source) else dataset


def reject_source(data: Any, name: str, need: str, remedy: str) -> None:
    """Refuse what is read in parts where something, which is said, needs more than that."""
    if isinstance(data, Source):
        raise TypeError(f"{need}, but {name} is read in parts. {remedy}")


def as_rows_at_hand(dataset: Any, method: str) -> Rows:
    """Refuse a dataset that is read in parts where its rows are told apart by labels."""
    reject_source(
        dataset,
        getattr(dataset, "name", ""),
        f"{method} tells rows apart by their labels",
        "Give the target and the backgrounds as datasets of their own, with target_label=None.",
    )
    return dataset
