"""Files as one dataset, which is read batch by batch, as often as needed."""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal, TypeVar

import numpy as np

from standout._arrays import Rows, all_finite, in_order, is_sparse, stacked
from standout._messages import InvalidTypeError, InvalidValueError, choices, short, shown, warn_user
from standout._writing import progress_bar
from standout.io._binary import ArrowReader, MatrixReader
from standout.io._files import Part, check_choice, check_column, check_same, choose, find_files, find_ids, unusable
from standout.io._text import CsvReader
from standout.sources import Batch, InMemory, Source
from standout.sources._base import Words, regrouped
from standout.sources._form import not_finite, word

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
MISSING = ("error", "keep", "drop-rows")
GAPS = "Use `missing` drop-rows, mean, median or zero (in Python, standout.io.prepare fills values in)."
# Approximate size of a batch. Larger batches also need more memory in Arrow, which decodes all columns of a batch.
BATCH_BYTES = 4 * 2**20
T = TypeVar("T")


@dataclass(eq=False, repr=False)
class Scan(Source):
    """Which rows are in these files? The rows are read batch by batch, as often as needed.

    The function :func:`standout.scan` makes a Scan. A Scan holds the paths of the files, not their rows. It can be sent
    to other processes that can read the same files.

    Attributes
    ----------
    files : list of str
    columns : tuple of str or None
        Names of the columns that are data; None for files that have no names.
    known_columns : list of str
        All columns of the files, and all vectors that are stored with a matrix.
    left_out : dict of str to list of str
        Columns that are not data, by kind.
    n_dropped : int
        Number of rows that the last pass left out because of a missing value.
    """

    _readers: Sequence[Any]
    _columns: list[str]
    left_out: dict[str, list[str]]
    _id: str | None
    _label: str | None
    _where: dict[str, tuple[str, ...]]
    _batch_rows: int | None
    _progress: bool
    missing: str
    n_dropped: int = 0

    def __post_init__(self) -> None:
        """Remember the state of the files."""
        first, *others = self._readers
        self._stamps = [reader.stamp() for reader in self._readers]
        self.name = f"{len(self._readers)} files" if others else shown(first.path)
        self.known_columns = [*first.names, *first.beside]
        self._set_columns(self._columns)

    def _set_columns(self, columns: list[str]) -> None:
        self._columns = columns
        self.keys = columns if self._readers[0].has_names else None
        self.columns, self.width = None if self.keys is None else tuple(columns), len(columns)
        counts = [reader.n_rows for reader in self._readers]
        known = not self._where and self.missing != "drop-rows" and None not in counts
        self.n_rows = sum(counts) if known else None

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are read."""
        return [str(reader.path) for reader in self._readers]

    @cached_property
    def ids(self) -> Words | None:  # type: ignore[override]
        """Names of the rows."""
        return None if self._id is None else self._told(self.words([self._id])[self._id])

    @cached_property
    def labels(self) -> Words | None:  # type: ignore[override]
        """Labels of the rows."""
        return None if self._label is None else self.words([self._label])[self._label]

    def select(self, places: Sequence[int]) -> Source:
        """Return the same rows with some of the columns, by their positions."""
        return self._changed(columns=[self._columns[place] for place in places])

    def with_missing(self, missing: str) -> Scan:
        """Return the same files with another rule for missing values: "error", "keep" or "drop-rows"."""
        return self._changed(missing=missing)

    def _changed(self, columns: list[str] | None = None, **attributes: Any) -> Scan:
        other = copy(self)
        vars(other).update(attributes)
        for name in ("ids", "labels"):
            vars(other).pop(name, None)
        other._set_columns(self._columns if columns is None else columns)
        return other

    def words(self, names: Sequence[str]) -> dict[str, Words]:
        """Read columns of any kind as words. Missing values become empty strings."""
        parts = list(self._parts(names, self._columns if self.missing == "drop-rows" else []))
        return {name: np.concatenate([words[name] for _, words in parts]) for name in names}

    def _read(self) -> Iterator[Rows]:
        return (rows for rows, _ in self._parts([], self._columns))

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Sum the results of a function over the batches, in the order of the rows, with several threads."""
        with closing(in_order(function, regrouped(self.batches()))) as parts:
            return reduce(add, parts)

    def loaded(self) -> Source:
        """Return the same dataset with rows, ids and labels in memory. The files are read once."""
        names = [name for name in dict.fromkeys((self._id, self._label)) if name is not None]
        every: list[dict[str, Words]] = []
        rows: list[Any] = []
        start = 0
        for part, said in self._parts(names, self._columns):
            every.append(said)
            if self.n_rows is None or is_sparse(part):
                # Parsed text is stored by column. A copy that is stored by row makes selecting rows several times as
                # fast.
                rows.append(part if is_sparse(part) else np.ascontiguousarray(part))
                continue
            # Fill one array: a list of parts and their stack would need twice the memory.
            whole = rows.pop() if rows else np.empty((self.n_rows, part.shape[1]), part.dtype)
            rows.append(whole.astype(np.result_type(whole, part), copy=False))
            rows[0][start : start + len(part)] = part
            start += len(part)
        if not rows:
            raise InvalidValueError(f"{self.name} has no rows", advice="Give at least 1 row.")
        words = {name: np.concatenate([said[name] for said in every]) for name in names}
        self.ids, self.labels = self._told(words.get(self._id)), words.get(self._label)  # type: ignore[arg-type]
        return InMemory(stacked(rows), self.name, self.keys)._beside(self)

    def _told(self, ids: Words | None) -> Words | None:
        """Return the names of rows. If there is only one file, warn about names that occur more than once."""
        names = ids.tolist() if ids is not None and len(self._readers) == 1 else []
        twice = [name for name, count in Counter(names).items() if count > 1 and name]
        if twice:
            problem = f"{len(twice)} name(s) of rows occur more than once in {self.name}, such as {short(twice[0])!r}"
            warn_user(problem, advice="If these are subjects with several rows, give the column as `groups`.")
        return ids

    def _parts(self, names: Sequence[str], columns: Sequence[str]) -> Iterator[Part]:
        """Yield the rows that `where` selects, with `columns` as numbers and `names` as words."""
        self.n_dropped, found = 0, False
        with progress_bar(f"Reading {self.name}", self.n_rows or 0, shown=self._progress) as advance:
            for reader, stamped in zip(self._readers, self._stamps, strict=True):
                if not reader.path.exists() or reader.stamp() != stamped:
                    unusable(reader.path, "it has changed since it was opened", "Open it again with standout.scan.")
                # A file without column names has the columns of the first file, in the same order.
                known = self._readers[0].names if not reader.has_names else reader.names
                at = {name: place for place, name in enumerate(known)}
                places, first = [at[name] for name in columns], 0
                n_rows = self._batch_rows or max(BATCH_BYTES // (8 * max(len(places), 1)), 16)
                for rows, words in reader.parts(places, list(dict.fromkeys([*names, *self._where])), n_rows):
                    kept = np.ones(rows.shape[0], dtype=bool)
                    for name, values in self._where.items():
                        kept &= np.isin(words[name], list(values))
                    numbers = np.flatnonzero(kept)
                    first += len(kept)
                    rows = rows if kept.all() else rows[numbers]
                    if not all_finite(rows):
                        rows, numbers = self._without_gaps(rows, numbers, first - len(kept), reader)
                    if len(numbers):
                        found = True
                        yield rows, {name: words[name][numbers] for name in names}
                    advance(len(kept))
        if not found and self._where:
            conditions = " and ".join(f"{name} {choices(values)}" for name, values in self._where.items())
            raise InvalidValueError(f"no row of {self.name} has {conditions}", advice="Check the values in `where`.")

    def _without_gaps(self, rows: Rows, numbers: Any, first: int, reader: Any) -> tuple[Rows, Any]:
        """Refuse infinite values. `missing` decides if missing values are refused, kept, or dropped with their rows."""
        cells, values = not_finite(rows)
        if self.missing != "error" and np.isnan(values).all():
            if self.missing == "keep":
                return rows, numbers
            kept = np.setdiff1d(np.arange(rows.shape[0]), cells[:, 0])
            self.n_dropped += rows.shape[0] - len(kept)
            return rows[kept], numbers[kept]
        place = 0 if self.missing == "error" else int(np.argmax(np.isinf(values)))
        row, column = cells[place].tolist()
        what = "a value is missing" if np.isnan(values[place]) else f"there is an infinite value ({values[place]})"
        where = f"column {short(self._columns[column])!r}, row {first + numbers[row] + 1}"
        advice = GAPS if np.isnan(values[place]) else "Fix it, or leave the cell empty."
        raise InvalidValueError(f"{what} in {shown(reader.path)}: {where}", advice=advice)


# --- the use of each column -------------------------------------------------------------------------------------------


def scan(
    paths: Paths,
    *,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    label: str | None = None,
    missing: Literal["error", "keep", "drop-rows"] = "error",
    strict: bool = False,
    format: str | None = None,
    variable: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    na_values: Sequence[str] = (),
    batch_rows: int | None = None,
    progress: bool = False,
) -> Scan:
    """How do I fit many files, or files that are larger than memory?

    This function reads only the names and types of the columns and, except in text files, the number of rows. A fit
    reads the rows batch by batch, so that the memory it needs does not depend on the number of rows.

    Parameters
    ----------
    paths : str, path, or list of them
        A file, a folder, a pattern (``"target/*.parquet"``, ``"**/*.csv"``), or several: CSV, TSV (also gzipped),
        Parquet, Arrow (Feather), .npy, .npz, .mat, .h5ad or Zarr. The files of a folder are sorted by name. Columns of
        further files are matched by name.
    columns : str or sequence of str, optional
        Columns to use, in this order, by name or by pattern (``"gene_*"``). None uses all columns of numbers.
    exclude : str or sequence of str
        Columns to leave out, by name or by pattern.
    where : mapping of str to value or list of values, optional
        Use only rows with one of these values in the column. Values are compared as text.
    id_column, label : str, optional
        Columns with the names of the rows and with their labels. These columns and the columns of `where` are not data.
        In .npz, .mat and .h5ad files they can be vectors that are stored with the matrix.
    missing : {"error", "keep", "drop-rows"}, default="error"
        Refuse missing values, keep them as NaN, or leave out the rows that have one.
    strict : bool, default=False
        Refuse columns of text, dates and the like. If False, such columns are left out, with one warning that names
        them.
    format : {"csv", "tsv", "parquet", "arrow", "npy", "npz", "mat", "h5ad", "zarr"}, optional
        Format of the files if the extension does not show it.
    variable : str, optional
        The matrix to use: an array of an .npz or .mat file or of a Zarr group; a layer, or ``"raw"``, of .h5ad.
    delimiter, header, decimal, encoding, na_values
        The dialect of text files: the sign between columns, whether the first line has names, the decimal sign, the
        encoding, further words for missing values. If one of these is None, its value is found in the file; an unclear
        file is an error.
    batch_rows : int, optional
        Rows to read at a time. None chooses about 4 MB.
    progress : bool, default=False
        Show a progress bar for each pass.

    Returns
    -------
    Scan
        A dataset for `fit`, `transform` and all functions that use rows in batches.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import standout
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         np.save(pathlib.Path(folder, f"part-{number}.npy"), np.full((4, 2), float(number)))
    ...     rows = standout.scan(folder)
    ...     total = rows.map_reduce(lambda batch: batch.rows.sum(axis=0))
    >>> rows.n_rows, rows.width, total
    (12, 2, array([12., 12.]))
    """
    if batch_rows is not None and (isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1):
        raise InvalidValueError("is not a whole number of at least 1", parameter="batch_rows", value=batch_rows)
    check_choice(missing, "missing", MISSING)
    files, kind = find_files(paths, format)
    if variable is not None and kind not in ("npz", "mat", "h5ad", "zarr"):
        problem, advice = f"is given, but a {kind} file holds one table only", "It is for npz, mat, h5ad and zarr."
        raise InvalidValueError(problem, parameter="variable", value=variable, advice=advice)
    tables = {"csv": CsvReader, "tsv": CsvReader, "parquet": ArrowReader, "arrow": ArrowReader}
    reader_of: Any = tables.get(kind, MatrixReader)
    dialect = (delimiter, header, decimal, encoding, tuple(na_values))
    readers = [reader_of(file, kind, variable, *dialect) for file in files]
    selected: Any = {} if where is None else where
    if not isinstance(selected, Mapping):
        advice = 'Give, for example, {"condition": "stim"}.'
        raise InvalidTypeError("is not a mapping from names of columns to values", parameter="where", advice=advice)
    first, conditions = readers[0], dict[str, tuple[str, ...]]()
    for key, values in selected.items():
        single = isinstance(values, str | bytes) or np.ndim(values) == 0
        conditions[key] = tuple(map(word, [values] if single else values))
        if not conditions[key]:
            raise InvalidValueError(f"names no value of column {key!r}", parameter="where", advice="Give at least one.")
    wanted = [columns] if isinstance(columns, str) else columns
    unwanted = [exclude] if isinstance(exclude, str) else exclude
    for parameter, name in (("id_column", id_column), ("label", label), *(("where", name) for name in conditions)):
        if name is not None:
            check_column(name, parameter, first)
    if id_column is None:
        id_column = find_ids(first, [*(wanted or ()), *unwanted])
    aside = {name for name in (id_column, label, *conditions) if name is not None}
    chosen, left_out = choose(first, wanted, unwanted, aside, strict)
    for other in readers[1:]:
        check_same(other, first, chosen, aside, every=columns is None and not exclude)
    return Scan(readers, chosen, left_out, id_column, label, conditions, batch_rows, progress, missing)


def read_table(path: Paths, **options: Any) -> Source:
    r"""What numbers are in this file? All rows are read into memory.

    Parameters
    ----------
    path : str, path, or list of them
        As in :func:`standout.scan`.
    **options
        As in :func:`standout.scan`.

    Returns
    -------
    Source
        With `rows`, `columns`, `ids` and `labels`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import standout
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mice.csv")
    ...     _ = file.write_text("mouse,weight,length,genotype\nA,21.5,9,wild\nB,20,8,mutant\n")
    ...     mice = standout.read_table(file, id_column="mouse", label="genotype")
    >>> mice.columns, mice.rows.tolist(), mice.labels.tolist()
    (('weight', 'length'), [[21.5, 9.0], [20.0, 8.0]], ['wild', 'mutant'])
    """
    return scan(path, **options).loaded()
