"""What the reader of every file format offers, and what readers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Rows, is_sparse
from standout._checks import check_known
from standout._messages import InvalidValueError, listed, short, shown
from standout.sources import Words

# What is read, checked and multiplied at a time. Three such batches are in memory at once: the one that is worked on,
# the one that is being read, and the columns that it is made of.
BATCH_BYTES = 48 * 2**20
FEWEST_ROWS = 16
LONGEST_REASON = 240
# A matrix whose names would fill the memory is no table: a file of a few bytes can claim any width.
MOST_COLUMNS = 10**7
COLUMN_ADVICE = (
    "Leave out what is not data with {p.drop}, or name it as {p.id_column}, {p.label_column}, {p.group_column} or "
    "{p.beside}."
)

Result = TypeVar("Result")
Part = tuple[Rows, dict[str, Words]]
"""Some rows of a file, and the words of each: by their role."""


@dataclass(frozen=True)
class Head:
    """What a file says of itself before its rows are read.

    Attributes
    ----------
    names : list of str or None
        Names of the columns; None if the file has none.
    width : int
        Number of columns.
    n_rows : int or None
        Number of rows, if the file tells.
    index : str or None
        The column that holds names of rows, if the file says so.
    beside : tuple of str
        Names of vectors with one value per row that are kept beside the columns.
    has_ids : bool
        Whether rows have names that are kept beside the columns (``obs_names`` of AnnData).
    """

    names: list[str] | None
    width: int
    n_rows: int | None
    index: str | None = None
    beside: tuple[str, ...] = ()
    has_ids: bool = False

    @property
    def called(self) -> list[str]:
        """Names of the columns, made up if the file has none."""
        return [f"x{number}" for number in range(self.width)] if self.names is None else self.names


@dataclass(frozen=True)
class Form:
    """In which form the chosen columns of a file are.

    Attributes
    ----------
    dtype : dtype
        Of the rows.
    row_bytes : int
        Size of a row in memory.
    chunk_rows : int
        Rows that are stored together, so that reading some of them costs as much as reading all.
    text_bytes : int
        Size of a row of text in the file; 0 if it is not text.
    truths : frozenset of int
        Positions of the columns of a text file that hold truth values.
    """

    dtype: Any
    row_bytes: int
    chunk_rows: int = 1
    text_bytes: int = 0
    truths: frozenset[int] = frozenset()

    def batch_rows(self, n_bytes: int = BATCH_BYTES) -> int:
        """Give the number of rows of a batch: as many whole chunks as there is room for."""
        rows = max(n_bytes // max(self.row_bytes, 1), FEWEST_ROWS)
        return max(rows // self.chunk_rows, 1) * self.chunk_rows


@dataclass(frozen=True)
class Wanted:
    """What is to be read of a file.

    Attributes
    ----------
    features : sequence of int
        Positions of the columns that are data, in the order in which they are wanted.
    words : mapping of str to str
        For each role ("ids", "labels" ...) the column, or the vector beside the columns, that has it.
    """

    features: Sequence[int]
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader(ABC):
    """One file. It is opened for each question, and the reader can be sent to other processes."""

    path: Path
    source: str
    variable: str | None = None

    kind: ClassVar[str]
    takes_variable: ClassVar[bool] = False

    @abstractmethod
    def head(self) -> Head:
        """Read what the file says of itself."""

    @abstractmethod
    def form(self, features: Sequence[int]) -> Form:
        """Look at the columns at these positions, and refuse what is no number."""

    @abstractmethod
    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Give batches of `n_rows` rows, from the row `start` on."""

    def check_in_parts(self) -> None:  # noqa: B027
        """Refuse a file whose rows cannot be read without all others."""

    def check_row_names(self, wanted: Wanted) -> None:  # noqa: B027
        """Refuse a column that is taken for names of rows by its place alone, and does not look like them."""

    def attempt(self, read: Callable[[], Result]) -> Result:
        """Read something, and say of the file that it is damaged if that fails.

        A damaged file can make a library ask for memory that is not there, look for keys that are not there, and so on.
        """
        try:
            return read()
        except InvalidValueError:
            raise
        except Exception as error:
            reject_unfinished(self.source, self.kind, error)

    def attempted(self, items: Iterator[Result]) -> Iterator[Result]:
        """Give one item after the other, and say of the file that it is damaged if that fails."""
        while (item := self.attempt(lambda: next(items, None))) is not None:
            yield item

    def refuse(self, problem: str, advice: str, **facts: Any) -> NoReturn:
        """Say what is wrong with the file."""
        unusable(self.source, problem, advice, **facts)

    def check_array_form(self, shape: Sequence[int], dtype: Any) -> None:
        """Refuse what is not rows and columns of real numbers."""
        if len(shape) != 2:
            problem = "it holds an array of shape {shape}, but rows and columns are needed"
            self.refuse(problem, "Reshape it.", shape=tuple(shape))
        if shape[1] > MOST_COLUMNS:
            problem = "it has {width} columns, but the most that are read is {limit}"
            self.refuse(problem, "Give a table, one row per sample.", width=shape[1], limit=MOST_COLUMNS)
        if dtype.kind not in "biuf":
            what = "complex numbers" if dtype.kind == "c" else f"values of type {str(dtype)[:40]}"
            self.refuse("it holds {what}, but real numbers are needed", "Turn them into numbers.", what=what)
        check_rows_of_file(shape[0], self.source)

    def check_length(self, n_values: int, n_rows: int, name: str) -> None:
        """Refuse a vector beside the rows that has not one value for each."""
        if n_values != n_rows:
            problem = "it has {n_rows} rows, but {n_values} values in {name}"
            advice = "Write the file again, or choose another column."
            self.refuse(problem, advice, n_rows=n_rows, n_values=n_values, name=repr(short(name)))

    def choose_variable(self, candidates: Sequence[str], known: Sequence[str]) -> str:
        """Choose among the arrays of a file: the one that is named, or the only one that can be meant."""
        if self.variable is not None:
            return check_known(self.variable, "variable", known, f"in {shown(self.source)}", "variable")
        if len(candidates) != 1:
            problem = "it should hold one two-dimensional array of numbers, but it holds {there} (of {known})"
            there = listed("variable", candidates) if candidates else "none"
            words = listed("variable", known) if known else "no variables"
            self.refuse(problem, "Name the one that is meant with {p.variable}.", there=there, known=words)
        return candidates[0]


def ahead(items: Iterable[Result]) -> Generator[Result]:
    """Have the next item made, in a thread of its own, while this one is worked on."""
    waiting = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as worker:
        following = worker.submit(next, waiting, end)
        while (item := following.result()) is not end:
            following = worker.submit(next, waiting, end)
            yield item
            # Held on to, it would be in memory together with the next two.
            del item


# --- errors ----------------------------------------------------------------------------------------------------------


def unusable(source: Any, problem: str, advice: str, **facts: Any) -> NoReturn:
    """Say what is wrong with a file."""
    raise InvalidValueError("{source} cannot be used: " + problem, source=shown(source), advice=advice, **facts)


def reject_unfinished(source: Any, kind: str, error: Exception) -> NoReturn:
    """Say in one line that reading a file stopped half-way."""
    if isinstance(error, UnicodeDecodeError):
        byte = f"{error.object[error.start]:#04x}"
        unusable(source, "it is not UTF-8 text: byte {byte} stands for no letter", "Save it as UTF-8.", byte=byte)
    said = short(" ".join(str(error).split()), LONGEST_REASON).rstrip(".:")
    # NumPy's own advice to allow pickled objects would let a file run code.
    if "allow_pickle" in said or "Python objects" in said:
        said = "it holds pickled Python objects, which can run code and are never read"
    unusable(
        source,
        "reading it as {kind} stopped with {reason}",
        "Write the file again, or say what it is with {p.format}.",
        kind=kind,
        reason=f"{type(error).__name__}: {said}" if said else type(error).__name__,
    )


def check_rows_of_file(n_rows: int, source: Any) -> None:
    """Refuse a table that has a header but nothing under it."""
    if n_rows == 0:
        unusable(source, "it has columns but no rows", "Give a file with data.")


# --- words: ids, labels and groups, whatever a file calls them, as strings -------------------------------------------


def word(value: Any) -> str:
    """Write one value as a word: a missing one as the empty string, 3.0 as 3."""
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        # Many programs write a column of whole numbers with a gap in it as floats.
        return str(int(value))
    return str(value)


def as_words(values: Sequence[Any]) -> Words:
    """Put strings into an array as objects, whatever they look like to NumPy."""
    words = np.empty(len(values), dtype=object)
    words[:] = values
    return words


def words_of_array(values: Any) -> Words:
    """Write the values of a vector as words."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        # Where numbers name groups few of them differ: each is written once.
        distinct, positions = np.unique(array, return_inverse=True)
        return as_words([word(value) for value in distinct.tolist()])[positions]
    return as_words([word(value) for value in array.tolist()])


# --- arrays ----------------------------------------------------------------------------------------------------------


def form_of_matrix(
    dtype: Any, n_features: int, *, n_rows: int = 1, n_stored: int | None = None, chunk_rows: int = 1
) -> Form:
    """Say in which form columns of a matrix are. A sparse one keeps the number of a column with each stored number."""
    dtype = np.dtype(precision(dtype))
    if n_stored is None:
        return Form(dtype, dtype.itemsize * n_features, chunk_rows)
    return Form(dtype, n_stored * (dtype.itemsize + 4) // max(n_rows, 1) + 8)


def precision(dtype: Any) -> npt.DTypeLike:
    """Stay in single precision, and take everything else as double."""
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def as_csr(matrix: Any) -> Rows:
    """Give a sparse matrix by rows, once it is known to be one."""
    if matrix.format in ("csr", "csc", "bsr"):
        # Indices that point outside make SciPy read and write where it should not.
        matrix.check_format(full_check=True)
    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    return rows


def as_values(array: Rows, features: Sequence[int]) -> Rows:
    """Give the columns that are data: an array or CSR, in double precision unless they are in single already."""
    dtype = precision(array.dtype)
    chosen = array if is_all(features, array.shape[1]) else array[:, list(features)]
    return chosen.astype(dtype, copy=False) if is_sparse(array) else np.asarray(chosen, dtype=dtype)


def is_all(features: Sequence[int], width: int) -> bool:
    """Tell whether these are all columns, in their order."""
    return len(features) == width and list(features) == list(range(width))
