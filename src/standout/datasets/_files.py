"""Files of data: where to look for them, how to read them, and what to say when they are not right."""

import csv
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from standout._validation import (
    ArrayForm,
    as_folder,
    check_arrays,
    check_header,
    check_n_rows,
    reject_damaged,
    reject_missing,
)

VARIABLE = "STANDOUT_DATA"

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DataFile:
    """One file that a loader reads.

    Attributes
    ----------
    name : str
        File name.
    n_rows : int
        Rows of the whole dataset; a file may hold fewer.
    offer : str
        How to get the file other than by making it, as the end of a sentence that starts with "Or".
    arrays : mapping of str to ArrayForm
        The arrays of an .npz file.
    columns : tuple of str
        The columns of a .csv file.
    """

    name: str
    n_rows: int
    offer: str
    arrays: Mapping[str, ArrayForm] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def layout(self) -> str:
        """What one who makes the file needs to know."""
        if self.columns:
            return f"a table with the {len(self.columns)} columns {self.columns[0]} to {self.columns[-1]}"
        arrays = [
            f"{name} ({form}{', may be left out' if form.optional else ''})" for name, form in self.arrays.items()
        ]
        return f"made with numpy.savez_compressed, it holds the arrays {', '.join(arrays)}"

    @property
    def how_to_get(self) -> str:
        """What to do where the file is absent."""
        return (
            f"Put the file into a folder and give that as data_dir or in the environment variable {VARIABLE}: "
            f"{self.layout}. Or {self.offer}."
        )

    @property
    def how_to_mend(self) -> str:
        """What to do where the file is damaged."""
        return f"Put a good copy in its place: {self.layout}. Or delete it, and {self.offer}."


def find(file: DataFile, data_dir: Folder) -> Path | None:
    """Look for a file in the folder given; without one in that of the environment variable, then among downloads."""
    # os.path.exists, unlike Path.exists, takes a folder without permission for one without the file.
    return next((folder / file.name for folder in _folders(data_dir) if os.path.exists(folder / file.name)), None)


def refuse(file: DataFile, data_dir: Folder) -> NoReturn:
    """Say that a file is nowhere."""
    unset = [] if data_dir is not None or os.environ.get(VARIABLE) else [f"{VARIABLE} (which is not set)"]
    reject_missing(file.name, [*unset, *(str(folder) for folder in _folders(data_dir))], file.how_to_get)


def download_folder(data_dir: Folder) -> Path:
    """Say where downloads are kept: in the folder given, or in the user's cache."""
    if data_dir is not None:
        return as_folder(data_dir)
    return _cache_root(sys.platform, os.environ) / "standout"


def read_arrays(path: Path, file: DataFile) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of an .npz file, each checked against its form."""
    _require_readable(path, file)
    if not zipfile.is_zipfile(path):
        reject_damaged(str(path), "it is not an .npz archive, or only a part of one", file.how_to_mend)
    try:
        # Opened here, because NumPy leaves a file open whose archive turns out to be damaged.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in file.arrays if name in stored.files}
    # A damaged archive can make the readers of zip, zlib and NumPy raise nearly anything, even a MemoryError for a
    # size that is not there.
    except Exception as error:
        reject_damaged(str(path), f"reading it stopped with {_in_words(error)}", file.how_to_mend)
    check_arrays(arrays, file.arrays, file.n_rows, str(path), file.how_to_mend)
    return arrays


def read_table(path: Path, file: DataFile) -> dict[str, list[str]]:
    """Read the columns of a .csv file as words."""
    _require_readable(path, file)
    try:
        # A byte-order mark, which spreadsheets like to write, is not part of the first name.
        with path.open(newline="", encoding="utf-8-sig") as text:
            rows = [row for row in csv.reader(text, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reject_damaged(str(path), f"reading it stopped with {_in_words(error)}", file.how_to_mend)
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    check_header(header, file.columns, str(path), file.how_to_mend)
    for number, row in enumerate(body, start=1):
        if len(row) != len(header):
            what = f"row {number} has {len(row)} cells, but there are {len(header)} columns"
            reject_damaged(str(path), what, file.how_to_mend)
    check_n_rows(len(body), file.n_rows, str(path), file.how_to_mend)
    return {name: [row[number] for row in body] for number, name in enumerate(header)}


def as_numbers(cells: list[str], column: str, path: Path, file: DataFile) -> npt.NDArray[np.float64]:
    """Turn the cells of one column into numbers, an empty one into NaN."""
    numbers = np.full(len(cells), np.nan)
    for number, cell in enumerate(cells):
        if cell.strip():
            try:
                numbers[number] = float(cell)
            except ValueError:
                what = f"{cell!r} in row {number + 1} of column {column!r} is not a number (empty means missing)"
                reject_damaged(str(path), what, file.how_to_mend)
            if not np.isfinite(numbers[number]):
                what = f"{cell!r} in row {number + 1} of column {column!r} is not finite (empty means missing)"
                reject_damaged(str(path), what, file.how_to_mend)
    return numbers


def _folders(data_dir: Folder) -> Iterator[Path]:
    if data_dir is None and os.environ.get(VARIABLE):
        yield as_folder(os.environ[VARIABLE])
    yield download_folder(data_dir)


def _cache_root(platform: str, environment: Mapping[str, str]) -> Path:
    """Folder that each platform keeps for what can be fetched again."""
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _require_readable(path: Path, file: DataFile) -> None:
    if path.is_dir():
        reject_damaged(str(path), "it is a folder, not a file", file.how_to_mend)
    try:
        path.open("rb").close()
    except OSError as error:
        reject_damaged(str(path), f"it cannot be opened ({error.strerror})", file.how_to_mend)


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().rstrip(":.")
