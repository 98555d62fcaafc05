"""The dataset that files make: read batch by batch, as often as it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from standout._arrays import Rows, in_order, is_sparse
from standout._validation import (
    check_all_read,
    check_rows_of_scan,
    check_unchanged,
    reject_cell,
    shown,
)
from standout.io._ahead import ahead
from standout.io._bar import bar
from standout.io._cells import first_cell
from standout.io._checkpoint import Checkpoint, Reached
from standout.io._pieces import Form, Pieces
from standout.io._scan_files import stamp
from standout.io._statistics import unusual_blocks
from standout.io._table import made_up_names
from standout.sources import Stream, regrouped


@dataclass(frozen=True)
class ScannedFile:
    """One file of a scan, and what has been settled about it.

    Attributes
    ----------
    pieces : Pieces
    features : sequence of int
        Positions in the file of the columns of the scan, in the order of the scan.
    form : Form
    batch_rows : int
    n_rows : int or None
        Number of rows, where the file tells.
    stamp : tuple of int
        What changes when the file does.
    """

    pieces: Pieces
    features: Sequence[int]
    form: Form
    batch_rows: int
    n_rows: int | None
    stamp: tuple[int, ...]


class Place(NamedTuple):
    """How far a pass has come: all rows before this one, of all files before this one, are done."""

    file: int
    row: int


class Scan(Stream):
    """Which rows are in these files? They are read when they are needed, batch by batch, as often as it takes.

    Made by :func:`standout.scan`. Whatever takes a dataset takes a scan: as a target, as a background, in `transform`.
    It holds paths only, and can be sent to other processes that see the same files.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns; None for files that name none (.npy, a Zarr array).
    width : int
        Number of columns.
    n_rows : int or None
        Number of rows in all; None for CSV, which does not tell.
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
        self, scanned: Sequence[ScannedFile], columns: list[str] | None, *, checkpoint: Path | None, progress: bool
    ) -> None:
        self._scanned = tuple(scanned)
        self._checkpoint = checkpoint
        self._progress = progress
        self.name = "the scan"
        self.columns = columns
        self.width = len(scanned[0].features)
        counts = [file.n_rows for file in scanned]
        self.n_rows = None if None in counts else sum(count for count in counts if count is not None)

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are read."""
        return [file.pieces.source for file in self._scanned]

    def __repr__(self) -> str:
        n_files = len(self._scanned)
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        return f"Scan({n_files} file{'s' if n_files > 1 else ''}: {rows} rows x {self.width:,} columns)"

    def parts(self) -> Iterator[Rows]:
        """Give one batch after the other, each checked: finite numbers in the columns of the scan."""
        n_rows = 0
        with closing(self._read(Place(0, 0))) as batches:
            for _, rows in batches:
                n_rows += rows.shape[0]
                yield rows
        check_rows_of_scan(n_rows, self.min_rows, self.name, len(self._scanned))

    def summed(self, part: Callable[[Rows], Any]) -> Any:
        """Add up what a function makes of each part, in the order of the rows; goes on from a checkpoint, if any.

        The sum does not depend on whether, or where, the pass was interrupted: the same numbers are added in the same
        order.
        """
        if self.n_rows is not None:
            check_rows_of_scan(self.n_rows, self.min_rows, self.name, len(self._scanned))
        kept = None if self._checkpoint is None else Checkpoint.of(self._checkpoint, self._identity(), part)
        reached = Reached(None, (0, 0), 0) if kept is None else kept.load()
        total, place, n_rows = reached.total, Place(*reached.place), reached.n_rows
        # What is in the sum already is not read, and could have changed without being noticed.
        for file in self._scanned[: place.file]:
            check_unchanged(_stamp(file), file.stamp, file.pieces.source)
        if place.file < len(self._scanned):
            # A part that is held back until there are enough rows counts as read only once it is in the sum.
            passed = _Counted(self._read(place), place)
            with closing(passed.batches), closing(in_order(_Made(part), passed.regrouped())) as results:
                for made, after, count in results:
                    total = made if total is None else total + made
                    n_rows += count
                    if kept is not None:
                        kept.offer(Reached(total, after, n_rows))
            if kept is not None:
                kept.write(Reached(total, (len(self._scanned), 0), n_rows))
        check_rows_of_scan(n_rows, max(self.min_rows, 1), self.name, len(self._scanned))
        return total

    def _identity(self) -> list[Any]:
        """Give all that the sum over the rows depends on, beside what is summed."""
        return [
            [
                type(file.pieces).__name__,
                os.path.realpath(file.pieces.path),
                file.pieces.variable,
                list(file.stamp),
                file.batch_rows,
                list(file.features),
            ]
            for file in self._scanned
        ]

    def _read(self, place: Place) -> Generator[tuple[Place, Rows]]:
        """Give the batches from a place on, each with the place after it; the next one is read meanwhile."""
        done = sum(_size(file, self.n_rows is not None) for file in self._scanned[: place.file])
        total = sum(_size(file, self.n_rows is not None) for file in self._scanned)
        with bar(f"reading {self.name}", total, done, self._progress) as advance:
            for after, rows in ahead(self._batches(place)):
                file = self._scanned[after.file]
                advance(rows.shape[0] * (1 if self.n_rows is not None else file.form.text_bytes))
                yield after, rows

    def _batches(self, place: Place) -> Iterator[tuple[Place, Rows]]:
        for number in range(place.file, len(self._scanned)):
            file = self._scanned[number]
            check_unchanged(_stamp(file), file.stamp, file.pieces.source)
            row = place.row if number == place.file else 0
            with closing(file.pieces.batches(file.features, file.form, file.batch_rows, row)) as batches:
                for rows in batches:
                    self._check_finite(rows, row, file)
                    row += rows.shape[0]
                    yield Place(number, row), rows
            check_all_read(row, file.n_rows, file.pieces.source)

    def _check_finite(self, rows: Rows, first_row: int, file: ScannedFile) -> None:
        """Refuse what is missing or infinite, and say where it stands."""
        # A finite sum has finite terms, and costs a fraction of looking at each.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(rows.data if is_sparse(rows) else rows)):
                return
        found = first_cell(rows, lambda numbers: ~np.isfinite(numbers), unusual_blocks)
        if found is not None:
            row, column = found
            names = self.columns or made_up_names(rows.shape[1])
            reject_cell(
                "a missing or infinite value",
                float(rows[row, column]),
                names[column],
                first_row + row + 1,
                None,
                f"{shown(file.pieces.source)} ({self.name})",
                "Drop such rows or fill them in, in the target and in every background alike.",
            )


def _stamp(file: ScannedFile) -> tuple[int, ...] | None:
    try:
        return stamp(file.pieces.path)
    except OSError:
        return None


def _size(file: ScannedFile, in_rows: bool) -> int:
    return (file.n_rows or 0) if in_rows else file.stamp[0]


class _Counted:
    """Batches, and the place that has been reached with them."""

    def __init__(self, batches: Iterator[tuple[Place, Rows]], place: Place) -> None:
        self.batches: Any = batches
        self.place = place

    def regrouped(self) -> Iterator[tuple[Rows, Place]]:
        """Give parts with enough rows, each with the place after it."""
        for rows in regrouped(self._rows()):
            yield rows, self.place

    def _rows(self) -> Iterator[Rows]:
        for place, rows in self.batches:
            self.place = place
            yield rows


@dataclass(frozen=True, eq=False)
class _Made:
    """What is made of a part, with the place after it and the number of its rows."""

    part: Callable[[Rows], Any]

    def __call__(self, item: tuple[Rows, Place]) -> tuple[Any, Place, int]:
        rows, place = item
        return self.part(rows), place, rows.shape[0]
