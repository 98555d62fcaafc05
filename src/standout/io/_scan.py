"""Files as one dataset, which is read batch by batch, as often as needed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from standout._arrays import Rows, all_finite, in_order, row_slice
from standout._checks import check_choice
from standout._messages import InvalidValueError, reject_too_few, short, shown
from standout._writing import progress_bar
from standout.io._checkpoint import Checkpoint, Reached
from standout.io._columns import BESIDE, compact
from standout.io._files import readable, stamp
from standout.io._reader import Form, Reader, Wanted, ahead
from standout.io._table import Collected, check_cells, rows_with_missing
from standout.sources import Batch, Source, Table, Words, added, regrouped

UNNAMED = "the scan"
MISSING_IN_SCANS = ("error", "keep", "drop-rows")
ROLES = ("ids", "labels", "groups")
# How much larger a gzipped file of numbers is as text, about.
GUNZIPPED = 3
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
        self.name = UNNAMED
        self.missing = missing
        self._where = dict(where)
        self._checkpoint = checkpoint
        self._progress = progress
        self._numbered = False
        # Shared by copies: rows that the last pass left out for a missing value, by group.
        self._dropped: dict[str, int] = {}
        self._scanned = tuple(scanned)
        # Names of the columns, made up if the files have none.
        self._called = columns
        self._has_names = has_names
        self._describe()

    def _describe(self) -> None:
        """Set what is known of the rows without reading them."""
        self.columns = self._called if self._has_names else None
        roles = [role for file in self._scanned[:1] for role in file.wanted.words]
        self.beside_columns = tuple(role.removeprefix(BESIDE) for role in roles if role.startswith(BESIDE))
        self.width = len(self._called)
        counts = [file.n_rows for file in self._scanned if file.n_rows is not None]
        known = len(counts) == len(self._scanned) and not self._where and self.missing != "drop-rows"
        self.n_rows = sum(counts) if known else None

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are read."""
        return [file.reader.source for file in self._scanned]

    @property
    def roles(self) -> list[str]:
        """Which of ids, labels and groups the rows have."""
        known = {role for file in self._scanned for role in file.wanted.words}
        return [role for role in ROLES if role in known]

    @property
    def n_bytes(self) -> int:
        """About how much memory all rows take. For text, the number of rows is guessed from the length of the first."""
        total = 0
        for file in self._scanned:
            size = file.stamp[0] * (GUNZIPPED if file.reader.source.lower().endswith(".gz") else 1)
            n_rows = size // max(file.form.text_bytes, 1) if file.n_rows is None else file.n_rows
            total += max(n_rows * file.form.row_bytes, size if file.n_rows is None else 0)
        return total

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows the last pass left out for a missing value: by group, or under "" without groups."""
        return dict(self._dropped)

    def check_in_parts(self) -> None:
        """Refuse files whose rows cannot be read without all others."""
        for file in self._scanned:
            file.reader.check_in_parts()

    def __repr__(self) -> str:
        n_files = len(self._scanned)
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        return f"Scan({n_files} file{'s' if n_files > 1 else ''}: {rows} rows x {self.width:,} columns)"

    # --- the same files, read in another way ------------------------------------------------------------------------

    def with_missing(self, missing: str) -> Scan:
        """Give the same rows with another treatment of missing values: "error", "keep" or "drop-rows"."""
        return self._changed(missing=check_choice(missing, "missing", MISSING_IN_SCANS))

    def with_columns(self, columns: Sequence[str]) -> Scan:
        """Give the same rows with some of the columns, in this order."""
        known = {name: place for place, name in enumerate(self._called)}
        places = [known[name] for name in columns]

        def chosen(wanted: Wanted) -> Wanted:
            return replace(wanted, features=compact([wanted.features[place] for place in places]))

        return self._with_files(lambda file: replace(file, wanted=chosen(file.wanted)), _called=list(columns))

    def numbered(self) -> Scan:
        """Give the same rows with their numbers in the files, from 0, as ids, unless they have others."""
        return self._changed(_numbered="ids" not in self.roles)

    def with_progress(self, progress: bool) -> Scan:
        """Give the same rows, with a progress bar for each pass or without."""
        return self._changed(_progress=progress)

    def _changed(self, **attributes: Any) -> Scan:
        other = copy(self)
        vars(other).update(attributes)
        other._describe()
        return other

    def _with_files(self, change: Callable[[ScannedFile], ScannedFile], **attributes: Any) -> Scan:
        return self._changed(_scanned=tuple(map(change, self._scanned)), **attributes)

    def _without_features(self) -> Scan:
        def bare(file: ScannedFile) -> ScannedFile:
            form = replace(file.form, row_bytes=8, truths=frozenset())
            return replace(file, wanted=Wanted((), file.wanted.words), form=form, batch_rows=2**17)

        return self._with_files(bare, _called=[])

    # --- reading ----------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, each checked, with the ids, labels and groups of its rows."""
        return self._checked_batches(words=True)

    def parts(self) -> Iterator[Rows]:
        """Give the rows of one batch after the other; ids, labels and groups are not read."""
        return (batch.rows for batch in self._checked_batches(words=False))

    def first(self, count: int) -> Rows:
        """Give the first rows, at most `count`, without reading a whole batch."""
        most = max(count, FIRST_ROWS)
        few = self._with_files(lambda file: replace(file, batch_rows=min(file.batch_rows, most)), _progress=False)
        with closing(few._checked_batches(words=False)) as batches:
            found = next((batch.rows for batch in batches if batch.n_rows), None)
        return self._check_count(0, max(self.min_rows, 1)) if found is None else row_slice(found, 0, count)

    def words(self, role: str) -> Iterator[Any]:
        """Give the ids, labels or groups of one batch after the other, without reading the numbers."""
        scan = self if self.missing == "drop-rows" else self._without_features()
        return (getattr(batch, role) for batch in scan.batches())

    def column(self, name: str) -> Words:
        """Give the words of a column that is kept beside the rows, without reading the numbers."""
        place = self.beside_columns.index(name)
        return np.concatenate([words[:, place] for words in self.words("beside")])

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
        table = self._collected()
        for batch in self._in_small_batches()._checked_batches(words=words):
            table.add(batch)
        return self._named(table.made(self._called, ", ".join(self.files), has_names=self._has_names))

    def read_groups(self, table_of: Callable[[str], Any]) -> tuple[dict[Any, Table], list[str]]:
        """Read all rows once, into a table for each key that a function gives to the groups.

        Rows of a group with the key None are left out. All groups that there are come back, too, sorted.
        """
        tables: dict[Any, Collected] = {}
        keys: dict[str, Any] = {}
        for batch in self._in_small_batches().batches():
            assert batch.groups is not None
            here: dict[Any, list[str]] = {}
            for group in set(batch.groups.tolist()):
                key = keys[group] = keys[group] if group in keys else table_of(group)
                here.setdefault(key, []).append(group)
            for key, groups in here.items():
                if key is not None:
                    chosen = np.flatnonzero(np.isin(batch.groups, groups))
                    tables.setdefault(key, self._collected(known=False)).add(
                        batch if len(chosen) == batch.n_rows else batch.taken(chosen, 0)
                    )
        source = ", ".join(self.files)
        made = {
            key: self._named(table.made(self._called, source, has_names=self._has_names))
            for key, table in tables.items()
        }
        return made, sorted(keys)

    def _named(self, table: Table) -> Table:
        return replace(table, beside_columns=() if table.beside is None else self.beside_columns)

    def _collected(self, known: bool = True) -> Collected:
        dtype = np.result_type(*(file.form.dtype for file in self._scanned))
        return Collected(self.n_rows if known else None, dtype)

    def _in_small_batches(self) -> Scan:
        return self._with_files(lambda file: replace(file, batch_rows=file.form.batch_rows(TABLE_BATCH_BYTES)))

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
            passed = place

            def counted() -> Iterator[Batch]:
                nonlocal passed
                for passed, batch in batches:  # noqa: B007
                    yield batch

            with closing(self._read(place, n_rows, words)) as batches:
                # A batch that is held back until there are enough rows counts as read only once it is in the sum.
                items = ((batch, passed) for batch in regrouped(counted()))
                with closing(in_order(lambda item: (part(item[0]), item[1], item[0].n_rows), items)) as results:
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
        if n_rows < least:
            values = [(short(name), " or ".join(map(repr, some))) for name, some in self._where.items()]
            chosen = "".join(f", where {name!r} is {words}" for name, words in values)
            reject_too_few(f"{self.name} ({len(self._scanned)} file(s){chosen})", n_rows, least)

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
        self._dropped.clear()
        before = sum(file.n_rows or 0 for file in self._scanned[: place.file])
        for number in range(place.file, len(self._scanned)):
            file = self._scanned[number]
            row = place.row if number == place.file else 0
            with _unchanged(file), readable(file.reader) as reader:
                wanted = Wanted(file.wanted.features, _words_of(file.wanted, words))
                with closing(reader.batches(wanted, file.form, file.batch_rows, row)) as batches:
                    for rows, found in batches:
                        n_read = rows.shape[0]
                        if self._numbered and words:
                            found["ids"] = np.arange(before + row, before + row + n_read)
                        yield Place(number, row + n_read), n_read, self._chosen(rows, found, row, file)
                        row += n_read
                if file.n_rows is not None and row != file.n_rows:
                    problem = "it gave {n_rows} rows, but should have {limit}"
                    reader.refuse(problem, "Write the file again.", n_rows=row, limit=file.n_rows)
            before += row

    def _chosen(self, rows: Rows, words: Mapping[str, Any], row: int, file: ScannedFile) -> Batch | None:
        """Give the rows of a batch that are wanted, checked; None if there are none."""
        wanted = np.ones(rows.shape[0], dtype=bool)
        for name, values in self._where.items():
            wanted &= np.isin(words[f"where {name}"], [spelling for value in values for spelling in _spellings(value)])
        kept = [words[BESIDE + name] for name in self.beside_columns if BESIDE + name in words]
        beside = np.column_stack(kept) if kept else None
        batch = Batch(rows, 0, words.get("ids"), words.get("labels"), words.get("groups"), beside=beside)
        places = np.flatnonzero(wanted)
        if len(places) < batch.n_rows:
            batch = batch.taken(places, 0)
        if not all_finite(batch.rows):
            ids = None if self._numbered else batch.ids
            # Before a fit says what the scan is to it, the name of the file is enough.
            role = "" if self.name == UNNAMED else f" ({self.name})"
            name = f"{shown(file.reader.source)}{role}"
            check_cells(batch.rows, self.missing == "error", name, self._called, ids, row + places)
            if self.missing == "drop-rows":
                gaps = rows_with_missing(batch.rows)
                groups = [""] * int(gaps.sum()) if batch.groups is None else batch.groups[gaps].tolist()
                self._dropped.update(Counter(self._dropped) + Counter(groups))
                batch = batch.taken(np.flatnonzero(~gaps), 0)
        return batch if batch.n_rows else None


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
