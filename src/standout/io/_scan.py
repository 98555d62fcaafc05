"""Files as one dataset: read batch by batch as often as needed (`scan`), or at once as a table (`read_table`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from standout._arrays import Array, Rows, in_order, row_slice
from standout._checks import check_whole
from standout._messages import InvalidValueError, choices, reject_too_few, short, shown
from standout._writing import progress_bar
from standout.io._checkpoint import Checkpoint, Reached, checkpoint_folder
from standout.io._columns import Asked, ask, choose, choose_again, compact
from standout.io._files import find_readers, readable, stamp
from standout.io._reader import Form, Head, Reader, Wanted, ahead
from standout.io._table import Collected, first_cell, is_finite, rows_with_missing
from standout.sources import Batch, Source, Table, added, regrouped

Format = Literal["csv", "tsv", "parquet", "arrow", "feather", "npy", "npz", "mat", "h5ad", "zarr"]
MISSING_IN_SCANS = ("error", "keep", "drop-rows")
# A table is made of small batches, which stay in the cache until they are copied.
TABLE_BATCH_BYTES = 4 * 2**20
# Rows that are read when only the first few are needed.
FIRST_ROWS = 1024


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
    missing : {"error", "keep", "drop-rows"}
        What is done about missing values.

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
    ) -> None:
        self.name = "the scan"
        self.missing = missing
        self._where = dict(where)
        self._checkpoint = checkpoint
        self._progress = progress
        self._scanned = tuple(scanned)
        # Names of the columns, made up if the files have none.
        self._called = columns
        self._has_names = has_names
        self._describe()

    def _describe(self) -> None:
        """Set what is known of the rows without reading them."""
        self.columns = self._called if self._has_names else None
        self.width = len(self._called)
        counts = [file.n_rows for file in self._scanned if file.n_rows is not None]
        known = len(counts) == len(self._scanned) and not self._where and self.missing != "drop-rows"
        self.n_rows = sum(counts) if known else None

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are read."""
        return [file.reader.source for file in self._scanned]

    def __repr__(self) -> str:
        n_files = len(self._scanned)
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        return f"Scan({n_files} file{'s' if n_files > 1 else ''}: {rows} rows x {self.width:,} columns)"

    # --- the same files, read in another way ------------------------------------------------------------------------

    def with_missing(self, missing: str) -> Scan:
        """Give the same rows with another treatment of missing values: "error", "keep" or "drop-rows"."""
        _check_missing(missing)
        return self._changed(missing=missing)

    def with_columns(self, columns: Sequence[str]) -> Scan:
        """Give the same rows with some of the columns, in this order."""
        known = {name: place for place, name in enumerate(self._called)}
        places = [known[name] for name in columns]
        scanned = tuple(
            replace(file, wanted=replace(file.wanted, features=compact([file.wanted.features[p] for p in places])))
            for file in self._scanned
        )
        return self._changed(_scanned=scanned, _called=list(columns))

    def _changed(self, **attributes: Any) -> Scan:
        other = copy(self)
        vars(other).update(attributes)
        other._describe()
        return other

    def _without_features(self) -> Scan:
        scanned = tuple(
            replace(
                file,
                wanted=Wanted((), file.wanted.words),
                form=Form(file.form.dtype, 8, file.form.chunk_rows, file.form.text_bytes),
                batch_rows=2**17,
            )
            for file in self._scanned
        )
        return self._changed(_scanned=scanned, _called=[])

    # --- reading ----------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, each checked, with the ids, labels and groups of its rows."""
        return self._checked_batches(words=True)

    def parts(self) -> Iterator[Rows]:
        """Give the rows of one batch after the other; ids, labels and groups are not read."""
        return (batch.rows for batch in self._checked_batches(words=False))

    def first(self, count: int) -> Rows:
        """Give the first rows, at most `count`, without reading a whole batch."""
        scanned = tuple(
            replace(file, batch_rows=min(file.batch_rows, max(count, FIRST_ROWS))) for file in self._scanned
        )
        few = self._changed(_scanned=scanned, _progress=False)
        with closing(few._checked_batches(words=False)) as batches:
            found = next((batch.rows for batch in batches if batch.n_rows), None)
        return self._check_count(0, max(self.min_rows, 1)) if found is None else row_slice(found, 0, count)

    def words(self, role: str) -> Iterator[Any]:
        """Give the ids, labels or groups of one batch after the other, without reading the numbers."""
        scan = self if self.missing == "drop-rows" else self._without_features()
        return (getattr(batch, role) for batch in scan.batches())

    def count_rows(self) -> int:
        """Count the rows, by reading no more than is needed: the columns of `where`, if rows are chosen by them."""
        if self.n_rows is not None:
            return self.n_rows
        scan = self if self.missing == "drop-rows" else self._without_features()
        return sum(batch.n_rows for batch in scan._checked_batches(words=False))

    def rows(self) -> Rows:
        """Give all rows, brought together in memory."""
        return self._table(words=False).values

    def read(self) -> Table:
        """Read all rows at once, as a table with the ids, labels and groups of its rows."""
        return self._table(words=True)

    def _table(self, *, words: bool) -> Table:
        scanned = tuple(replace(file, batch_rows=file.form.batch_rows(TABLE_BATCH_BYTES)) for file in self._scanned)
        small = self._changed(_scanned=scanned)
        table = Collected(self.n_rows, np.result_type(*(file.form.dtype for file in self._scanned)))
        for batch in small._checked_batches(words=words):
            table.add(batch)
        return table.made(self._called, ", ".join(self.files), has_names=self._has_names)

    def require_finite(self) -> None:
        """Refuse missing values now, if they are given as NaN; otherwise rows are checked as they are read."""
        if self.missing == "keep":
            for _ in self.with_missing("error").parts():
                pass

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each batch, in the order of the rows, from the last checkpoint on.

        Ids, labels and groups are read unless the function has an attribute `needs_words` that is false.
        """
        if self.n_rows is not None:
            self._check_count(self.n_rows, self.min_rows)
        words = bool(getattr(part, "needs_words", True))
        kept = None if self._checkpoint is None else Checkpoint.of(self._checkpoint, self._identity(words), part)
        reached = Reached(None, (0, 0), 0) if kept is None else kept.load()
        total, place, n_rows = reached.total, Place(*reached.place), reached.n_rows
        if place.file < len(self._scanned):
            passed = _Passed(self._read(place, n_rows, words), place)
            with closing(passed.batches), closing(in_order(_Made(part), passed.regrouped())) as results:
                for made, after, count in results:
                    total = added(total, made)
                    n_rows += count
                    if kept is not None:
                        kept.offer(Reached(total, after, n_rows))
        # If files changed during the pass, or since the sum was kept, the sum belongs to no state of the files.
        for file in self._scanned:
            _check_unchanged(file)
        if kept is not None and place.file < len(self._scanned):
            kept.write(Reached(total, (len(self._scanned), 0), n_rows))
        self._check_count(n_rows, max(self.min_rows, 1))
        return total

    def _check_count(self, n_rows: int, least: int) -> Any:
        """Refuse too few rows, and say which were looked for."""
        if n_rows >= least:
            return
        if self._where:
            raise InvalidValueError(
                "{n_rows} row(s) of {files} have {conditions}, but the least is {limit}",
                n_rows=n_rows,
                files=shown(self.files[0]) if len(self.files) == 1 else f"{len(self.files)} files",
                conditions=" and ".join(
                    f"{short(name)!r} {' or '.join(repr(short(value)) for value in values)}"
                    for name, values in self._where.items()
                ),
                limit=least,
                advice="Check the values of {p.where}, or give more rows.",
            )
        reject_too_few(f"{self.name} ({len(self._scanned)} file(s))", n_rows, least)

    def _identity(self, words: bool) -> list[Any]:
        """Give all that the sum over the rows depends on, beside what is summed."""
        files = [
            [
                type(file.reader).__name__,
                os.path.realpath(file.reader.path),
                file.reader.variable,
                list(file.stamp),
                file.batch_rows,
                list(file.wanted.features),
                sorted(_words_of(file.wanted, words).items()),
            ]
            for file in self._scanned
        ]
        return [files, sorted((name, sorted(values)) for name, values in self._where.items()), self.missing]

    def _checked_batches(self, *, words: bool) -> Generator[Batch]:
        n_rows = 0
        with closing(self._read(Place(0, 0), 0, words)) as batches:
            for _, batch in batches:
                n_rows += batch.n_rows
                yield batch
        self._check_count(n_rows, self.min_rows)

    def _read(self, place: Place, n_before: int, words: bool) -> Generator[tuple[Place, Batch]]:
        """Give the batches from a place on, each with the place after it; the next one is read meanwhile."""
        in_rows = all(file.n_rows is not None for file in self._scanned)
        sizes = [(file.n_rows or 0) if in_rows else file.stamp[0] for file in self._scanned]
        start, done = n_before, sum(sizes[: place.file])
        with (
            progress_bar(f"reading {self.name}", sum(sizes), done=done, shown=self._progress) as advance,
            closing(ahead(self._file_batches(place, words))) as batches,
        ):
            for after, n_read, batch in batches:
                advance(n_read * (1 if in_rows else self._scanned[after.file].form.text_bytes))
                if batch is not None:
                    yield after, replace(batch, start=start)
                    start += batch.n_rows

    def _file_batches(self, place: Place, words: bool) -> Generator[tuple[Place, int, Batch | None]]:
        """Give the batches of the files: the place after each, the number of rows read, and the wanted rows."""
        for number in range(place.file, len(self._scanned)):
            file = self._scanned[number]
            row = place.row if number == place.file else 0
            with _unchanged(file), readable(file.reader) as reader:
                wanted = Wanted(file.wanted.features, _words_of(file.wanted, words))
                with closing(reader.batches(wanted, file.form, file.batch_rows, row)) as batches:
                    for rows, found in batches:
                        n_read = rows.shape[0]
                        yield Place(number, row + n_read), n_read, self._chosen(rows, found, row, file)
                        row += n_read
                if file.n_rows is not None and row != file.n_rows:
                    raise InvalidValueError(
                        "{file} cannot be used: it gave {n_rows} rows, but should have {limit}",
                        file=shown(file.reader.source),
                        n_rows=row,
                        limit=file.n_rows,
                        advice="Write the file again.",
                    )

    def _chosen(self, rows: Rows, words: Mapping[str, Any], row: int, file: ScannedFile) -> Batch | None:
        """Give the rows of a batch that are wanted, checked; None if there are none."""
        wanted = np.ones(rows.shape[0], dtype=bool)
        for name, values in self._where.items():
            wanted &= np.isin(words[f"where {name}"], [spelling for value in values for spelling in _spellings(value)])
        batch = Batch(rows, 0, words.get("ids"), words.get("labels"), words.get("groups"))
        places = np.flatnonzero(wanted)
        if len(places) < batch.n_rows:
            batch = batch.taken(places, 0)
        if not is_finite(batch.rows):
            self._check_cells(batch, row + places, file)
            if self.missing == "drop-rows":
                batch = batch.taken(np.flatnonzero(~rows_with_missing(batch.rows)), 0)
        return batch if batch.n_rows else None

    def _check_cells(self, batch: Batch, numbers: Array, file: ScannedFile) -> None:
        """Refuse what is infinite, and what is missing unless that is allowed; say where the first cell is."""
        wrong = np.isinf if self.missing != "error" else lambda cells: ~np.isfinite(cells)
        found = first_cell(batch.rows, wrong)
        if found is not None:
            value = float(batch.rows[found])
            raise InvalidValueError(
                "{what} in {name}: column {column}, row {row}{row_id}",
                what="a value is missing" if np.isnan(value) else "there is an infinite value",
                name=f"{shown(file.reader.source)} ({self.name})",
                column=repr(short(self._called[found[1]])),
                row=int(numbers[found[0]]) + 1,
                row_id="" if batch.ids is None else f" ({short(batch.ids[found[0]])!r})",
                advice="Say what to do about missing values with {p.missing}."
                if np.isnan(value)
                else "Mend it, or leave the cell empty if the value is missing.",
            )


def _words_of(wanted: Wanted, words: bool) -> dict[str, str]:
    """Name the columns to be read as words: those by which rows are chosen, and ids, labels and groups if wanted."""
    return {role: name for role, name in wanted.words.items() if words or role.startswith("where ")}


def _spellings(value: str) -> list[str]:
    """Give the ways in which files may write a value: in text files whole numbers may have a decimal point."""
    return [value, f"{value}.0"] if value.lstrip("-").isdecimal() else [value]


@contextmanager
def _unchanged(file: ScannedFile) -> Iterator[None]:
    """Refuse a file that is no longer the one that was looked at, before it is read and afterwards."""
    _check_unchanged(file)
    try:
        yield
    except Exception:
        # What looks like damage may come from a file that is being rewritten.
        _check_unchanged(file)
        raise
    _check_unchanged(file)


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
    made = _make(
        paths,
        format,
        variable,
        ask(columns, drop, {"ids": id_column, "labels": label_column, "groups": group_column}, where),
        missing=missing,
        batch_rows=None if batch_rows is None else check_whole(batch_rows, "batch_rows"),
        checkpoint=checkpoint_folder(checkpoint),
        progress=bool(progress),
    )
    for file in made._scanned:
        file.reader.check_in_parts()
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
    asked = ask(columns, drop, {"ids": id_column, "labels": label_column, "groups": group_column}, where)
    return _make(path, format, variable, asked, missing="keep").read()


def _make(
    paths: Any,
    format: str | None,
    variable: str | None,
    asked: Asked,
    *,
    missing: str,
    batch_rows: int | None = None,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> Scan:
    """Look at the files, choose their columns, and give the dataset that they make."""
    _check_missing(missing)
    readers = find_readers(paths, format, variable)
    heads = [_head(reader) for reader in readers]
    wanted = choose(heads[0], asked, readers[0].source)
    scanned = []
    for reader, head in zip(readers, heads, strict=True):
        its = choose_again(head, heads[0], wanted, asked, reader.source, readers[0].source)
        with readable(reader) as opened:
            form = opened.form(its.features)
            if "ids" not in asked.roles:
                opened.check_row_names(its)
        n_rows = form.batch_rows() if batch_rows is None else batch_rows
        scanned.append(ScannedFile(reader, its, form, n_rows, head.n_rows, stamp(reader.path)))
    return Scan(
        scanned,
        [heads[0].called[place] for place in wanted.features],
        has_names=heads[0].names is not None,
        where=asked.where,
        missing=missing,
        checkpoint=checkpoint,
        progress=progress,
    )


def _check_missing(missing: Any) -> None:
    if not isinstance(missing, str) or missing not in MISSING_IN_SCANS:
        raise InvalidValueError(
            "is unknown",
            parameter="missing",
            value=missing,
            known=choices(MISSING_IN_SCANS),
            advice="Use one of {known}.",
        )


def column_names_of(path: Any, *, format: str | None = None, variable: str | None = None) -> list[str]:
    """Name the columns of a file, and the vectors beside them, without reading its rows."""
    head = _head(find_readers(path, format, variable)[0])
    return [*head.called, *head.beside]


def _head(reader: Reader) -> Head:
    with readable(reader) as opened:
        return opened.head()
