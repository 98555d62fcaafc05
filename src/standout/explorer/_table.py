"""The rows of an exploration, with text columns by which the user can choose rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from standout._arrays import Rows
from standout._messages import InvalidValueError
from standout.io import scan
from standout.io._files import as_words
from standout.sources import Source, Words, as_backgrounds, keys_of, open_datasets
from standout.sources._form import is_missing, per_row
from standout.sources._open import frame_column, frame_columns

# Maximum number of different values in a column of conditions or subjects.
MOST_VALUES = 1000
# If there are several datasets, this text column has the name of the dataset of each row.
DATASET = "dataset"


@dataclass(frozen=True)
class Origin:
    """The origin of the rows, for the code on the page.

    Attributes
    ----------
    paths : tuple of str
        Files of the target and the backgrounds, or one file; empty for rows in memory.
    reading, preparing : mapping
        Parameters of `standout.scan` and `standout.io.prepare` that differ from the defaults.
    options : tuple of str
        The parameters of `reading` and `preparing` as options of the command line.
    """

    paths: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    preparing: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of an exploration.

    Attributes
    ----------
    source : Source
    columns : list of str
        Names of the numeric columns.
    words : dict of str to ndarray of str
        Text columns with few different values: conditions, subjects, labels.
    notes : list
        Warnings of reading.
    image_shape : tuple of two int, or None
    origin : Origin

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import Table
    >>> table = Table.of(np.zeros((3, 2)), background=np.ones((4, 2)))
    >>> table.n_rows, table.words["dataset"].tolist().count("background")
    (7, 4)
    """

    source: Source
    columns: list[str]
    words: dict[str, Words]
    notes: list[Any] = field(default_factory=list)
    image_shape: tuple[int, int] | None = None
    origin: Origin = Origin()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.count_rows()

    @classmethod
    def of(
        cls, X: Any, y: Any = None, *, background: Any = None, labels: Any = None, ids: Any = None, **known: Any
    ) -> Table:
        """Open a file, a frame or an array. Columns that are not numbers become the text columns `words`."""
        if isinstance(X, str | Path):
            reading: dict[str, Any] = {"exclude": [y]} if isinstance(y, str) else {}
            file = scan(str(X), **reading)
            words = file.words([*reading.get("exclude", ()), *chain(*file.left_out.values())])
            return cls.stacked([file.loaded()], words=words, origin=Origin((str(X),), reading), **known)
        aside = [name for name in (y, labels) if isinstance(name, str)]
        parts = [_split(part, aside) for part in (X, *as_backgrounds(background, X))]
        opened = open_datasets(parts[0][0], [part for part, _ in parts[1:]] or None)
        names = ["target", *(["background"] if len(parts) == 2 else [f"background {k}" for k in range(1, len(parts))])]
        sources = [source.loaded().named(name) for source, name in zip(opened, names, strict=True)]
        common = [name for name in parts[0][1] if all(name in said for _, said in parts)]
        words = {name: np.concatenate([said[name] for _, said in parts]) for name in common}
        n_rows = int(sources[0].n_rows or 0)
        for name, given in (("label", labels), ("y", y)):
            if isinstance(given, str):
                if given not in words:
                    raise InvalidValueError("is not a column of every dataset", parameter=name, value=given)
                # The page first lists the values of the first text column, so put the named column first.
                words = {given: words[given], **words}
            elif given is not None:
                rest = np.full(sum(source.count_rows() for source in sources[1:]), "", dtype=object)
                words = {name: np.concatenate([as_words(per_row(given, n_rows, "X", name)), rest]), **words}
        if ids is not None:
            sources[0].ids = as_words(per_row(ids, n_rows, "X", "ids"))
        return cls.stacked(sources, words=words, **known)

    @classmethod
    def stacked(cls, sources: Sequence[Source], *, words: Mapping[str, Words], **known: Any) -> Table:
        """Stack datasets. If there are several, a text column has the name of the dataset of each row."""
        whole = sources[0] if len(sources) == 1 else Stacked(sources)
        if all(source.rows is not None for source in sources):
            whole = whole.loaded()
        every, label = dict(words), known.pop("label_name", None) or "label"
        if len(sources) > 1:
            names = np.array([source.name for source in sources], dtype=object)
            every = {DATASET: np.repeat(names, [source.count_rows() for source in sources]), **every}
        if whole.labels is not None:
            every.setdefault(label, whole.labels)
        columns = whole.columns or [f"x{number}" for number in range(whole.width or 0)]
        # A text column of unique values names the rows, and cannot be used to choose groups of rows.
        most = min(MOST_VALUES, whole.count_rows() - 1)
        few = {name: given for name, given in every.items() if 2 <= len(set(given.tolist())) <= most}
        return cls(whole, list(columns), few, **known)


class Stacked(Source):
    """Several datasets as one, read in batches."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self.name, self.parts, first = "the table", list(parts), parts[0]
        self.columns, self.keys, self.width, self.place = first.columns, first.keys, first.width, first.place
        self.n_rows = sum(part.count_rows() for part in parts)
        self.ids, self.labels = _joined(parts, "ids"), _joined(parts, "labels")

    def _read(self) -> Iterator[Rows]:
        return (batch.rows for part in self.parts for batch in part.batches())


def _joined(parts: Sequence[Source], role: str) -> Words | None:
    """Return ids or labels of all parts, with empty texts for parts that lack them; None if all parts lack them."""
    found = [getattr(part, role) for part in parts]
    if all(one is None for one in found):
        return None
    pairs = zip(parts, found, strict=True)
    return np.concatenate([np.full(part.count_rows(), "", object) if one is None else one for part, one in pairs])


def _split(data: Any, aside: Sequence[str]) -> tuple[Any, dict[str, Words]]:
    """Split a frame into its numeric columns and its text columns.

    The columns in `aside` become text columns, even if they are numeric. Data that are not a frame are returned
    unchanged, without text columns.
    """
    keys = keys_of(data)
    if keys is None or isinstance(data, Source):
        return data, {}
    numbers = [key for key in keys if key not in aside and _are_numbers(frame_column(data, key))]
    if not numbers:
        raise InvalidValueError("the table has no columns of numbers", advice="Give at least one.")
    others = [key for key in keys if key not in numbers]
    words = {str(key): as_words(frame_column(data, key)) for key in others}
    return (frame_columns(data, numbers) if others else data), words


def _are_numbers(column: Any) -> bool:
    """Return whether a column is numeric. Some libraries store numbers as objects."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "iuf"
    return all(is_missing(one) or (isinstance(one, int | float) and not isinstance(one, bool)) for one in column)
