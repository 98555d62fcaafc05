"""Files as one dataset: read batch by batch as often as needed (`scan`), or at once as a table (`read_table`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from standout._arrays import Array, Rows, in_order, is_sparse, stacked
from standout._checks import check_whole
from standout._messages import InvalidValueError, choices, reject_too_few, shown
from standout._writing import progress_bar
from standout.io._checkpoint import Checkpoint, Reached, checkpoint_folder
from standout.io._columns import ask, choose, choose_again
from standout.io._files import find_readers, readable, stamp
from standout.io._reader import Form, Head, Reader, Wanted, ahead, check_rows_of_file
from standout.sources import Batch, Source, Table, added, regrouped

Format = Literal["csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad", "zarr"]
MISSING_IN_SCANS = ("error", "keep", "drop-rows")
ROLES = ("ids", "labels", "groups")
# How much larger a gzipped file of numbers is as text, about.
GUNZIPPED = 3
# Rows that are copied at a time when a table is made: what they touch stays in the cache.
COPIED_ROWS = 4096
# A table is made of small batches, which stay in the cache until they are copied. If the number of rows is not known,
# they are collected in pieces: beyond 32 MiB freed memory goes back to the system at once.
TABLE_BATCH_BYTES = 4 * 2**20
PIECE_BYTES = 40 * 2**20


@dataclass(frozen=True)
class ScannedFile:
    """One file of a scan, and what has been settled about it."""

    reader: Reader
    wanted: Wanted
    form: Form
    batch_rows: int
    n_rows: int | None
    stamp: tuple[int, ...]


class Place(NamedTuple):
    """How far a pass has come: all rows before this one, of all files before this one, are done."""

    file: int
    row: int


class Scan(Source):
    """Which rows are in these files? They are read when they are needed, batch by batch, as often as needed.

    Made by :func:`standout.scan`. Whatever takes a dataset takes a scan: as a target, as a background, in `transform`.
    It holds paths only, and can be sent to other processes that see the same files.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns; None for files that name none (.npy, a Zarr array).
    width : int
        Number of columns.
    n_rows : int or None
        Number of rows; None if only reading tells it: for CSV, and if rows are chosen by `where`.
    files : list of str
        The files, in the order in which they are read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from standout.io import scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         np.save(pathlib.Path(folder, f"part-{number}.npy"), np.full((4, 2), float(number)))
    ...     rows = scan(folder, batch_rows=3)
    ...     sizes = [batch.shape for batch in rows.parts()]
    >>> rows.n_rows, rows.width, sizes
    (12, 2, [(3, 2), (1, 2), (3, 2), (1, 2), (3, 2), (1, 2)])
    """

    def __init__(
        self,
        scanned: Sequence[ScannedFile],
        columns: list[str],
        *,
        has_names: bool,
        where: Mapping[str, tuple[str, ...]],
        missing: str,
        checkpoint: Path | None,
        progress: bool,
        numbered: bool = False,
    ) -> None:
        self._scanned = tuple(scanned)
        self._called = columns
        self._where = dict(where)
        self._missing = missing
        self._checkpoint = checkpoint
        self._progress = progress
        self._numbered = numbered
        # Shared by copies under other names.
        self._dropped: dict[str, int] = {}
        self.name = "the scan"
        self.columns = columns if has_names else None
        self.width = len(columns)
        counts = [file.n_rows for file in scanned]
        known = None not in counts and not where and missing != "drop-rows"
        self.n_rows = sum(count for count in counts if count is not None) if known else None

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are read."""
        return [file.reader.source for file in self._scanned]

    @property
    def keeps_missing(self) -> bool:
        """Whether missing values are given as NaN, for a step of a pipeline to fill in."""
        return self._missing == "keep"

    @property
    def roles(self) -> list[str]:
        """Which of ids, labels and groups the rows have."""
        words = {role for file in self._scanned for role in file.wanted.words}
        return [role for role in ROLES if role in words or (role == "ids" and self._numbered)]

    @property
    def n_bytes(self) -> int:
        """How much memory all rows take, about; of text, the number of rows is guessed from the length of the first."""
        total = 0
        for file in self._scanned:
            size = file.stamp[0] * (GUNZIPPED if file.reader.source.lower().endswith(".gz") else 1)
            n_rows = size // max(file.form.text_bytes, 1) if file.n_rows is None else file.n_rows
            total += max(n_rows * file.form.row_bytes, size if file.n_rows is None else 0)
        return total

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows the last whole pass left out for a missing value: by group, or under "" without groups."""
        return dict(self._dropped)

    def numbered(self) -> Scan:
        """Give the same scan, whose rows have their numbers in the files as ids unless they have others."""
        named = copy(self)
        named._numbered = "ids" not in self.roles
        return named

    def with_progress(self, progress: bool) -> Scan:
        """Give the same scan, which shows a progress bar for each pass, or does not."""
        showing = copy(self)
        showing._progress = progress
        return showing

    def check_in_parts(self) -> None:
        """Refuse files whose rows cannot be read without all others."""
        for file in self._scanned:
            file.reader.check_in_parts()

    def __repr__(self) -> str:
        n_files = len(self._scanned)
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        return f"Scan({n_files} file{'s' if n_files > 1 else ''}: {rows} rows x {self.width:,} columns)"

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, each checked: finite numbers in the columns of the scan."""
        n_rows = 0
        with closing(self._read(Place(0, 0), 0)) as batches:
            for _, batch in batches:
                n_rows += batch.n_rows
                yield batch
        self._check_count(n_rows, self.min_rows)

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each batch, in the order of the rows; a checkpoint is gone on from."""
        if self.n_rows is not None:
            self._check_count(self.n_rows, self.min_rows)
        kept = None if self._checkpoint is None else Checkpoint.of(self._checkpoint, self._identity(), part)
        reached = Reached(None, (0, 0), 0) if kept is None else kept.load()
        total, place, n_rows = reached.total, Place(*reached.place), reached.n_rows
        if place.file < len(self._scanned):
            passed = _Passed(self._read(place, n_rows), place)
            with closing(passed.batches), closing(in_order(_Made(part), passed.regrouped())) as results:
                for made, after, count in results:
                    total = added(total, made)
                    n_rows += count
                    if kept is not None:
                        kept.offer(Reached(total, after, n_rows))
        # Files that changed during the pass, or since the sum was kept, give a sum of nothing that ever was.
        for file in self._scanned:
            _check_unchanged(file)
        if kept is not None and place.file < len(self._scanned):
            kept.write(Reached(total, (len(self._scanned), 0), n_rows))
        self._check_count(n_rows, max(self.min_rows, 1))
        return total

    def count_rows(self) -> int:
        """Count the rows, by reading no more than is needed: the columns of `where`, if rows are chosen by them."""
        if self.n_rows is not None:
            return self.n_rows
        scan = self if self._missing == "drop-rows" else self._without_features()
        return sum(batch.n_rows for batch in scan.batches())

    def words(self, role: str) -> Iterator[Any]:
        """Give the ids, labels or groups of one batch after the other, without reading the numbers."""
        return (getattr(batch, role) for batch in self._without_features().batches())

    def read(self) -> Table:
        """Read all rows at once, as a table."""
        table = _Collected(self.n_rows)
        for batch in self._in_small_batches():
            table.add(batch)
        return table.made(self._called, ", ".join(self.files), has_names=self.columns is not None)

    def read_groups(self, table_of: Callable[[str], Any]) -> tuple[dict[Any, Table], list[str]]:
        """Read all rows once, into a table for each key that a function gives to the groups.

        Rows of a group with the key None are left out. All groups that there are come back, too, sorted.
        """
        tables: dict[Any, _Collected] = {}
        keys: dict[str, Any] = {}
        for batch in self._in_small_batches():
            here: dict[Any, list[str]] = {}
            assert batch.groups is not None
            for group in set(batch.groups.tolist()):
                key = keys[group] = keys[group] if group in keys else table_of(group)
                here.setdefault(key, []).append(group)
            here.pop(None, None)
            for key, groups in here.items():
                chosen = np.flatnonzero(np.isin(batch.groups, groups))
                table = tables.setdefault(key, _Collected(None))
                table.add(batch if len(chosen) == batch.n_rows else batch.taken(chosen, 0))
        source, has_names = ", ".join(self.files), self.columns is not None
        made = {key: table.made(self._called, source, has_names=has_names) for key, table in tables.items()}
        return made, sorted(keys)

    def _in_small_batches(self) -> Iterator[Batch]:
        scanned = [
            ScannedFile(f.reader, f.wanted, f.form, f.form.batch_rows(TABLE_BATCH_BYTES), f.n_rows, f.stamp)
            for f in self._scanned
        ]
        return self._with_files(scanned).batches()

    def _with_files(self, scanned: Sequence[ScannedFile], columns: list[str] | None = None) -> Scan:
        made = Scan(
            scanned,
            self._called if columns is None else columns,
            has_names=self.columns is not None,
            where=self._where,
            missing=self._missing,
            checkpoint=None,
            progress=self._progress,
            numbered=self._numbered,
        )
        made.name, made.min_rows, made._dropped = self.name, self.min_rows, self._dropped
        return made

    def _without_features(self) -> Scan:
        scanned = [
            ScannedFile(
                f.reader, Wanted((), f.wanted.words), Form(f.form.dtype, 8, f.form.chunk_rows), 2**17, f.n_rows, f.stamp
            )
            for f in self._scanned
        ]
        return self._with_files(scanned, [])

    def _check_count(self, n_rows: int, least: int) -> None:
        if n_rows < least:
            if self._where:
                raise InvalidValueError(
                    "{n_rows} row(s) of {files} have {conditions}, but the least is {limit}",
                    n_rows=n_rows,
                    files=shown(self.files[0]) if len(self.files) == 1 else f"{len(self.files)} files",
                    conditions=" and ".join(f"{name} {' or '.join(map(repr, v))}" for name, v in self._where.items()),
                    limit=least,
                    advice="Check the values, or give more rows.",
                )
            reject_too_few(f"{self.name} ({len(self._scanned)} file(s))", n_rows, least)

    def _identity(self) -> list[Any]:
        """Give all that the sum over the rows depends on, beside what is summed."""
        files = [
            [
                type(file.reader).__name__,
                os.path.realpath(file.reader.path),
                file.reader.variable,
                list(file.stamp),
                file.batch_rows,
                list(file.wanted.features),
                sorted(file.wanted.words.items()),
            ]
            for file in self._scanned
        ]
        return [files, sorted((name, sorted(values)) for name, values in self._where.items()), self._missing]

    def _read(self, place: Place, n_before: int) -> Generator[tuple[Place, Batch]]:
        """Give the batches from a place on, each with the place after it; the next one is read meanwhile."""
        in_rows = all(file.n_rows is not None for file in self._scanned)
        sizes = [(file.n_rows or 0) if in_rows else file.stamp[0] for file in self._scanned]
        start, done = n_before, sum(sizes[: place.file])
        with progress_bar(f"reading {self.name}", sum(sizes), done=done, shown=self._progress) as advance:
            for after, n_read, batch in ahead(self._file_batches(place)):
                advance(n_read * (1 if in_rows else self._scanned[after.file].form.text_bytes))
                if batch is not None:
                    yield after, Batch(batch.rows, start, batch.ids, batch.labels, batch.groups)
                    start += batch.n_rows

    def _file_batches(self, place: Place) -> Iterator[tuple[Place, int, Batch | None]]:
        """Give the batches of the files: the place after each, the number of rows read, and the wanted rows."""
        before = sum(file.n_rows or 0 for file in self._scanned[: place.file])
        self._dropped.clear()
        for number in range(place.file, len(self._scanned)):
            file = self._scanned[number]
            _check_unchanged(file)
            row = place.row if number == place.file else 0
            with (
                readable(file.reader) as reader,
                closing(reader.batches(file.wanted, file.form, file.batch_rows, row)) as batches,
            ):
                for rows, words in batches:
                    n_read = rows.shape[0]
                    ids = np.arange(before + row, before + row + n_read) if self._numbered else words.get("ids")
                    batch = Batch(rows, 0, ids, words.get("labels"), words.get("groups"))
                    yield Place(number, row + n_read), n_read, self._chosen(batch, words, row, file)
                    row += n_read
            before += row
            if file.n_rows is not None and row != file.n_rows:
                raise InvalidValueError(
                    "{file} cannot be used: it gave {n_rows} rows, but should have {limit}",
                    file=shown(file.reader.source),
                    n_rows=row,
                    limit=file.n_rows,
                    advice="Write the file again.",
                )

    def _chosen(self, batch: Batch, words: Mapping[str, Any], row: int, file: ScannedFile) -> Batch | None:
        """Give the rows of a batch that are wanted, checked; None if there are none."""
        wanted = np.ones(batch.n_rows, dtype=bool)
        for name, values in self._where.items():
            wanted &= np.isin(words[f"where {name}"], list(values))
        if not wanted.any():
            return None
        if not _is_finite(batch.rows if wanted.all() else batch.rows[wanted]):
            self._check_cells(batch, wanted, row, file)
            if self._missing == "drop-rows":
                dropped = wanted & _rows_with_missing(batch.rows)
                groups = [""] * int(dropped.sum()) if batch.groups is None else batch.groups[dropped].tolist()
                for group, count in Counter(groups).items():
                    self._dropped[group] = self._dropped.get(group, 0) + count
                wanted &= ~dropped
        if wanted.all():
            return batch
        return batch.taken(np.flatnonzero(wanted), 0) if wanted.any() else None

    def _check_cells(self, batch: Batch, wanted: Array, row: int, file: ScannedFile) -> None:
        """Refuse what is infinite, and what is missing unless that is allowed; say where the first cell is."""
        wrong = np.isinf if self._missing != "error" else lambda numbers: ~np.isfinite(numbers)
        found = first_cell(batch.rows, wrong, wanted)
        if found is not None:
            value = float(batch.rows[found])
            raise InvalidValueError(
                "{what} in {name}: column {column}, row {row}{row_id}",
                what="a value is missing" if np.isnan(value) else "there is an infinite value",
                name=f"{shown(file.reader.source)} ({self.name})",
                column=repr(self._called[found[1]]),
                row=row + found[0] + 1,
                row_id="" if batch.ids is None or self._numbered else f" ({batch.ids[found[0]]!r})",
                advice="Say what to do with missing values with {p.missing}."
                if np.isnan(value)
                else "Mend it, or leave the cell empty if the value is missing.",
            )


class _Passed:
    """Batches of a pass, and the place that has been reached with them."""

    def __init__(self, batches: Generator[tuple[Place, Batch]], place: Place) -> None:
        self.batches = batches
        self.place = place

    def regrouped(self) -> Iterator[tuple[Batch, Place]]:
        """Give batches with enough rows, each with the place after it."""
        # A batch that is held back until there are enough rows counts as read only once it is in the sum.
        for batch in regrouped(self._counted()):
            yield batch, self.place

    def _counted(self) -> Iterator[Batch]:
        for place, batch in self.batches:
            self.place = place
            yield batch


@dataclass(frozen=True, eq=False)
class _Made:
    """What is made of a batch, with the place after it and the number of its rows."""

    part: Callable[[Batch], Any]

    def __call__(self, item: tuple[Batch, Place]) -> tuple[Any, Place, int]:
        batch, place = item
        return self.part(batch), place, batch.n_rows


class _Collected:
    """The rows of a table, put under one another as they come."""

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._pieces: list[Array] = []
        self._sparse: list[Rows] = []
        self._filled = 0
        self._words: dict[str, list[Any]] = {"ids": [], "labels": [], "groups": []}

    def add(self, batch: Batch) -> None:
        """Put more rows under those that are there."""
        for role, parts in self._words.items():
            words = getattr(batch, role)
            if words is not None:
                parts.append(words)
        if is_sparse(batch.rows):
            self._sparse.append(batch.rows)
            return
        done, rows = 0, batch.rows
        while done < len(rows):
            if not self._pieces or self._filled == len(self._pieces[-1]):
                row_bytes = rows.dtype.itemsize * max(rows.shape[1], 1)
                size = max(PIECE_BYTES // row_bytes, 1) if self._n_rows is None else self._n_rows
                self._pieces.append(np.empty((size, rows.shape[1]), dtype=rows.dtype))
                self._filled = 0
            n_taken = min(len(rows) - done, len(self._pieces[-1]) - self._filled)
            target = self._pieces[-1][self._filled : self._filled + n_taken]
            for start in range(0, n_taken, COPIED_ROWS):
                target[start : start + COPIED_ROWS] = rows[done + start : done + min(start + COPIED_ROWS, n_taken)]
            done, self._filled = done + n_taken, self._filled + n_taken

    def made(self, columns: list[str], source: str, *, has_names: bool) -> Table:
        """Give the table."""
        words = {role: np.concatenate(parts) if parts else None for role, parts in self._words.items()}
        if self._sparse:
            values: Rows = stacked(self._sparse)
        else:
            values = self._joined(len(columns))
        check_rows_of_file(values.shape[0], source)
        return Table(values, list(columns), words["ids"], words["labels"], words["groups"], source, has_names)

    def _joined(self, width: int) -> Array:
        if not self._pieces:
            return np.empty((0, width))
        self._pieces[-1] = self._pieces[-1][: self._filled]
        if len(self._pieces) == 1:
            return self._pieces[0]
        rows = np.empty((sum(map(len, self._pieces)), width), dtype=self._pieces[0].dtype)
        start = 0
        self._pieces.reverse()
        while self._pieces:
            # Each piece is freed as soon as it is copied.
            piece = self._pieces.pop()
            rows[start : start + len(piece)] = piece
            start += len(piece)
        return rows


def _check_unchanged(file: ScannedFile) -> None:
    """Refuse a file that is no longer the one that was looked at."""
    try:
        now = stamp(file.reader.path)
    except OSError:
        now = ()
    if now != file.stamp:
        raise InvalidValueError(
            "{file} has changed since scan looked at it", file=shown(file.reader.source), advice="Call scan again."
        )


def _is_finite(rows: Rows) -> bool:
    """Tell whether all numbers are finite, from their sum: it overflows only where values are beyond any use."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(rows.data if is_sparse(rows) else rows)))


def _rows_with_missing(rows: Rows) -> Any:
    if not is_sparse(rows):
        return np.isnan(rows).any(axis=1)
    found = np.zeros(rows.shape[0], dtype=bool)
    found[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[np.isnan(rows.data)]] = True
    return found


def first_cell(rows: Rows, is_meant: Callable[[Any], Any], wanted: Array) -> tuple[int, int] | None:
    """Find the first cell, row by row, for which something is true, among the wanted rows."""
    if is_sparse(rows):
        at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        found = np.flatnonzero(is_meant(rows.data) & wanted[at])
        return None if not found.size else (int(at[found[0]]), int(rows.indices[found[0]]))
    cells = is_meant(rows) & wanted[:, np.newaxis]
    if not cells.any():
        return None
    row, column = np.argwhere(cells)[0]
    return int(row), int(column)


def scan(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    missing: Literal["error", "keep", "drop-rows"] = "error",
    format: Format | None = None,
    variable: str | None = None,
    batch_rows: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Scan:
    """How are files fitted that are larger than memory, or many?

    Only metadata (names, types, numbers of rows) are read at once, and checked. The rows are read by whatever the scan
    is given to, batch by batch, so that memory does not depend on their number.

    Parameters
    ----------
    paths : str, path, or list of them
        A file, a folder, a pattern (``"target/*.parquet"``, ``"**/*.csv"``), or several. The files of a folder or a
        pattern are sorted by name; in a folder, files whose names start with ``.`` or ``_`` are left out.
    columns : str or sequence of str, optional
        Columns to take, in this order, by name or by pattern (``"gene_*"``). None takes all columns of the first file.
        Columns of further files are matched by name, in any order.
    drop : str or sequence of str
        Columns to leave out, by name or by pattern.
    where : mapping of str to value or list of values, optional
        Rows to take: those that have one of these values in a column. ``where={"condition": "stim"}`` makes a target of
        a file that holds the background, too. Values are compared as text, whole numbers without a decimal point.
    id_column, label_column, group_column : str, optional
        Columns that name rows, colour them, and say to which group they belong. They do not go into a fit, and neither
        do columns of `where`. In an .npz or .mat file they can also be vectors beside the matrix, and in an .h5ad file
        they are columns of ``obs``.
    missing : {"error", "keep", "drop-rows"}, default="error"
        What to do about missing values: refuse them, give them as NaN (for a step of a pipeline that fills them in), or
        leave out the rows that have one.
    format : {"csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad", "zarr"}, optional
        What the files are, if their extensions do not tell.
    variable : str, optional
        Which matrix is meant: an array of an .npz or .mat file or of a Zarr group; a layer, or ``"raw"``, of an .h5ad
        file (else X).
    batch_rows : int, optional
        Rows to read at a time. None chooses about 48 MB.
    checkpoint : str or path, optional
        A folder in which sums over the rows are kept about once a second. A pass that was interrupted, even by a crash,
        goes on from there and gives the same result, bit for bit. The sum of a finished pass stays, so that the next
        fit on the same files need not read them; delete the folder when it is no longer wanted. Several scans and
        several processes may share a folder. Files that have changed since are read anew.
    progress : bool, default=False
        Show a progress bar for each pass (needs ``standout[progress]``).

    Returns
    -------
    Scan
        A dataset for `fit`, `transform` and whatever else takes rows in batches.

    See Also
    --------
    standout.io.read_table : The same, read at once.

    Notes
    -----
    Text and dates are errors that say where they are. Matrices that are sparse in the file (CSR in .h5ad, or in a Zarr
    store that AnnData has written) stay sparse. The next batch is read while the present one is worked on.

    Parquet is the fastest format here. A pass over CSV that goes on from a checkpoint parses the file that it was in
    from the start, though nothing is added up twice. An .npz or .mat file is read as a whole.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import standout
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         np.save(pathlib.Path(folder, f"target-{number}.npy"), rng.normal(size=(100, 4)) * [5, 1, 1, 3])
    ...         np.save(pathlib.Path(folder, f"control-{number}.npy"), rng.normal(size=(100, 4)) * [5, 1, 1, 1])
    ...     target = standout.scan(f"{folder}/target-*.npy")
    ...     dpca = standout.DiscriminativePCA(1).fit(target, background=standout.scan(f"{folder}/control-*.npy"))
    ...     scores = dpca.transform(target)
    >>> int(np.argmax(np.abs(dpca.components_))), scores.shape
    (3, (300, 1))
    """
    made = open_files(
        paths,
        columns=columns,
        drop=drop,
        where=where,
        id_column=id_column,
        label_column=label_column,
        group_column=group_column,
        missing=missing,
        format=format,
        variable=variable,
        batch_rows=batch_rows,
        checkpoint=checkpoint,
        progress=progress,
    )
    made.check_in_parts()
    return made


def read_table(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    format: Format | None = None,
    variable: str | None = None,
) -> Table:
    r"""What numbers are in this file, and what are their rows and columns called?

    Parameters
    ----------
    path : str, path, or list of them
        A file: CSV, TSV or text with a header (.csv, .tsv, .tab, .txt, also with .gz), Parquet (.parquet, .pq), Arrow
        (.arrow, .ipc, .feather), NumPy (.npy, .npz, sparse ones of SciPy too), MATLAB (.mat), AnnData (.h5ad) or Zarr;
        or several of one kind, a folder or a pattern, as in :func:`scan`.
    columns, drop, where, id_column, label_column, group_column, format, variable
        As in :func:`scan`.

    Returns
    -------
    Table
        The numbers, float64 unless all are float32, with NaN where a value is missing; and the names.

    See Also
    --------
    scan : The same, read batch by batch when it is needed.

    Notes
    -----
    Columns of numbers, truth values and decimals are data. Text and dates are not, and an error names them. In a text
    file an empty cell, NA, NaN, null and the like are missing values; the delimiter of a .csv or .txt file is the one
    among comma, semicolon, tab and bar that its header has most of.

    Names of rows need no `id_column` if the format has a place for them: the index that pandas keeps in Parquet and
    Feather, ``obs_names`` of an .h5ad file, and a first column without a name in a text file, as pandas and R write it.
    The latter must hold words, or whole numbers without repetition: otherwise it might be data, and is an error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from standout.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mice.csv")
    ...     _ = file.write_text("mouse,weight,length,genotype\nA,21.5,9,wild\nB,,8,mutant\n")
    ...     mice = read_table(file, id_column="mouse", group_column="genotype")
    >>> mice.columns, mice.values.tolist(), mice.groups.tolist()
    (['weight', 'length'], [[21.5, 9.0], [nan, 8.0]], ['wild', 'mutant'])
    """
    return open_files(
        path,
        columns=columns,
        drop=drop,
        where=where,
        id_column=id_column,
        label_column=label_column,
        group_column=group_column,
        missing="keep",
        format=format,
        variable=variable,
    ).read()


def open_files(
    paths: Any,
    *,
    columns: Any = None,
    drop: Any = (),
    where: Any = None,
    id_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    missing: str = "error",
    format: str | None = None,
    variable: str | None = None,
    batch_rows: int | None = None,
    checkpoint: Any = None,
    progress: bool = False,
) -> Scan:
    """Look at the files, choose their columns, and give the dataset that they make, to be read in parts or at once."""
    asked = ask(columns, drop, {"ids": id_column, "labels": label_column, "groups": group_column}, where)
    if batch_rows is not None:
        batch_rows = check_whole(batch_rows, "batch_rows")
    if missing not in MISSING_IN_SCANS:
        raise InvalidValueError(
            "is unknown",
            parameter="missing",
            value=missing,
            known=choices(MISSING_IN_SCANS),
            advice="Use one of {known}.",
        )
    readers = find_readers(paths, format, variable)
    heads = [_head(reader) for reader in readers]
    wanted = choose(heads[0], asked, readers[0].source)
    scanned = []
    for reader, head in zip(readers, heads, strict=True):
        its = choose_again(head, heads[0], wanted, asked, reader.source, readers[0].source)
        with readable(reader) as opened:
            form = opened.form(its.features)
        n_rows = form.batch_rows() if batch_rows is None else batch_rows
        scanned.append(ScannedFile(reader, its, form, n_rows, head.n_rows, stamp(reader.path)))
    return Scan(
        scanned,
        [heads[0].called[place] for place in wanted.features],
        has_names=heads[0].names is not None,
        where=asked.where,
        missing=missing,
        checkpoint=checkpoint_folder(checkpoint),
        progress=bool(progress),
    )


def column_names_of(path: Any, *, format: str | None = None, variable: str | None = None) -> list[str]:
    """Name the columns of a file, and the vectors beside them, without reading its rows."""
    head = _head(find_readers(path, format, variable)[0])
    return [*head.called, *head.beside]


def _head(reader: Reader) -> Head:
    with readable(reader) as opened:
        return opened.head()
