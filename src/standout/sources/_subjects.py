"""Rows that belong together: which subject (mouse, donor, stretch of a recording) each row is of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._checks import check_known
from standout._messages import InvalidTypeError, InvalidValueError, warn_user
from standout._xp import looks_foreign, to_host
from standout.sources._base import Source, Table, Words
from standout.sources._beside import beside, column_beside, own_weights
from standout.sources._dask import open_dataset

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Subjects:
    """Which subject is each row of a dataset of, and which rows have these subjects in the other datasets?

    Attributes
    ----------
    names : ndarray of str of shape (n_subjects,)
        The subjects of all datasets of a fit, sorted.
    codes : ndarray of shape (n_rows,)
        The number of each row's subject in `names`.
    counts : ndarray of shape (n_datasets, n_subjects)
        How many rows each subject has in each dataset, the target first.
    number : int
        Which of the datasets this one is.
    kind : {"subjects", "blocks"}
        Whether subjects were named, or made of neighbouring rows.

    Examples
    --------
    >>> from standout.sources import joined_subjects
    >>> target, background = joined_subjects([["a", "a", "b"], ["b", "c"]])
    >>> target.codes, target.n_here, target.n_least
    (array([0, 0, 1], dtype=int32), 2, 2)
    """

    names: Names
    codes: Codes
    counts: Counts
    number: int
    kind: str = "subjects"

    @property
    def n_here(self) -> int:
        """Number of subjects of this dataset."""
        return int(np.count_nonzero(self.counts[self.number]))

    @property
    def n_least(self) -> int:
        """Number of subjects of the dataset that has the fewest."""
        return int(np.count_nonzero(self.counts, axis=1).min())

    def checked(self, n_rows: int, name: str) -> None:
        """Refuse subjects of another number of rows than there are, once that is known."""
        if n_rows != len(self.codes):
            _reject_length(len(self.codes), n_rows, name, _parameter(self.number))


def check_subjects(dataset: Source, n_counted: int) -> None:
    """Refuse subjects of another number of rows than a dataset has, once its rows that have a weight are counted.

    Rows of weight zero may be missing in that number. Weights are one per row, which is checked as they are read.
    """
    if dataset.subjects is not None and dataset.n_rows is None:
        weights = own_weights(dataset)
        dataset.subjects.checked(n_counted if weights is None else len(weights), dataset.name)


def chosen_subjects(subjects: Sequence[Subjects], chosen: Sequence[npt.NDArray[np.bool_]]) -> list[Subjects]:
    """Give the subjects of some rows of each dataset, by a truth value for each row."""
    if all(some.all() for some in chosen):
        return list(subjects)
    words = [own.names[own.codes[some]] for own, some in zip(subjects, chosen, strict=True)]
    return joined_subjects(words, subjects[0].kind)


def joined_subjects(words: Sequence[Any], kind: str = "subjects") -> list[Subjects]:
    """Number the subjects of several datasets together: one that is in two of them has one number."""
    found = [np.unique(np.asarray(part, dtype=np.str_), return_inverse=True) for part in words]
    names = np.unique(np.concatenate([own for own, _ in found]))
    codes = [np.searchsorted(names, own)[places].astype(np.int32) for own, places in found]
    counts = np.array([np.bincount(part, minlength=len(names)) for part in codes], dtype=np.int64)
    return [Subjects(names, part, counts, number, kind) for number, part in enumerate(codes)]


def with_subjects(datasets: Sequence[Source], groups: Any, background_groups: Any) -> list[Source]:
    """Give the datasets of a fit, the target first, with the subjects of their rows; as they are if none are given."""
    if groups is None and background_groups is None:
        return list(datasets)
    several = list(background_groups) if _is_listed(background_groups) else [background_groups]
    if isinstance(groups, str) and background_groups is None:
        # The name of a column is that of all datasets.
        several = [groups] * (len(datasets) - 1)
    if len(datasets) > 1 and len(several) != len(datasets) - 1:
        raise InvalidValueError(
            "has the subjects of {given} background(s), but there are {limit}",
            parameter="background_groups",
            given=len(several),
            limit=len(datasets) - 1,
            advice="Give a list with the subjects of each background.",
        )
    given = [groups, *several][: len(datasets)]
    for number, part in enumerate(given):
        if part is None:
            raise InvalidValueError(
                "{p.groups} and {p.background_groups} go together: the subjects of {name} are not given",
                name=datasets[number].name,
                advice="Give the subject of each row of every dataset.",
            )
    words = [
        as_words(_named_column(part, data), data.n_rows, data.name, _parameter(number))
        for number, (part, data) in enumerate(zip(given, datasets, strict=True))
    ]
    subjects = joined_subjects(words)
    if int(subjects[0].counts.sum(axis=0).max()) == 1:
        warn_user(
            "every subject has one row, so that naming the subjects changes nothing",
            advice="If {p.groups} has more than the subject, such as 309_1 for mouse 309, give the part that names it "
            "(on the command line by --subject-pattern).",
        )
    return attached(datasets, subjects)


def in_blocks(datasets: Sequence[Source], length: int) -> list[Source]:
    """Take blocks of neighbouring rows as subjects; the last one of a dataset may have up to half as many more."""
    words = []
    for number, dataset in enumerate(datasets):
        if not dataset.again:
            raise InvalidTypeError(
                "{name} is an iterator of batches, whose rows are not counted before they are read",
                name=dataset.name,
                advice="Give {p.groups} in place of {p.blocks}, or data that can be read again.",
            )
        n_rows = dataset.count_rows()
        n_blocks = max(round(n_rows / length), 1)
        if n_blocks < 2:
            raise InvalidValueError(
                "makes one block of the {n_rows} rows of {name}, but the least is {limit} blocks",
                parameter="blocks",
                value=length,
                n_rows=n_rows,
                name=dataset.name,
                limit=2,
                advice="Give shorter blocks, or more rows.",
            )
        places = np.minimum(np.arange(n_rows) // length, n_blocks - 1)
        words.append(np.char.add(f"{number}:", np.char.zfill(places.astype(str), 9)))
    return attached(datasets, joined_subjects(words, "blocks"))


def with_equal_subjects(dataset: Source) -> Source:
    """Give a dataset with weights of rows by which every subject counts the same.

    A subject takes this along if it is dealt to another dataset. How weights that users gave differ within a subject
    stays at its place.
    """
    assert dataset.subjects is not None
    given = own_weights(dataset)
    own = np.ones(len(dataset.subjects.codes)) if given is None else given
    learned = _equal_weights(dataset.subjects, (own > 0.0).astype(np.float64))
    return beside(dataset, weights=_equal_weights(dataset.subjects, own), learned=learned)


def _equal_weights(subjects: Subjects, own: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide weights of rows such that those of a subject have the sum 1."""
    codes = subjects.codes
    totals = np.bincount(codes, weights=own, minlength=len(subjects.names))
    found: npt.NDArray[np.float64] = own / np.where(totals > 0.0, totals, 1.0)[codes]
    return found


def open_beside(data: Any, name: str, columns: Mapping[str, str]) -> tuple[Any, Source]:
    """Open a dataset with some columns of a frame beside its rows: what is left of the frame, and the source.

    `columns` has the parameter that names each column. Tables and scans keep such columns beside their rows already.
    """
    if not columns or isinstance(data, Source | Table) or not hasattr(data, "columns"):
        return data, open_dataset(data, name)
    for column, parameter in columns.items():
        check_known(column, parameter, data.columns, f"a column of {name}", "column")
    words = np.column_stack([as_objects(np.asarray(data[column])) for column in columns])
    left = without_columns(data, columns)
    kept = beside(open_dataset(left, name), beside=words)
    kept.beside_columns = tuple(columns)
    return left, kept


def without_columns(data: Any, names: Collection[str]) -> Any:
    """Take columns out of a frame; whatever is no frame stays as it is."""
    if not names or isinstance(data, Source | Table) or not hasattr(data, "columns"):
        return data
    # polars has no keyword for the columns.
    return data.drop(columns=list(names)) if hasattr(data, "iloc") else data.drop(list(names))


def as_objects(values: npt.NDArray[Any]) -> Words:
    """Give values as words: missing ones as the empty string, 3.0 as 3."""
    words = np.empty(len(values), dtype=object)
    words[:] = ["" if _is_missing(value) else _word(value) for value in values.tolist()]
    return words


def _named_column(groups: Any, dataset: Source) -> Any:
    """Give the words of a column beside the rows, if `groups` is its name."""
    return column_beside(dataset, groups, "groups") if isinstance(groups, str) else groups


def attached(datasets: Sequence[Source], subjects: Sequence[Subjects | None]) -> list[Source]:
    """Give the datasets with these subjects."""
    named = []
    for dataset, own in zip(datasets, subjects, strict=True):
        if own is not None and own.n_here < 2:
            raise InvalidValueError(
                "{name} has rows of one subject only, but the least is {limit} subjects",
                name=dataset.name,
                limit=2,
                advice="What one subject shows cannot be told from what all have. Give rows of more subjects, or leave "
                "{p.groups} out.",
            )
        named.append(copy(dataset))
        named[-1].subjects = own
    return named


def as_words(groups: Any, n_rows: int | None, name: str, parameter: str) -> Names:
    """Check the subjects of the rows of a dataset, and give them as words; whole numbers have no decimal point."""
    # In a list, NumPy would take a missing value among words for a word.
    listed = isinstance(groups, list | tuple)
    values = np.asarray(to_host(groups) if looks_foreign(groups) else groups, dtype=object if listed else None)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InvalidTypeError(
            "has shape {shape}, but it must name the subject of each row of {name}",
            parameter=parameter,
            shape=values.shape,
            name=name,
            advice="Give one word or number for each row.",
        )
    if n_rows is not None and len(values) != n_rows:
        _reject_length(len(values), n_rows, name, parameter)
    missing = values != values if values.dtype.kind in "fM" else np.zeros(len(values), dtype=bool)
    if values.dtype.kind in "OUS":
        missing = np.fromiter(map(_is_missing, values.tolist()), bool, len(values))
    if missing.any():
        row = int(np.argmax(missing))
        raise InvalidValueError(
            "names no subject for row {row} of {name}",
            parameter=parameter,
            row=row,
            name=name,
            advice="Give every row its subject, or leave out rows whose subject is unknown.",
        )
    found, places = np.unique(values, return_inverse=True) if values.dtype.kind != "O" else _unique_objects(values)
    return np.array([_word(value) for value in found.tolist()], dtype=np.str_)[places.ravel()]


def _is_missing(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return not value
    # pandas has missing values of its own, of types that are private.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _unique_objects(values: npt.NDArray[np.object_]) -> tuple[Any, npt.NDArray[np.intp]]:
    return np.unique(np.array([_word(value) for value in values], dtype=np.str_), return_inverse=True)


def _word(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_listed(groups: Any) -> bool:
    """Tell a list with the subjects of each background from the subjects of one background."""
    several = isinstance(groups, list | tuple)
    return several and any(hasattr(part, "__len__") and not isinstance(part, str) for part in groups)


def _parameter(number: int) -> str:
    return "groups" if number == 0 else "background_groups"


def _reject_length(given: int, n_rows: int, name: str, parameter: str) -> None:
    raise InvalidValueError(
        "has {given} entries, but {name} has {limit} rows",
        parameter=parameter,
        given=given,
        name=name,
        limit=n_rows,
        advice="Give the subject of each row, in the order of the rows.",
    )
